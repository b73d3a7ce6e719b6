"""What all tests share."""

from draws import pytest_generate_tests, rng

__all__ = ["pytest_generate_tests", "rng"]
