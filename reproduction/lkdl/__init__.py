"""A. Golts, M. Elad, *Linearized kernel dictionary learning*, IEEE J-STSP 10(4), 2016.

- ``reported``: the numbers of Figs. 1 to 3 and Tables II to IV.
- ``usps``: the studies behind Figs. 1a, 1b, 2a and 2b.
- ``mnist``: the study behind Figs. 3a and 3b.
- ``fddl``: the study behind Table II.
- ``supervised``: from settings to LC-KSVD and D-KSVD, with and without a map.
- ``faces``: the studies behind Tables III and IV, Figs. 4, 5a and 5b.
- ``chosen``: rows of ours, whose choices are made on training rows.
- ``online``: online LKDL, its study and figures.
- ``figures``, ``figures_supervised``: the figures.
- ``authors_files``: Tables III and IV on the LC-KSVD authors' files, which are not at hand.
- ``sentences``: what the text says of the first; ``claims_supervised``: what has to hold in the
  second; ``pictures``: what the paper draws there.
"""

from reproduction.lkdl.authors_files import FIGURES as AUTHORS_FILES
from reproduction.lkdl.figures import FIGURES as REPRESENTATION
from reproduction.lkdl.figures_supervised import FIGURES as SUPERVISED
from reproduction.lkdl.online import FIGURES as ONLINE

FIGURES = (*REPRESENTATION, *SUPERVISED, *AUTHORS_FILES, *ONLINE)

__all__ = ["FIGURES"]
