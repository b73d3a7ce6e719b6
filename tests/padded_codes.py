"""Random codes of fixed width."""

import numpy as np


def random_codes(rng, n, n_atoms, n_nonzero, dtype):
    """Return indices and values of padded codes, some of them shorter."""
    indices = np.sort(np.stack([rng.permutation(n_atoms)[:n_nonzero] for _ in range(n)]), axis=1)
    indices = indices.astype(np.int32)
    values = rng.standard_normal(indices.shape).astype(dtype)
    short = np.arange(n_nonzero) >= rng.integers(0, n_nonzero + 1, (n, 1))
    indices[short], values[short] = -1, 0
    return indices, values
