"""Fresh random numbers: as many draws as asked for, failures that can be repeated."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from draws import later

TESTS = Path(__file__).parent.parent

FAILING = """
import pytest
from hypothesis import given, strategies as st

drawn = []

def show(rng):
    drawn.append(rng.random())
    assert not f"number {drawn[-1]}"

@pytest.fixture
def number(rng):
    return rng.random()

def test_fails(rng):
    show(rng)

class TestSome:
    def test_fails(self, rng):
        show(rng)

def test_third(number):
    drawn.append(number)
    assert len(drawn) < 3, f"drawn {drawn}"

def test_passes(number):
    drawn.append(number)

@given(st.integers())
def test_property(x):
    drawn.append(x)

@pytest.fixture(scope="module", autouse=True)
def count():
    yield
    print(f"drawn {len(drawn)}, {len(set(drawn))} of them different")
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "conftest.py").write_text("from draws import pytest_runtest_protocol, rng")
    (tmp_path / "test_it.py").write_text(FAILING)

    def run(name, **variables):
        """Run the tests of this name; return all that was printed."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KERNELATOMS")}
        environment["PYTHONPATH"] = os.pathsep.join([str(TESTS), *sys.path])
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-k", name]
        return subprocess.run(
            command, cwd=tmp_path, env=environment | variables, capture_output=True, text=True
        ).stdout

    return run


def numbers(printed):
    # Of the tracebacks alone: the last lines repeat a short number, and cut a long one.
    return re.findall(r"^E .*assert not 'number ([0-9.e-]+)'", printed, re.MULTILINE)


def seed(printed):
    (seed,) = re.findall(r"again with: KERNELATOMS_TESTS=random KERNELATOMS_SEED=(\d+)", printed)
    return seed


def test_the_house_repeats_itself(run):
    printed = run("test_fails", KERNELATOMS_TESTS="")
    assert "2 failed" in printed
    assert len(set(numbers(printed))) == 1
    assert "drawn 20, " in run("test_property")


@pytest.mark.slow
def test_fresh_numbers_that_their_seed_brings_back(run):
    printed = run("test_fails and not TestSome", KERNELATOMS_TESTS="random")
    again = run("test_fails", KERNELATOMS_TESTS="random", KERNELATOMS_SEED=seed(printed))
    other = run("test_fails", KERNELATOMS_TESTS="random")
    assert len(numbers(printed)) == 1
    assert len(numbers(again)) == 2
    assert numbers(printed)[0] in numbers(again)
    assert not set(numbers(other)) & set(numbers(again))


@pytest.mark.parametrize("name", ["test_passes", later("test_property")])
@pytest.mark.parametrize(("asked", "n"), [later("", 100), ("7", 7), later("130", 130)])
def test_as_many_draws_as_asked_for(run, name, asked, n):
    printed = run(name, KERNELATOMS_TESTS="random", KERNELATOMS_DRAWS=asked)
    assert "1 passed" in printed
    # hypothesis may repeat an example that it varies.
    different = str(n) if name == "test_passes" else r"\d+"
    assert re.search(rf"drawn {n}, {different} of them different", printed)


@pytest.mark.slow
def test_a_later_draw_that_fails_is_the_first_of_its_seed(run):
    printed = run("test_third", KERNELATOMS_TESTS="random")
    assert "1 failed" in printed
    last = re.search(r"drawn \[.*, ([0-9.e-]+)\]", printed)[1]
    again = run("test_third", KERNELATOMS_TESTS="random", KERNELATOMS_SEED=seed(printed))
    assert re.search(rf"drawn \[{last}, ", again)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"KERNELATOMS_TESTS": "lucky"}, "KERNELATOMS_TESTS must be 'house' or 'random', got 'lu"),
        ({"KERNELATOMS_DRAWS": "10"}, "set KERNELATOMS_TESTS=random"),
        ({"KERNELATOMS_TESTS": "random", "KERNELATOMS_DRAWS": "0"}, "number from 1, got '0'"),
        ({"KERNELATOMS_TESTS": "random", "KERNELATOMS_DRAWS": "1e3"}, "number from 1, got '1e3'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(variables, message):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KERNELATOMS")}
    done = subprocess.run(
        [sys.executable, "-c", "import draws"],
        env=environment | variables | {"PYTHONPATH": str(TESTS)}, capture_output=True, text=True,
    )  # fmt: skip
    assert message in done.stderr
