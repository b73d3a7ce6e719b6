"""Which model a file gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.models import CodecModel

Array = NDArray[Any]

#: Models that can be asked for by name.
NAMES = ("exact",)


@dataclass(frozen=True)
class Trial:
    """A model that was tried: its name, the bytes it took, and what is to be known of it."""

    name: str
    n_bytes: int
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """The model that won, and all that were tried."""

    model: CodecModel
    trials: tuple[Trial, ...] = ()


def choose_model(
    rows: Array,
    bound: Bound,
    *,
    slice_rows: int = 0,
    symmetric: bool | None = None,
    names: Sequence[str] | None = None,
) -> Choice:
    """Return the model that takes the fewest bytes for rows like these.

    Parameters
    ----------
    rows : float array of shape (n_rows, n_columns)
        The rows, or the first of them.
    bound : Bound
        The largest error allowed.
    slice_rows : int
        Rows in a slice of a 3-d array; 0 if there are none.
    symmetric : bool or None
        Whether slices are symmetric; None to look.
    names : sequence of str or None
        The models to choose among; None for all of ``NAMES``.
    """
    model = CodecModel("exact", rows.shape[1], slice_rows, bool(symmetric))
    return Choice(model, (Trial("exact", rows.nbytes),))
