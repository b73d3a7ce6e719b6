"""Small problems of numpy arrays: what the contract of all machines does not say."""

import numpy as np
import pytest

from kernelatoms.engine import cpu


def draw(seed, n, K, n_features, twins=False):
    """Return Gram matrices, correlations and energies of n signals with K atoms each."""
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((n, n_features)), rng.standard_normal((n, K, n_features))
    if twins:
        D[:, K // 2 : K // 2 * 2] = D[:, : K // 2]
    return D @ D.mT, (D @ X[:, :, None])[:, :, 0], np.vecdot(X, X)


def test_a_hard_problem_leaves_the_next_alone(rng):
    """Singular and well-posed ones, in turns, through the same memory."""
    grams, corrs, _ = draw(3, 40, 9, 20)
    twins, their_corrs, _ = draw(4, 40, 9, 3, twins=True)
    grams[::3], corrs[::3] = twins[::3], their_corrs[::3]
    grams[1::6] = 1.0  # pivots that are exactly 0
    together = cpu.ridge_local(grams, corrs, 0.0, False)
    alone = [cpu.ridge_local(grams[s : s + 1], corrs[s : s + 1], 0.0, False)[0] for s in range(40)]
    np.testing.assert_array_equal(together, alone)


def test_bad_input_of_small_problems():
    grams, corrs, energies = draw(0, 3, 4, 5)
    owners, weights = np.zeros((3, 4), int), np.zeros((3, 4))
    with pytest.raises(ValueError, match="candidates must lie within -1 and 3"):
        cpu.gather(grams[0], np.array([[4]], np.int32))
    with pytest.raises(ValueError, match="candidates must lie within -1 and 3"):
        cpu.gather(grams[0], np.array([[-2]], np.int32))
    with pytest.raises(ValueError, match="owners must lie within -1 and 1"):
        cpu.class_parts_local(grams, corrs, energies, weights, owners + 2, 2, False)
    with pytest.raises(ValueError, match="energies must be given"):
        cpu.class_parts_local(grams, corrs, None, weights, owners, 2, False)
    with pytest.raises(ValueError, match="local Gram matrices must have shape"):
        cpu.ridge_local(grams[:, :3], corrs, 0.1, False)
    for wrong in (np.nan, np.inf):
        for place in ((0, 0), (1, 2), (3, 3)):
            spoiled = grams.copy()
            spoiled[1][place] = spoiled[1].T[place] = wrong
            for columns in (False, True):
                with pytest.raises(ValueError, match="NaN or infinity"):
                    cpu.ridge_local(spoiled, corrs, 0.1, columns)
