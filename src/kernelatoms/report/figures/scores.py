"""Figures of scores and objectives: robustness, convergence, scores over numbers of atoms."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelatoms import Sizes
from kernelatoms.report.comparison import mean_and_error
from kernelatoms.report.figures.series import series_figure
from kernelatoms.report.figures.style import Figure, check_flags, line_style, new_plot


def robustness_figure(
    levels: Any, scores: Mapping[str, Any], *, xlabel: str, ylabel: str = "accuracy"
) -> Figure:
    """Draw scores against the strength of a corruption: means, with standard errors as bars.

    Parameters
    ----------
    levels : array of shape (n_levels,)
        The strengths.
    scores : mapping of str to array of shape (n_runs, n_levels)
        Scores between 0 and 1 of each model; two runs or more.
    xlabel, ylabel : str
        The axes' names.

    Returns
    -------
    Figure
    """
    levels = np.asarray(levels, np.float64)
    figure, ax = new_plot(xlabel, ylabel)
    for i, (name, values) in enumerate(scores.items()):
        mean, error = mean_and_error(values)
        if mean.shape != levels.shape:
            raise ValueError(
                f"scores[{name!r}] must have one column for each of the {len(levels)} levels, got "
                f"shape {np.shape(values)}."
            )
        ax.errorbar(levels, mean, yerr=error, label=name, capsize=3, **line_style(i))
    ax.set_ylim(0, 1.02)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    ax.legend(frameon=False, fontsize=10, loc="lower left")
    return figure


def convergence_figure(
    objectives: Mapping[str, Any], *, ylabel: str = "squared error", log: bool = False
) -> Figure:
    """Draw the objective after every pass of learning.

    Parameters
    ----------
    objectives : mapping of str to array of shape (n_passes,)
        One curve a model, of any lengths: ``objective_`` of a learner.
    ylabel : str
        What the objective is.
    log : bool, default=False
        A logarithmic axis, for objectives that fall by orders of magnitude.

    Returns
    -------
    Figure
    """
    check_flags(log=log)
    figure, ax = new_plot("pass", ylabel)
    for i, (name, values) in enumerate(objectives.items()):
        ax.plot(np.arange(1, len(values) + 1), values, label=name, **line_style(i))
    if log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, fontsize=10)
    return figure


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
    >>> from kernelatoms.report.figures.scores import sizes_figure
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
