"""Signals so short that their squares underflow float64: norms below about 1e-154.

Pursuits compare with squared norms: how much of a signal is explained, or its duality gap. Such
signals are multiplied by 2^600, which changes no digit of their codes.

See docs/decisions/023-numbers-far-from-one.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes, replace_rows, scaled
from kernelatoms.coding.problem import CodingProblem, LinearProblem
from kernelatoms.engine import Array

#: Tiny signals are multiplied by two to this power, and so are penalties and goals.
EXPONENT = 600
# The smallest squared norm of a signal that is not tiny.
_LEAST = 2.0**-800


def tiny_signals(problem: CodingProblem, energies: Array | None = None) -> NDArray[np.intp]:
    """Return the signals other than 0 whose squares underflow float64; kernels refuse such rows."""
    if not isinstance(problem, LinearProblem) or problem.dtype != np.float64:
        return np.arange(0)
    if energies is None:
        energies = problem.energy(0, problem.n_signals)
    some = np.flatnonzero(energies < _LEAST)
    return some[problem.signals[some].any(axis=1)] if len(some) else some


def enlarged(problem: CodingProblem, tiny: NDArray[np.intp]) -> LinearProblem:
    """Return the problem of tiny signals times 2^EXPONENT."""
    assert isinstance(problem, LinearProblem)
    signals = np.ldexp(problem.signals[tiny], EXPONENT)
    return LinearProblem(signals, problem.atoms, complete=problem.complete)


def without(problem: CodingProblem, tiny: NDArray[np.intp]) -> LinearProblem:
    """Return the problem with zeros in place of tiny signals."""
    assert isinstance(problem, LinearProblem)
    signals = problem.signals.copy()
    signals[tiny] = 0
    return LinearProblem(signals, problem.atoms, complete=problem.complete)


def enlarge(number: Any) -> Any:
    """Return a penalty, goals or codes of tiny signals times 2^EXPONENT."""
    with np.errstate(over="ignore"):
        return np.ldexp(number, EXPONENT)


def put_back(codes: Codes, tiny: NDArray[np.intp], coded: Codes, problem: CodingProblem) -> Codes:
    """Return codes, those of tiny signals replaced by ``coded``, which are at 2^EXPONENT."""
    used = np.diff(coded.to_csr().indptr) > 0
    energies, longest = problem.energy(0, problem.n_signals), float(problem.norms2.max())
    assert energies is not None
    shortest = float(np.sqrt(energies[used].min())) if used.any() else np.inf
    # As in ``engine.cpu.scale``: coefficients are multiples of the smallest number.
    numbers = np.finfo(np.float64)
    blur = float(np.ldexp(np.sqrt(longest), EXPONENT)) * float(numbers.smallest_subnormal)
    if longest > 4 and blur > float(numbers.eps) * shortest:
        raise ValueError(
            "The codes underflow float64: the signals are too short for atoms of norm "
            f"{np.sqrt(longest):.2g}; scale X up, or the dictionary down."
        )
    return replace_rows(codes, tiny, scaled(coded, -EXPONENT))
