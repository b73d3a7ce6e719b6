"""``kernelatoms predict`` and ``encode``: a fitted model on further rows."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli.choosing import trusted_types
from kernelatoms.cli.judging import Judgement, judge
from kernelatoms.cli.missing import note_about_rows
from kernelatoms.cli.options import (
    Data,
    Decimal,
    Encoding,
    Force,
    Header,
    Json,
    Model,
    Rows,
    Trust,
    read_data,
)
from kernelatoms.cli.page_facts import share_learned
from kernelatoms.cli.speaking import (
    note,
    print_json,
    say,
    speaks_plainly,
    tell,
    warnings_as_notes,
)

PREDICT_EXAMPLES = """**Examples**

`kernelatoms predict model.skops new.csv`

`kernelatoms predict model.skops new.csv --scores --output predictions.csv`

`kernelatoms predict own.skops new.csv --trust mykernels:Power`

`kernelatoms predict digits.skops digits.npz --rows X_test --label y_test --output p.npy`
"""

ENCODE_EXAMPLES = """**Examples**

`kernelatoms encode patches.skops patches.npy --output codes.npz`

`kernelatoms encode patches.skops patches.npy --output codes.csv`

`kernelatoms encode patches.skops patches.npy --method lasso --alpha 0.1`

`kernelatoms encode patches.skops patches.npy --method omp --max-residual 0.5 --absolute --positive`
"""

_BLOCK_ROWS = 4096


@speaks_plainly
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=".csv, .parquet, .npy or .npz; else to the terminal."),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add how well each class fits (larger is better).")
    ] = False,
    label: Annotated[
        str | None,
        typer.Option(help="Column of true classes, to count how many predictions are right."),
    ] = None,
    rows: Rows = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    trust: Trust = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict the class of every row of a file.

    Columns are found by name, in any order; row identifiers are copied beside the predictions. If
    the file has the label column of the model, the share of right predictions is shown.
    """
    from kernelatoms.files import (
        RESULT_SUFFIXES,
        ReadOptions,
        check_result_target,
        is_standard_stream,
        refuse_to_overwrite,
        row_identifiers,
        write_columns,
    )

    options = ReadOptions(rows, decimal, encoding, header)
    if output is not None:
        refuse_to_overwrite(output, model, data)
        check_result_target(output, RESULT_SUFFIXES, force=force)
        output = None if is_standard_stream(output) else output
    heard: list[str] = []
    with warnings_as_notes(heard), at_work(model):
        fitted, record, table, X = open_both(model, data, options, trust)
        if not hasattr(fitted, "predict"):
            raise ValueError(
                f"{model} holds {record.name or type(fitted).__name__!r}, which predicts no "
                "classes; use 'kernelatoms encode' for its codes."
            )
        predictions = fitted.predict(X)
        columns: dict[str, Any] = {**row_identifiers(table, record), "prediction": predictions}
        if scores:
            columns |= _scores(fitted, X)
    judged = _judged(table, label or record.label, label is not None, fitted, predictions)
    learned = 0.0 if judged is None else _learned_from(record, X, table, label or record.label)
    result: dict[str, Any] = {"rows": len(X), "accuracy": None}
    if judged is not None:
        result |= {**judged.to_dict(), "share_learned_from": learned}
    if output is not None:
        write_columns(output, columns)
        result["output"] = str(output)
    if as_json:
        if output is None:
            result |= {name: list(values) for name, values in columns.items()}
        print_json(result)
        return
    if output is None:
        text = io.StringIO()
        write_columns(text, columns)
        tell(text.getvalue(), end="")
    for line in [] if judged is None else judged.lines():
        say(line)
    if learned:
        which = "these very rows" if learned == 1 else f"{learned:.1%} of these rows"
        note(f"the model learned from {which}; on others it will be less often right.")
    if output is not None:
        tell(f"{len(X):,} predictions: {output}")


@speaks_plainly
def encode(
    model: Model,
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o",
            help=".npz (sparse, for scipy.sparse.load_npz), .npy (dense), .csv or .parquet (row, "
            "atom, coefficient).",
        ),
    ] = Path("codes.npz"),
    method: Annotated[
        str | None,
        typer.Option(
            help="Code otherwise than the model does: 'omp', 'lasso' (l1), or 'ksc' and 'fksc', l1 "
            "as published."
        ),
    ] = None,
    nonzeros: Annotated[
        int | None, typer.Option(help="With --method omp: the most atoms a row may use.")
    ] = None,
    max_residual: Annotated[
        float | None,
        typer.Option(help="With --method omp: as few atoms as leave this share of a row's norm."),
    ] = None,
    absolute: Annotated[
        bool,
        typer.Option("--absolute", help="--max-residual is a norm, not a share of the row's."),
    ] = False,
    alpha: Annotated[
        float | None, typer.Option(help="With --method lasso: the weight of the l1 penalty.")
    ] = None,
    positive: Annotated[
        bool,
        typer.Option("--positive", help="With --method omp or lasso: no negative coefficients."),
    ] = False,
    rows: Rows = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    trust: Trust = None,
    force: Force = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Write the sparse code of every row of a file.

    The model codes as it was fitted to, unless --method says otherwise. A classifier with a
    dictionary a class gives the code that decided: over the dictionary of the class it predicts,
    or over all of them with scheme=collective. Atoms are counted through all classes. D-KSVD,
    LC-KSVD and FDDL classifiers code over the atoms of all classes; CRC and SRC classifiers over
    the training rows, class after class. A KernelLinearizer gives virtual samples, which are not
    sparse.
    """
    from kernelatoms.files import (
        CODE_SUFFIXES,
        ReadOptions,
        check_codes_fit,
        check_result_target,
        is_standard_stream,
        refuse_to_overwrite,
        write_codes,
    )

    refuse_to_overwrite(output, model, data)
    check_result_target(output, CODE_SUFFIXES, force=force)
    given = {
        "n_nonzero_coefs": nonzeros,
        "max_residual": max_residual,
        "alpha": alpha,
        "positive": positive or None,
        "absolute": absolute or None,
    }
    options = {name: value for name, value in given.items() if value is not None}
    if method is None and options:
        raise ValueError(
            "--nonzeros, --max-residual, --absolute, --alpha and --positive go with --method, such "
            "as --method lasso --alpha 0.1; without it rows are coded as the model was fitted to."
        )
    if absolute and max_residual is None:
        raise ValueError("--absolute goes with --max-residual, such as --max-residual 0.5.")
    with warnings_as_notes([]), at_work(model):
        fitted, _, _, X = open_both(
            model, data, ReadOptions(rows, decimal, encoding, header), trust
        )
        check_codes_fit(output, len(X), n_atoms_of(fitted))
        codes = codes_of(fitted, X, None if method is None else {"method": method, **options})
    if is_standard_stream(output):
        text = io.StringIO()
        write_codes(text, codes)
        tell(text.getvalue(), end="")
        return
    write_codes(output, codes)
    nonzero = int(codes.nnz) if hasattr(codes, "nnz") else int((codes != 0).sum())
    if as_json:
        print_json(
            {"output": str(output), "rows": codes.shape[0], "atoms": codes.shape[1],
             "nonzeros": nonzero}
        )  # fmt: skip
        return
    what = "atoms" if hasattr(codes, "nnz") else "components"
    tell(
        f"{codes.shape[0]:,} codes over {codes.shape[1]:,} {what}, "
        f"{nonzero / codes.shape[0]:.1f} nonzeros a row: {output}"
    )


def open_both(
    model: Path, data: Path, options: Any, trust: list[str] | None
) -> tuple[Any, Any, Any, Any]:
    """Return the model, its record, the table and its rows in the model's columns.

    ``options`` are the ``ReadOptions`` of the table, or the key of its rows.
    """
    from kernelatoms.files import load_model, rows_for

    fitted, record = load_model(model, trusted=trusted_types(trust))
    table = read_data(data, options)
    n_features = getattr(fitted, "n_features_in_", None)
    if n_features is None and record.columns is None:
        raise ValueError(
            f"{model} says neither how many columns it takes nor which; use it from Python, with "
            "load_model."
        )
    X, notes = rows_for(table, record, n_features or len(record.columns or ()))
    for text in (*notes, note_about_rows(fitted, X)):
        if text:
            note(text)
    return fitted, record, table, X


@contextmanager
def at_work(model: Path) -> Iterator[None]:
    """Say in words that a model cannot be applied.

    Steps of scikit-learn believe what a file says of them, and raise whatever comes of it.
    """
    try:
        yield
    except (LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise ValueError(
            f"{model}: the model cannot be applied ({type(error).__name__}: {error}); its file may "
            "be damaged."
        ) from error


def codes_of(fitted: Any, X: Any, options: dict[str, Any] | None = None) -> Any:
    """Return the codes of rows; of class dictionaries, those that decided.

    ``options`` of ``sparse_encode`` replace the way in which the model codes.
    """
    from kernelatoms import sparse_encode

    if options is None and hasattr(fitted, "transform"):
        return fitted.transform(X)
    last, signals = _last_step(fitted, X)
    if hasattr(last, "codes"):  # over its training rows
        if options is not None:
            raise ValueError(
                f"--method codes over atoms that were learned, and {type(last).__name__} codes "
                "over its training rows; leave --method out."
            )
        return last.codes(signals)
    if hasattr(last, "dictionaries_"):
        if options is None:
            return _codes_that_decided(last, signals)
        return _codes_by_class(last, signals, options)
    if not hasattr(last, "n_atoms_"):
        what = "leave --method out" if hasattr(fitted, "transform") else "it has no codes"
        raise ValueError(
            f"codes{' by --method' if options else ''} need a dictionary, and the model ends in "
            f"{type(last).__name__}; {what}."
        )
    if hasattr(last, "dictionary"):  # given, not learned: the coder knows under which kernel
        from sklearn.base import clone

        return clone(last).set_params(**(options or {})).fit_transform(signals)
    return sparse_encode(signals, last, **(options or {}))


def _last_step(fitted: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a model, or the model itself, and the rows as they come to it."""
    steps = getattr(fitted, "steps", None)
    if steps is None:
        return fitted, X
    return _last_step(fitted[-1], fitted[:-1].transform(X) if len(steps) > 1 else X)


def _codes_that_decided(classifier: Any, signals: Any) -> Any:
    """Return the codes that ``explain`` shows: over the answer's dictionary, or over all of them.

    Only the classifier knows how it codes: over the atoms nearest to a row, or of all classes
    together.
    """
    import numpy as np
    import scipy.sparse

    parts = []
    n_atoms = n_atoms_of(classifier)
    for start in range(0, len(signals), _BLOCK_ROWS):
        told = classifier.explain(signals[start : start + _BLOCK_ROWS])
        ends = np.cumsum([0, *(len(why.atoms) for why in told)])
        values = np.concatenate([why.coefficients for why in told])
        atoms = np.concatenate([why.atoms for why in told])
        shape = (len(told), n_atoms)
        parts.append(scipy.sparse.csr_array((values, atoms, ends), shape=shape))
    codes = scipy.sparse.vstack(parts, format="csr")
    codes.sort_indices()  # explanations begin with the largest coefficient
    return codes


def _codes_by_class(classifier: Any, signals: Any, options: dict[str, Any]) -> Any:
    """Return codes by other means, over the predicted classes' dictionaries."""
    import numpy as np
    import scipy.sparse

    from kernelatoms import sparse_encode

    predictions = classifier.predict(signals)
    parts, order = [], []
    widths = [learner.n_atoms_ for learner in classifier.dictionaries_]
    starts = np.cumsum([0, *widths])
    for c, learner in enumerate(classifier.dictionaries_):
        mine = np.flatnonzero(predictions == classifier.classes_[c])
        if len(mine):
            rows = signals[mine]
            if hasattr(classifier, "members_"):  # kernel values with the rows of the class
                rows = rows[:, classifier.members_[c]]
            own = scipy.sparse.coo_array(sparse_encode(rows, learner, **options))
            shape = (len(mine), int(starts[-1]))
            places = (own.row, own.col + starts[c])
            parts.append(scipy.sparse.coo_array((own.data, places), shape=shape))
            order.append(mine)
    stacked = scipy.sparse.vstack(parts).tocsr()
    return stacked[np.argsort(np.concatenate(order), kind="stable")]


def n_atoms_of(fitted: Any) -> int:
    """Return how many columns codes have, at least: 1 of models that do not say."""
    while hasattr(fitted, "steps"):
        fitted = fitted[-1]
    if hasattr(fitted, "dictionaries_"):
        return sum(n_atoms_of(dictionary) for dictionary in fitted.dictionaries_)
    if hasattr(fitted, "codes"):
        return len(fitted.labels_)
    names = ("n_atoms_", "n_components_")
    return int(next((getattr(fitted, name) for name in names if hasattr(fitted, name)), 1))


def _scores(fitted: Any, X: Any) -> dict[str, Any]:
    if not hasattr(fitted, "decision_function") or not hasattr(fitted, "classes_"):
        raise ValueError("--scores: the model does not say how well each class fits.")
    values, classes = fitted.decision_function(X), fitted.classes_
    if values.ndim == 1:
        return {f"score {classes[1]}": values}
    return {f"score {name}": values[:, i] for i, name in enumerate(classes)}


def _judged(
    table: Any, label: str | None, asked: bool, fitted: Any, predictions: Any
) -> Judgement | None:
    """Return how right predictions are, where true classes are known."""
    from kernelatoms.files import TableError, labels_for

    if label is None or (not asked and label not in table.names):
        return None
    if not hasattr(fitted, "classes_"):
        raise ValueError("--label: the model predicts no classes that could be right.")
    try:
        truth, kept = labels_for(table, label, fitted.classes_)
    except TableError as error:
        if asked:
            raise
        note(f"How many predictions are right is not said: {error}")
        return None
    return judge(predictions[kept], truth, len(table), fitted.classes_)


def _learned_from(record: Any, X: Any, table: Any, label: str) -> float:
    """Return the share of the labelled rows that the model learned from, as far as is known."""
    from kernelatoms.files import read_labels

    y, kept = read_labels(table, label)
    return share_learned(record, X[kept], y) or 0.0
