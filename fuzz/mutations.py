"""How bytes and JSON are damaged."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

Rng = np.random.Generator

#: Numbers at which things break.
NUMBERS: list[Any] = [
    0, 1, -1, 2, 3, 7, 255, -(2**31), 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64, 2**100, 10**400,
    0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, float("inf"), float("-inf"), float("nan"),
]  # fmt: skip

#: Words at which things break.
WORDS = [
    "", " ", "0", "nan", "None", "null", "a", "é", "\u202e", "\x1b[31mred\x1b[0m", "\x9b2J",
    "x" * 5000, "../../etc/passwd", "[bold]x[/bold]", "%s%n", "{0}", "os.system", "builtins",
    "linear", "rbf", "precomputed", "-1", "1e999", "\n", "\r", "'", '"', ",", ";", "=1+1",
]  # fmt: skip


#: Words that no text file can hold.
UNWRITABLE = ["\x00", "\ud800"]


def word(rng: Rng) -> str:
    """Return some word."""
    words = UNWRITABLE if rng.random() < 0.005 else WORDS
    return words[rng.integers(len(words))]


def damaged(rng: Rng, data: bytes) -> bytes:
    """Return bytes with a few random changes."""
    for _ in range(int(rng.integers(1, 5))):
        data = _CHANGES[rng.integers(len(_CHANGES))](rng, data)
    return data


def _flip(rng: Rng, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9)) if changed else 0):
        changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _set(rng: Rng, data: bytes) -> bytes:
    place = int(rng.integers(len(data) + 1))
    new = rng.choice([0, 255, 127, 128, 10, 34, 44], size=int(rng.integers(1, 9)))
    return data[:place] + bytes(new.tolist()) + data[place + len(new) :]


def _cut(rng: Rng, data: bytes) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _remove(rng: Rng, data: bytes) -> bytes:
    start, stop = _span(rng, data)
    return data[:start] + data[stop:]


def _repeat(rng: Rng, data: bytes) -> bytes:
    start, stop = _span(rng, data)
    return data[:stop] + data[start:stop] * int(rng.integers(1, 4)) + data[stop:]


def _insert(rng: Rng, data: bytes) -> bytes:
    place = int(rng.integers(len(data) + 1))
    return data[:place] + rng.bytes(int(rng.integers(1, 17))) + data[place:]


def _move(rng: Rng, data: bytes) -> bytes:
    start, stop = _span(rng, data)
    rest = data[:start] + data[stop:]
    place = int(rng.integers(len(rest) + 1))
    return rest[:place] + data[start:stop] + rest[place:]


_CHANGES = [_flip, _set, _cut, _remove, _repeat, _insert, _move]


def _span(rng: Rng, data: bytes) -> tuple[int, int]:
    start = int(rng.integers(len(data) + 1))
    return start, min(len(data), start + int(rng.integers(1, 65)))


def changed_json(rng: Rng, tree: Any) -> Any:
    """Return a JSON value in which a few places hold something else."""
    tree = copy.deepcopy(tree)
    for _ in range(int(rng.integers(1, 4))):
        places = list(places_of(tree))
        if not places:
            return odd_json(rng)
        parent, key = places[rng.integers(len(places))]
        other, other_key = places[rng.integers(len(places))]
        match int(rng.integers(6)):
            case 0:
                parent[key] = odd_json(rng)
            case 1:
                del parent[key]
            case 2:  # what stands elsewhere
                parent[key] = copy.deepcopy(other[other_key])
            case 3 if isinstance(parent, dict):
                parent[word(rng)] = odd_json(rng)
            case 4 if isinstance(parent[key], int | float) and not isinstance(parent[key], bool):
                parent[key] += int(rng.choice([-1, 1, 1000]))
            case _:
                parent[key], other[other_key] = other[other_key], parent[key]
                if _has_cycle(tree):
                    return odd_json(rng)
    return tree


def odd_json(rng: Rng) -> Any:
    """Return some JSON value."""
    match int(rng.integers(8)):
        case 0:
            return None
        case 1:
            return bool(rng.integers(2))
        case 2:
            return [odd_json(rng) for _ in range(rng.integers(3))]
        case 3:
            return {word(rng): odd_json(rng) for _ in range(rng.integers(3))}
        case 4:
            return word(rng)
        case 5:
            return odd_nest(int(rng.choice([3, 50])))
        case _:
            return NUMBERS[rng.integers(len(NUMBERS))]


def odd_nest(depth: int) -> Any:
    """Return lists in lists."""
    nest: list[Any] = []
    for _ in range(depth):
        nest = [nest]
    return nest


def places_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Return all (parent, key), without recursion: values may be nested deeply."""
    todo = [tree]
    while todo:
        parent = todo.pop()
        if isinstance(parent, dict):
            keys: list[Any] = list(parent)
        elif isinstance(parent, list):
            keys = list(range(len(parent)))
        else:
            continue
        for key in keys:
            yield parent, key
            todo.append(parent[key])


def _has_cycle(tree: Any) -> bool:
    """Tell whether swapping has put a value into itself."""
    above: set[int] = set()
    todo: list[tuple[Any, bool]] = [(tree, False)]
    while todo:
        value, leaving = todo.pop()
        if leaving:
            above.discard(id(value))
            continue
        if not isinstance(value, dict | list):
            continue
        if id(value) in above:
            return True
        above.add(id(value))
        todo.append((value, True))
        parts = value.values() if isinstance(value, dict) else value
        todo += [(part, False) for part in parts]
    return False
