"""All figures that can be run, by name, in the order of the papers."""

from reproduction.codec import FIGURES as CODEC_FIGURES
from reproduction.figure import PaperFigure
from reproduction.fksc import FIGURES as FKSC_FIGURES
from reproduction.kcrc import FIGURES as KCRC_FIGURES
from reproduction.kdl import FIGURES as KDL_FIGURES
from reproduction.ksad import FIGURES as KSAD_FIGURES
from reproduction.lkdl import FIGURES as LKDL_FIGURES
from reproduction.methods import FIGURES as METHODS_FIGURES

FIGURES: dict[str, PaperFigure] = {
    figure.name: figure
    for figure in (
        *KDL_FIGURES, *LKDL_FIGURES, *KCRC_FIGURES, *FKSC_FIGURES, *KSAD_FIGURES, *CODEC_FIGURES,
        *METHODS_FIGURES,
    )
}  # fmt: skip

#: Titles of the pages.
TITLES = {
    "codec": "The codec beside its rivals",
    "fksc": "Fast kernel sparse coding, reproduced",
    "kcrc": "Kernel collaborative representation, reproduced",
    "kdl": "Kernel dictionary learning, reproduced",
    "ksad": "K-SAD, reproduced",
    "lkdl": "Linearized kernel dictionary learning, reproduced",
    "methods": "Which method?",
}
