"""What a compressed file says of itself: a small JSON object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.errors import CodecError
from kernelatoms.codec.usual import squeeze, unsqueeze
from kernelatoms.limits import MOST_PARTS

KINDS = ("array", "npy", "npz", "csv", "parquet", "model")


@dataclass(frozen=True)
class Part:
    """One array, or the one table, of a file.

    Parameters
    ----------
    name : str
        Its name, where there are several.
    head : str
        The head of its NumPy file, as it was; empty for tables.
    dtype : str
        "f4" or "f8": the type of the matrix of its approximate numbers; empty if there is none.
    model : int
        Which of the file's models they are predicted by; -1 if there are none.
    """

    name: str = ""
    head: str = ""
    dtype: str = ""
    model: int = -1


@dataclass(frozen=True)
class Header:
    """What a file holds.

    Parameters
    ----------
    kind : str
        Of ``KINDS``.
    by : str
        The version of the library that wrote it.
    bound : Bound
        What was promised.
    parts : sequence of Part
        Its arrays, or its table.
    table : dict
        More about a table: how its columns are kept.
    errors : sequence of float
        Largest error of half, nine tenths, 99 hundredths and all of the rows, relative to their
        norms, and the largest of any value; empty if nobody has looked.
    trials : sequence of (str, int)
        Models that were tried, with the bytes that they took.
    size : int
        Bytes of the original; 0 if it is not known.
    """

    kind: str
    by: str
    bound: Bound = field(default_factory=Bound)
    parts: Sequence[Part] = ()
    table: Mapping[str, Any] = field(default_factory=dict)
    errors: Sequence[float] = ()
    trials: Sequence[tuple[str, int]] = ()
    size: int = 0

    def to_bytes(self) -> bytes:
        """Return the header as bytes; ``ValueError`` if it is too long."""
        parts = [
            {key: value for key, value in vars(part).items() if value != getattr(Part, key)}
            for part in self.parts
        ]
        fields: dict[str, Any] = {
            "kind": self.kind, "by": self.by, "bound": [self.bound.relative, self.bound.absolute],
            "parts": parts, "table": dict(self.table), "errors": list(self.errors),
            "trials": [list(trial) for trial in self.trials], "size": self.size,
        }  # fmt: skip
        kept = {key: value for key, value in fields.items() if value or key == "kind"}
        return squeeze(kept)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Header":
        """Return the header that the bytes were made of; ``CodecError`` if they were not."""
        tree = unsqueeze(data, "the header")
        try:
            return cls(**_checked(tree))
        except (ValueError, TypeError) as error:
            raise CodecError(f"the header cannot be read: {error}.") from error


def _checked(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the header's fields, each of its type."""
    unknown = set(tree) - {"kind", "by", "bound", "parts", "table", "errors", "trials", "size"}
    if unknown:
        raise ValueError(f"nobody knows {sorted(unknown)[0][:40]!r}")
    kind = tree.get("kind")
    if kind not in KINDS:
        raise ValueError(f"it is of an unknown kind, {str(kind)[:40]!r}")
    if any(len(_of(list, tree.get(name, []))) > MOST_PARTS for name in ("parts", "trials")):
        raise ValueError(f"it tells of more than {MOST_PARTS:,} arrays or trials")
    return {
        "kind": kind,
        "by": _of(str, tree.get("by", "")),
        "bound": _bound(_of(list, tree.get("bound", [None, None]))),
        "parts": tuple(_part(entry) for entry in _of(list, tree.get("parts", []))),
        "table": _of(dict, tree.get("table", {})),
        "errors": tuple(_number(entry) for entry in _of(list, tree.get("errors", []))),
        "trials": tuple(_trial(entry) for entry in _of(list, tree.get("trials", []))),
        "size": _count(tree.get("size", 0)),
    }


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"it has {str(value)[:40]!r} where a {kind.__name__} should be")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"it has {str(value)[:40]!r} where a count should be")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < 1e308:
        raise ValueError(f"it has {str(value)[:40]!r} where a number should be")
    return float(value)


def _bound(values: list[Any]) -> Bound:
    if len(values) != 2:
        raise ValueError("its bound is no pair of numbers")
    relative, absolute = (None if value is None else _number(value) for value in values)
    return Bound(relative, absolute)


def _part(entry: Any) -> Part:
    fields = dict(_of(dict, entry))
    part = Part(
        _of(str, fields.pop("name", "")),
        _of(str, fields.pop("head", "")),
        _of(str, fields.pop("dtype", "")),
        _count(fields.pop("model", -1) + 1) - 1 if type(fields.get("model", -1)) is int else -2,
    )
    if fields or part.dtype not in ("", "f4", "f8") or part.model < -1:
        raise ValueError(f"a part of it is no such thing: {str(entry)[:60]!r}")
    if bool(part.dtype) != (part.model >= 0):
        raise ValueError("a part of it has numbers without a model, or a model without numbers")
    return part


def _trial(entry: Any) -> tuple[str, int]:
    name, n_bytes = _of(list, entry)
    return _of(str, name), _count(n_bytes)
