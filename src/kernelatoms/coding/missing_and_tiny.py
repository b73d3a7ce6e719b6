"""Signals that pursuits code apart from others: those that miss values, and tiny ones.

Of signals of a linear problem that miss values, each has a Gram matrix of its own: they are coded
from rows over rows.

Tiny signals have squares that underflow float64: norms below about 1e-154. Pursuits compare with
squared norms: how much of a signal is explained, or its duality gap. Such signals are multiplied by
2^600, which changes no digit of their codes.

See docs/decisions/031-missing-values-in-signals.md and docs/decisions/023-numbers-far-from-one.md.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.atom_products import LinearAtoms
from kernelatoms.coding.codes import Codes, replace_rows, scaled
from kernelatoms.coding.problem import CodingProblem, KernelProblem, LinearProblem
from kernelatoms.engine import Array
from kernelatoms.similarity.inner import LinearKernel
from kernelatoms.similarity.missing import rows_with_missing

#: Tiny signals are multiplied by two to this power, and so are penalties and goals.
EXPONENT = 600
# The smallest squared norm of a signal that is not tiny.
_LEAST = 2.0**-800


class Split(NamedTuple):
    """A problem in two: its complete signals, and rows over rows for those that miss values."""

    complete_rows: NDArray[np.intp]
    complete: CodingProblem
    partial_rows: NDArray[np.intp]
    partial: LinearProblem


def split_missing(problem: CodingProblem) -> Split | None:
    """Return a linear problem whose signals miss values in two parts; None for all others."""
    if not isinstance(problem, LinearProblem | KernelProblem):
        return None
    if isinstance(problem, LinearProblem) and problem.complete:
        return None
    if isinstance(problem, KernelProblem) and not isinstance(problem.atoms.kernel, LinearKernel):
        return None
    partial = rows_with_missing(problem.signals)
    if not len(partial):
        return None
    complete = np.delete(np.arange(problem.n_signals), partial)
    if isinstance(problem, LinearProblem):
        rows = problem.atoms
    else:
        anchors, coef = problem.atoms.expansion.anchors, problem.atoms.expansion.coef
        combined = anchors if coef is None else coef.T @ anchors
        rows = LinearAtoms(np.ascontiguousarray(combined, dtype=problem.dtype))
    signals = problem.signals if len(partial) == problem.n_signals else problem.signals[partial]
    return Split(
        complete, type(problem)(problem.signals[complete], problem.atoms),  # type: ignore[arg-type]
        partial, LinearProblem(signals, rows),
    )  # fmt: skip


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
