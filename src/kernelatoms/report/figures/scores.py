"""Figures of scores and objectives: robustness, convergence, scores over sizes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter

from kernelatoms import Sizes
from kernelatoms.report.comparison import mean_and_error
from kernelatoms.report.figures import style

# Numbers of atoms that spread further than this are crowded at one end of a linear axis.
_WIDE = 40


def robustness_figure(
    levels: Any, scores: Mapping[str, Any], *, xlabel: str, ylabel: str = "accuracy"
) -> style.Figure:
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
    figure, ax = style.new_plot(xlabel, ylabel)
    for i, (name, values) in enumerate(scores.items()):
        if np.shape(values)[1:] != levels.shape:
            raise ValueError(
                f"scores[{name!r}] must have one column for each of the {len(levels)} levels, got "
                f"shape {np.shape(values)}."
            )
        _draw_scores(ax, levels, values, name, i)
    ax.set_ylim(0, 1.02)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    ax.legend(frameon=False, fontsize=10, loc="lower left")
    return figure


def convergence_figure(
    objectives: Mapping[str, Any], *, ylabel: str = "squared error", log: bool = False
) -> style.Figure:
    """Draw the objective after every pass of learning.

    Parameters
    ----------
    objectives : mapping of str to array of shape (n_passes,)
        One curve per model, of any lengths: ``objective_`` of a learner.
    ylabel : str
        What the objective is.
    log : bool, default=False
        A logarithmic axis, for objectives that fall by orders of magnitude.

    Returns
    -------
    Figure
    """
    if not isinstance(log, bool | np.bool_):
        raise TypeError(f"log must be True or False, got {log!r}.")
    figure, ax = style.new_plot("pass", ylabel)
    for i, (name, values) in enumerate(objectives.items()):
        ax.plot(np.arange(1, len(values) + 1), values, label=name, **style.line_style(i))
    if log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, fontsize=10)
    return figure


def sizes_figure(sizes: Sizes) -> style.Figure:
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
    figure, ax = style.new_plot("atoms", "score on rows not learned from")
    for i, n in enumerate(sizes.n_nonzero_coefs):
        name = f"{n} nonzero{'s' * (n != 1)}" if n else "score"
        _draw_scores(ax, sizes.n_atoms, sizes.scores[:, i].T, name, i)
    if len(sizes.n_atoms) > 3 and max(sizes.n_atoms) > _WIDE * min(sizes.n_atoms):
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.legend(frameon=False, fontsize=10)
    return figure


def _draw_scores(ax: Any, places: Any, scores: Any, name: str, i: int) -> None:
    """Draw means over runs (n_runs, n_places) with their standard errors."""
    mean, error = mean_and_error(scores)
    ax.errorbar(places, mean, yerr=error, label=name, capsize=3, **style.line_style(i))
