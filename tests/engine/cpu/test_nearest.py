"""The smallest values of rows of numpy arrays: what the contract of all machines does not say."""

import numpy as np
import pytest

from kernelatoms.engine import cpu


def test_shapes_are_checked():
    nearest = cpu.TopK.empty(2, 3, float)
    with pytest.raises(ValueError, match="offsets must have shape"):
        nearest.push(np.zeros((2, 5)), 0, offsets=np.zeros(4))
    with pytest.raises(ValueError, match="values must have shape"):
        nearest.push(np.zeros((3, 5)), 0)
    nearest.indices = nearest.indices[:1]
    with pytest.raises(ValueError, match="indices must have shape"):
        nearest.push(np.zeros((2, 5)), 0)
