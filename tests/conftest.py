"""What all tests share."""

from draws import pytest_runtest_protocol, rng

__all__ = ["pytest_runtest_protocol", "rng"]
