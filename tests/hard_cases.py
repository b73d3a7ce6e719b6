"""Random coding problems at the edge of what numbers hold, and what must be true of their codes.

``run_case(rng)`` draws one: a way of coding, a kernel, a type, signals and atoms from 1e-30 to
1e30, nearly parallel, twice the same, zero, of low rank. Then either a ValueError says what is
wrong, or

- codes are finite, and what was asked for (nonzeros, candidates, signs);
- they are not worse than no code at all;
- the error and the duality gap that are told are the true ones.

The truth is computed in extended precision from the rows and codes as they are. What rounding may
change of it: an inner product of rows of f entries is known to f eps |x| |y|, so that a squared
residual is known to about f eps (|x| + T)^2, T the sum of the |w_j| |d_j|. Coefficients are
multiples of the smallest number of their type, which shows where signals are hardly more.
"""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import oracles.kernels
from kernelatoms.coding import lasso, omp
from kernelatoms.coding.closed_form import ridge
from kernelatoms.coding.lasso import fksc, ksc
from kernelatoms.engine.cpu import products
from kernelatoms.estimators.coding.arguments import make_problem
from kernelatoms.similarity.factory import KERNELS

GREEDY = ("omp", "ols")
L1 = ("lasso", "ksc", "fksc")
FORMS = ("gram", "candidates", "rows")
ALL_KERNELS = (*KERNELS, "precomputed", "function")
ATOMS = ("random", "parallel", "twins", "zeros", "low rank")


@dataclass
class Case:
    """A coding problem and how to solve it."""

    method: str
    form: str
    kernel: str
    X: Any
    D: Any
    positive: bool = False
    masked: bool = False
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1.0
    n_nonzero: int = 1
    max_residual: float | None = None
    alpha: float = 1.0
    candidates: Any = None
    notes: dict = field(default_factory=dict)

    def __str__(self):
        told = {name: getattr(self, name) for name in (
            "method", "form", "kernel", "positive", "masked", "gamma", "degree", "coef0",
            "n_nonzero", "max_residual", "alpha")}  # fmt: skip
        return f"{told} {self.X.dtype} X{self.X.shape} D{self.D.shape} {self.notes}"

    @property
    def named(self):
        """The name of the kernel that is really meant."""
        return (
            self.notes["stands for"] if self.kernel in ("precomputed", "function") else self.kernel
        )

    def true_kernel(self, A, B):
        return oracles.kernels.matrix(self.named, A, B, self.gamma, self.degree, self.coef0)


def draw_case(rng, method=None, kernel=None):
    """Return a random case, of this method and kernel if they are given."""
    method = method or str(rng.choice([*GREEDY, *GREEDY, *L1, "lasso", "ridge"]))
    kernel = kernel or str(rng.choice(["linear"] * 8 + list(ALL_KERNELS)))
    dtype = rng.choice([np.float32, np.float64])
    n_features, n_atoms, n_signals = rng.integers(1, 9), rng.integers(1, 21), rng.integers(1, 7)
    case = Case(method, "gram", kernel, None, None)
    if method in (*GREEDY, "lasso"):
        case.form = str(rng.choice(FORMS))
        case.positive = bool(rng.random() < 0.3)
    if kernel in ("precomputed", "function"):
        case.notes["stands for"] = str(rng.choice(["linear", "rbf", "poly"]))
    if method in GREEDY and kernel == "linear" and not case.positive:
        case.masked = bool(rng.random() < 0.2)
    D = _draw_atoms(rng, n_atoms, n_features, case.notes)
    X = rng.standard_normal((n_signals, n_features))
    if rng.random() < 0.3:  # signals that atoms can represent
        X = rng.standard_normal((n_signals, n_atoms)) @ D
    if rng.random() < 0.2:
        X[rng.integers(n_signals)] = 0
    if case.named in ("chi2", "additive_chi2"):
        X, D = np.abs(X), np.abs(D)
    signal_scale, atom_scale = _draw_scale(rng), _draw_scale(rng)
    if rng.random() < 0.3:
        atom_scale = signal_scale
    case.notes |= {"signals": f"{signal_scale:.3g}", "atoms": f"{atom_scale:.3g}"}
    scales = np.full(n_signals, signal_scale)
    if rng.random() < 0.3:
        scales *= 10.0 ** rng.uniform(-25, 0, n_signals)
        case.notes["mixed"] = True
    case.X, case.D = (X * scales[:, None]).astype(dtype), (D * atom_scale).astype(dtype)
    if case.masked:
        hidden = rng.random(X.shape) < 0.3
        hidden[np.arange(n_signals), rng.integers(0, n_features, n_signals)] = False
        case.X[hidden] = np.nan
        case.X[0, 0] = case.X[0, 0] if hidden[0].any() or n_features == 1 else np.nan
    _draw_kernel_parameters(rng, case, max(signal_scale, atom_scale))
    _draw_options(rng, case)
    return case


def _draw_scale(rng):
    return 10.0 ** rng.uniform(-30, 30) if rng.random() < 0.6 else 1.0


def _draw_atoms(rng, n_atoms, n_features, notes):
    kind = str(rng.choice(ATOMS))
    notes["kind"] = kind
    D = rng.standard_normal((n_atoms, n_features))
    base = rng.standard_normal(n_features)
    if kind == "parallel":
        spread = 10.0 ** rng.uniform(-9, 0)
        notes["spread"] = f"{spread:.2g}"
        D = base + spread * D
    elif kind == "twins":
        D = D[rng.integers(0, max(1, n_atoms // 2), n_atoms)]
    elif kind == "zeros":
        D[rng.random(n_atoms) < 0.3] = 0
    elif kind == "low rank":
        rank = int(rng.integers(1, n_features + 1))
        D = rng.standard_normal((n_atoms, rank)) @ rng.standard_normal((rank, n_features))
    if rng.random() < 0.5:
        norms = np.linalg.norm(D, axis=1, keepdims=True)
        D = D / np.where(norms > 0, norms, 1)
    elif rng.random() < 0.2:
        D = D * 10.0 ** rng.uniform(-12, 0, (n_atoms, 1))
        notes["uneven"] = True
    return D


def _draw_kernel_parameters(rng, case, scale):
    n_features = case.X.shape[1]
    power = 1 if case.named in ("laplacian", "chi2") else 2
    fitting = 1 / (n_features * float(scale) ** power)
    case.gamma = float(rng.choice([fitting, fitting * 10.0 ** rng.uniform(-6, 6), 1 / n_features]))
    case.degree = int(rng.integers(1, 6))
    case.coef0 = float(rng.choice([0.0, 1.0, 1.0, rng.uniform(0, 3)]))
    if case.named == "sigmoid":
        case.coef0 = float(rng.choice([0.0, 1.0, rng.uniform(-2, 2)]))


def _draw_options(rng, case):
    n_signals, n_atoms = len(case.X), len(case.D)
    case.n_nonzero = int(rng.integers(1, n_atoms + 3))
    if case.method in GREEDY and rng.random() < 0.3:
        case.max_residual = float(10.0 ** rng.uniform(-6, 0))
    if case.form == "candidates":
        width = int(rng.integers(1, n_atoms + 1))
        lists = [rng.permutation(n_atoms)[:width] for _ in range(n_signals)]
        case.candidates = np.array(lists, np.int32)
        case.candidates[rng.random(case.candidates.shape) < 0.2] = -1
    with np.errstate(all="ignore"):
        largest = float(np.abs(case.true_kernel(np.nan_to_num(case.X), case.D)).max())
    if not 0 < largest < np.inf:
        largest = 1.0
    case.alpha = largest * float(10.0 ** rng.uniform(-6, 0.3))
    if rng.random() < 0.1:
        case.alpha = float(10.0 ** rng.uniform(-320, 300))
    case.alpha = max(case.alpha, 5e-324)


@contextmanager
def _without_gram(wanted):
    """Let pursuits do without a Gram matrix, however few the atoms."""
    if not wanted:
        yield
        return
    with mock.patch.multiple(products, _MOST_BYTES=0, _FEWEST_ATOMS=0):
        yield


def solve(case):
    """Return the codes of a case, and the inner products that they are judged by.

    These are <x, x>, <x, d> and <d, d> in extended precision, and how well they can be known as a
    share of |x| |d|.
    """
    X, D = case.X, case.D
    parameters = {"gamma": case.gamma, "degree": case.degree, "coef0": case.coef0}
    eps = float(np.finfo(X.dtype).eps)
    with np.errstate(all="ignore"):
        filled = np.nan_to_num(X)
        kxx = np.array([case.true_kernel(x[None], x[None])[0, 0] for x in filled])
        kxd, kdd = case.true_kernel(filled, D), case.true_kernel(D, D)
        known_to = (X.shape[1] + 10) * eps * max(1, case.degree) + _distance_rounding(case)
    energy, kernel = None, case.kernel
    if kernel == "precomputed":
        with np.errstate(all="ignore"):
            X, D = kxd.astype(X.dtype), kdd.astype(X.dtype)
            energy = kxx.astype(np.float64)
        if not (np.isfinite(X).all() and np.isfinite(D).all()):
            raise ValueError("These kernel values are no numbers of this type.")
        # What is given is the truth.
        kxx, kxd, kdd = (values.astype(np.longdouble) for values in (energy, X, D))
    elif kernel == "function":
        kernel, parameters = _function(case), {}
    problem = make_problem(X, D, kernel, energy, **{
        "gamma": None, "degree": 3, "coef0": 1, "kernel_params": None, **parameters})  # fmt: skip
    with _without_gram(case.form == "rows"):
        if case.method in GREEDY:
            codes = omp(
                problem, case.n_nonzero, max_residual=case.max_residual, selection=case.method,
                positive=case.positive, candidates=case.candidates,
            )  # fmt: skip
        elif case.method == "lasso":
            codes = lasso(
                problem, case.alpha, positive=case.positive, candidates=case.candidates
            )  # fmt: skip
        elif case.method == "ridge":
            codes = ridge(problem, case.alpha)
        else:
            code = {"ksc": ksc, "fksc": fksc}[case.method]
            codes = code(problem, case.alpha, max_passes=300)
    return codes, kxx, kxd, kdd, known_to


def _function(case):
    def kernel(A, B):
        with np.errstate(all="ignore"):
            return case.true_kernel(A, B).astype(A.dtype)

    return kernel


def _distance_rounding(case):
    """Return what rounding of the kernel's argument does to its values."""
    X, D = np.nan_to_num(case.X).astype(np.longdouble), case.D.astype(np.longdouble)
    size = max(float((X**2).sum(axis=1).max()), float((D**2).sum(axis=1).max()))
    if case.named == "rbf":  # |x - y|^2 as |x|^2 - 2 x'y + |y|^2, in float64
        return 10 * X.shape[1] * case.gamma * size * float(np.finfo(np.float64).eps)
    if case.named == "sigmoid":
        eps = float(np.finfo(case.X.dtype).eps)
        return 10 * X.shape[1] * (case.gamma * size + abs(case.coef0)) * eps
    return 0.0


def check(case, codes, kxx, kxd, kdd, known_to):
    """Assert what must be true of codes."""
    w = codes.to_dense()
    assert np.isfinite(w).all(), "codes are not finite"
    assert np.isfinite(codes.error).all(), "errors are not finite"
    if case.positive:
        assert (w >= 0).all(), "negative coefficients"
    if case.method in GREEDY:
        assert ((w != 0).sum(axis=1) <= case.n_nonzero).all(), "too many nonzeros"
    if case.candidates is not None:
        allowed = np.zeros(w.shape, bool)
        for s, atoms in enumerate(case.candidates):
            allowed[s, atoms[atoms >= 0]] = True
        assert not w[~allowed].any(), "atoms that are no candidates"
    for s in range(len(w)):
        _check_signal(case, codes, s, w[s].astype(np.longdouble), kxx[s], kxd[s], kdd, known_to)


def _check_signal(case, codes, s, w, energy, b, G, known_to):
    if case.masked:
        seen = ~np.isnan(case.X[s])
        D = case.D[:, seen].astype(np.longdouble)
        x = case.X[s, seen].astype(np.longdouble)
        left = x - w @ D
        error, size = left @ left, np.abs(w) @ np.sqrt((D**2).sum(axis=1))
    else:
        error = energy - 2 * (w @ b) + w @ G @ w
        size = np.abs(w) @ np.sqrt(np.abs(np.diagonal(G)))
        if case.kernel == "linear":
            left = case.X[s].astype(np.longdouble) - w @ case.D.astype(np.longdouble)
            error = left @ left
    known = 4 * known_to * (np.sqrt(energy) + size) ** 2 + float(np.finfo(np.float64).tiny)
    if case.method in GREEDY:  # coefficients are multiples of the smallest number
        used = np.sqrt(np.abs(np.diagonal(G)))
        blur = float(np.finfo(case.X.dtype).smallest_subnormal) * used.sum()
        known += 2 * np.sqrt(np.abs(energy)) * blur + blur**2
    if case.named == "sigmoid" and error < 0:  # of no vectors; a little of that counts as rounding
        known += np.sqrt(float(np.finfo(case.X.dtype).eps)) * energy
    told = codes.error[s]
    assert abs(told - error) <= known, (
        f"signal {s}: error told {told:.6g}, true {error:.6g} of {energy:.6g}, known to {known:.2g}"
    )
    if case.method in GREEDY:
        assert error <= energy * (1 + 1e-3), f"signal {s}: {error:.6g} left of {energy:.6g}"
        return
    penalty = case.alpha * (np.abs(w).sum() if case.method in L1 else (w @ w) / 2)
    objective = error / 2 + penalty
    assert objective <= energy / 2 + known, (
        f"signal {s}: objective {objective:.6g}, at zero {energy / 2:.6g}, known to {known:.2g}"
    )
    if case.method not in L1:
        return
    gap = codes.gap[s]
    assert np.isfinite(gap), f"signal {s}: gap {gap}"
    among = slice(None) if case.candidates is None else case.candidates[s][case.candidates[s] >= 0]
    true, unsure = _true_gap(case, w, energy, b, G, error, among, known_to)
    assert abs(gap - true) <= known + unsure, (
        f"signal {s}: gap {gap:.6g}, true {true:.6g}, energy {energy:.6g}, known to "
        f"{known:.2g} + {unsure:.2g}"
    )


def _true_gap(case, w, energy, b, G, error, among, known_to):
    c = (b - w @ G)[among]
    largest = max((c if case.positive else np.abs(c)).max(initial=0), 0)
    against = energy - w @ b
    norms = np.sqrt(np.abs(np.diagonal(G)))[among]
    blur = known_to * (np.sqrt(energy) + np.abs(w) @ np.sqrt(np.abs(np.diagonal(G))))
    blur *= norms.max(initial=0)
    alpha = np.longdouble(case.alpha)

    def dual(largest):
        t = np.longdouble(1) if largest <= alpha else alpha / largest
        if error > 0:
            t = min(t, max(against / error, 0))
        elif against < 0:
            t = 0 * t
        return t * against - t * t * error / 2

    duals = [dual(largest), dual(largest + blur), dual(max(largest - blur, 0))]
    primal = error / 2 + alpha * np.abs(w).sum()
    return primal - duals[0], max(duals) - min(duals)


def run_case(rng, method=None, kernel=None):
    """Draw a case, code and check it; return "coded", or "refused" where a ValueError did."""
    case = draw_case(rng, method, kernel)
    return try_case(case)


def try_case(case):
    """Code and check a case; AssertionError says what was wrong with which."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            solved = solve(case)
        except ValueError as refusal:
            words = str(refusal)
            assert words[:1].isupper() or " " in words, f"not in words: {words!r}"
            return "refused"
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{case}") from error
    try:
        with np.errstate(all="ignore"):
            check(case, *solved)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{case}") from None
    return "coded"
