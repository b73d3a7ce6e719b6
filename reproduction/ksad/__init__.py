"""P. S. Chhabra, A. M. Wallace, J. R. Hopgood, *Improved image discrimination using fast
non-linear orthogonal dictionary learning* (K-SAD).

- ``reported``: Tables II and III as printed, and the names of the methods.
- ``data``: the splits, and rows in as many coordinates as there are training rows.
- ``methods``: from a setting to a classifier, and what is measured of it.
- ``faces``: the studies behind Table II; ``digits``: the one behind Table III.
- ``ablation``: what every part of the method adds, on four data sets.
- ``readings``: what the text leaves open, read in every way.
- ``preimages``: the study behind Fig. 2; ``pictures``: its atoms, drawn.
- ``claims``: what has to hold.
- ``figures``: all of it, as figures.
- ``authors_files``: Table I, the Washington RGB-D objects, which are not at hand.
"""  # noqa: D205

from reproduction.ksad.authors_files import FIGURES as AUTHORS_FILES
from reproduction.ksad.figures import FIGURES as AT_HAND

FIGURES = (*AT_HAND, *AUTHORS_FILES)

__all__ = ["FIGURES"]
