"""``decode``: rows from codes, back through all that a model did to rows before it coded them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from kernelatoms.engine import Array
from kernelatoms.estimators.devices.border import on_cpu
from kernelatoms.estimators.inspection.pipelines import flat_steps
from kernelatoms.estimators.validation import FLOATS, check_codes

# Steps that make the norms of rows 1.
_UNIT = ("Normalizer", "RowNormalizer")
# Steps that fill gaps and change nothing else.
_FILLING = ("NearestImputer", "TrainingImputer")


class Decoded(NamedTuple):
    """What ``decode`` returns.

    Attributes
    ----------
    rows : array of shape (n_samples, n_features)
        Rows in the units of those that the model was fitted to; NaN in columns that it left out
        because no value was ever observed.
    unit_norm : bool
        Whether rows come back at about unit norm: codes do not tell how long they were.
    """

    rows: Array
    unit_norm: bool


def decode(model: Any, codes: Any, *, like: Any = None) -> Decoded:
    """Return the rows that codes represent, in the units that the model's rows came in.

    What ``inverse_transform`` is to one step, for whole models: a pipeline's scaling and kernel map
    are undone, filling in stays, and codes over a classifier's dictionaries become sums of atoms.

    Parameters
    ----------
    model : estimator
        A fitted learner, ``KernelLinearizer``, classifier with dictionaries, or a Pipeline that
        ends in one.
    codes : dense or CSR array of shape (n_samples, n_atoms)
        As the model's ``transform``, or ``kernelatoms encode``, gave them.
    like : array of shape (n_samples, n_features), optional
        The rows that were coded: models that scale rows to unit norm give them back as long.

    Returns
    -------
    Decoded

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelatoms import KSVD, decode
    >>> X = np.random.default_rng(0).normal(5, 2, size=(100, 4))
    >>> learner = KSVD(8, n_nonzero_coefs=4, random_state=0)
    >>> model = make_pipeline(SimpleImputer(), StandardScaler(), learner).fit(X)
    >>> bool(np.allclose(decode(model, model.transform(X)).rows, X))
    True
    """
    _, codes, like = on_cpu("decode", model=model, codes=codes, like=like)
    steps = flat_steps(model)
    check_is_fitted(steps[-1])
    codes = check_array(codes, accept_sparse="csr", dtype=FLOATS, input_name="codes")
    norms = {} if like is None else _norms(steps[:-1], like, codes.shape[0])
    rows, unit_norm = _signals(steps[-1], codes), False
    for i, step in reversed(list(enumerate(steps[:-1]))):
        rows, lost = _before(step, rows)
        if lost and i in norms:
            rows = rows * norms[i].astype(rows.dtype)
        unit_norm |= lost and i not in norms
    return Decoded(rows, unit_norm)


def _norms(steps: list[Any], like: Any, n_rows: int) -> dict[int, Array]:
    """Return how long rows are as they come to each step that makes their norms 1."""
    rows = check_array(like, dtype=FLOATS, ensure_all_finite="allow-nan", input_name="like")
    if len(rows) != n_rows:
        raise ValueError(f"like has {len(rows)} rows, and there are {n_rows} codes.")
    norms = {}
    for i, step in enumerate(steps):
        if type(step).__name__ in _UNIT:
            observed = np.maximum(np.sum(~np.isnan(rows), axis=1), 1)
            squares = np.nansum(np.square(rows, dtype=np.float64), axis=1)
            norms[i] = np.sqrt(squares * rows.shape[1] / observed)[:, None]
        rows = np.asarray(step.transform(rows))
    return norms


def _signals(last: Any, codes: Any) -> Array:
    """Return codes as rows before the last step."""
    if hasattr(last, "dictionaries_"):
        widths = [learner.n_atoms_ for learner in last.dictionaries_]
        codes = check_codes(codes, sum(widths))
        ends = np.cumsum(widths)
        parts = [
            learner.inverse_transform(codes[:, end - width : end])
            for learner, width, end in zip(last.dictionaries_, widths, ends, strict=True)
        ]
        return np.asarray(sum(parts[1:], parts[0]))
    if hasattr(last, "inverse_transform"):
        # Virtual samples are dense by nature.
        dense = scipy.sparse.issparse(codes) and hasattr(last, "landmarks_")
        return np.asarray(last.inverse_transform(codes.toarray() if dense else codes))
    raise ValueError(
        f"codes of a {type(last).__name__} cannot be decoded: it has no dictionary of atoms that "
        "they could be put together from."
    )


def _before(step: Any, rows: Array) -> tuple[Array, bool]:
    """Return rows as they came to a step, and whether it made their norms 1."""
    if isinstance(step, SimpleImputer):
        return _with_empty_columns(step, rows), False
    one_way = isinstance(step, FunctionTransformer) and step.func and not step.inverse_func
    if hasattr(step, "inverse_transform") and not one_way:
        return np.asarray(step.inverse_transform(rows)), False
    name, n_features = type(step).__name__, getattr(step, "n_features_in_", None)
    if name in _UNIT:
        offset = getattr(step, "offset", None)
        if offset is None:
            return rows, True
        # A constant column, appended before rows were scaled, tells how long they were.
        last = np.maximum(rows[:, -1:], np.finfo(rows.dtype).tiny)
        return rows[:, :-1] * (offset / last), False
    if name in _FILLING and n_features == rows.shape[1]:
        return rows, False
    raise ValueError(
        f"the model's step {name} has no inverse_transform, so that rows cannot be brought back "
        "through it."
    )


def _with_empty_columns(step: SimpleImputer, rows: Array) -> Array:
    """Return rows with the columns that an imputer dropped, since nothing in them was observed."""
    if step.add_indicator:
        raise ValueError(
            "the model's SimpleImputer adds columns that say what was missing, which rows cannot "
            "be brought back through."
        )
    if rows.shape[1] == step.n_features_in_:
        return rows
    whole = np.full((len(rows), step.n_features_in_), np.nan, rows.dtype)
    whole[:, np.flatnonzero(~np.isnan(np.asarray(step.statistics_, float)))] = rows
    return whole
