"""*A novel kernel sparse coding method with a two-stage acceleration strategy* (KSC, FKSC, KSCDL).

- ``reported``: Tables 1 and 2 as printed, the settings of the text.
- ``data``: the columns that are coded, in three parts.
- ``speed``: the studies behind Table 1, Fig. 7 and Fig. 9; ``claims_coding`` what must hold there.
- ``coders``, ``compression``: Table 2, from columns to few numbers and back; ``slices``: PlanetLab
  at other times; ``claims_table_2`` what must hold there.
- ``rivals``: the codes that the paper compares itself with: CD, KFMC, KSR-L2,1, LPM.
- ``learning``: the studies behind Figs. 10 and 11.
- ``sphere``: Examples 1 and 2.
- ``claims``: what must hold in Figs. 10 and 11 and the examples.
- ``pictures``: Fig. 7 and Example 1 as the paper has them.
- ``figures``: all of it, as figures.
- ``authors_files``: Table 2 on the whole sets, which are not at hand.
"""

from reproduction.fksc.authors_files import FIGURES as AUTHORS_FILES
from reproduction.fksc.figures import FIGURES as AT_HAND

FIGURES = (*AT_HAND, *AUTHORS_FILES)

__all__ = ["FIGURES"]
