"""Rows as the nonzeros of their codes: A.7 of the FKSC paper, step by step."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms import KSCDL, KSVD, SparseCoder, StoredCodes, sparse_encode, store_codes


@given(
    seed=st.integers(0, 2**31),
    shape=st.tuples(st.integers(0, 20), st.integers(1, 9)),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    sparse=st.booleans(),
)
def test_two_columns_and_back(seed, shape, share, sparse):
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal(shape) * (rng.random(shape) < share)
    given_codes = scipy.sparse.csc_array(codes) if sparse else codes
    stored = StoredCodes.of(given_codes, n_features=5)
    flat = codes.ravel()
    np.testing.assert_array_equal(stored.index, np.flatnonzero(flat))
    np.testing.assert_array_equal(stored.value, flat[flat != 0].astype(np.float32))
    np.testing.assert_array_equal(stored.codes().toarray(), codes.astype(np.float32))
    assert stored.n_bytes == 8 * np.count_nonzero(codes)
    assert stored.ratio == 5 * shape[0] / max(np.count_nonzero(codes), 1)


def test_places_beyond_int32_are_int64():
    codes = scipy.sparse.csr_array(([1.0], ([2], [2**30])), shape=(3, 2**30 + 1))
    stored = StoredCodes.of(codes, n_features=2)
    assert stored.index.dtype == np.int64
    assert stored.index[0] == 2 * (2**30 + 1) + 2**30
    assert stored.n_bytes == 12
    assert stored.codes().nnz == 1
    last = scipy.sparse.csr_array(([1.0], ([1], [2**30 - 1])), shape=(2, 2**30))
    stored = StoredCodes.of(last, n_features=2)
    assert stored.index.dtype == np.int32
    assert stored.index[0] == 2**31 - 1


@pytest.fixture
def waves(rng):
    return np.sin(np.linspace(0, 6, 20) + rng.uniform(0, 2 * np.pi, (80, 1)))


def test_the_six_steps_by_hand(waves):
    learner = KSCDL(12, method="fksc", change_tol=1e-3, alpha=0.01, random_state=0).fit(waves)
    codes = sparse_encode(
        waves, learner.components_, method="fksc", change_tol=1e-3, alpha=0.01, kernel="rbf",
        gamma=learner.gamma_,
    )  # fmt: skip
    stored = store_codes(waves, learner)
    np.testing.assert_array_equal(stored.index, np.flatnonzero(codes.toarray()))
    np.testing.assert_array_equal(stored.value, codes.data.astype(np.float32))
    assert (stored.n_rows, stored.n_features, stored.n_atoms) == (80, 20, 12)
    back = learner.inverse_transform(codes.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(stored.decode(learner), back)
    assert np.abs(back - waves).mean() < 0.1


@pytest.mark.parametrize("ratio", [1, 3, 6.5, 20])
def test_the_largest_of_every_row_are_kept(ratio, rng):
    X = rng.standard_normal((40, 20))
    learner = KSVD(30, n_nonzero_coefs=12, max_iter=2, random_state=0).fit(X)
    full = learner.transform(X).toarray()
    assert (np.count_nonzero(full, axis=1) == 12).all()
    n_kept = int(20 / ratio)
    by_hand = np.zeros_like(full)
    for row, code in zip(by_hand, full, strict=True):
        largest = np.argsort(-np.abs(code), kind="stable")[:n_kept]
        row[largest] = code[largest]
    stored = store_codes(X, learner, ratio=ratio)
    np.testing.assert_array_equal(stored.codes().toarray(), by_hand.astype(np.float32))
    assert stored.ratio >= ratio


def test_a_ratio_of_whole_numbers_keeps_so_many(rng):
    """9 / (9 / 7) is less than 7 in float64."""
    for n_features in range(1, 40):
        X = rng.standard_normal((1, n_features))
        coder = SparseCoder(np.eye(n_features), n_nonzero_coefs=n_features).fit(X)
        for n_kept in range(1, n_features + 1):
            ratio = n_features / n_kept
            assert len(store_codes(X, coder, ratio=ratio).index) == n_kept
            if n_kept > 1:
                assert store_codes(X, coder, ratio=np.nextafter(ratio, np.inf)).ratio > ratio


def test_what_float32_does_not_hold_is_refused(waves):
    learner = KSVD(10, max_iter=1, random_state=0).fit(waves)
    for scale in (1e45, 1e-45):
        with pytest.raises(ValueError, match=r"float32, which holds 1e-38 to 3e\+38, .*: scale"):
            store_codes(waves * scale, learner)
    assert store_codes(waves * 0, learner).ratio == waves.size
    far_apart = StoredCodes.of([[1.0, 1e-60, 1e-30]], n_features=3)
    np.testing.assert_array_equal(far_apart.index, [0, 2])


def test_bad_input_is_named(waves):
    learner = KSVD(10, max_iter=1, random_state=0).fit(waves)
    with pytest.raises(ValueError, match=r"ratio must be .* at most 20"):
        store_codes(waves, learner, ratio=21)
    with pytest.raises(ValueError, match="ratio must be at least 1"):
        store_codes(waves, learner, ratio=0.5)
    with pytest.raises(TypeError, match="learner must have transform and inverse_transform"):
        store_codes(waves, waves)
    with pytest.raises(ValueError, match="one column for each of the 9 atoms"):
        store_codes(waves, learner).decode(KSVD(9, max_iter=1, random_state=0).fit(waves))
    for unfitted in (KSVD(10), SparseCoder(learner.components_)):
        with pytest.raises(ValueError, match="not fitted"):
            store_codes(waves, unfitted)
    with pytest.raises(ValueError, match=r"codes must have shape \(n_rows, n_atoms\), got"):
        StoredCodes.of(waves[0], 20)
    with pytest.raises(TypeError, match="n_features must be"):
        StoredCodes.of(waves, "20")


def test_a_bad_ratio_is_refused_before_the_rows_are_coded(waves, monkeypatch):
    learner = KSVD(10, max_iter=1, random_state=0).fit(waves)
    monkeypatch.setattr(KSVD, "transform", lambda self, X: pytest.fail("coded"))
    with pytest.raises(ValueError, match="ratio must be"):
        store_codes(waves, learner, ratio=21)
