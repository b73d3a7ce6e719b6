"""The randomised block Krylov solver beside numpy's eigh."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import later
from kernelatoms.features import linear_algebra
from kernelatoms.features.linear_algebra import basis_shape, leading_eigenpairs

DEFAULTS = {"n_oversamples": 20, "n_passes": 16}


def symmetric(rng, eigenvalues):
    """Return a matrix with these eigenvalues and random vectors."""
    V = np.linalg.qr(rng.standard_normal((len(eigenvalues),) * 2))[0]
    W = (V * eigenvalues) @ V.T
    return (W + W.T) / 2


def solve(W, k, seed=0, **options):
    values, vectors, lowest = leading_eigenpairs(
        W, k, np.random.RandomState(seed), **{**DEFAULTS, **options}
    )
    assert values.shape == (k,)
    assert vectors.shape == (len(W), k)
    assert values.dtype == vectors.dtype == W.dtype
    assert (np.diff(values) <= 0).all()
    rounding = 1e-12 if W.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=rounding)
    return values, vectors, lowest


def excess(W, k, values, vectors):
    """Return |W - V S V'| over the least that rank k can have, in the spectral norm."""
    least = np.sort(np.abs(np.linalg.eigvalsh(W)))[::-1][k]
    return np.linalg.norm(W - (vectors * values) @ vectors.T, 2) / least


@pytest.mark.parametrize(
    ("k", "n_oversamples", "n_passes", "expected"),
    [
        (300, 20, 16, (64, 1024)),
        (1, 0, 15, (1, 15)),
        (6, 0, 15, (2, 30)),
        (5, 0, 5, (1, 5)),
        (6, 2, 4, (2, 8)),
        (10, 3, 3, (5, 15)),
        (10, 3, 1, (13, 13)),
    ],
)
def test_a_block_is_a_fifth_of_the_rank_or_more_if_there_are_few(
    k, n_oversamples, n_passes, expected
):
    assert basis_shape(k, n_oversamples, n_passes) == expected


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 90),
    k=st.integers(1, 30),
    n_oversamples=st.integers(0, 12),
    n_passes=st.integers(1, 12),
    fall=st.floats(0, 14),
    negative=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
    exponent=st.sampled_from([0, 0, -110, 110, 30]),
)
def test_any_matrix_gives_ritz_pairs(
    seed, n, k, n_oversamples, n_passes, fall, negative, dtype, exponent
):
    size = basis_shape(k, n_oversamples, n_passes)[1]
    n = max(n, size + 1)
    rng = np.random.default_rng(seed)
    true = 10 ** -np.linspace(0, fall, n)
    if negative:
        true *= rng.choice([-1, 1], n)
    W = np.ldexp(symmetric(rng, true).astype(dtype), exponent)
    values, vectors, lowest = solve(W, k, n_oversamples=n_oversamples, n_passes=n_passes)
    full = np.linalg.eigvalsh(W.astype(np.float64))
    rounding = 100 * np.finfo(dtype).eps * np.abs(full).max()
    assert (values <= full[::-1][:k] + rounding).all()
    assert full[0] - rounding <= lowest <= values[-1] + rounding
    quotients = np.vecdot(vectors.T, vectors.T @ W.astype(np.float64))
    np.testing.assert_allclose(values, quotients, rtol=0, atol=10 * rounding)


@pytest.mark.parametrize("power", [0.5, 1, 2])
@pytest.mark.parametrize("seed", [0, later(1), later(2)])
def test_slowly_falling_spectra_are_within_a_thousandth_of_the_best(power, seed):
    W = symmetric(np.random.default_rng(seed), np.arange(1.0, 701) ** -power)
    values, vectors, _ = solve(W, 40, seed)
    assert excess(W, 40, values, vectors) <= 1.001


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31), fall=st.floats(0.5, 11), k=st.integers(1, 12))
def test_more_passes_are_never_worse(seed, fall, k):
    rng = np.random.default_rng(seed)
    W = symmetric(rng, 10 ** -np.linspace(0, fall, 120))
    before = None
    for n_passes in (5, 6, 9, 15):
        values, _, lowest = solve(W, k, seed, n_oversamples=9, n_passes=n_passes)
        if before is not None:
            assert (values >= before[0] - 1e-13).all()
            assert lowest <= before[1] + 1e-13
        before = values, lowest


def test_many_passes_are_exact(rng):
    W = symmetric(rng, 10 ** -np.linspace(0, 4, 200))
    values, vectors, _ = solve(W, 10, n_passes=30)
    true, V = np.linalg.eigh(W)
    np.testing.assert_allclose(values, true[::-1][:10], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.vecdot(V[:, ::-1][:, :10].T, vectors.T)), 1, rtol=1e-9)


@pytest.mark.parametrize("rank", [0, 1, 3, 17, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ranks_below_what_is_wanted_are_found_and_the_rest_is_zero(rank, dtype, rng):
    true = np.zeros(300)
    true[:rank] = np.linspace(2, 1, rank)
    W = symmetric(rng, true).astype(dtype)
    values, vectors, lowest = solve(W, 40)
    rounding = 1e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(values, true[:40], atol=rounding)
    assert abs(lowest) < rounding
    assert np.linalg.norm(W - (vectors * values) @ vectors.T, 2) < 10 * rounding


def test_a_matrix_of_zeros_gives_orthonormal_vectors_and_zeros():
    values, _, lowest = solve(np.zeros((150, 150)), 5)
    assert not values.any()
    assert lowest == 0


def test_copies_of_an_eigenvalue_are_all_found(rng):
    """A block has 12 rows, and sees 12 copies until random vectors take over."""
    for levels in ([3.0], [3.0, 1.0]):
        true = np.repeat([*levels, 0.0], [40, *([60] * (len(levels) - 1)), 400])
        W = symmetric(rng, true)
        values, *_ = solve(W, 40)
        np.testing.assert_allclose(values, 3, rtol=1e-10)


def test_duplicated_rows_and_the_identity(rng):
    rows = np.repeat(rng.standard_normal((30, 4)), 20, axis=0)
    W = np.exp(-((rows[:, None] - rows) ** 2).sum(axis=2))
    values, vectors, _ = solve(W, 35)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(W)[::-1][:35], atol=1e-11)
    assert np.linalg.norm(W - (vectors * values) @ vectors.T, 2) < 1e-10
    values, _, lowest = solve(np.eye(200), 30)
    np.testing.assert_allclose([*values, lowest], 1, rtol=1e-12)


def test_blocks_that_are_nearly_dependent_become_orthogonal(rng):
    """Eigenvalues over 12 decades: the Gram matrix of a block is singular in float64."""
    true = 10 ** -np.minimum(np.arange(300) / 2, 30)
    W = symmetric(rng, true)
    values, vectors, _ = solve(W, 20)
    np.testing.assert_allclose(values, true[:20], rtol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(20), atol=1e-13)


def test_the_lowest_eigenvalue_is_seen(rng):
    true = np.linspace(1, 0, 400)
    true[-1] = -0.01
    assert solve(symmetric(rng, true), 10)[2] == pytest.approx(-0.01, rel=0.1)


def test_float32_is_near_float64(rng):
    W = symmetric(rng, np.arange(1.0, 401) ** -1.0)
    double, U, _ = solve(W, 20)
    single, V, _ = solve(W.astype(np.float32), 20)
    np.testing.assert_allclose(single, double, atol=3e-7)
    np.testing.assert_allclose((V * single) @ V.T, (U * double) @ U.T, atol=1e-5)


def test_rounding_of_one_side_does_not_show(rng):
    W = symmetric(rng, np.arange(1.0, 301) ** -1.0)
    other = W + 1e-15 * np.triu(rng.standard_normal(W.shape))
    np.testing.assert_allclose(solve(other, 10)[0], solve(W, 10)[0], rtol=1e-12)


def test_the_seed_decides_and_threads_do_not(rng, monkeypatch):
    W = symmetric(rng, np.arange(1.0, 1201) ** -0.5)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "1")
    one = solve(W, 30)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")
    three, other = solve(W, 30), solve(W, 30, seed=1)
    for a, b in zip(one[:2], three[:2], strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one[1], other[1])


@pytest.mark.parametrize(("size", "one"), [(1999, True), (2000, False)])
def test_small_eigenproblems_have_one_thread_of_blas(size, one, monkeypatch):
    asked = []
    cpu = linear_algebra.machine(np.eye(3))
    limit = cpu.one_blas_thread
    monkeypatch.setattr(
        cpu, "one_blas_thread", lambda wanted=True: asked.append(wanted) or limit(wanted)
    )
    monkeypatch.setattr(linear_algebra, "basis_shape", lambda *_: (1, size))
    monkeypatch.setattr(linear_algebra, "_krylov_basis", lambda *_: (np.zeros((size, 3)), None))
    monkeypatch.setattr(
        "scipy.linalg.eigh", lambda *_, **__: (np.zeros(size), np.zeros((size, size)))
    )
    leading_eigenpairs(np.eye(3), 1, None, **DEFAULTS)
    assert asked == [True, one]


def test_rows_are_made_orthonormal_and_what_is_their_own_is_known(rng):
    rows = rng.standard_normal((6, 50))
    Q, own = linear_algebra._cholesky_orthonormal(rows)
    np.testing.assert_allclose(Q @ Q.T, np.eye(6), atol=1e-14)
    np.testing.assert_allclose(rows @ Q.T @ Q, rows, atol=1e-12)
    assert own == pytest.approx(np.abs(np.diagonal(np.linalg.qr(rows.T)[1])).min())
    assert linear_algebra._cholesky_orthonormal(np.zeros((3, 9)))[1] == 0


@pytest.mark.parametrize(("share", "drawn"), [(2e-6, False), (5e-7, True)])
def test_random_vectors_help_only_below_a_millionth(share, drawn):
    """The second row has this share of the first's length beside it."""
    e = np.eye(40)
    product, Q = np.stack([e[0], e[0] + share * e[1]]), e[5:7]
    state = np.random.RandomState(0)
    block = linear_algebra._next_block(product, product @ Q.T, Q, state)
    assert (state.random_sample() != np.random.RandomState(0).random_sample()) == drawn
    np.testing.assert_allclose(block @ block.T, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(block @ Q.T, 0, atol=1e-14)
    np.testing.assert_allclose(np.abs(block @ e[:2].T), np.eye(2), atol=1e-3)


def test_what_rounding_left_in_earlier_directions_is_taken_out(rng):
    Q = np.linalg.qr(rng.standard_normal((200, 30)))[0].T
    rows = np.linalg.qr(rng.standard_normal((200, 5)))[0].T
    for share in (1e-2, 1e-5, 1e-9, 0.0):
        product = Q[:5] + share * rows
        block = linear_algebra._next_block(product, product @ Q.T, Q, np.random.RandomState(0))
        np.testing.assert_allclose(block @ Q.T, 0, atol=1e-14)
        np.testing.assert_allclose(block @ block.T, np.eye(5), atol=1e-13)
