"""Curves of scores over numbers of atoms."""

from matplotlib.figure import Figure

from kernelatoms import Sizes
from kernelatoms.report.comparison import mean_and_error
from kernelatoms.report.style import line_style, new_plot


def sizes_figure(sizes: Sizes) -> Figure:
    """Draw what cross-validation found: the score against the number of atoms.

    Parameters
    ----------
    sizes : Sizes
        What ``choose_sizes`` returned.

    Returns
    -------
    Figure
        A line for every number of nonzeros, standard errors over folds as bars.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KSVD, choose_sizes
    >>> from kernelatoms.report import sizes_figure
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> model = KSVD(random_state=0, max_iter=2)
    >>> sizes = choose_sizes(model, X, n_atoms=(4, 8), n_nonzero_coefs=(1, 2))
    >>> len(sizes_figure(sizes).axes)
    1
    """
    figure, ax = new_plot("atoms", "score on rows not learned from")
    for j, n in enumerate(sizes.n_nonzero_coefs):
        mean, error = mean_and_error(sizes.scores[:, j].T)
        label = f"{n} nonzero{'s' * (n != 1)}" if n else "score"
        ax.errorbar(sizes.n_atoms, mean, yerr=error, label=label, capsize=2.5, **line_style(j))
    if len(sizes.n_nonzero_coefs) > 1:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure
