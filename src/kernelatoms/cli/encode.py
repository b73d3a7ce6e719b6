"""``kernelatoms encode``: the sparse codes of further rows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli import cluster
from kernelatoms.cli import options as opt
from kernelatoms.cli.console import errors_as_messages, tell_or_print_json, warnings_as_notes

ENCODE_EXAMPLES = """**Examples**

`kernelatoms encode patches.skops patches.npy --output codes.npz`

`kernelatoms encode patches.skops patches.npy --output codes.csv`

`kernelatoms encode patches.skops 'big/*.npy' --memory 2GiB`

`kernelatoms encode patches.skops 'big/*.npy' --workers 4`

`kernelatoms encode patches.skops patches.npy --method lasso --alpha 0.1`

`kernelatoms encode patches.skops patches.npy --method omp --max-residual 0.5 --absolute --positive`
"""

_BLOCK_ROWS = 4096


@errors_as_messages
@opt.works_on_device
def encode(
    model: opt.Model,
    data: opt.LargeData,
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
    rows: opt.Rows = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    header: opt.Header = None,
    max_size: opt.MaxSize = None,
    memory: opt.Memory = None,
    trust: opt.Trust = None,
    device: opt.Device = None,
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:  # fmt: skip
    """Write the sparse code of every row of a file.

    The model codes as it was fitted to, unless --method says otherwise. A classifier with a
    dictionary a class gives the code that decided: over the dictionary of the class it predicts,
    or over all of them with scheme=collective. Atoms are counted through all classes. D-KSVD,
    LC-KSVD and FDDL classifiers code over the atoms of all classes; CRC and SRC classifiers over
    the training rows, class after class. A KernelLinearizer gives virtual samples, which are not
    sparse.
    """
    from kernelatoms.files.results import CODE_SUFFIXES, check_codes_fit, write_codes
    from kernelatoms.files.tables.table import ReadOptions
    from kernelatoms.files.writing import check_result_target

    check_result_target(output, CODE_SUFFIXES, model, data, force=force)
    given = {"n_nonzero_coefs": nonzeros, "max_residual": max_residual, "alpha": alpha}
    given |= {"positive": positive or None, "absolute": absolute or None}
    options = {name: value for name, value in given.items() if value is not None}
    if method is None and options:
        raise ValueError(
            "--nonzeros, --max-residual, --absolute, --alpha and --positive go with --method, such "
            "as --method lasso --alpha 0.1; without it rows are coded as the model was fitted to."
        )
    if absolute and max_residual is None:
        raise ValueError("--absolute goes with --max-residual, such as --max-residual 0.5.")
    read, wanted = ReadOptions(rows, decimal, encoding, header, max_size), None
    if method is not None:
        wanted = {"method": method, **options}
    on_workers = cluster.are_asked_for(scheduler, workers, device)
    large = opt.open_large(data, read, memory, on_workers=on_workers)
    with warnings_as_notes([]), opt.at_work(model), cluster.connected(scheduler, workers):
        from kernelatoms.cli import parts

        if large is not None and not large.fits:
            applied = parts.Applied(model, large, trust, max_size)
            n_rows, n_atoms, nonzero, sparse = parts.encode(applied, output, wanted)
        else:
            fitted, _, _, X = opt.open_both(model, data, read, trust, large)
            check_codes_fit(output, len(X), n_atoms_of(fitted))
            codes = parts.by_blocks(lambda some: codes_of(fitted, some, wanted), X)
            sparse, (n_rows, n_atoms) = hasattr(codes, "nnz"), codes.shape
            nonzero = int(codes.nnz) if sparse else int((codes != 0).sum())
            opt.write_or_print(output, lambda target: write_codes(target, codes))
    if str(output) == "-":
        return
    tell_or_print_json(
        f"{n_rows:,} codes over {n_atoms:,} {'atoms' if sparse else 'components'}, "
        f"{nonzero / n_rows:.1f} nonzeros per row: {output}",
        {"output": str(output), "rows": n_rows, "atoms": n_atoms, "nonzeros": nonzero},
        as_json,
    )


def codes_of(fitted: Any, X: Any, options: dict[str, Any] | None = None) -> Any:
    """Return the codes of rows, in the model's own way (those that decided) or by ``options``."""
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
    """Return the last step of a model, or the model itself, and the rows as it gets them."""
    if not hasattr(fitted, "steps"):
        return fitted, X
    return _last_step(fitted[-1], fitted[:-1].transform(X) if len(fitted.steps) > 1 else X)


def _codes_that_decided(classifier: Any, signals: Any) -> Any:
    """Return the codes that ``explain`` shows: only the classifier knows how it codes."""
    import numpy as np
    import scipy.sparse

    parts = []
    for start in range(0, len(signals), _BLOCK_ROWS):
        explained = classifier.explain(signals[start : start + _BLOCK_ROWS])
        ends = np.cumsum([0, *(len(why.atoms) for why in explained)])
        values = np.concatenate([why.coefficients for why in explained])
        atoms = np.concatenate([why.atoms for why in explained])
        shape = (len(explained), n_atoms_of(classifier))
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
    starts = np.cumsum([0, *(learner.n_atoms_ for learner in classifier.dictionaries_)])
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
    """Return the number of columns of codes, or 1 if the model does not say."""
    while hasattr(fitted, "steps"):
        fitted = fitted[-1]
    if hasattr(fitted, "dictionaries_"):
        return sum(n_atoms_of(dictionary) for dictionary in fitted.dictionaries_)
    if hasattr(fitted, "codes"):
        return len(fitted.labels_)
    names = ("n_atoms_", "n_components_")
    return int(next((getattr(fitted, name) for name in names if hasattr(fitted, name)), 1))
