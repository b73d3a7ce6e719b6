"""Tests of the pages: what they share. Run with ``pytest docs``."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extending"))

# The configuration and what a build leaves behind are not tests.
collect_ignore_glob = ["conf.py", "_build/*", "gallery/*", "api/generated/*"]
if find_spec("sphinx_gallery") is None:
    collect_ignore_glob.append("_ext/*")

# As in tests/conftest.py.
settings.register_profile("house", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("house")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Small matrices and a machine that may be busy: helper threads of BLAS would only spin."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
