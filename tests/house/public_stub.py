"""Write ``__init__.pyi``, the types of the lazy names: ``python tests/house/public_stub.py``."""

from collections import defaultdict
from pathlib import Path

import kernelatoms

STUB = Path(kernelatoms.__file__).with_name("__init__.pyi")


def stub():
    """Return the text of the stub, made of the table of public names."""
    names = defaultdict(list)
    for name, home in kernelatoms._HOMES.items():
        names[home].append(name)
    lines = ["# Written by tests/house/public_stub.py.", ""]
    lines += [f"from kernelatoms import {room} as {room}" for room in kernelatoms._ROOMS]
    lines += [
        f"from kernelatoms.{home} import {name} as {name}"
        for home in sorted(names)
        for name in sorted(names[home])
    ]
    return "\n".join([*lines, "", "__version__: str", ""])


if __name__ == "__main__":
    STUB.write_text(stub())
