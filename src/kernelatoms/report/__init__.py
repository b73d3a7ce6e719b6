"""The report on a fitted model: one self-contained HTML page, and its figures.

- ``model``: the report on any fitted model, ``write_model_report``. It takes the model apart
  (``anatomy``), finds out how to draw it (``view``), codes the rows (``coding``) and puts together
  ``sections``.
- ``sections``: what is said about a model, subject by subject.
- ``figures``: arrays to matplotlib figures; plain functions, no pyplot, no global state.
- ``contact_sheet``: the atoms of a fitted model as small pictures with their numbers.
- ``comparison``: scores of repeated runs to means, standard errors and a sentence.
- ``page``: sections of text, tables and figures to HTML; ``embedding``: figures as data URIs,
  with text that matplotlib's font cannot draw.
- ``origin``: where the rows and the model of a report come from. ``words``: plain English.

Further figures are imported from their modules in ``figures``. matplotlib is imported here and
nowhere below: ``import kernelatoms`` does not load it.
"""

from kernelatoms.report.comparison import compare_in_words, mean_and_error
from kernelatoms.report.contact_sheet import contact_sheet
from kernelatoms.report.figures.images import atoms_figure, code_figure, images_figure
from kernelatoms.report.figures.scores import convergence_figure
from kernelatoms.report.model import model_sections, write_model_report
from kernelatoms.report.origin import RowsOfFile
from kernelatoms.report.page import Picture, Section, Table, write_report

__all__ = [
    "Picture",
    "RowsOfFile",
    "Section",
    "Table",
    "atoms_figure",
    "code_figure",
    "compare_in_words",
    "contact_sheet",
    "convergence_figure",
    "images_figure",
    "mean_and_error",
    "model_sections",
    "write_model_report",
    "write_report",
]
