"""Figs. 10 and 11: what KSCDL reaches, pass by pass, and by penalty and bandwidth.

Columns have unit norm, those of Syn360 as they are drawn (mean 0). What is shown is a mean over
training columns, so that sets of different size can be compared. The paper plots the squared
error; Fig. 10 here has what is minimised: half of it, and the penalty.
"""

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms import KSCDL
from kernelatoms.coding import Expansion, KernelProblem, lasso
from kernelatoms.similarity import make_kernel
from reproduction.fksc.coders import CHANGE, LEARNED
from reproduction.fksc.data import load_columns
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

#: The values of a column, by data set.
N_VALUES = {"planetlab": 490, "syn360": 360, "traffic": 144, "pm25": 168}
#: Atoms as a share of the values of a column: 1 is the paper's square dictionary.
SHARES = (0.5, 1.0, 2.0)
PASSES = (1, 2, 3, 5, 10, 20, 50, 100)
ALPHAS = (0.001, 0.01, 0.1)
SIGMAS = (1.0, 2.0, 5.0, 10.0, 20.0)


def atoms_in_words(data: str, share: float) -> str:
    """Return the name of a dictionary by its size."""
    return f"{round(share * N_VALUES[data])} atoms ({share:g} n)"


def printed_in_words(data: str) -> str:
    """Return the name of the square dictionary by Algorithm 1."""
    return f"{N_VALUES[data]} atoms, as printed"


def weight_in_words(alpha: float) -> str:
    """Return the name of a penalty."""
    return f"lambda {alpha:g}"


def measure_passes(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the lowest objective reached up to pass x, per training column."""
    n_train = len(_train(setting["data"], seed, data_home))
    objective, _ = _learned(
        setting["data"], setting["share"], setting["alpha"], setting["sigma"], setting["passes"],
        setting["tol"], setting["learned"], setting["change_tol"], seed, data_home,
    )  # fmt: skip
    reached = np.minimum.accumulate(objective)[min(setting["x"], len(objective)) - 1]
    return {"objective": float(reached) / n_train, "passes": float(len(objective))}


def measure_grid(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return |phi(y) - phi(X)w|^2 per training column, a square dictionary of bandwidth x."""
    sigma, alpha = setting["x"], setting["alpha"]
    objective, atoms = _learned(
        setting["data"], 1.0, alpha, sigma, setting["passes"], setting["tol"], "ours", CHANGE,
        seed, data_home,
    )  # fmt: skip
    kernel = make_kernel("rbf", gamma=1 / (2 * sigma**2))
    train = _train(setting["data"], seed, data_home)
    codes = lasso(KernelProblem(train, Expansion(kernel, atoms)), alpha)
    return {
        "error": float(codes.error.mean()),
        "nonzeros": codes.n_nonzero / codes.n_signals,
        "passes": float(len(objective)),
    }


def _train(data: str, seed: int, data_home: DataHome) -> Array:
    return load_columns(data, "unit", seed, data_home).train


@lru_cache(maxsize=2)
def _learned(
    data: str, share: float, alpha: float, sigma: float, passes: int, tol: float, learned: str,
    change_tol: float, seed: int, data_home: DataHome,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the objective by pass, and the atoms of the best one."""
    train = _train(data, seed, data_home)
    stop: dict[str, Any] = {"tol": tol} if learned == "ours" else {"change_tol": change_tol}
    learner = KSCDL(
        round(share * train.shape[1]), alpha=alpha, gamma=1 / (2 * sigma**2), max_iter=passes,
        random_state=seed, **stop, **LEARNED[learned],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of empty codes: the objective shows them
        learner.fit(train)
    return np.asarray(learner.objective_), learner.components_


def _fig_10(data: str, durations: tuple[str, str]) -> Study:
    def settings(shares: tuple[float, ...], passes: tuple[int, ...]) -> list[Setting]:
        ways = [(atoms_in_words(data, share), share, "ours") for share in shares]
        ways.append((printed_in_words(data), 1.0, "printed"))
        return [
            {"method": name, "data": data, "share": share, "learned": learned, "x": k}
            for name, share, learned in ways
            for k in passes
        ]

    return Study(
        name=f"fksc/convergence-{data}",
        dataset="none" if data.startswith("syn") else data,
        quick=Size(settings(SHARES[:2], PASSES), 1, durations[0]),
        full=Size(settings(SHARES, PASSES), 3, durations[1]),
        measure=measure_passes,
        parameters={"alpha": 0.001, "sigma": 2.0, "passes": 100, "tol": 0.0, "change_tol": CHANGE},
    )


def _fig_11(data: str, durations: tuple[str, str]) -> Study:
    def settings(sigmas: tuple[float, ...]) -> list[Setting]:
        return [
            {"method": weight_in_words(alpha), "alpha": alpha, "data": data, "x": sigma}
            for alpha in ALPHAS
            for sigma in sigmas
        ]

    return Study(
        name=f"fksc/grid-{data}",
        dataset="none" if data.startswith("syn") else data,
        quick=Size(settings(SIGMAS[1::2]), 1, durations[0]),
        full=Size(settings(SIGMAS), 3, durations[1]),
        measure=measure_grid,
        parameters={"passes": 100, "tol": 1e-3},
    )


CONVERGENCE = {
    "planetlab": _fig_10("planetlab", ("1 min", "4 min")),
    "syn360": _fig_10("syn360", ("1 min", "4 min")),
    "traffic": _fig_10("traffic", ("20 s", "1 min")),
    "pm25": _fig_10("pm25", ("20 s", "1 min")),
}
GRID = {
    "planetlab": _fig_11("planetlab", ("1 min", "3 min")),
    "syn360": _fig_11("syn360", ("1 min", "3 min")),
    "traffic": _fig_11("traffic", ("10 s", "1 min")),
    "pm25": _fig_11("pm25", ("10 s", "1 min")),
}
