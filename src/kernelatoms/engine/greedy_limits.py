"""Limits of greedy pursuits on every machine: rounding, goals, and arguments that are refused.

See docs/decisions/022-rounding-in-greedy-pursuits.md.
"""

from typing import Any, NamedTuple, NoReturn

import numpy as np

from kernelatoms.engine.cpu.greedy_loops import CHECKED_DOUBT

# A correlation, or what is left of an atom, below this many machine epsilons of its scale is
# rounding, not signal. Ill-conditioned supports amplify one epsilon to some tens.
ROUNDING = 100.0

# The share of a signal's energy that rounding may change in a step that is taken.
LARGEST_DOUBT = 1e-4

_FLOAT32_EPS = float(np.finfo(np.float32).eps)


class Limits(NamedTuple):
    """What counts as rounding, as ``code_block`` of ``engine/cpu/greedy_loops.py`` says."""

    spanned: float
    vanishing: float
    eps: float
    largest_doubt: float


def limits_of(eps: float, leave_unsettled: bool = False, exact: bool = False) -> Limits:
    """Return the limits of pursuits in a type of this epsilon; arguments as of ``omp``."""
    largest_doubt = CHECKED_DOUBT if leave_unsettled else LARGEST_DOUBT
    if exact:
        # Of float32 are the numbers and the codes, not what is computed in between. A code of size
        # T, rounded, leaves (eps T)^2 of a signal; an atom of which less than ``spanned`` is left
        # would make that more than may be in doubt.
        eps = _FLOAT32_EPS**2
        return Limits(ROUNDING**2 * eps, ROUNDING**2 * eps, eps, largest_doubt)
    return Limits(ROUNDING * eps, (ROUNDING * eps) ** 2, eps, largest_doubt)


def check_arguments(dtype: str, n_signals: int, n_nonzero: int, stop_at: Any) -> None:
    """Refuse what no pursuit can be asked for; ``dtype`` is the name of the atoms' type."""
    if dtype not in ("float32", "float64"):
        raise TypeError(f"Inner products of atoms must be float32 or float64, got {dtype}.")
    if n_nonzero < 1:
        raise ValueError(f"n_nonzero must be at least 1, got {n_nonzero}.")
    if stop_at is None:
        return
    if stop_at.shape != (n_signals,):
        raise ValueError(
            f"stop_at must hold one number for each of {n_signals} signals, got shape "
            f"{tuple(stop_at.shape)}."
        )
    if not bool((stop_at >= 0).all()):
        raise ValueError("stop_at must not hold negative numbers or NaN.")


def energy_to_explain(energy: Any, stop_at: Any, relative: bool) -> Any:
    """Return how much of energies (n,) float64 to explain until residuals are at most ``stop_at``.

    ``energy`` is None where it is not known.
    """
    if energy is None:
        raise ValueError(
            "max_residual needs k(x, x) of the signals, which a precomputed kernel does not "
            "give; use n_nonzero_coefs alone."
        )
    # A goal of infinity times no energy is NaN, of which no energy is less: no atoms, as it should.
    with np.errstate(over="ignore", invalid="ignore"):
        goal = stop_at**2
        return energy - (goal * energy if relative else goal)


def refuse_undefined_energies() -> NoReturn:
    """Say that the energies of signals are infinite or NaN."""
    raise ValueError(
        "X holds signals whose squared norm overflows float64, or is undefined; scale X down, "
        "or choose smaller kernel parameters."
    )
