"""Figs. 10 and 11: what KSCDL reaches, pass by pass, and by penalty and bandwidth.

Columns have unit norm, those of Syn360 as they are drawn (mean 0). What is shown is a mean over
training columns, so that sets of different size can be compared. The paper plots the squared
error; Fig. 10 here has what is minimised: half of it, and the penalty.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import KSCDL
from kernelatoms.papers.fksc.data import load_columns
from kernelatoms.papers.study import DataHome, Setting, Size, Study
from kernelatoms.pursuit import Expansion, KernelProblem, lasso
from kernelatoms.similarity import make_kernel

Array = NDArray[Any]

#: Atoms as a share of the values of a column: 1 is the paper's square dictionary.
SHARES = (0.25, 0.5, 1.0, 2.0)
PASSES = (1, 2, 3, 5, 10, 20, 30)
ALPHAS = (0.001, 0.01, 0.1)
SIGMAS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)

_FIG_10 = {"alpha": 0.001, "sigma": 2.0, "passes": PASSES[-1]}


def atoms_in_words(data: str, share: float) -> str:
    """Return the name of a dictionary by its size."""
    n_values = {"planetlab": 490, "syn360": 360}[data]
    return f"{data}, {round(share * n_values)} atoms ({share:g} n)"


def weight_in_words(alpha: float) -> str:
    """Return the name of a penalty."""
    return f"lambda {alpha:g}"


def measure_passes(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the lowest objective reached up to pass x, a training column."""
    train = _train(setting, seed, data_home)
    n_atoms = round(setting["share"] * train.shape[1])
    objective, _ = _learned(
        setting["data"], n_atoms, setting["alpha"], setting["sigma"], setting["passes"], seed,
        data_home,
    )  # fmt: skip
    reached = objective[min(setting["x"], len(objective)) - 1]
    return {"objective": float(reached) / len(train), "passes": float(len(objective))}


def measure_grid(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return |phi(y) - phi(X)w|^2, a training column, over a square dictionary of bandwidth x."""
    train, sigma, alpha = _train(setting, seed, data_home), setting["x"], setting["alpha"]
    _, atoms = _learned(
        setting["data"], train.shape[1], alpha, sigma, setting["passes"], seed, data_home
    )
    kernel = make_kernel("rbf", gamma=1 / (2 * sigma**2))
    codes = lasso(KernelProblem(train, Expansion(kernel, atoms)), alpha)
    return {
        "error": float(codes.error.mean()),
        "nonzeros": codes.n_nonzero / codes.n_signals,
    }


def _train(setting: Setting, seed: int, data_home: DataHome) -> Array:
    return load_columns(setting["data"], "unit", seed, data_home).train


@lru_cache(maxsize=2)
def _learned(
    data: str, n_atoms: int, alpha: float, sigma: float, passes: int, seed: int,
    data_home: DataHome,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the objective by pass, and the atoms; learning goes on to the last pass."""
    train = load_columns(data, "unit", seed, data_home).train
    learner = KSCDL(
        n_atoms, alpha=alpha, gamma=1 / (2 * sigma**2), max_iter=passes, tol=0, random_state=seed
    ).fit(train)
    return np.asarray(learner.objective_), learner.components_


def _fig_10_settings(sets: tuple[str, ...], shares: tuple[float, ...]) -> list[Setting]:
    return [
        {**_FIG_10, "method": atoms_in_words(data, share), "data": data, "share": share, "x": k}
        for data in sets
        for share in shares
        for k in PASSES
    ]


def _fig_11_settings(data: str, sigmas: tuple[float, ...]) -> list[Setting]:
    return [
        {"method": weight_in_words(a), "alpha": a, "data": data, "passes": 5, "x": sigma}
        for a in ALPHAS
        for sigma in sigmas
    ]


CONVERGENCE = Study(
    name="fksc/convergence",
    dataset="planetlab",
    quick=Size(_fig_10_settings(("syn360",), SHARES[:3]), 1, "30 s"),
    full=Size(_fig_10_settings(("planetlab", "syn360"), SHARES), 1, "1 min"),
    measure=measure_passes,
)
GRID = Study(
    name="fksc/grid",
    dataset="planetlab",
    quick=Size(_fig_11_settings("planetlab", SIGMAS[::2]), 1, "30 s"),
    full=Size(_fig_11_settings("planetlab", SIGMAS), 3, "1 min"),
    measure=measure_grid,
)
