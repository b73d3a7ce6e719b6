"""Marks of rows: which rows of a file a model learned from, in any order, of any file."""

import numpy as np
import pytest

from kernelatoms.files.tables.row_marks import MOST_MARKS, kept_marks, learned_share, row_marks


def test_equal_rows_have_equal_marks_and_others_do_not(rng):
    X = rng.normal(size=(20_000, 3))  # more than a block
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(row_marks(X)[order], row_marks(X[order]))
    np.testing.assert_array_equal(row_marks(X), row_marks(np.asfortranarray(X)))
    assert len(np.unique(row_marks(X))) > 19_990
    # Bits are even: every one of 32 is set in half of the rows.
    bits = (row_marks(X)[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.03
    swapped = row_marks(X[:, ::-1])
    assert (swapped != row_marks(X)).mean() > 0.999
    one_changed = X.copy()
    one_changed[:, 1] = np.nextafter(one_changed[:, 1], np.inf)
    assert (row_marks(one_changed) != row_marks(X)).mean() > 0.999


def test_numbers_that_are_the_same_have_the_same_marks():
    X = np.array([[0.0, np.nan, 1.0]])
    same = np.array([[-0.0, -np.nan, 1.0]])
    same[0, 1] = np.frombuffer(np.uint64(0x7FF8_0000_0000_0007).tobytes(), np.float64)[0]
    np.testing.assert_array_equal(row_marks(X), row_marks(same))
    np.testing.assert_array_equal(row_marks(np.float32([[0.5]])), row_marks(np.array([[0.5]])))
    np.testing.assert_array_equal(row_marks(np.array([[2]])), row_marks(np.array([[2.0]])))


def test_the_share_of_rows_that_were_learned_from(rng):
    X, new = rng.normal(size=(2, 300, 4))
    kept = kept_marks(X)
    assert learned_share(X, kept) == 1.0
    assert learned_share(X[rng.permutation(300)[:40]], kept) == 1.0
    assert learned_share(new, kept) == 0.0
    assert learned_share(np.vstack([X[:97], new[:3]]), kept) == pytest.approx(0.97)
    assert learned_share(X[:1], kept) == 1.0


def test_of_many_rows_a_sample_is_kept_and_tells_the_share(rng):
    X, new = rng.normal(size=(2, 60_000, 2))
    kept = kept_marks(X)
    assert len(kept) < 6 * MOST_MARKS
    assert learned_share(X, kept) == 1.0
    assert learned_share(X[5000:20_000], kept) == 1.0
    # A new row is taken for one with a probability of 60,000 / 2^32 over the sample's 4,000.
    assert learned_share(new, kept) <= 1e-3
    mixed = np.vstack([X[:30_000], new[:10_000]])
    assert learned_share(mixed, kept) == pytest.approx(0.75, abs=0.05)
    assert learned_share(X[:30], kept) is None  # two or so of these can be looked up


@pytest.mark.parametrize(
    "kept",
    [None, "", "all", "all:", "all:@", "all:AAA=", "some:AAA=", "none:AAAA", 3, "x:AAAAAA=="],
)
def test_nothing_is_said_without_marks_or_with_damaged_ones(kept):
    assert learned_share(np.ones((3, 2)), kept) is None
