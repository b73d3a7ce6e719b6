"""H. V. Nguyen, V. M. Patel, N. M. Nasrabadi, R. Chellappa, *Kernel dictionary learning*, 2012.

- ``reported``: the names of the methods; the paper prints curves and no numbers.
- ``synthetic``: the studies behind Fig. 4: two circles, a parabola.
- ``usps``: the studies behind Figs. 5a and 5b.
- ``one_class``: those behind Fig. 1, and of updates and starts.
- ``pictures``: Fig. 4 as the paper has it, over the plane.
- ``claims``: what has to hold in the figures.
- ``figures``: the figures.
"""

from reproduction.kdl.figures import FIGURES

__all__ = ["FIGURES"]
