"""Plots and the HTML report.

- ``sizes``: scores over numbers of atoms.
- ``page``: sections of text, tables and figures to one self-contained HTML file; ``embedding``:
  figures as they travel in it, for all scripts (``letters``), light pages and dark ones.
- ``figures``: arrays to matplotlib figures; plain functions, no pyplot, no global state.
- ``contact_sheet``: a fitted model's atoms as small pictures with their numbers, drawn in
  ``sheet_drawing``; ``channels``: images in colour and of further channels.
- ``curves``: figures of atoms and rows that are no images.
- ``distributions``: figures of how a model's numbers run and spread; ``class_curves``: one curve
  a class.
- ``calibration``: are answers as often right as they are sure?
- ``code_energies``: figures of the classes whose atoms codes have their weight on.
- ``compression``: a compressed matrix beside the original, its errors.
- ``shown``: figures that notebooks show.
- ``style``: what all figures share: width, colours, plain axes, labels.
- ``comparison``: scores of repeated runs to means, standard errors and an honest sentence.
- ``model``: the report on any fitted model. It takes the model apart (``anatomy``), codes the
  rows (``coding``) and writes sections on how it was learned (``learned``), its atoms and codes
  (``atoms``; one by one, ``looked``) and its answers (``scores``, ``classified``, ``weights``),
  in plain ``words``, with the ``rows`` numbered as their file has them. Of models that answer with
  shares and explain themselves ``judged`` tells, with the figure in ``class_parts``; what they
  have of their own is in ``represented`` (training rows as atoms) and ``labelled`` (one dictionary
  learned with the labels).

matplotlib is imported here and nowhere below: ``import kernelatoms`` does not pay for it.
"""

from kernelatoms.report.calibration import Reliability, calibration_figure, reliability
from kernelatoms.report.code_energies import code_energy_figure
from kernelatoms.report.comparison import compare_in_words, mean_and_error
from kernelatoms.report.compression import compression_figure, figure_bytes
from kernelatoms.report.contact_sheet import contact_sheet
from kernelatoms.report.figures import (
    atoms_figure,
    code_figure,
    confusion_figure,
    convergence_figure,
    images_figure,
    robustness_figure,
)
from kernelatoms.report.model import model_sections, write_model_report
from kernelatoms.report.page import (
    Fold,
    Picture,
    Section,
    Shades,
    Table,
    render_page,
    write_report,
)
from kernelatoms.report.rows import RowsOfFile
from kernelatoms.report.sizes import sizes_figure
from kernelatoms.report.style import share_shades, signed_shades

__all__ = [
    "Fold",
    "Picture",
    "Reliability",
    "RowsOfFile",
    "Section",
    "Shades",
    "Table",
    "atoms_figure",
    "calibration_figure",
    "code_energy_figure",
    "code_figure",
    "compare_in_words",
    "compression_figure",
    "confusion_figure",
    "contact_sheet",
    "convergence_figure",
    "figure_bytes",
    "images_figure",
    "mean_and_error",
    "model_sections",
    "reliability",
    "render_page",
    "robustness_figure",
    "share_shades",
    "signed_shades",
    "sizes_figure",
    "write_model_report",
    "write_report",
]
