"""Greedy pursuits on numpy arrays: what the contract of all machines does not say."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.pursuits
from greedy_cases import FORMS, code, random_problem
from kernelatoms.engine import cpu
from kernelatoms.engine.cpu import greedy_loops
from machines import NUMPY


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7), shift=st.sampled_from([0.0, 0.5, 2.0]))
def test_small_nonnegative_least_squares(seed, n, shift):
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((n, 10)) + shift, rng.standard_normal(10) + shift / 2
    w = np.zeros(n)
    assert greedy_loops._nonnegative_least_squares(A @ A.T, A @ x, 0.0, n, w, np.zeros(n, bool))
    expected = oracles.pursuits.nonnegative_least_squares(x, A)
    np.testing.assert_allclose(w, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("use_ols", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_ties_of_later_steps_go_to_the_lowest_index(dtype, use_ols, form, rng):
    X, D = random_problem(rng, 20, 6, 40, dtype)
    D = np.concatenate([D, D])
    assert code(NUMPY, X, D, 3, form, use_ols=use_ols)[0].max() < 40


@pytest.mark.parametrize("factor", [1e-30, 1e-18, 1e17, 1e30])
def test_float32_products_of_signals_far_from_one(factor, rng):
    """Over a Gram matrix, for which the contract computes products in float64."""
    X, D = random_problem(rng, 20, 20, 50, np.float32)
    for positive in (False, True):
        plain = code(NUMPY, X, D, 4, positive=positive)
        scaled = code(NUMPY, (X * factor).astype(np.float32), D, 4, positive=positive)
        assert (scaled[0] == plain[0]).all()
        np.testing.assert_allclose(scaled[1] / factor, plain[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("budget", [1, 40_000, 1 << 27])
def test_blocks_without_a_gram_matrix_may_be_small(budget, positive, monkeypatch, rng):
    """Rows of atoms that left are given up where their memory is needed."""
    monkeypatch.setattr(cpu.greedy, "_BYTES_WITHOUT_GRAM", budget)
    X, D = random_problem(rng, 60, 10, 100, np.float64)
    X, D = X + 0.5, D + 0.5
    for use_ols in (False, True):
        options = {"use_ols": use_ols, "positive": positive}
        expected, found = (code(NUMPY, X, D, 6, form, **options) for form in ("gram", "asked"))
        assert (found[0] == expected[0]).all()
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-9)


CODE_OVER_MANY_ATOMS = """
import resource
import numpy as np
from kernelatoms.engine import cpu
rng = np.random.default_rng(0)
D = rng.standard_normal(({n_atoms}, 32), dtype=np.float32)
X = rng.standard_normal(({n_signals}, 32), dtype=np.float32)
def products(start, stop):
    return X[start:stop] @ D.T, np.vecdot(X[start:stop], X[start:stop])
def code(n):
    return cpu.omp_without_gram(lambda ids: D[ids] @ D.T, np.vecdot(D, D), products, n, 10)
code(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
code({n_signals})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_many_atoms_need_no_square_of_memory():
    """25,000 float32 atoms, whose Gram matrix has 2.3 GiB; two threads of 128 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", CODE_OVER_MANY_ATOMS.format(n_atoms=25_000, n_signals=300)],
        env={**os.environ, "KERNELATOMS_NUM_THREADS": "2"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(done.stdout) < 400
