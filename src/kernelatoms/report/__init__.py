"""Plots and the HTML report.

- ``figures``: arrays to matplotlib figures; plain functions, no pyplot, no global state.
- ``comparison``: scores of repeated runs to means, standard errors and an honest sentence.
- ``page``: sections of text, tables and figures to one self-contained HTML file.

matplotlib is imported here and nowhere below: ``import kernelatoms`` does not pay for it.
"""

from kernelatoms.report.comparison import compare_in_words, mean_and_error
from kernelatoms.report.figures import (
    atoms_figure,
    code_figure,
    confusion_figure,
    convergence_figure,
    images_figure,
    robustness_figure,
)
from kernelatoms.report.page import (
    Picture,
    Section,
    Table,
    check_target,
    render_page,
    write_report,
)

__all__ = [
    "Picture",
    "Section",
    "Table",
    "atoms_figure",
    "check_target",
    "code_figure",
    "compare_in_words",
    "confusion_figure",
    "convergence_figure",
    "images_figure",
    "mean_and_error",
    "render_page",
    "robustness_figure",
    "write_report",
]
