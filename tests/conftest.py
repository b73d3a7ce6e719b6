"""What all tests share."""

import numpy as np
import pytest
from hypothesis import settings

# The first example may compile inner loops, and CI machines are slow: time is no assertion.
settings.register_profile("house", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("house")


@pytest.fixture
def rng():
    return np.random.default_rng(0)
