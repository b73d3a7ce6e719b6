"""The report on any fitted model of the library: one self-contained page."""

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from kernelatoms import __version__, n_threads
from kernelatoms.files.writing import check_target
from kernelatoms.report.anatomy import Anatomy, dissect
from kernelatoms.report.coding import Subject, code_rows, decide_rows, n_rows_of, time_model
from kernelatoms.report.figures.images import check_image_shape
from kernelatoms.report.origin import RowsOfFile, check_source, origin_words
from kernelatoms.report.page import Section, Table, write_report
from kernelatoms.report.sections.atoms import atoms_section, single_atoms_section
from kernelatoms.report.sections.decision_kinds import DECISIONS
from kernelatoms.report.sections.decisions import certainty_words
from kernelatoms.report.sections.scores import accuracy_words, unknown_labels, unknown_words
from kernelatoms.report.sections.training import fitted_section, learning_section, measure_map
from kernelatoms.report.view import check_names, make_view
from kernelatoms.report.words import count_words, percent


def write_model_report(
    path: Any, model: Any, X: Any = None, y: Any = None, *, title: str | None = None, **options: Any
) -> Path:
    """Write a page about a fitted model: how it was learned, its atoms, its codes, its mistakes.

    Parameters
    ----------
    path : str or path
        The file to write; its folder must exist. An existing file is replaced as a whole or kept
        as it is.
    model : estimator
        A fitted learner, classifier or ``KernelLinearizer``, or a ``Pipeline`` that ends in one.
    X : array or data frame of shape (n_samples, n_features), optional
        Rows to show the model on, best some that it did not learn from.
    y : array of shape (n_samples,), optional
        Their labels.
    title : str, optional
        The page's heading.
    options : dict, optional
        Further arguments of ``model_sections``.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> from kernelatoms import KSVD
    >>> from kernelatoms.report import write_model_report
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data[:200]
    >>> model = KSVD(n_atoms=16, n_nonzero_coefs=3, max_iter=3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_model_report(f"{folder}/report.html", model, X, image_shape=(8, 8))
    ...     "<h2>Atoms and codes</h2>" in path.read_text(encoding="utf-8")
    True
    """
    path = check_target(path)
    subject, sections = _report(model, X, y, **options)
    heading = title if title is not None else _heading(subject.anatomy)
    return write_report(path, heading, sections, lead=_lead(subject), footer=footer())


def model_sections(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    facts: Mapping[str, Any] | None = None,
    feature_names: Sequence[Any] | None = None,
    timing: Mapping[str, float] | None = None,
    rows: RowsOfFile | None = None,
) -> list[Section]:
    """Return the sections of a model's report, for a page of your own.

    Parameters
    ----------
    model : estimator
        A fitted learner, classifier or ``KernelLinearizer``, or a ``Pipeline`` that ends in one.
    X : array or data frame of shape (n_samples, n_features), optional
        Rows to show the model on, as it takes them; best some that it did not learn from.
    y : array of shape (n_samples,), optional
        Their labels, of the type the model learned from: for accuracies and the purity of atoms.
    image_shape : (height, width) or (height, width, channels), optional
        Rows are images of this shape, of up to four channels.
    facts : mapping of str to text, optional
        What else the reader should know: files, dates, scores. Shown in the first table.
    feature_names : list of n_features names, optional
        By default those of the data frame that the model learned from. Drawn up to 30.
    timing : mapping of str to float, optional
        Seconds that steps took at ``fit``. Prediction is timed here, on X.
    rows : RowsOfFile, optional
        Where the rows of X come from.

    Returns
    -------
    list of Section

    Examples
    --------
    >>> from kernelatoms import KSVD
    >>> from kernelatoms.report import model_sections
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data[:200]
    >>> model = KSVD(n_atoms=16, n_nonzero_coefs=3, max_iter=3, random_state=0).fit(X)
    >>> [section.title for section in model_sections(model, image_shape=(8, 8))]
    ['What was fitted', 'Convergence', 'Atoms', 'Atoms one by one']
    """
    return _report(model, X, y, image_shape, facts, feature_names, timing, rows)[1]


def _report(
    model: Any, X: Any, y: Any, image_shape: Any = None, facts: Any = None,
    feature_names: Any = None, timing: Any = None, rows: Any = None,
) -> tuple[Subject, list[Section]]:  # fmt: skip
    """Check every argument, code the rows, and return both with the sections."""
    anatomy = dissect(model)
    X, y = _check_rows(anatomy, X, y)
    source = check_source(rows, None if X is None else n_rows_of(X))
    n_features = anatomy.n_features if X is None else int(X.shape[1])
    shape = check_image_shape(image_shape, n_features)
    names = check_names(feature_names, anatomy, n_features)
    for name, value in (("facts", facts), ("timing", timing)):
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(f"{name} must be a mapping of names to values, got {value!r}.")
    for step, seconds in (timing or {}).items():
        if isinstance(seconds, bool) or not isinstance(seconds, Real):
            raise TypeError(f"timing[{step!r}] must be a number at least 0, got {seconds!r}.")
        if not float(seconds) >= 0:
            raise ValueError(f"timing[{step!r}] must be at least 0, got {seconds}.")
    if X is not None and anatomy.kernel_atoms and anatomy.learners[0].kernel == "precomputed":
        raise ValueError(
            "X: dictionaries with kernel='precomputed' know neither rows nor their energies; "
            "report on them without X."
        )
    view = make_view(anatomy, n_features, shape, names)
    coded = decisions = map_error = None
    if X is not None:
        coded = code_rows(anatomy, X, y) if anatomy.learners else None
        if anatomy.keeps_rows or anatomy.supervised:
            decisions = decide_rows(anatomy, X, y)
        map_error = measure_map(anatomy, X)
    subject = Subject(model, anatomy, view, X, y, coded, decisions, map_error, source)
    return subject, _sections(subject, facts or {}, timing or {})


def _check_rows(anatomy: Anatomy, X: Any, y: Any) -> tuple[Any, Any]:
    if X is None:
        if y is not None:
            raise ValueError("y needs the rows it labels: pass X too.")
        return None, None
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2 or X.shape[0] == 0:
        raise ValueError(f"X must be a table of at least one row, got shape {tuple(X.shape)}.")
    if anatomy.n_features not in (None, X.shape[1]):
        raise ValueError(
            f"X must have the {anatomy.n_features} columns that the model learned from, got shape "
            f"{tuple(X.shape)}."
        )
    if y is None:
        return X, None
    y = np.asarray(y)
    if y.shape != (X.shape[0],):
        raise ValueError(
            f"y must hold one label for each of the {X.shape[0]} rows of X, got shape {y.shape}."
        )
    return X, y


def _sections(
    subject: Subject, facts: Mapping[str, Any], timing: Mapping[str, float]
) -> list[Section]:
    anatomy = subject.anatomy
    sections: list[Section | None] = [fitted_section(subject, facts), learning_section(subject)]
    if anatomy.learners:
        if subject.view is not None or subject.coded is not None:
            sections.append(atoms_section(subject))
        sections.append(single_atoms_section(subject))
    if anatomy.group in DECISIONS:
        sections += DECISIONS[anatomy.group](subject)
    sections.append(_timing_section(subject, timing))
    return [section for section in sections if section is not None]


def _timing_section(subject: Subject, timing: Mapping[str, float]) -> Section | None:
    rows = [[str(step), f"{seconds:.3g} s"] for step, seconds in timing.items()]
    words = ["Steps given in seconds were timed when the model was fitted."] if rows else []
    if subject.X is not None:
        name, seconds, n_rows = time_model(subject.model, subject.X)
        rows.append([f"{name}, per row", f"{1e6 * seconds:.3g} µs"])
        which, of = count_words(n_rows, "row"), n_rows_of(subject.X)
        which = f"all {which}" if n_rows == of else f"{which} of {of:,}, evenly spread,"
        words.append(
            f"Timed for this page: {name} on {which} at once; the median of three runs on "
            f"{count_words(n_threads(), 'thread')}, divided by the rows."
        )
    if not rows:
        return None
    return Section("Time", " ".join(words), table=Table(["step", "time"], rows))


def _heading(anatomy: Anatomy) -> str:
    if anatomy.keeps_rows:
        return f"{type(anatomy.last).__name__}: the training rows as dictionary"
    if not anatomy.learners:
        return "Kernel map: what was learned"
    by_class = anatomy.group == "class dictionaries"
    name = "Class dictionaries" if by_class else type(anatomy.last).__name__
    if anatomy.in_feature_space:
        kernel = (anatomy.linearizer or anatomy.learners[0]).kernel
        name += f" under {f'the {kernel}' if isinstance(kernel, str) else 'a'} kernel"
    return f"{name}: what was learned"


def _lead(subject: Subject) -> str:
    """Return what the reader should know first; whether the rows were learned from above all."""
    words = _finding(subject)
    return origin_words(subject.source) + words if words else ""


def _finding(subject: Subject) -> str:
    """Say in a sentence or two what the rows have shown."""
    anatomy, coded = subject.anatomy, subject.coded
    answers = subject.decisions or coded
    if answers is not None and anatomy.is_classifier and subject.y is not None:
        words, strange = accuracy_words(subject, answers), unknown_labels(subject, answers)
        return f"{words} {unknown_words(strange)[0]}" if strange else words
    if subject.decisions is not None:
        return certainty_words(subject.decisions)
    if coded is not None:
        shares = coded.share(coded.least)
        known = shares[np.isfinite(shares)]
        if len(known):
            return (
                f"Of {count_words(len(known), 'row')}, half leave at most "
                f"{percent(float(np.median(known)))} of their energy over when they are coded."
            )
    return subject.map_error or ""


def footer() -> str:
    """Return what made a page, and when."""
    return (
        f"Made by kernelatoms {__version__} on {datetime.now():%Y-%m-%d}, with scikit-learn "
        f"{sklearn.__version__}, numpy {np.__version__} and Python {platform.python_version()}."
    )
