"""Entry points look at shapes before they hand arrays to compiled loops, which do not."""

import numpy as np
import pytest

from kernelatoms.engine import cpu

rng = np.random.default_rng(0)
D, X = rng.normal(size=(6, 4)), rng.normal(size=(9, 4))
GRAM, CORR, ENERGY = D @ D.T, X @ D.T, np.vecdot(X, X)
OWN = CORR[:, 0].copy()
ONE_EACH = np.zeros((9, 1), np.int32), np.ones((9, 1))
ATOMS = ONE_EACH[0][:, 0]
FOUR = np.zeros(4, np.int32), np.ones(4)
POINTERS = np.arange(10)
OWNER = np.array([0, 0, 0, 1, 1, 1])
ALL = np.tile(np.arange(6, dtype=np.int32), (9, 1))
NONE = np.empty((9, 0), np.int32)


def products(corr=CORR, energy=ENERGY):
    return lambda start, stop: (corr[start:stop], energy[start:stop])


def local(corr=CORR, size=6):
    gram = np.resize(GRAM, (size, size))
    return lambda start, stop: (
        np.stack([gram] * (stop - start)),
        corr[start:stop],
        ENERGY[start:stop],
    )


def grow(a, b):
    return lambda start, stop, candidates: (a(start, stop)[0], b)


CALLS = {
    "lasso, Gram not square": lambda: cpu.lasso(GRAM[:5], products(), 9, float, 0.1),
    "lasso, small Gram": lambda: cpu.lasso(GRAM[:5, :5], products(), 9, float, 0.1),
    "lasso, few correlations": lambda: cpu.lasso(GRAM, products(CORR[:, :5]), 9, float, 0.1),
    "lasso, few energies": lambda: cpu.lasso(GRAM, products(energy=ENERGY[:3]), 9, float, 0.1),
    "lasso, small start": lambda: cpu.lasso(
        GRAM, products(), 9, float, 0.1, start=np.zeros((9, 5))
    ),
    "local, small Grams": lambda: cpu.lasso_local(local(size=5), ALL, float, 0.1),
    "local, few correlations": lambda: cpu.lasso_local(local(CORR[:, :5]), ALL, float, 0.1),
    "no Gram, few correlations": lambda: cpu.lasso_without_gram(
        products(CORR[:, :5]), grow(local(), CORR), lambda w, c: CORR, 9, 6, float, 0.1
    ),
    "no Gram, small Grams": lambda: cpu.lasso_without_gram(
        products(), lambda start, stop, c: (np.zeros((len(c), 2, 2)), np.zeros(c.shape)),
        lambda w, c: CORR, 9, 6, float, 0.1,
    ),
    "omp, Gram not square": lambda: cpu.omp(GRAM[:5], products(), 9, 2),
    "omp, few correlations": lambda: cpu.omp(GRAM, products(CORR[:, :5]), 9, 2),
    "observed, other features": lambda: cpu.omp_observed(X[:, :3], D, D.T, 2, candidates=NONE),
    "observed, other columns": lambda: cpu.omp_observed(X, D, D.T[:, :5], 2, candidates=NONE),
    "observed, few lists": lambda: cpu.omp_observed(X, D, D.T, 2, candidates=ALL[:5]),
    "observed, atom 6": lambda: cpu.omp_observed(X, D, D.T, 2, candidates=ALL + 1),
    "observed, atom -2": lambda: cpu.omp_observed(X, D, D.T, 2, candidates=ALL - 2),
    "observed, no nonzeros": lambda: cpu.omp_observed(X, D, D.T, 0, candidates=NONE),
    "observed, few stops": lambda: cpu.omp_observed(
        X, D, D.T, 2, candidates=NONE, stop_at=np.zeros(5)
    ),
    "residuals, other features": lambda: cpu.residuals(X[:, :3].copy(), D, *ONE_EACH),
    "residuals, few indices": lambda: cpu.residuals(X, D, ONE_EACH[0][:5], ONE_EACH[1]),
    "sweep, few values": lambda: cpu.sweep_atoms(X, D, ONE_EACH[0], np.ones((5, 1)), 1),
    "sums, few pointers": lambda: cpu.sum_products(POINTERS[:5], *FOUR, X, 6),
    "sums, few indices": lambda: cpu.sum_products(POINTERS, *FOUR, X, 6),
    "parts, small Gram": lambda: parts(gram=GRAM[:5]),
    "parts, narrow Gram": lambda: parts(gram=GRAM[:, :5].copy()),
    "parts, few correlations": lambda: parts(corr=CORR[:5, 0].copy()),
    "products, other features": lambda: cpu.products_at(X, D[:, :3].copy(), POINTERS, ATOMS),
    "products, few pointers": lambda: cpu.products_at(X, D, POINTERS[:5], ATOMS),
    "products, pointers beyond": lambda: cpu.products_at(X, D, POINTERS + 1, ATOMS),
    "parts, few pointers": lambda: parts(pointers=POINTERS[:5]),
    "parts, pointers beyond": lambda: parts(pointers=POINTERS + 1),
    "parts, few values": lambda: parts(values=np.ones(4)),
    "observed parts, other features": lambda: observed_parts(atoms=D[:, :3].copy()),
    "observed parts, few owners": lambda: observed_parts(owner=OWNER[:5]),
    "observed parts, few signals": lambda: observed_parts(signals=X[:5]),
    "l1, other features": lambda: cpu.l1_distances(X, D[:, :3]),
    "linf, other features": lambda: cpu.linf_distances(X, D[:, :3]),
    "chi2, one row": lambda: cpu.chi2_distances(X, D[0]),
    "tangents, other features": lambda: cpu.tangent_distances(X, D[:, :3], 1),
    "tangents, part of a row": lambda: cpu.tangent_distances(X, D, 2),
    "assignment, other features": lambda: cpu.assignment_distances(X, D[:, :3], 1),
    "assignment, part of a row": lambda: cpu.assignment_distances(X, D, 3),
}  # fmt: skip


def parts(gram=GRAM, corr=OWN, pointers=POINTERS, values=ONE_EACH[1][:, 0]):
    out = np.zeros((9, 2))
    cpu.subtract_class_parts(gram, corr, pointers, ONE_EACH[0][:, 0], values, OWNER, out)
    return out


def observed_parts(signals=X, atoms=D, owner=OWNER):
    out = np.zeros((9, 2))
    indices, values = (part[:, 0] for part in ONE_EACH)
    cpu.observed_class_residuals(signals, atoms, POINTERS, indices, values, owner, out)
    return out


@pytest.mark.parametrize("name", CALLS)
def test_shapes_that_do_not_fit_are_refused(name):
    with pytest.raises(ValueError, match="must"):
        CALLS[name]()


def test_shapes_that_fit_are_taken():
    cpu.lasso(GRAM, products(), 9, float, 0.1, start=np.zeros((9, 6)))
    cpu.lasso_local(local(), ALL, float, 0.1)
    cpu.omp_observed(X, np.asfortranarray(D), D.T, 2, candidates=ALL, stop_at=np.zeros(9))
    np.testing.assert_allclose(parts()[:, 1] + ENERGY, observed_parts()[:, 1])
