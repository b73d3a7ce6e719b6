"""How long blocks take to decode, before they are: some models take far longer than others.

The unit is a value of the plainest model (``lags``), about a microsecond at worst. Rates were
measured; that they are right within a few times is enough to tell a trap from a file.
"""

from kernelatoms.codec.models import ReadyModel

# A symmetric slice is coded by several calls, a block needs fresh tables.
_SLICE, _BLOCK = 100, 1000
# Products and sums that take as long as one value.
_PRODUCTS, _SQUARES, _SUMS = 500, 100, 64
# Products per weight of a Gaussian pre-image, all rounds together.
_PREIMAGE = 24
_CHOICE_ROWS = 512


def work(model: ReadyModel, n_rows: int, n_blocks: int) -> int:
    """Return how long so many rows in so many blocks take, in plain values.

    Parameters
    ----------
    model : ReadyModel
        How rows are predicted.
    n_rows : int
        Rows of the matrix: of slices, all of theirs.
    n_blocks : int
        Blocks that they are in.
    """
    m, settings = model.n_columns, model.settings
    n_values = n_rows * m
    found, setup = n_values + n_rows, m * len(model.arrays.get("history", ()))
    if model.symmetric:
        found += _SLICE * (n_rows // m)
    elif model.predictor == "columns":
        squares = (len(settings["lags"]) + 2 * min(settings["parents"], m - 1) + 1) ** 2
        found += n_values * squares // _SQUARES
        setup += m * (squares + _CHOICE_ROWS)
    elif model.mean_and_atoms is not None:
        products = len(model.mean_and_atoms[1])
        products *= _PREIMAGE if model.predictor == "kscdl" else 1
        found += n_values * products // _PRODUCTS
    return found + n_blocks * (_BLOCK + setup // _SUMS)
