"""Decoding: eq. (19) by the book, identities, limits, bad input."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import laplacian_kernel

from draws import later
from kernelatoms.features import preimage as decode
from kernelatoms.features.preimage import decode_rows
from kernelatoms.similarity import make_kernel
from oracles import decoding as book

RBF = make_kernel("rbf", gamma=0.3)
CUBIC = make_kernel("poly", gamma=0.5, degree=3, coef0=1.0)
PURE_CUBIC = make_kernel("poly", gamma=1.0, degree=3, coef0=0.0)
SQUARE = make_kernel("poly", gamma=1.0, degree=2, coef0=0.0)
OTHERS = [
    make_kernel("laplacian"),
    make_kernel("sigmoid", gamma=0.5, coef0=-1.0),
    make_kernel(laplacian_kernel),
    make_kernel("poly", degree=1.5, coef0=4.0, gamma=1e-5),
]

seeds = st.integers(0, 2**31)
# Signals, atoms, features, nonzeros: codes short and long beside the atoms and the features.
sizes = st.tuples(st.integers(1, 5), st.integers(1, 30), st.integers(1, 20), st.integers(1, 30))


def draw(seed, shape, signed=True):
    """Atoms, and codes of up to so many nonzeros."""
    n_signals, n_atoms, n_features, n_nonzero = shape
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n_signals, n_atoms)) if signed else rng.uniform(0.1, 1, shape[:2])
    for w in W:
        w[rng.permutation(n_atoms)[rng.integers(1, n_nonzero + 1) :]] = 0
    return rng.standard_normal((n_atoms, n_features)), W


def errors_of(kernel, rows, D, W):
    """|phi(y) - v|^2 less |v|^2, from whole kernel matrices."""
    return kernel.diag(rows) - 2 * (kernel(rows, D) * W).sum(axis=1)


# Against the textbook


@given(
    seed=seeds,
    n_atoms=st.integers(1, 6),
    n_features=st.integers(1, 4),
    kernel=st.sampled_from([RBF, CUBIC]),
    signed=st.booleans(),
)
def test_the_textbook_finds_no_way_down_from_our_row(seed, n_atoms, n_features, kernel, signed):
    """Codes of three atoms. There may be other valleys: no descent is sure to find the lowest."""
    D, W = draw(seed, (2, n_atoms, n_features, 3), signed)
    k = partial(book.rbf if kernel is RBF else book.poly, **vars(kernel))
    for row, w in zip(decode_rows(kernel, D, W), W, strict=True):
        ours = book.objective(k, row, D, w)
        assert ours <= min(book.objective(k, y, D, w) for y in book.starts(D, w)) + 1e-9
        books = book.objective(k, book.descend(k, row, D, w), D, w)
        if kernel is RBF and books > 1 - 2e-2:
            continue  # off to infinity, where we do not follow
        assert ours <= books + 1e-5 * max(1, abs(books))


@given(seed=seeds, shape=sizes, signed=st.booleans(), wide=st.booleans())
def test_rbf_is_never_worse_than_any_start(seed, shape, signed, wide):
    D, W = draw(seed, shape, signed)
    kernel = make_kernel("rbf", gamma=1e-3) if wide else RBF
    reached = errors_of(kernel, decode_rows(kernel, D, W), D, W)
    for error, w in zip(reached, W, strict=True):
        begun = np.array(book.starts(D, w))
        assert error <= errors_of(kernel, begun, D, w).min() + 1e-9 * np.abs(w).sum()


@given(seed=seeds, shape=sizes, kernel=st.sampled_from([CUBIC, PURE_CUBIC, SQUARE]))
def test_polynomials_are_never_worse_than_any_start(seed, shape, kernel):
    """The best atom is among the starts, and with it a better multiple of it."""
    D, W = draw(seed, shape)
    reached = errors_of(kernel, decode_rows(kernel, D, W), D, W)
    for error, w in zip(reached, W, strict=True):
        used = np.flatnonzero(w)
        inner = kernel(D[used], D[used]) @ w[used]
        lengths = np.sqrt(kernel.diag(D[used]))
        cosine = inner / lengths
        best = D[used[np.argmax(np.abs(cosine) if kernel is PURE_CUBIC else cosine)]]
        for start in (best, w @ D):
            before = errors_of(kernel, start[None], D, w)[0]
            assert error <= before + 1e-9 * max(1, abs(before))


@given(seed=seeds, shape=sizes)
def test_where_it_stops_it_is_flat(seed, shape):
    """y = sum_j w_j k(y, d_j) d_j / sum_j w_j k(y, d_j)."""
    D, W = draw(seed, shape, signed=False)
    rows = decode_rows(RBF, D, W)
    weights = RBF(rows, D) * W
    then = weights @ D / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows, then, atol=1e-5)


# Identities


@pytest.mark.parametrize("kernel", [RBF, CUBIC, *OTHERS[:1]])
def test_a_single_atom_decodes_to_itself(kernel, rng):
    D = 3 + rng.standard_normal((6, 9))
    np.testing.assert_allclose(decode_rows(kernel, D, np.eye(6)), D, atol=1e-6)


def test_under_rbf_the_length_of_a_code_does_not_matter(rng):
    D, W = draw(1, (20, 10, 6, 4), signed=False)
    np.testing.assert_allclose(decode_rows(RBF, D, 2 * np.eye(10)), D, atol=1e-12)
    np.testing.assert_allclose(decode_rows(RBF, D, 7 * W), decode_rows(RBF, D, W), atol=1e-6)


def test_of_two_far_atoms_the_heavier():
    D = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 40.0]])
    W = np.array([[0.4, 0.6, 0], [0.6, 0.4, 0], [0, 0.5, 0.7], [1, -2, 0]])
    np.testing.assert_allclose(decode_rows(RBF, D, W), D[[1, 0, 2, 0]], atol=1e-9)


def test_between_two_near_atoms(rng):
    """Under a wide kernel phi is nearly linear: the weighted mean."""
    D, W = rng.standard_normal((5, 8)), rng.uniform(0.5, 1, (7, 5))
    mean = W @ D / W.sum(axis=1, keepdims=True)
    rows = decode_rows(make_kernel("rbf", gamma=1e-8), D, W)
    np.testing.assert_allclose(rows, mean, atol=1e-5)


def test_negative_weights_push_away():
    """v = phi(0) - phi(1)/2 on a line: best at y < 0, where the textbook's line search finds it."""
    D, W = np.array([[0.0], [1.0]]), np.array([[1.0, -0.5]])
    line = np.linspace(-5, 5, 200_001)[:, None]
    best = line[errors_of(RBF, line, D, W[0]).argmin()]
    np.testing.assert_allclose(decode_rows(RBF, D, W)[0], best, atol=1e-4)
    assert best < 0


@pytest.mark.parametrize("n_atoms", [1, 4])
def test_where_every_row_is_too_near_the_best_start(n_atoms, rng):
    """-phi(d) under a kernel without negative values: the farther the better, without end."""
    D = rng.standard_normal((n_atoms, 3))
    W = np.full((1, n_atoms), -1.0)
    row = decode_rows(RBF, D, W)
    assert np.abs(row).max() <= np.abs(D).max() * (1 + 1e-12)
    assert errors_of(RBF, row, D, W) <= errors_of(RBF, D, D, W[0]).min() + 1e-12


@given(seed=seeds, shape=sizes)
def test_linear_and_cosine_are_products(seed, shape):
    D, W = draw(seed, shape)
    np.testing.assert_allclose(decode_rows(make_kernel("linear"), D, W), W @ D, atol=1e-12)
    cosine = make_kernel("cosine")
    unit = D / np.linalg.norm(D, axis=1, keepdims=True)
    rows = decode_rows(cosine, D, W)
    np.testing.assert_allclose(rows, W @ unit, atol=1e-12)
    # |y / |y| - W unit|^2 is least where y points to W unit, whatever its length.
    other = rows + np.random.default_rng(seed + 1).standard_normal(rows.shape)
    assert (errors_of(cosine, rows, D, W) <= errors_of(cosine, other, D, W) + 1e-9).all()


@given(seed=seeds, shape=sizes)
def test_degree_one_is_linear(seed, shape):
    D, W = draw(seed, shape)
    rows = decode_rows(make_kernel("poly", gamma=1.0, degree=1, coef0=0.0), D, W)
    np.testing.assert_allclose(rows, W @ D, atol=1e-9)


@given(seed=seeds, shape=sizes, kernel=st.sampled_from([RBF, CUBIC, *OTHERS]))
def test_a_batch_is_one_by_one(seed, shape, kernel):
    D, W = draw(seed, shape)
    together = decode_rows(kernel, D, W)
    assert together.shape == (shape[0], shape[2])
    assert np.isfinite(together).all()
    for row, w in zip(together, W, strict=True):
        alone = decode_rows(kernel, D, w[None])
        reached = errors_of(kernel, np.vstack([row, alone]), D, w)
        np.testing.assert_allclose(reached[0], reached[1], rtol=1e-7, atol=1e-7)


@given(seed=seeds, shape=sizes, kernel=st.sampled_from([RBF, CUBIC]))
def test_own_atoms_and_all_atoms_agree(seed, shape, kernel):
    """Short codes in coordinates of their own atoms, long ones over all of them: one answer.

    Of two atoms, that is: all atoms are more to start from, and may lead to other minima.
    """
    D, W = draw(seed, (*shape[:3], 2), signed=False)
    form = kernel.inversion(D.shape[1])
    long = decode._over_all_atoms(form, D, W)
    codes = scipy.sparse.csr_array(W)
    short = decode._over_own_atoms(form, D, *decode._padded(codes, np.arange(len(W))))
    reached = [errors_of(kernel, rows, D, W) for rows in (short, long)]
    # Slow steps from other starts end at their most, short of rounding (1.2e-7 in 1 of 500 draws).
    np.testing.assert_allclose(*reached, rtol=1e-5, atol=1e-7)


def test_short_codes_at_once(rng):
    """More signals than a block, of different lengths."""
    D, W = draw(0, (700, 50, 400, 7), signed=False)
    rows = decode_rows(RBF, D / 10, W)
    for i in (0, 350, 699):
        np.testing.assert_allclose(decode_rows(RBF, D / 10, W[i : i + 1])[0], rows[i], atol=1e-6)


def test_an_origin_far_away_costs_no_digits(rng):
    D, W = draw(3, (10, 8, 20, 4), signed=False)
    here, there = decode_rows(RBF, D, W), decode_rows(RBF, D + 1e6, W)
    np.testing.assert_allclose(there - 1e6, here, atol=1e-5)


# Corners


@pytest.mark.parametrize("kernel", [RBF, CUBIC, *OTHERS, make_kernel("linear")])
def test_zero_codes_give_zero_rows(kernel, rng):
    D = rng.uniform(0.1, 1, (4, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = decode_rows(kernel, D, np.diag([1.0, 0.0, 0.5, 0.0]))
    assert not rows[[1, 3]].any()
    assert np.isfinite(rows).all()
    assert decode_rows(kernel, D, np.zeros((0, 4))).shape == (0, 3)


@pytest.mark.parametrize("kernel", [RBF, later(CUBIC), later(SQUARE)])
def test_twins(kernel, rng):
    """Weight on two equal atoms is weight on one; opposite weights cancel."""
    W = np.array([[0.2, 0.5, 0, 0.3, 0], [0.2, 0.8, 0, 0, 0], [0, 1, 0, -1, 0]])
    for D in rng.uniform(0, 1, (100, 5, 7)):  # in few of them rounding does not cancel
        D[3] = D[1]
        rows = decode_rows(kernel, D, W)
        np.testing.assert_allclose(rows[0], rows[1], atol=1e-5)
        assert not rows[2].any()


def test_sparse_codes_with_zeros_and_repeats_are_the_dense_ones(rng):
    D = rng.standard_normal((4, 3))
    given_ = scipy.sparse.csr_array(
        (np.array([0.5, 0.0, 0.25, 1.0, 0.25]), [2, 1, 0, 3, 0], [0, 3, 5]), shape=(2, 4)
    )
    before = given_.data.copy()
    for kernel in (RBF, make_kernel("linear")):
        rows = decode_rows(kernel, D, given_)
        np.testing.assert_allclose(rows, decode_rows(kernel, D, given_.toarray()), atol=1e-12)
    np.testing.assert_array_equal(given_.data, before)


@pytest.mark.parametrize("kernel", [RBF, CUBIC, *OTHERS, make_kernel("linear")])
def test_float32_in_float32_out(kernel):
    D, W = draw(5, (30, 12, 6, 4), signed=False)
    low, high = decode_rows(kernel, D.astype("f"), W.astype("f")), decode_rows(kernel, D, W)
    assert (low.dtype, high.dtype) == (np.float32, np.float64)
    reached = [errors_of(kernel, rows.astype(float), D, W) for rows in (low, high)]
    np.testing.assert_allclose(*reached, rtol=1e-4, atol=1e-4)
    assert decode_rows(kernel, D.round().astype(int), W.round().astype(int)).dtype == np.float64


@given(seed=seeds, shape=sizes, kernel=st.sampled_from(OTHERS))
def test_other_kernels_are_no_worse_than_nearest_atom_and_mean(seed, shape, kernel):
    D, W = draw(seed, shape)
    reached = errors_of(kernel, decode_rows(kernel, D, W), D, W)
    for error, w in zip(reached, W, strict=True):
        guesses = np.vstack([D, *book.starts(D, w)[np.count_nonzero(w) :]])
        assert error <= errors_of(kernel, guesses, D, w).min() + 1e-9 * np.abs(w).sum()


def test_chi2_takes_no_negative_values(rng):
    D, W = rng.uniform(0, 1, (8, 5)), rng.standard_normal((6, 8))
    assert (decode_rows(make_kernel("chi2", gamma=0.5), D, W) >= 0).all()


@pytest.mark.parametrize(
    ("kernel", "codes", "message"),
    [
        (make_kernel("precomputed"), np.ones((2, 4)), "atoms as rows"),
        (RBF, np.ones((4, 2)), "one column for each of the 4 atoms"),
        (RBF, [[1, np.nan, 0, 0]], "NaN or infinity"),
        (make_kernel("poly", degree=300, gamma=100.0), np.ones((2, 4)), "overflows"),
    ],
)
def test_bad_input(kernel, codes, message, rng):
    with pytest.raises(ValueError, match=message):
        decode_rows(kernel, 9 * rng.standard_normal((4, 3)), codes)
