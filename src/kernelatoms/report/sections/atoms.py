"""Sections on what dictionaries are made of: atoms and codes, a contact sheet with numbers."""

from typing import Any

import numpy as np

from kernelatoms import AtomNumbers, atom_numbers
from kernelatoms.report import coding
from kernelatoms.report.anatomy import Anatomy
from kernelatoms.report.contact_sheet import Sheet, make_sheet, upright
from kernelatoms.report.figures.distributions import shares_figure, usage_figure
from kernelatoms.report.figures.images import atoms_figure, coded_image_figure
from kernelatoms.report.figures.rows import coded_row_figure, curves_figure, heat_figure
from kernelatoms.report.figures.style import as_label
from kernelatoms.report.page import Picture, Section, Table
from kernelatoms.report.sections.decision_kinds import codes_words
from kernelatoms.report.view import View
from kernelatoms.report.words import count_words, label_words, percent

_CLASSES_SHOWN = 12
_ATOMS_OF_A_CODE = 5
# Rows that atoms are measured on, evenly spread where there are more: a page must not take long.
_MEASURED_ROWS = 5000
# A pre-image costs time in proportion to the values of all anchors: 20 take six seconds at 6,000
# anchors of 256 features, on two cores.
_CHEAP_ANCHORS, _ATOMS_AT_THAT = 1_000_000, 30
# Atoms that are drawn in one picture; those whose numbers are in the alternative text.
_ONE_PICTURE, _IN_ALT = 10, 3


def atoms_section(subject: coding.Subject) -> Section:
    """Show atoms, and where rows were given, how they are coded over them."""
    view, coded = subject.view, subject.coded
    titles, words = [], []
    pictures: list[Picture] = []
    if view is not None:
        titles.append("Atoms")
        kind = (
            "Atoms are rows like those that were learned from"
            if subject.anatomy.row_atoms
            else "An atom's sign is free: its largest value is shown as positive"
        )
        what = "dictionary is" if subject.anatomy.supervised else "dictionaries are"
        words.append(
            f"What the {what} made of. {kind}, and every atom has a scale of its own. {view.units}"
        )
        pictures.append(_atoms_picture(subject, view))
    if coded is not None:
        titles.append("codes" if titles else "Codes")
        text, found = _codes(subject, coded)
        words.append(text)
        pictures += found
    return Section(" and ".join(titles), "\n\n".join(words), pictures=pictures)


def _atoms_picture(subject: coding.Subject, view: View) -> Picture:
    """Draw atoms: the most used ones where rows were given, else the first."""
    anatomy, coded = subject.anatomy, subject.coded
    parts = anatomy.atoms_by_class
    n_shown = min(len(parts), _CLASSES_SHOWN)
    most = _atoms_a_dictionary(view, n_shown)
    groups = []
    for i, order in parts[:n_shown]:
        if coded is not None:
            order = order[np.argsort(-coded.uses[i][order], kind="stable")]
        atoms = view.atoms(anatomy.learners[i].components_[order[:most]])
        groups.append(atoms if anatomy.row_atoms else upright(atoms))
    labels = [as_label(label) for label in anatomy.classes[:n_shown]]
    count = max(len(group) for group in groups)
    which = "the first" if coded is None else "those that most rows use"
    what = "pre-images of atoms" if view.preimages else "atoms"
    if labels:
        table = view.feature_names is not None and view.image_shape is None
        line = "group of columns" if table else "row"
        caption = f"Up to {count} {what} of each class, {which}; one {line} per class"
        if len(anatomy.classes) > n_shown:
            caption += f"; the first {n_shown} of {len(anatomy.classes)} classes"
    else:
        caption = f"{count} of {anatomy.learners[0].n_atoms_:,} {what}, {which}"
    as_what = "images" if view.image_shape else "columns" if view.feature_names else "curves"
    alt = f"{caption}. Drawn as {as_what}."
    shades = view.shades("the atom's")
    return Picture(_draw_atoms(view, groups, labels), f"{caption}.", alt, shades)


def _atoms_a_dictionary(view: View, n_dictionaries: int) -> int:
    """Return how many atoms of each dictionary a picture has room for."""
    if n_dictionaries == 1:
        return 64 if view.image_shape is not None else 24
    if view.image_shape is not None:
        return 8
    return 4 if view.feature_names is None else min(8, max(1, 36 // n_dictionaries))


def _draw_atoms(view: View, groups: list[coding.Array], labels: list[str]) -> Any:
    if view.image_shape is None and view.feature_names is not None:
        named = list(zip(labels or [""], (len(group) for group in groups), strict=True))
        return heat_figure(np.vstack(groups), view.feature_names, named)
    n_columns = None if len(groups) == 1 else max(len(group) for group in groups)
    if n_columns is not None:
        # Classes with fewer atoms leave the rest of their line empty.
        groups = [
            np.pad(group, ((0, n_columns - len(group)), (0, 0)), constant_values=np.nan)
            for group in groups
        ]
    stack, row_labels = np.vstack(groups), labels or None
    if view.image_shape is not None:
        return atoms_figure(stack, view.image_shape, n_columns=n_columns, row_labels=row_labels)
    return curves_figure(stack, n_columns=n_columns, row_labels=row_labels)


def _codes(subject: coding.Subject, coded: coding.Coded) -> tuple[str, list[Picture]]:
    """Return a typical row's code, how often atoms are used, and how much codes leave over."""
    shares = coded.share(coded.least)
    known = np.flatnonzero(np.isfinite(shares))
    n_without = len(shares) - len(known)
    text = "Rows are written as sums of few atoms; what the sum misses is left over."
    if subject.anatomy.codes_jointly:
        text += (
            " Here each row is coded once, over the atoms of all classes together; a class leaves "
            "over what its own part of that code misses, and the one that leaves the least counts."
        )
    elif subject.anatomy.supervised:
        text += codes_words(subject.anatomy.last)
    elif subject.anatomy.is_classifier:
        text += " Here each row is coded over the dictionary that leaves the least of it."
    if subject.anatomy.in_feature_space:
        text += " Energies are those of feature space."
    if n_without:
        has, counted = ("has", "is") if n_without == 1 else ("have", "are")
        text += (
            f" {count_words(n_without, 'row')} of energy 0 {has} nothing to leave over and "
            f"{counted} not counted."
        )
    classes = subject.anatomy.classes if len(coded.uses) > 1 else []
    pictures = [_usage_picture(coded, classes, subject.anatomy.codes_jointly)]
    if len(known):
        low, middle, high = np.percentile(shares[known], [5, 50, 95])
        words = (
            f"Half of {count_words(len(known), 'row')} leave over at most {percent(middle)} of "
            f"their energy; the middle 90% lie between {percent(low)} and {percent(high)}."
        )
        pictures.append(Picture(shares_figure(shares[known]), words, f"Histogram. {words}"))
        if subject.view is not None:
            typical = known[np.abs(shares[known] - middle).argmin()]
            pictures.insert(0, _example(subject, subject.view, coded, int(typical)))
    return text, pictures


def _usage_picture(coded: coding.Coded, classes: list[Any], jointly: bool) -> Picture:
    rows = coded.n_coded
    # A dictionary that no row chose says nothing about its atoms.
    shown = np.flatnonzero(rows)
    used = sum(int(np.count_nonzero(coded.uses[c])) for c in shown)
    atoms = sum(len(coded.uses[c]) for c in shown)
    mean = sum(int(uses.sum()) for uses in coded.uses) / len(coded.energy)
    words = (
        f"{used:,} of {count_words(atoms, 'atom')} are used by at least one row; a row uses "
        f"{mean:.1f} on average."
    )
    if len(coded.uses) > 1:
        which = "all rows" if jointly else "the rows that chose it"
        words += f" One line per class; shares are of {which}."
    names = classes or [""]
    figure = usage_figure({names[c]: coded.uses[c] / rows[c] for c in shown})
    return Picture(figure, words, f"Share of rows that use each atom, falling. {words}")


def _example(subject: coding.Subject, view: View, coded: coding.Coded, row: int) -> Picture:
    anatomy = subject.anatomy
    learner = anatomy.learners[coded.chosen[row]]
    before = anatomy.before_map(coding.take_rows(subject.X, [row]))
    codes, _ = coding.code_signals(anatomy, anatomy.after_map(before))
    code = codes[coded.chosen[row]].toarray()[0]
    used = np.flatnonzero(code)
    shown = used[np.argsort(-np.abs(code[used]), kind="stable")][:_ATOMS_OF_A_CODE]
    signal = view.rows(before)[0]
    approximation = view.atoms(learner.inverse_transform(code[None]))[0]
    atoms = dict(zip(shown.tolist(), view.atoms(learner.components_[shown]), strict=True))
    if view.image_shape is not None:
        shape = view.image_shape
        images = {atom: values.reshape(shape) for atom, values in atoms.items()}
        figure = coded_image_figure(
            signal.reshape(shape), approximation.reshape(shape), code, images
        )
    else:
        figure = coded_row_figure(signal, approximation, code, atoms, view.feature_names)
    share = percent(coded.least[row] / coded.energy[row])
    name = ""
    if anatomy.is_classifier and not anatomy.supervised:
        name = f" of class {label_words(anatomy.classes[coded.chosen[row]])}"
    caption = (
        f"Row {subject.source.name(row)}, a typical one (rows are counted from 0): the "
        f"dictionary{name} leaves {share} of it over, of all rows the nearest to the median."
    )
    if view.preimages:
        caption += " Atoms, sum and rest are pre-images; the share is that in feature space."
    alt = (
        f"Row {subject.source.name(row)}; the sum of {count_words(len(used), 'atom')} of its code, "
        "its code."
    )
    return Picture(figure, caption, alt, view.shades("the row's, or the atom's own,"))


def single_atoms_section(subject: coding.Subject) -> Section:
    """Show the atoms that carry most with their numbers, and say what these are."""
    n_rows = 0 if subject.X is None else coding.n_rows_of(subject.X)
    numbers = _measure(subject)
    words = [_meaning(subject, numbers)]
    if numbers.n_rows < n_rows:
        words.append(
            f"Measured on {numbers.n_rows:,} of {n_rows:,} rows, evenly spread where "
            "there are very many, those without a label left out."
        )
    pictures: list[Picture] = []
    if subject.view is not None:
        n_atoms = _affordable(subject.anatomy)
        sheet = make_sheet(subject.model, subject.anatomy, subject.view, numbers, n_atoms=n_atoms)
        pictures = _pictures(subject, numbers, sheet)
    table = Table(["of the dictionary", "value"], _lines(numbers))
    return Section("Atoms one by one", "\n\n".join(words), table=table, pictures=pictures)


def _affordable(anatomy: Anatomy) -> int | None:
    """Return how many pre-images a page may wait for, some seconds; None for as many as fit."""
    if anatomy.linearizer is not None:
        size = np.size(anatomy.linearizer.landmarks_)
    else:
        size = max(np.size(getattr(learner, "anchors_", 0)) for learner in anatomy.learners)
    return None if size <= _CHEAP_ANCHORS else max(5, _ATOMS_AT_THAT * _CHEAP_ANCHORS // size)


def _measure(subject: coding.Subject) -> AtomNumbers:
    X, y = subject.X, subject.y
    if X is None:
        return atom_numbers(subject.model)
    rows = coding.spread(coding.n_rows_of(X), _MEASURED_ROWS)
    if y is not None:
        labels = np.asarray(y)[rows]
        # A row without a label says nothing about classes, and is left out.
        known = np.array([label is not None and label == label for label in labels.tolist()])
        if len({type(label) for label in labels[known].tolist()}) == 1:
            return atom_numbers(subject.model, coding.take_rows(X, rows[known]), labels[known])
    return atom_numbers(subject.model, coding.take_rows(X, rows))


def _meaning(subject: coding.Subject, numbers: AtomNumbers) -> str:
    """Say what the numbers mean."""
    many = len(subject.anatomy.learners) > 1
    words = (
        "An atom's coherence is the largest |cosine| between it and any other atom of its "
        "dictionary: 0 if it is orthogonal to all of them, 1 if it is one of them again. The "
        "largest of all is the mutual coherence."
    )
    if numbers.energy is not None:
        words += (
            " Its energy is its share of the squared size of all codes, which the bar shows too, "
            "relative to the largest. Atoms in effect are how many would carry as much, were all "
            "used alike: 1 over the sum of the squared shares."
        )
        if many:
            words += (
                " Every row counts with its code over all dictionaries."
                if subject.anatomy.codes_jointly
                else " Every row counts with its code over the dictionary that leaves the least."
            )
    if numbers.purity is not None:
        words += (
            " A class beside a percentage is the one that most of the atom's energy comes from, "
            "every class weighed alike, and its share: the atom's purity."
        )
    return words


def _lines(numbers: AtomNumbers) -> list[list[str]]:
    """Return the numbers of all atoms together, as lines of a table."""
    lines = [
        ["mutual coherence", f"{numbers.mutual_coherence:.3f}"],
        ["mean coherence of an atom", f"{numbers.mean_coherence:.3f}"],
    ]
    if numbers.n_used is not None and numbers.n_effective is not None:
        lines.append(["atoms in use", f"{numbers.n_used:,} of {len(numbers.coherence):,}"])
        lines.append(["atoms in effect", f"{numbers.n_effective:.1f}"])
    if numbers.mean_purity is not None and numbers.chance is not None:
        value = "no atom is used"
        if not np.isnan(numbers.mean_purity):
            value = f"{percent(numbers.mean_purity)}, by chance {percent(numbers.chance)}"
        lines.append(["mean purity, by energy", value])
    return lines


def _pictures(subject: coding.Subject, numbers: AtomNumbers, sheet: Sheet) -> list[Picture]:
    """Draw the sheet; one of many atoms in two halves, which wide pages put side by side."""
    view = subject.view
    assert view is not None
    n_atoms, shown = len(numbers.coherence), len(sheet.chosen)
    which = "the first" if numbers.energy is None else "those of the most energy"
    caption = f"{shown:,} of {count_words(n_atoms, 'atom')}, {which}."
    if numbers.energy is not None and shown < n_atoms:
        caption += f" They carry {percent(float(numbers.energy[sheet.chosen].sum()))} of it."
    if sheet.error is not None:
        middle = percent(float(np.median(sheet.error)))
        caption += (
            " Pictures are pre-images: rows whose phi comes near to the atom or to its negative. "
            "The error is their squared distance in feature space over the atom's squared norm; "
            f"half of these have at most {middle}. At 100%, the zero vector would be as near."
        )
    elif view.preimages:
        caption += " Pictures are linear pre-images."
    shades = view.shades("the atom's")
    if shown <= _ONE_PICTURE:
        return [Picture(sheet.draw(view), caption, _alt(sheet, caption), shades)]
    half = -(-shown // 2)
    first, rest = sheet.part(slice(half)), sheet.part(slice(half, None))
    more = f"The next {len(rest.chosen)} atoms."
    return [
        Picture(first.draw(view), caption, _alt(first, caption), shades),
        Picture(rest.draw(view), more, _alt(rest, more), shades),
    ]


def _alt(sheet: Sheet, caption: str) -> str:
    """Return the alternative text of a sheet, with the first atoms' numbers."""
    parts = [f"{cell.title}: {', '.join(cell.lines)}" for cell in sheet.cells[:_IN_ALT]]
    first = f"The first {len(parts)} of {len(sheet.cells)}: " if len(sheet.cells) > _IN_ALT else ""
    return f"Contact sheet of atoms with their numbers. {caption} {first}{'; '.join(parts)}."
