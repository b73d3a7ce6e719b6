"""Places of approximate columns: as runs, which are short; compared with what predicts them."""

from collections.abc import Sequence
from typing import Any

from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.opened import Compressed


def as_ranges(places: Sequence[int]) -> list[int]:
    """Return places as the beginnings and ends of runs: [0, 3, 5, 6] for 0, 1, 2, 5."""
    found: list[int] = []
    for place in places:
        if found and found[-1] == place:
            found[-1] += 1
        else:
            found += [place, place + 1]
    return found


def from_ranges(ends: Any, limit: int) -> list[int]:
    """Return what ``as_ranges`` was given; ``CodecError`` if it is beyond the limit."""
    right = isinstance(ends, list) and all(type(end) is int for end in ends)
    if not right or len(ends) % 2 or sorted(set(ends)) != ends:
        raise CodecError("it does not say which columns are approximate.")
    if ends and not 0 <= ends[0] < ends[-1] <= limit:
        raise CodecError("it does not say which columns are approximate.")
    return [i for low, high in zip(ends[::2], ends[1::2], strict=True) for i in range(low, high)]


def check_columns(opened: Compressed, n_columns: int) -> None:
    """Refuse a table whose approximate columns are not those that its model predicts."""
    parts = opened.header.parts
    right = len(parts) == 1 and (parts[0].model >= 0) == (n_columns > 0 and opened.n_rows() > 0)
    model = opened.known_model() if right else None
    if not right or (model is not None and (model.n_columns, model.slice_rows) != (n_columns, 0)):
        raise CodecError("its columns are not those that its model predicts.")
