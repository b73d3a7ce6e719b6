"""Fresh random numbers: 64 draws of the contract suites, failures that can be repeated."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

FAILING = """
from contracts.kernel import KernelContract
from kernelatoms.similarity import make_kernel

class TestKernel(KernelContract):
    def make(self):
        return make_kernel("linear")

    def test_fails(self, rng):
        assert not f"number {rng.random()}"

def test_fails_outside_of_contracts(rng):
    assert not f"number {rng.random()}"
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "conftest.py").write_text("from draws import pytest_generate_tests, rng")
    (tmp_path / "test_it.py").write_text(FAILING)

    def run(name, **variables):
        """Return how many tests failed, the numbers they drew, and all that was printed."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KERNELATOMS")}
        environment["PYTHONPATH"] = os.pathsep.join([str(TESTS), *sys.path])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", name]
        printed = subprocess.run(
            command, cwd=tmp_path, env=environment | variables, capture_output=True, text=True
        ).stdout
        numbers = re.findall(r"assert not 'number ([0-9.e-]+)'", printed)
        return int(re.search(r"(\d+) failed", printed)[1]), numbers, printed

    return run


def test_the_house_repeats_itself(run):
    failed, numbers, _ = run("test_fails", KERNELATOMS_TESTS="")
    assert failed == 2
    assert len(set(numbers)) == 1
    assert run("test_fails")[1] == numbers


def test_fresh_numbers_for_every_draw_that_their_seed_brings_back(run):
    failed, numbers, printed = run("test_fails", KERNELATOMS_TESTS="random")
    assert failed == 64 + 1  # tests that belong to no contract stay as they are
    assert len(set(numbers)) == 65
    seeds = set(re.findall(r"again with: KERNELATOMS_TESTS=random KERNELATOMS_SEED=(\d+)", printed))
    assert len(seeds) == 1
    again = run("test_fails", KERNELATOMS_TESTS="random", KERNELATOMS_SEED=seeds.pop())[1]
    assert again == numbers
    assert not set(numbers[:64]) & set(run("test_fails", KERNELATOMS_TESTS="random")[1][:64])


def test_profiles_that_do_not_exist_are_refused():
    code = "import draws"
    environment = os.environ | {"KERNELATOMS_TESTS": "lucky", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert "KERNELATOMS_TESTS must be 'house' or 'random', got 'lucky'" in done.stderr
