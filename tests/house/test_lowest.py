"""Every dependency has a lowest version, and ``make test-lowest`` gets all of them."""

import subprocess
import sys

import pytest

import lowest


def test_every_requirement_has_a_lowest_version():
    extras = lowest.PROJECT["optional-dependencies"].values()
    listed = lowest.PROJECT["dependencies"] + [r for extra in extras for r in extra]
    for requirement in (one for one in listed if not one.startswith("kernelatoms[")):
        name, version = lowest.lowest(requirement).split("==")
        assert requirement == f"{name}>={version}"


@pytest.mark.parametrize(
    "requirement", ["numpy", "numpy>2", "numpy~=2.1", "numpy>=2,<3", "numpy>=", "numpy>=2.*"]
)
def test_other_requirements_are_refused(requirement):
    with pytest.raises(ValueError, match="reads name>=lowest"):
        lowest.lowest(requirement)


def test_those_of_the_package_and_of_the_tests_are_printed():
    done = subprocess.run([sys.executable, lowest.__file__], capture_output=True, text=True)
    if sys.version_info[:2] > (3, 11):
        assert "make test-lowest PYTHON=python3.11" in done.stderr
        assert done.returncode
        return
    extras = lowest.PROJECT["optional-dependencies"]
    expected = [*lowest.PROJECT["dependencies"], *extras["cli"], *extras["dask"], *extras["dev"]]
    expected = [one.replace(">=", "==") for one in expected if not one.startswith("kernelatoms[")]
    assert done.stdout.splitlines() == expected
