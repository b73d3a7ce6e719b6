"""Fixed or fresh random numbers for the tests, chosen by the variable KERNELATOMS_TESTS.

- ``house``, the default (``make test``, CI): hypothesis repeats the same examples and ``rng``
  starts from 0, so that a failure is about the change and not about the day.
- ``random`` (``make test-slow``): hypothesis draws fresh examples, and every test of a contract
  suite that takes ``rng`` runs 64 times with fresh generators. A failure shows how to repeat it:
  hypothesis prints a blob, and ``rng`` its seed, which KERNELATOMS_SEED sets.
"""

import os
import secrets
import zlib

import numpy as np
import pytest
from hypothesis import settings

N_DRAWS = 64

# The first example may compile inner loops, and CI machines are slow: time is no assertion.
settings.register_profile("house", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=100, print_blob=True)

PROFILE = os.environ.get("KERNELATOMS_TESTS") or "house"
if PROFILE not in ("house", "random"):
    raise ValueError(f"KERNELATOMS_TESTS must be 'house' or 'random', got {PROFILE!r}.")
settings.load_profile(PROFILE)
SEED = int(os.environ.get("KERNELATOMS_SEED") or secrets.randbits(32))


def is_of_a_contract(test_class):
    """Is this a test class that inherits a suite of ``contracts``?"""
    bases = [] if test_class is None else test_class.__mro__
    return any(base.__module__.startswith("contracts.") for base in bases)


def pytest_generate_tests(metafunc):
    """Run tests of contract suites that take ``rng`` once a draw."""
    if PROFILE == "random" and "rng" in metafunc.fixturenames and is_of_a_contract(metafunc.cls):
        metafunc.fixturenames.append("draw")
        metafunc.parametrize("draw", range(N_DRAWS))


@pytest.fixture
def rng(request):
    """A random generator; a fresh one for every draw of a contract suite."""
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    if "draw" not in parameters:
        return np.random.default_rng(0)
    # The test's name, so that one seed repeats one test alone as well as all of them.
    entropy = [SEED, zlib.crc32(request.node.name.encode())]
    request.node.add_report_section(
        "setup", "rng", f"again with: KERNELATOMS_TESTS=random KERNELATOMS_SEED={SEED}"
    )
    return np.random.default_rng(entropy)
