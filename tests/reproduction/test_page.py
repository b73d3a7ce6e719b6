"""Pages of papers: what holds comes first, pictures say what they show."""

import pytest

from reproduction.figure import Claim, Curves
from reproduction.figures import FIGURES
from reproduction.page import (
    claims_counted,
    claims_table,
    figure_picture,
    picture_in_words,
)

JUDGED = {
    "Fig. 1": [Claim("A is above B", True, "2 > 1"), Claim("B is above C", False, "1 < 2")],
    "Fig. 2": [],
    "Fig. 3": [Claim("C is 1", False, "2"), Claim("D is 1", False, "3")],
}


def test_the_summary_counts_claims_and_names_what_is_missed():
    assert claims_counted(JUDGED) == "1 of 4 claims hold"
    table = claims_table(JUDGED)
    assert table.rows == [
        ["Fig. 1", "1 of 2", "B is above C"],
        ["Fig. 3", "0 of 2", "C is 1; D is 1"],
    ]


@pytest.mark.parametrize(("n_places", "kind"), [(3, "dots"), (4, "lines")])
def test_few_places_are_drawn_as_dots_beside_the_methods(n_places, kind):
    figure = FIGURES["lkdl/fig3a"]
    curves = Curves({("LKDL, coreset", 10_000.0 * i): [98.0, 98.2] for i in range(1, 1 + n_places)})
    assert f"Ours: {kind} with standard errors, 2 seeds." in picture_in_words(figure, curves)
    (ax,) = figure_picture(figure, curves).axes
    named = [label.get_text() for label in ax.get_yticklabels()]
    assert ("LKDL, coreset" in named) == (kind == "dots")


def test_formulas_in_names_are_typeset_in_pictures():
    figure = FIGURES["lkdl/fig2a"]
    curves = Curves({("LKDL, coreset, (x'y)^4", float(x)): [90.0] for x in range(4)})
    drawn = figure_picture(figure, curves)
    texts = [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    assert "LKDL, coreset, $(x'y)^{4}$" in texts


def test_a_level_beside_a_line_is_said():
    figure = FIGURES["kcrc/table1"]
    values = {("CRC-GD", float(x)): [97.0] for x in range(-3, 1)}
    assert "Without markers" not in picture_in_words(figure, Curves(values))
    with_level = Curves({**values, ("CRC-GD", None): [97.5]})
    assert "Without markers: chosen." in picture_in_words(figure, with_level)
