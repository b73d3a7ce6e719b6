"""H. V. Nguyen, V. M. Patel, N. M. Nasrabadi, R. Chellappa, *Kernel dictionary learning*, 2012.

- ``reported``: the names of the methods; the paper prints curves and no numbers.
- ``synthetic``: the studies behind Fig. 4: two circles, a parabola.
- ``usps``: the studies behind Figs. 1, 5a and 5b.
- ``pictures``: Fig. 4 as the paper has it, over the plane.
- ``figures``: the figures, and what has to hold in them.
"""

from kernelatoms.papers.kdl.figures import FIGURES

__all__ = ["FIGURES"]
