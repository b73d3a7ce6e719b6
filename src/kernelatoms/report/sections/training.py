"""Sections on how a model was learned: settings and sizes, convergence, the kernel map."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelatoms import nystrom_error
from kernelatoms.report.anatomy import Anatomy
from kernelatoms.report.coding import Subject, n_rows_of, spread, take_rows
from kernelatoms.report.figures.distributions import progress_figure, spectrum_figure
from kernelatoms.report.origin import left_out_words
from kernelatoms.report.page import Fold, Picture, Section, Table
from kernelatoms.report.sections.decision_kinds import objective_words, supervised_sizes
from kernelatoms.report.words import count_words, labels_words, percent, settings_in_words

# A learner stops when this many passes together gain no more than its tol.
_PATIENCE = 3
_CLASSES_NAMED = 20
_NYSTROM_ROWS = 2000
_LONGEST_CELL, _LONGEST_LINE = 32, 400


def fitted_section(subject: Subject, facts: Mapping[str, Any]) -> Section:
    """Say which steps the model has, how they were set, and how large it became."""
    anatomy = subject.anatomy
    steps = [settings_in_words(step) for step in anatomy.steps]
    words = [f"{i}. {step}." if len(steps) > 1 else f"{step}." for i, step in enumerate(steps, 1)]
    if len(steps) > 1:
        words.insert(0, "Rows pass through these steps; settings that are not the defaults:")
    classes, folds = anatomy.classes, []
    if classes:
        words.append(f"Classes: {labels_words(classes, _CLASSES_NAMED)}.")
    if len(classes) > _CLASSES_NAMED:
        listed = labels_words(classes, len(classes))
        folds.append(Fold(f"All {len(classes):,} classes", listed))
    if subject.X is not None:
        words.append(left_out_words(subject.source, n_rows_of(subject.X), subject.y is not None))
    if subject.y is not None and not classes:
        words.append("Labels were given, but this model does not classify: they are not used.")
    rows = _sizes(subject)
    for name, fact in facts.items():
        # Cells do not wrap: what is too long for a phone's line goes into the text, and what is
        # too long for that is folded.
        longest = max(len(str(name)), len(str(fact)))
        if longest <= _LONGEST_CELL:
            rows.append([str(name), str(fact)])
        elif longest <= _LONGEST_LINE:
            words.append(f"{name}: {fact}")
        else:
            folds.append(Fold(str(name), str(fact)))
    table = Table(["what", "value"], rows)
    return Section("What was fitted", "\n\n".join(words), table, folds=folds)


def _sizes(subject: Subject) -> list[list[str]]:
    anatomy, rows = subject.anatomy, []
    if anatomy.n_features is not None:
        rows.append(["features", f"{anatomy.n_features:,}"])
    if anatomy.linearizer is not None:
        rows.append(["landmarks", f"{anatomy.linearizer.n_landmarks_:,}"])
        rows.append(["components of the kernel map", f"{anatomy.linearizer.n_components_:,}"])
    if anatomy.kernel_atoms:
        anchors = [len(learner.anchors_) for learner in anatomy.learners]
        rows.append(["anchors per dictionary", _span(anchors)])
    each = ""
    if anatomy.is_classifier:
        rows.append(["classes", f"{len(anatomy.classes):,}"])
        each = " per class"
    if anatomy.keeps_rows:
        rows += _kept_sizes(anatomy.last)
    if anatomy.learners:
        if anatomy.supervised:
            rows.append(["atoms", f"{anatomy.last.n_atoms_:,}"])
        rows.append([f"atoms{each}", _span([len(atoms) for _, atoms in anatomy.atoms_by_class])])
        if anatomy.supervised:
            rows += supervised_sizes(anatomy.last)
        elif hasattr(anatomy.learners[0], "l1_weight_"):
            weights = [learner.l1_weight_ for learner in anatomy.learners]
            rows.append(["weight of the l1 penalty", f"{max(weights):.4g}"])
        elif getattr(anatomy.learners[0], "alpha", None) is not None:
            rows.append(["weight of the l1 penalty", f"{anatomy.learners[0].alpha:g}"])
            if anatomy.row_atoms and anatomy.learners[0].gamma_ is not None:
                rows.append(["gamma of the kernel", f"{anatomy.learners[0].gamma_:.4g}"])
        else:
            nonzeros = [learner.n_nonzero_coefs_ for learner in anatomy.learners]
            rows.append(["nonzeros per code, at most", _span(nonzeros)])
    if subject.X is not None:
        rows.append(["rows in this report", f"{n_rows_of(subject.X):,}"])
    return rows


def _kept_sizes(last: Any) -> list[list[str]]:
    """Return how large a model is that keeps its training rows, and what it chose."""
    n_rows, kept = len(last.dictionary_), last.dictionary_.nbytes
    rows = [
        ["training rows kept", f"{n_rows:,}"],
        ["training rows per class", _span(np.bincount(last.labels_).tolist())],
        ["rows a code may use", f"{last.n_neighbors_ or n_rows:,}"],
    ]
    if last.projection_ is not None:
        rows.append(["components of the projection", f"{last.projection_.shape[1]:,}"])
        kept += last.projection_.nbytes
    rows.append(["numbers kept", f"{kept / 2**20:.3g} MiB"])
    if hasattr(last, "mu_"):
        rows.append(["weight of the ridge, mu", f"{last.mu_:.3g}"])
    elif last.n_nonzero_coefs_ is not None:
        rows.append(["nonzeros per code, at most", f"{last.n_nonzero_coefs_:,}"])
    elif last.alpha is not None:
        rows.append(["weight of the l1 penalty", f"{last.alpha:g}"])
    if last.gamma_ is not None:
        rows.append(["gamma of the kernel", f"{last.gamma_:.4g}"])
    return rows


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def learning_section(subject: Subject) -> Section | None:
    """Show how the dictionaries were learned, and the kernel map they were learned over."""
    titles, words = [], []
    pictures: list[Picture] = []
    if subject.anatomy.learners:
        titles.append("Convergence")
        text, pictures = _convergence(subject.anatomy)
        words.append(text)
    if subject.anatomy.linearizer is not None:
        titles.append("Kernel map" if not titles else "kernel map")
        text, picture = _kernel_map(subject.anatomy.linearizer)
        words.append(text if subject.map_error is None else f"{text} {subject.map_error}")
        pictures.append(picture)
    if not titles:
        return None
    return Section(" and ".join(titles), "\n\n".join(words), pictures=pictures)


def _convergence(anatomy: Anatomy) -> tuple[str, list[Picture]]:
    """Return in words how learning ended, and how the objective fell from pass to pass."""
    learners = anatomy.learners
    objectives = [np.asarray(learner.objective_, np.float64) for learner in learners]
    n_passes = max(len(values) for values in objectives)
    # A dictionary that stopped early keeps its last objective.
    even = [np.pad(values, (0, n_passes - len(values)), mode="edge") for values in objectives]
    total = np.sum(even, axis=0)
    together = ", all classes together" if len(learners) > 1 else ""
    penalty = ""
    if anatomy.supervised:
        penalty = objective_words(anatomy.last)
    elif hasattr(learners[0], "l1_weight_"):
        penalty = ", plus the weighed penalty on the size of their coefficients"
    elif anatomy.row_atoms:
        penalty = ", halved, plus the penalty on the size of their coefficients"
    text = (
        f"The objective is the squared error of the training rows' codes{penalty}{together}: what "
        "every pass reached, of which the lowest counts."
    )
    ending = _ending(learners)
    if n_passes == 1 or total[0] == 0:
        why = "One pass was recorded" if n_passes == 1 else "The first pass left nothing over"
        return f"{text} {why}: there is no curve to draw. {ending}", []
    relative = "The energy of the training rows is not stored, so it is relative to the first pass."
    if total.min() < 0:  # shares of a negative number say nothing
        return f"{text} It fell from {total[0]:.4g} to {total[-1]:.4g}. {ending}", []
    end = f"After {n_passes} passes it is at {percent(total[-1] / total[0])} of the first."
    names = anatomy.classes if len(objectives) > 1 else [""]
    figure = progress_figure(dict(zip(names, objectives, strict=True)), total)
    picture = Picture(figure, end, f"Objective by pass. {end}")
    return f"{text} {relative} {ending}", [picture]


def _ending(learners: list[Any]) -> str:
    """Say in words how the passes ended."""
    most = learners[0].max_iter
    converged = [_has_converged(learner) for learner in learners]
    short = [learner.n_iter_ < learner.max_iter for learner in learners]
    early = sum(a and b for a, b in zip(converged, short, strict=True))
    outside = sum(b and not a for a, b in zip(converged, short, strict=True))
    unfinished = len(learners) - sum(converged) - outside
    reason = f"three passes together gained no more than {learners[0].tol:g} of it"
    if len(learners) == 1:
        passes = count_words(learners[0].n_iter_, "pass", "passes")
        if early:
            return f"Learning stopped early, after {passes} of at most {most}: {reason}."
        if outside:
            return (
                f"Learning ended after {passes} of at most {most}, before it converged: it was "
                "stopped from outside, or learned in batches."
            )
        end = "it had not converged, so more may lower it" if unfinished else "it had converged"
        return f"Learning used all {count_words(most, 'pass', 'passes')} allowed; {end}."
    words = []
    if early:
        words.append(f"{early} of {len(learners)} dictionaries stopped early: {reason}.")
    if unfinished:
        words.append(
            f"{unfinished} of {len(learners)} used all {count_words(most, 'pass', 'passes')} "
            "allowed and had not converged: more may lower it."
        )
    if outside:
        words.append(f"{outside} of {len(learners)} were stopped from outside.")
    if not words:
        words.append(f"All dictionaries had converged after the {most} passes allowed.")
    return " ".join(words)


def _has_converged(learner: Any) -> bool:
    objective = learner.objective_
    if len(objective) <= _PATIENCE:
        return False
    before = objective[-1 - _PATIENCE]
    return bool(before - objective[-1] <= learner.tol * abs(before))


def _kernel_map(linearizer: Any) -> tuple[str, Picture]:
    """Return in words what the map does, and its spectrum."""
    values = np.asarray(linearizer.eigenvalues_, np.float64)
    parts = np.cumsum(values) / values.sum()
    half, most = (int(np.searchsorted(parts, share)) + 1 for share in (0.5, 0.9))
    held = (
        f"Half of the sum of the eigenvalues kept lies in {half:,} of "
        f"{count_words(len(values), 'component')}, nine tenths in {most:,}."
    )
    text = (
        f"Virtual samples of {count_words(linearizer.n_components_, 'coordinate')}, from "
        f"{count_words(linearizer.n_landmarks_, 'landmark')}, represent rows in the kernel's "
        "feature space: their inner products approximate the kernel."
    )
    return text, Picture(spectrum_figure(values), held, f"Eigenvalues, falling. {held}")


def measure_map(anatomy: Anatomy, X: Any) -> str | None:
    """Say how far virtual samples of these rows are from the kernel; None where it is not known."""
    linearizer, n_rows = anatomy.linearizer, n_rows_of(X)
    if linearizer is None:
        return None
    chosen = spread(n_rows, _NYSTROM_ROWS)
    before = anatomy.before_map(take_rows(X, chosen))
    if isinstance(linearizer.kernel, str) and linearizer.kernel == "precomputed":
        # Only k(train, train) tells the kernel between rows; k(new, train) does not.
        matrix = np.asarray(before)
        if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T):
            return None
    else:
        # What the kernel is of rows with missing values is an estimate itself.
        before = before[~np.isnan(np.asarray(before)).any(axis=1)]
    if not len(before):
        return None
    error = nystrom_error(linearizer, before)
    which = f"all {n_rows:,} rows"
    if len(before) < n_rows:
        which = f"{len(before):,} of the {n_rows:,} rows, evenly spread"
        which += " and complete" * (len(before) < len(chosen))
    return (
        f"On {which}, inner products of virtual samples differ from the kernel matrix by "
        f"{percent(error)} of its Frobenius norm."
    )
