"""Curves of scores over numbers of atoms."""

from matplotlib.figure import Figure

from kernelatoms import Sizes
from kernelatoms.report.series import series_figure


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
    lines = {
        f"{n} nonzero{'s' * (n != 1)}" if n else "score": (
            list(sizes.n_atoms),
            list(sizes.scores[:, j]),
        )
        for j, n in enumerate(sizes.n_nonzero_coefs)
    }
    return series_figure(lines, {}, {}, xlabel="atoms", ylabel="score on rows not learned from")
