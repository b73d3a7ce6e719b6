"""The papers' experiments: what was reported, how we run it, what we get.

- ``study``: a grid of settings and seeds, each measured once: the runs behind figures.
- ``store``: one JSON line per (setting, seed), so that runs resume where they stopped.
- ``circumstances``: what a record says of its run: commit, machine, threads, time.
- ``check``: stored runs made again, and what no longer repeats.
- ``figure``: what a paper showed of a study: reported numbers, our curves, claims to check.
- ``page``: figures as tables, plots and one HTML page.
- ``corruption``: noise and missing pixels, the same for every method.
- ``codec/``: our codec beside SZ3, ZFP, PCA and SVD, and the FKSC paper's file in real bytes.
- ``fksc/``: *A novel kernel sparse coding method with a two-stage acceleration strategy*.
- ``kcrc/``: Liu, Yu, Lu, Wen, Li and Zou, *KCRC-LCD*, 2015.
- ``kdl/``: Nguyen, Patel, Nasrabadi and Chellappa, *Kernel dictionary learning*, 2012.
- ``ksad/``: Chhabra, Wallace and Hopgood, *Improved image discrimination using fast non-linear
  orthogonal dictionary learning* (K-SAD).
- ``lkdl/``: Golts and Elad, *Linearized kernel dictionary learning*, 2016.
- ``methods/``: which method? All classifiers, and scikit-learn's, on tables and images.
"""

from kernelatoms.papers.codec import FIGURES as CODEC_FIGURES
from kernelatoms.papers.figure import PaperFigure
from kernelatoms.papers.fksc import FIGURES as FKSC_FIGURES
from kernelatoms.papers.kcrc import FIGURES as KCRC_FIGURES
from kernelatoms.papers.kdl import FIGURES as KDL_FIGURES
from kernelatoms.papers.ksad import FIGURES as KSAD_FIGURES
from kernelatoms.papers.lkdl import FIGURES as LKDL_FIGURES
from kernelatoms.papers.methods import FIGURES as METHODS_FIGURES

#: Every figure that ``kernelatoms reproduce`` knows, in the order of the papers.
FIGURES: dict[str, PaperFigure] = {
    figure.name: figure
    for figure in (
        *KDL_FIGURES, *LKDL_FIGURES, *KCRC_FIGURES, *FKSC_FIGURES, *KSAD_FIGURES, *CODEC_FIGURES,
        *METHODS_FIGURES,
    )
}  # fmt: skip

__all__ = ["FIGURES", "PaperFigure"]
