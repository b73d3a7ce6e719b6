"""A. Golts, M. Elad, *Linearized kernel dictionary learning*, IEEE J-STSP 10(4), 2016.

- ``reported``: the numbers of Figs. 1 to 3.
- ``usps``: the studies behind Figs. 1a, 1b, 2a and 2b.
- ``mnist``: the study behind Figs. 3a and 3b.
- ``figures``: the figures, and what has to hold in them.
"""

from kernelatoms.papers.lkdl.figures import FIGURES

__all__ = ["FIGURES"]
