"""Which columns of a table are approximate, and how a header stores their places."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.reader import Compressed
from kernelatoms.files.tables.table import shortened


def choose_columns(
    path: Path,
    names: Sequence[str],
    defaults: Sequence[str],
    approximate: Sequence[str],
    exact: Sequence[str],
    all_exact: bool,
) -> tuple[list[int], list[int]]:
    """Return the indices of approximate and of exact columns.

    ``defaults`` are "approximate" (floats), "exact" (integers) or "no numbers" per column;
    ``approximate`` and ``exact`` are the user's exceptions. A repeated name means all columns of
    that name. With ``all_exact``, no error is allowed.
    """
    for argument, wanted in (("approximate", approximate), ("exact", exact)):
        for name in wanted:
            if name not in names:
                raise ValueError(
                    f"{argument}: {path} has no column {name!r}; it has {shortened(names)}."
                )
    both = [name for name in approximate if name in exact]
    if both:
        raise ValueError(f"{both[0]!r} is named in both approximate and exact.")
    chosen = []
    for i, (name, default) in enumerate(zip(names, defaults, strict=True)):
        if name in approximate and default == "no numbers":
            raise ValueError(f"approximate: the column {name!r} of {path} holds no numbers.")
        if name in approximate or (default == "approximate" and name not in exact):
            chosen.append(i)
    chosen = [] if all_exact else chosen
    return chosen, sorted(set(range(len(names))) - set(chosen))


def as_ranges(places: Sequence[int]) -> list[int]:
    """Return indices as starts and stops of runs: [0, 3, 5, 6] for 0, 1, 2, 5."""
    found: list[int] = []
    for place in places:
        if found and found[-1] == place:
            found[-1] += 1
        else:
            found += [place, place + 1]
    return found


def from_ranges(ends: Any, limit: int) -> list[int]:
    """Invert ``as_ranges``; ``CodecError`` if indices are not below ``limit``."""
    right = isinstance(ends, list) and all(type(end) is int for end in ends)
    right = right and len(ends) % 2 == 0 and sorted(set(ends)) == ends
    if not right or (ends and not 0 <= ends[0] < ends[-1] <= limit):
        raise CodecError("it does not say which columns are approximate.")
    return [i for low, high in zip(ends[::2], ends[1::2], strict=True) for i in range(low, high)]


def check_columns(opened: Compressed, n_columns: int) -> None:
    """Refuse a table whose approximate columns do not fit its model."""
    parts = opened.header.parts
    right = len(parts) == 1 and (parts[0].model >= 0) == (n_columns > 0 and opened.n_rows() > 0)
    model = opened.known_model() if right else None
    if not right or (model is not None and (model.n_columns, model.slice_rows) != (n_columns, 0)):
        raise CodecError("its columns are not those that its model predicts.")
