"""Values that come back exactly, as bytes in an order that compresses well.

Bytes of equal significance stand together, and integers (also dates) may be replaced by their
differences: the best form is found on the first values.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.container.packing import pack
from kernelatoms.codec.limits import CodecError

Array = NDArray[Any]

_PLAIN, _PLANES, _DIFFERENCES = 0, 1, 2
_LOOK_AT = 1 << 16


def arrange(values: Array) -> bytes:
    """Return values of one type as bytes; the first byte is the arrangement."""
    values = np.ascontiguousarray(values).reshape(-1)
    forms = [_PLAIN]
    if values.dtype.itemsize > 1 and values.dtype.names is None:
        forms.append(_PLANES)
    if values.dtype.kind in "iumM":
        forms.append(_DIFFERENCES)
    best = forms[0]
    if len(forms) > 1 and len(values):
        some = values[: max(1, _LOOK_AT // values.dtype.itemsize)]
        best = min(forms, key=lambda form: len(pack(_arranged(some, form))))
    return bytes([best]) + _arranged(values, best)


def rearrange(data: bytes, dtype: np.dtype[Any], count: int) -> Array:
    """Invert ``arrange``; ``CodecError`` if the bytes are not its result."""
    form, body = data[:1], data[1:]
    if form not in (b"\0", b"\1", b"\2") or len(body) != count * dtype.itemsize:
        raise CodecError(f"a column does not hold the {count:,} values that it should.")
    if form[0] == _PLAIN:
        return np.frombuffer(body, dtype)
    width = _word(dtype)
    planes = np.frombuffer(body, np.uint8).reshape(width, -1).T
    if form[0] == _PLANES:
        return np.frombuffer(np.ascontiguousarray(planes).tobytes(), dtype)
    if dtype.kind not in "iumM":
        raise CodecError("a column that holds no whole numbers holds their differences.")
    steps = np.ascontiguousarray(planes).view(f"<u{width}").reshape(-1)
    values = np.cumsum(steps, dtype=steps.dtype)
    return values.astype(f"{_order(dtype)}u{width}").view(dtype)


def _arranged(values: Array, form: int) -> bytes:
    if form == _PLAIN:
        return values.tobytes()
    width = _word(values.dtype)
    if form == _DIFFERENCES:
        # Differences wrap around, and so do sums.
        numbers = values.view(f"{_order(values.dtype)}u{width}").astype(f"<u{width}")
        values = np.diff(numbers, prepend=numbers.dtype.type(0))
    planes = np.frombuffer(values.tobytes(), np.uint8).reshape(-1, width).T
    return np.ascontiguousarray(planes).tobytes()


def _word(dtype: np.dtype[Any]) -> int:
    """Return the bytes that belong together: a character of text, or a value."""
    return 4 if dtype.kind == "U" else dtype.itemsize


def _order(dtype: np.dtype[Any]) -> str:
    return ">" if dtype.newbyteorder("<").str != dtype.str and dtype.itemsize > 1 else "<"
