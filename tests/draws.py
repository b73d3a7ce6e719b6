"""Fixed or fresh random numbers for the tests, chosen by the variable KERNELATOMS_TESTS.

- ``house``, the default (``make test``, CI): hypothesis repeats the same examples and ``rng``
  starts from 0, so that a failure is about the change and not about the day.
- ``random`` (``make test-slow``): hypothesis draws 100 fresh examples, and every test that takes
  ``rng`` runs 100 times with fresh generators, one that needs more than a twentieth of a second
  as often as fits in 5 seconds. KERNELATOMS_DRAWS=2000 asks for 2,000 of each instead, in 100
  seconds; ``--junitxml`` tells how many runs there were. The first failure ends a test and shows
  how to repeat it: hypothesis prints a blob, and ``rng`` its seed, which KERNELATOMS_SEED sets.
"""

import os
import secrets
import time
import zlib

import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

SECONDS_A_DRAW = 0.05
_SEED = pytest.StashKey()


def read_draws(text, profile):
    """Return how many draws KERNELATOMS_DRAWS asks for."""
    if profile != "random":
        raise ValueError("KERNELATOMS_DRAWS is for fresh numbers: set KERNELATOMS_TESTS=random.")
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"KERNELATOMS_DRAWS must be a whole number from 1, got {text!r}.")
    return int(text)


PROFILE = os.environ.get("KERNELATOMS_TESTS") or "house"
if PROFILE not in ("house", "random"):
    raise ValueError(f"KERNELATOMS_TESTS must be 'house' or 'random', got {PROFILE!r}.")
ASKED = os.environ.get("KERNELATOMS_DRAWS")
N_DRAWS = read_draws(ASKED, PROFILE) if ASKED else 100
SEED = int(os.environ.get("KERNELATOMS_SEED") or secrets.randbits(32))

# The first example may compile inner loops, and CI machines are slow: time is no assertion.
settings.register_profile("house", deadline=None, max_examples=20, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=N_DRAWS, print_blob=True)
settings.load_profile(PROFILE)


def pytest_runtest_protocol(item, nextitem):
    """Run a test that takes ``rng`` once a draw, with all its fixtures, until a draw fails."""
    if PROFILE == "house" or "rng" not in getattr(item, "fixturenames", ()):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    end = time.monotonic() + N_DRAWS * SECONDS_A_DRAW
    for draw in range(1, N_DRAWS + 1):
        item.stash[_SEED] = SEED + draw - 1  # the first of another run that starts from here
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not all(report.passed for report in reports) or time.monotonic() > end:
            break
    for report in reports:
        report.user_properties.append(("draws", draw))
        again = f"again with: KERNELATOMS_TESTS=random KERNELATOMS_SEED={item.stash[_SEED]}"
        report.sections.append(("rng", again))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def later(*case):
    """Return a case of a parametrised test that ``make test-slow`` adds."""
    return pytest.param(*case, marks=pytest.mark.slow)


def some(cases, quick):
    """Return cases, of which ``make test`` runs those named in ``quick`` alone."""
    assert set(quick) <= set(cases)
    return [case if case in quick else later(case) for case in cases]


@pytest.fixture
def rng(request):
    """A random generator; a fresh one for every draw."""
    if _SEED not in request.node.stash:
        return np.random.default_rng(0)
    # The test's name, so that two tests do not see the same numbers.
    return np.random.default_rng(
        [request.node.stash[_SEED], zlib.crc32(request.node.name.encode())]
    )
