"""The section on single atoms: a contact sheet, and numbers of the dictionary."""

import numpy as np

from kernelatoms import AtomNumbers, atom_numbers
from kernelatoms.report.anatomy import Anatomy
from kernelatoms.report.coding import Subject, n_rows_of, spread, take_rows
from kernelatoms.report.contact_sheet import Sheet, make_sheet
from kernelatoms.report.page import Picture, Section, Table
from kernelatoms.report.words import count_words, percent

# Rows that atoms are measured on, evenly spread where there are more: a page must not take long.
_MEASURED_ROWS = 5000
# A pre-image costs time in proportion to the values of all anchors: 20 take six seconds at 6,000
# anchors of 256 features, on two cores.
_CHEAP_ANCHORS, _ATOMS_AT_THAT = 1_000_000, 30
# Atoms that are drawn in one picture.
_ONE_PICTURE = 10
# Atoms whose numbers are in the alternative text.
_IN_ALT = 3


def single_atoms_section(subject: Subject) -> Section:
    """Show the atoms that carry most with their numbers, and say what these are."""
    n_rows = 0 if subject.X is None else n_rows_of(subject.X)
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


def _measure(subject: Subject) -> AtomNumbers:
    X, y = subject.X, subject.y
    if X is None:
        return atom_numbers(subject.model)
    rows = spread(n_rows_of(X), _MEASURED_ROWS)
    if y is None:
        return atom_numbers(subject.model, take_rows(X, rows))
    labels = np.asarray(y)[rows]
    # A row without a label says nothing about classes, and is left out.
    known = np.array([label is not None and label == label for label in labels.tolist()])
    if not known.any() or len({type(label) for label in labels[known].tolist()}) > 1:
        return atom_numbers(subject.model, take_rows(X, rows))
    return atom_numbers(subject.model, take_rows(X, rows[known]), labels[known])


def _meaning(subject: Subject, numbers: AtomNumbers) -> str:
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


def _pictures(subject: Subject, numbers: AtomNumbers, sheet: Sheet) -> list[Picture]:
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
