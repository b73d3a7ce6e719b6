"""SRC against scikit-learn's Lasso and dictlearn's SRC; class residuals against codes.

python -m benchmarks.run representation, with the data sets in KERNELATOMS_DATA. Extended Yale B,
504 random-face features, 32 rows a person as atoms, all of unit norm. Lasso codes the same signals
to the same duality gap, with its Gram matrix or without, whichever is faster.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.harness import Contender, compare
from kernelatoms.engine.cpu import for_blocks

Call = Callable[[], Any]
MODULE = "benchmarks.representation"
GAP = 1e-6


@lru_cache(maxsize=1)
def faces() -> tuple[Any, Any, Any]:
    """Return atoms, their classes and test rows, of unit norm."""
    from kernelatoms.datasets import load_yaleb

    bunch, rng = load_yaleb(size="randomface504"), np.random.default_rng(0)
    X = bunch.X.astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    some = [rng.permutation(np.flatnonzero(bunch.y == who))[:32] for who in np.unique(bunch.y)]
    atoms = np.concatenate(some)
    return X[atoms], bunch.y[atoms], np.delete(X, atoms, axis=0)


def _reached(D: Any, Y: Any, codes: Any, alpha: float) -> list[float]:
    """Return the largest gap, a share of the energy, and the mean number of nonzeros."""
    from kernelatoms.engine.cpu import certify

    gaps, errors = np.empty(len(Y)), np.empty(len(Y))
    codes = np.ascontiguousarray(codes)
    certify(D @ D.T, Y @ D.T, np.vecdot(Y, Y), alpha, False, codes, gaps, errors)
    return [float(gaps.max()), float((codes != 0).sum(axis=1).mean())]


def ours(alpha: float, n: int) -> Call:
    """Code n faces by l1, the Gram matrix of the atoms known."""
    from kernelatoms import coding
    from kernelatoms.coding.atom_products import LinearAtoms

    D, _, Y = faces()
    atoms = LinearAtoms(D)
    _ = atoms.gram
    problem = coding.LinearProblem(Y[:n], atoms, complete=True)
    coding.lasso(coding.LinearProblem(Y[:4], atoms), alpha)

    def call() -> Any:
        codes = coding.lasso(problem, alpha, gap_tol=GAP)
        return lambda: _reached(D, Y[:n], codes.to_dense(), alpha)

    return call


def sklearn_lasso(alpha: float, n: int, precompute: bool) -> Call:
    """Code n faces by scikit-learn, to the first tolerance that reaches the gap."""
    from sklearn.linear_model import Lasso

    D, _, Y = faces()
    columns, targets = np.asfortranarray(D.T), np.asfortranarray(Y[:n].T)
    warnings.simplefilter("ignore")

    def fitted(tol: float) -> Any:
        model = Lasso(
            alpha / D.shape[1], fit_intercept=False, tol=tol, max_iter=1_000_000,
            precompute=precompute,
        )  # fmt: skip
        return np.atleast_2d(model.fit(columns, targets).coef_)

    for tol in (1e-5, 1e-6, 1e-7, 1e-8):
        if _reached(D, Y[:n], fitted(tol), alpha)[0] <= GAP:
            break

    def call() -> Any:
        codes = fitted(tol)
        return lambda: [*_reached(D, Y[:n], codes, alpha), tol]

    return call


def our_src(n_nonzero: int) -> Call:
    """Classify all test faces by our SRC with OMP."""
    from kernelatoms import SRCClassifier

    D, y, Y = faces()
    model = SRCClassifier(n_nonzero_coefs=n_nonzero).fit(D, y)
    model.predict(Y[:20])
    return lambda: model.predict(Y).tolist()


def dictlearn_src(n_nonzero: int) -> Call:
    """Classify all test faces by dictlearn's SRC, its default coder OMP."""
    from dictlearn.classification import SRCClassifier

    D, y, Y = faces()
    model = SRCClassifier(n_nonzero_coefs=n_nonzero).fit(D, y)
    model.predict(Y[:20])
    return lambda: model.predict(Y).tolist()


@lru_cache(maxsize=1)
def _many(n: int, n_atoms: int, n_classes: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    inverse = rng.standard_normal((n_atoms, n_atoms))
    corr, weights = rng.standard_normal((2, 1024, n_atoms))
    members = np.array_split(np.arange(n_atoms), n_classes)
    slices: list[Any] = [slice(own[0], own[-1] + 1) for own in members]
    grams = [inverse[own, own] for own in slices]
    return inverse, corr, weights, slices, grams


def codes(n: int, n_atoms: int, n_classes: int) -> Call:
    """Multiply inner products by the inverse: global ridge codes, as the classifier does."""
    inverse, corr, *_ = _many(n, n_atoms, n_classes)

    def work(start: int, stop: int) -> None:
        _ = corr[: stop - start] @ inverse

    return lambda: for_blocks(n, 2 * n_atoms, 8, work)


def residuals(n: int, n_atoms: int, n_classes: int) -> Call:
    """Compute the class residuals of as many codes."""
    from kernelatoms.coding.class_residuals import parts_of_dense_codes

    _, corr, weights, members, grams = _many(n, n_atoms, n_classes)
    energies = np.ones(len(corr))

    def work(start: int, stop: int) -> None:
        some = slice(stop - start)
        parts_of_dense_codes(corr[some], energies[some], weights[some], members, grams)

    return lambda: for_blocks(n, 2 * n_atoms, 8, work)


def representation_tables(rounds: int) -> None:
    """Print all tables."""
    print("\n## l1 codes of faces over 1,216 atoms, one thread: milliseconds per signal\n")
    print("| alpha | nonzeros | ours (gap) | Lasso (gap, tol) | Lasso, Gram matrix | ratio |\n"
          + "|---" * 6 + "|")  # fmt: skip
    for alpha, n, few in ((0.03, 400, 40), (0.0005, 40, 8)):
        contenders = [
            Contender("ours", "ours", {"alpha": alpha, "n": n}),
            Contender("plain", "sklearn_lasso", {"alpha": alpha, "n": few, "precompute": False}),
            Contender("gram", "sklearn_lasso", {"alpha": alpha, "n": few, "precompute": True}),
        ]
        got = compare(contenders, rounds, 1, threads=1, module=MODULE)
        ms = {who: 1e3 * r.seconds / (n if who == "ours" else few) for who, r in got.items()}
        gap, nonzeros = got["ours"].value
        cells = [f"{ms[who]:.2f} ({got[who].value[0]:.1e}, {got[who].value[2]:g})"
                 for who in ("plain", "gram")]  # fmt: skip
        ratio = min(ms["plain"], ms["gram"]) / ms["ours"]
        print(f"| {alpha:g} | {nonzeros:.0f} | {ms['ours']:.3f} ({gap:.1e}) | {cells[0]} "
              f"| {cells[1]} | {ratio:.1f}x |", flush=True)  # fmt: skip
    print("\n## SRC with OMP, 1,198 faces over 1,216 atoms: seconds to classify all\n")
    print("| nonzeros | ours | dictlearn | ratio | same labels |\n" + "|---" * 5 + "|")
    for n_nonzero in (10, 30):
        contenders = [
            Contender("ours", "our_src", {"n_nonzero": n_nonzero}),
            Contender("dictlearn", "dictlearn_src", {"n_nonzero": n_nonzero}),
        ]
        got = compare(contenders, rounds, 1, module=MODULE)
        same = np.mean(np.equal(got["ours"].value, got["dictlearn"].value))
        a, b = got["ours"].seconds, got["dictlearn"].seconds
        print(f"| {n_nonzero} | {a:.3f} | {b:.3f} | {b / a:.1f}x | {same:.1%} |", flush=True)
    case = {"n": 10_000, "n_atoms": 5000, "n_classes": 100}
    contenders = [Contender("codes", "codes", case), Contender("residuals", "residuals", case)]
    got = compare(contenders, min(rounds, 3), 1, module=MODULE)
    print("\n## 10,000 queries, 5,000 atoms, 100 classes: "
          f"codes {got['codes'].seconds:.2f} s, class residuals {got['residuals'].seconds:.2f} s",
          flush=True)  # fmt: skip
