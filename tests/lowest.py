"""Print the lowest versions that pyproject.toml allows, a pip constraint a line.

``make test-lowest`` installs them. Standard library only: it runs before anything is installed.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]


def lowest(requirement):
    """``numpy==2.1`` of ``numpy>=2.1``, the only form of a requirement in pyproject.toml."""
    name, _, version = requirement.partition(">=")
    if not re.fullmatch(r"[\w-]+", name) or not re.fullmatch(r"\d+(\.\d+)*", version):
        raise ValueError(f"A requirement reads name>=lowest.version, got {requirement!r}.")
    return f"{name}=={version}"


def constraints(project):
    """Those of the package and of the tests."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["cli"], *extras["dask"], *extras["dev"]]
    return [lowest(one) for one in wanted if not one.startswith("kernelatoms[")]


if __name__ == "__main__":
    oldest = PROJECT["requires-python"].removeprefix(">=")
    if oldest != "{}.{}".format(*sys.version_info):
        # Newer ones came after some of these versions, which then have no wheels.
        sys.exit(
            f"The lowest versions need Python {oldest}: make test-lowest PYTHON=python{oldest}"
        )
    print("\n".join(constraints(PROJECT)))
