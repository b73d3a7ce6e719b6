"""The distance of periodic series, whatever their phase."""

import numpy as np

from kernelatoms.similarity import Distance


class Shifted(Distance):
    """The smallest Euclidean distance over all circular shifts: min_s |a - shift(b, s)|."""

    def featurize(self, rows):
        """Return the spectra, in which correlations at all shifts are products: once a row."""
        return np.fft.fft(rows.astype(np.float64), axis=1)

    def compare(self, A, B):
        """Return |a|^2 + |b|^2 - 2 max_s <a, shift(b, s)>, rooted, for all pairs."""
        at_shifts = np.fft.ifft(A[:, None] * B.conj(), axis=2).real
        energies = [np.vecdot(part, part).real / part.shape[1] for part in (A, B)]
        squares = np.add.outer(*energies) - 2 * at_shifts.max(axis=2)
        return np.sqrt(np.maximum(squares, 0))
