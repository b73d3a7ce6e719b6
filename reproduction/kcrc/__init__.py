"""W. Liu et al., *KCRC-LCD*: kernel collaborative representation over local dictionaries, 2015.

- ``reported``: Tables 1, 4 and 5 as printed, and the names of the methods.
- ``data``: the splits of Extended Yale B, MNIST and USPS.
- ``methods``: from a setting to a classifier.
- ``faces``: the studies behind Table 1 and Figs. 2 and 5.
- ``direction``: the study behind Fig. 3.
- ``digits``: the studies behind Fig. 4, and a confusion matrix in the place of Fig. 8.
- ``speed``: the studies behind Tables 3 and 4 and Figs. 9 and 10; ``alone`` measures memory.
- ``distances``: the studies behind Table 5, and which unified measure.
- ``occlusion``: the study of images with hidden parts (Algorithm 2), and its claims.
- ``claims``, ``claims_speed``, ``claims_distances``: what has to hold.
- ``pictures``: Figs. 2, 3 and 8 as the paper has them.
- ``choices``: which defaults, on all data sets at hand; ``claims_choices``: what must hold.
- ``figures``: all of it, as figures.
- ``authors_files``: 15 scenes and Caltech 101, whose features are not at hand.
"""

from reproduction.kcrc.authors_files import FIGURES as AUTHORS_FILES
from reproduction.kcrc.figures import FIGURES as AT_HAND

FIGURES = (*AT_HAND, *AUTHORS_FILES)

__all__ = ["FIGURES"]
