"""Which columns a part of a kernel sees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.similarity import Channels
from kernelatoms.similarity.columns import check_columns, columns_of, key_of, take


def seen(columns, n_features):
    return np.arange(n_features)[columns_of(check_columns(columns), n_features)].tolist()


@given(
    height=st.integers(1, 4),
    width=st.integers(1, 4),
    n_channels=st.integers(1, 5),
    data=st.data(),
)
def test_channels_are_planes_of_images(height, width, n_channels, data):
    image = np.arange(height * width * n_channels).reshape(height, width, n_channels)
    number = data.draw(st.integers(0, n_channels - 1))
    some = tuple(data.draw(st.permutations(range(n_channels))))[: number + 1]
    flat, planes = image.ravel(), np.moveaxis(image, -1, 0).ravel()
    last, first = Channels(number, n_channels), Channels(number, n_channels, channels_first=True)
    plane = image[:, :, number].ravel()
    np.testing.assert_array_equal(flat[last.of_rows(flat.size)], plane)
    np.testing.assert_array_equal(planes[first.of_rows(flat.size)], plane)
    several = flat[Channels(some, n_channels).of_rows(flat.size)]
    np.testing.assert_array_equal(several, image[:, :, list(some)].ravel())
    several = planes[Channels(some, n_channels, True).of_rows(flat.size)]
    np.testing.assert_array_equal(several, np.moveaxis(image[:, :, list(some)], -1, 0).ravel())


@pytest.mark.parametrize(
    ("given_columns", "expected"),
    [
        (slice(None), [0, 1, 2, 3, 4, 5]),
        (slice(1, 6, 2), [1, 3, 5]),
        (slice(-2, None), [4, 5]),
        (slice(None, None, -1), [5, 4, 3, 2, 1, 0]),
        ([0, 3], [0, 3]),
        ((5,), [5]),
        (range(1, 4), [1, 2, 3]),
        (np.array([4, 1, 2]), [4, 1, 2]),  # in their order
        ([3, 2, 1], [3, 2, 1]),
        (Channels(1, 3), [1, 4]),
        (Channels((2, 0), 3), [2, 0, 5, 3]),
    ],
    ids=repr,
)
def test_what_they_are_of_six(given_columns, expected):
    assert seen(given_columns, 6) == expected


def test_evenly_spaced_numbers_are_kept_as_slices():
    assert check_columns([2, 3, 4]) == slice(2, 5, None)
    assert check_columns([1, 4, 7]) == slice(1, 8, 3)
    assert check_columns([6]) == slice(6, 7, None)
    assert isinstance(check_columns([0, 1, 3]), np.ndarray)
    assert key_of(check_columns([0, 1, 3])) == (0, 1, 3)


def test_all_columns_are_the_rows_themselves(rng):
    X = rng.random((4, 6))
    assert take(X, slice(None)) is X
    assert take(X, slice(0, 6)) is X
    every = take(X, slice(1, None, 2))
    assert every.flags.c_contiguous
    np.testing.assert_array_equal(every, X[:, 1::2])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("ab", "a slice, a list of column numbers or Channels, got 'ab'"),
        (3, "a slice, a list of column numbers or Channels, got 3"),
        (None, "got None"),
        ([], "at least one number from 0, got"),
        ([[1, 2]], "at least one number from 0"),
        ([1.0, 2.0], "column numbers"),
        ([True, False], r"of a mask, np.flatnonzero\(mask\)"),
        ([0, -1], "numbers from 0, got -1"),
        ([1, 2, 1], r"named once each within a part, got \[1, 2, 1\]"),
        (slice("a", None), "a slice of whole numbers"),
        (slice(0, True), "a slice of whole numbers"),
        (slice(0, 4, 0), "whose step is not 0"),
    ],
)
def test_what_are_no_columns(columns, words):
    with pytest.raises(ValueError, match=f"^columns must be .*{words}"):
        check_columns(columns)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (slice(0, 7), r"of rows with n_features=6; slice\(0, 7, None\) reaches outside"),
        (slice(-7, None), "reaches outside"),
        (slice(6, None), "at least one of rows with n_features=6.* is none"),
        (slice(3, 2), "is none"),
        ([0, 1, 6], "of rows with n_features=6, from 0 to 5, got 6"),
        ([6], "reaches outside"),
        (Channels(0, 4), "a multiple of 4 features, got n_features=6"),
    ],
    ids=repr,
)
def test_columns_that_rows_do_not_have(columns, words):
    with pytest.raises(ValueError, match=words):
        seen(columns, 6)
    assert seen(slice(0, 6), 6) == seen(slice(-6, None), 6) == seen([0, 1, 2, 3, 4, 5], 6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((4, 4), "from 0 to 3 where n_channels=4, got 4"),
        ((-1, 4), "each of the numbers of channels must be a whole number from 0, got -1"),
        (("red", 4), "got 'red'"),
        ((True, 4), "got True"),
        (((0, 0), 4), r"each once, got \(0, 0\)"),
        (((), 4), r"must name channels, each once, got \(\)"),
        ((0, 0), "n_channels must be a whole number from 1, got 0"),
        ((0, 2.0), "n_channels must be a whole number from 1, got 2.0"),
    ],
)
def test_what_are_no_channels(arguments, words):
    with pytest.raises(ValueError, match=words):
        Channels(*arguments)
    with pytest.raises(TypeError, match="channels_first must be True or False, got 1"):
        Channels(0, 4, 1)
