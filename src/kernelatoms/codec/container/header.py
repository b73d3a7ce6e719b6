"""The header of a compressed file: a small JSON object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.container.packing import squeeze, unsqueeze
from kernelatoms.codec.limits import MOST_PARTS, CodecError

KINDS = ("array", "npy", "npz", "csv", "parquet", "model")


@dataclass(frozen=True)
class Part:
    """An array of a file, or its table."""

    name: str = ""  # its name, if there are several
    head: str = ""  # the header of its NumPy file, unchanged; empty for tables
    # The type of the matrix of approximate numbers, "f4" or "f8"; empty if there is none.
    dtype: str = ""
    model: int = -1  # the index of the model that predicts it; -1 without approximate numbers


@dataclass(frozen=True)
class Header:
    """The description of a file."""

    kind: str  # one of ``KINDS``
    by: str  # the version of the library that wrote it
    bound: Bound = field(default_factory=Bound)
    parts: Sequence[Part] = ()
    table: Mapping[str, Any] = field(default_factory=dict)  # how the columns of a table are stored
    # Quantiles of the rows' relative errors (0.5, 0.9, 0.99, 1), and the largest error of a value;
    # empty if not recorded.
    errors: Sequence[float] = ()
    trials: Sequence[tuple[str, int]] = ()  # models that were compared, with their bytes
    size: int = 0  # bytes of the original; 0 if not known

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
        """Invert ``to_bytes``; ``CodecError`` if the bytes are not its result."""
        tree = unsqueeze(data, "the header")
        try:
            return cls(**_checked(tree))
        except (ValueError, TypeError) as error:
            raise CodecError(f"the header cannot be read: {error}.") from error


def _checked(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a header, checked."""
    unknown = set(tree) - {"kind", "by", "bound", "parts", "table", "errors", "trials", "size"}
    if unknown:
        raise ValueError(f"it has an unknown field {sorted(unknown)[0][:40]!r}")
    kind = tree.get("kind")
    if kind not in KINDS:
        raise ValueError(f"it is of an unknown kind, {str(kind)[:40]!r}")
    if any(len(_of(list, tree.get(name, []))) > MOST_PARTS for name in ("parts", "trials")):
        raise ValueError(f"it has more than {MOST_PARTS:,} arrays or trials")
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
        raise ValueError("its bound is not a pair of numbers")
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
        raise ValueError(f"it has an invalid part: {str(entry)[:60]!r}")
    if bool(part.dtype) != (part.model >= 0):
        raise ValueError("it has a part with numbers without a model, or a model without numbers")
    return part


def _trial(entry: Any) -> tuple[str, int]:
    name, n_bytes = _of(list, entry)
    return _of(str, name), _count(n_bytes)
