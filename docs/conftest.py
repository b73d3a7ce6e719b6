"""Tests of the pages: what they share. Run with ``pytest docs``."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from draws import pytest_runtest_protocol, rng
from pictures import drawn, undrawn_pictures

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extending"), str(HERE / "_ext")]

# The configuration and what a build leaves behind are not tests.
collect_ignore_glob = ["conf.py", "_build/*", "gallery/*", "api/generated/*"]
if find_spec("sphinx_gallery") is None:
    collect_ignore_glob.append("_ext/*")

__all__ = ["drawn", "pytest_runtest_protocol", "rng", "undrawn_pictures"]


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Small matrices and a machine that may be busy: helper threads of BLAS would only spin."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
