"""Tables II to IV, Figs. 4 and 5: supervised dictionaries with and without LKDL."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.figure import PaperFigure
from reproduction.lkdl import faces, reported
from reproduction.lkdl.claims_supervised import (
    claims_4,
    claims_5a,
    claims_5b,
    claims_table_2,
    claims_table_3,
    claims_table_4,
)
from reproduction.lkdl.fddl import FISHER

if TYPE_CHECKING:
    from kernelatoms.report import Picture


def _take(name: str) -> Callable[[Mapping[str, float]], float | None]:
    """Return what takes one measure out of a run's, where it has it."""
    return lambda measures: measures.get(name)


# Drawing brings matplotlib, which listing the figures does not need.
def _code_pictures(folder: Path) -> "Sequence[Picture]":
    from reproduction.lkdl.pictures import code_pictures

    return code_pictures(folder)


_ACCURACY: dict[str, Any] = {"measured": _take("accuracy"), "ylabel": "accuracy, %"}
_RANK_AXIS: dict[str, Any] = {
    "xlabel": "components of the map", "nowhere": "all, or no map",
}  # fmt: skip
_FACES = (
    "Extended Yale B, 504 random features (made anew by the published recipe: the authors' numbers "
    "come from one published feature file), unit rows, 32 images per person to train, one split "
    "per seed. "
)
_RAW = (
    "What the paper calls LC-KSVD alone is of rows as they are, with sqrt(alpha) = 4 and "
    "sqrt(beta) = 2: raw rows. Unit rows alone are our addition; they tell scaling from kernel. "
)
_MAP = "LKDL: exp(-d^2 / 2), all training rows as landmarks. "
_OURS = (
    "alpha = beta = 0.1 (D-KSVD: beta = 1), ridge 0.01, 20 passes over each class and 5 over all: "
    "the library's defaults. The number of passes was chosen on four other splits, the weights "
    "after looking at test rows of splits like these. "
)
_SEARCHED = (
    "The rows chosen on training rows have the same weights; gamma of 0.25, 0.5, 1 and 30 or 60 "
    "nonzeros are chosen for every split by three folds of its training images. "
)
_WHY = (
    "Passes over rows that carry their labels fit atoms, in LC-KSVD2 and D-KSVD the decision too, "
    "to codes that the labels had a part in; rows to test have none, and get other codes. "
)
_AR = (
    "Not the images of the paper: 60 x 43 crops without sunglasses and scarves, 7 images per "
    "person of a first session to train and 7 of a second to test; the paper has 20 and 6, drawn "
    "from both sessions, disguises among them. Only gains can be compared, not accuracies. 540 "
    "random features of the pixels, drawn by the seed, unit rows, 500 atoms (5 per person), 30 "
    "nonzeros. "
)

FIGURES = (
    PaperFigure(
        name="lkdl/table2",
        title="Table II: FDDL (USPS)",
        text="300 atoms per class from k-means, 5 passes, lambda_2 = 0.001, local decision; LKDL "
        "with (x'y)^3, 20% of the rows as landmarks (k-means), rank 256. The paper has "
        "lambda_1 = 0.1. Our reading of the FDDL code is that it minimises |.|^2 + 2 lambda_1 "
        "|.|_1, where eq. (7) has |.|^2 + lambda_1 |.|_1; its 0.1 is then 0.2 here. Our additions: "
        "30 atoms and one pass; and a row with choices made on training rows: gamma, "
        "smoothing and metric that LKDL of Fig. 1b takes with the same seed, and of lambda_1 = "
        "0.1, 0.2, 0.3 the best on the first of its folds. Five runs; the paper has ten.",
        source=reported.TABLE,
        study=FISHER,
        reported=reported.TABLE_2,
        claims=claims_table_2,
        xlabel="lambda_1",
        nowhere="chosen",
        **_ACCURACY,
    ),
    PaperFigure(
        name="lkdl/table2-global",
        title="Table II with the global decision (USPS)",
        text="Our addition: the dictionaries of the table before, but a row is coded once over the "
        "atoms of all classes. The text names weights (g_1, g_2) of the local decision.",
        source=reported.TABLE,
        study=FISHER,
        measured=_take("accuracy_global"),
        reported=reported.TABLE_2,
        claims=claims_table_2,
        xlabel="lambda_1",
        nowhere="chosen",
        ylabel="accuracy, %",
    ),
    PaperFigure(
        name="lkdl/table3",
        title="Table III: LC-KSVD as published (Extended Yale B)",
        text=_FACES + _RAW + _MAP + "570 atoms, 30 nonzeros, sqrt(alpha) = 1/30, sqrt(beta) = "
        "1/91 for unit rows, ridge 1, 20 passes over each class and 50 over all. The authors tuned "
        "weights and rank on their features; the next table has others for ours.",
        source=reported.TABLE,
        study=faces.YALEB_PUBLISHED,
        reported=reported.TABLE_3,
        claims=lambda curves: claims_table_3(curves, reported.PAPERS_RANK),
        **_ACCURACY,
        **_RANK_AXIS,
    ),
    PaperFigure(
        name="lkdl/table3-weights",
        title="Table III with weights and rank of our choice (Extended Yale B)",
        text=_FACES + _RAW + _MAP + "570 atoms, 30 nonzeros. " + _OURS + "The claims are about all "
        "components of the map; the paper's 400 stand beside. " + _WHY
        + "D-KSVD is our addition. " + _SEARCHED,
        source=reported.TABLE,
        study=faces.YALEB_CHOSEN,
        reported=reported.TABLE_3,
        claims=lambda curves: claims_table_3(curves, None),
        **_ACCURACY,
        **_RANK_AXIS,
    ),
    PaperFigure(
        name="lkdl/fig4",
        title="Fig. 4: whose atoms code the test images of a person (Extended Yale B)",
        text=_FACES + _MAP + "570 atoms, 15 per person, 30 nonzeros; the settings of both tables "
        "before. The share of all |coefficients| that is on atoms of the right person: mean over "
        f"all 38 people, and of person {faces.SHOWN} (yaleB{faces.SHOWN}), taken for the paper's "
        "class '10' and drawn.",
        source=reported.NO_NUMBERS,
        study=faces.CODES,
        measured=_take("share"),
        reported={},
        claims=claims_4,
        xlabel="person",
        ylabel="share of |coefficients| on the right person's atoms, %",
        number="{:.1f}",
        nowhere="all people",
        pictures=_code_pictures,
    ),
    PaperFigure(
        name="lkdl/fig5a",
        title="Fig. 5a: accuracy against the number of atoms (Extended Yale B)",
        text=_FACES + _RAW + _MAP + "30 nonzeros. " + _OURS + "All components of the map. "
        "Raw rows stand at few places: their 50 passes take most of the time.",
        source=reported.NO_NUMBERS,
        study=faces.ATOMS,
        reported={},
        claims=claims_5a,
        xlabel="atoms per person",
        **_ACCURACY,
    ),
    PaperFigure(
        name="lkdl/fig5b",
        title="Fig. 5b: accuracy against the number of nonzeros (Extended Yale B)",
        text=_FACES + _RAW + _MAP + "570 atoms. " + _OURS + "All components of the map. "
        "Raw rows stand at few places: their 50 passes take most of the time.",
        source=reported.NO_NUMBERS,
        study=faces.SPARSITY,
        reported={},
        claims=claims_5b,
        xlabel="nonzeros",
        **_ACCURACY,
    ),
    PaperFigure(
        name="lkdl/table4",
        title="Table IV on another version of the images: LC-KSVD as published (AR)",
        text=_AR + _MAP + "sqrt(alpha) = 1/150 for LC-KSVD1, sqrt(alpha) = sqrt(beta) = 1/120 for "
        "LC-KSVD2, ridge 1, 20 passes over each class and 50 over all.",
        source=reported.TABLE + ", of other images",
        study=faces.AR_PUBLISHED,
        reported=reported.TABLE_4,
        claims=claims_table_4,
        **_ACCURACY,
        **_RANK_AXIS,
    ),
    PaperFigure(
        name="lkdl/table4-weights",
        title="Table IV on another version of the images, with our weights (AR)",
        text=_AR + _MAP + "The weights and passes of our choice on Extended Yale B. " + _WHY
        + "D-KSVD is our addition.",
        source=reported.TABLE + ", of other images",
        study=faces.AR_CHOSEN,
        reported=reported.TABLE_4,
        claims=claims_table_4,
        **_ACCURACY,
        **_RANK_AXIS,
    ),
)  # fmt: skip
