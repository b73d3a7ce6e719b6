"""Texts that a file may hold, letter by letter."""

import numpy as np
import pytest

from kernelatoms.estimators.state_checks import holds_letters


def texts(*points):
    return np.array([points], np.uint32).view(f"U{len(points)}").ravel()


@pytest.mark.parametrize("point", [0xD7FF, 0xD800, 0xDFFF, 0xE000, 0x10FFFF, 0x110000, 2**32 - 1])
def test_letters_are_those_that_can_be_written(point):
    try:
        chr(point).encode()
        right = True
    except (ValueError, OverflowError):
        right = False
    for array in (texts(65, point), texts(point, 65).astype(">U2") if right else texts(point)):
        assert holds_letters(array) == right
    if point <= 0x10FFFF:
        assert holds_letters(np.array(["a", chr(point), 3], object)) == right


def test_what_is_no_text_has_no_letters_to_be_wrong():
    for array in (np.array([1, 2]), np.array([], "U3"), np.array([b"\xff"]), np.array([None])):
        assert holds_letters(array)
