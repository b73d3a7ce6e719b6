"""What a file may become."""

import pytest

from kernelatoms.limits import (
    EXPANSION,
    MAX_SIZE,
    Budget,
    TooLargeError,
    in_words,
)


def test_small_files_may_become_gigabytes_and_large_ones_a_multiple():
    assert Budget(0).allowed == Budget(MAX_SIZE // EXPANSION).allowed == MAX_SIZE
    assert Budget(MAX_SIZE).allowed == EXPANSION * MAX_SIZE
    assert Budget(MAX_SIZE, 7).allowed == 7


def test_too_much_is_refused_with_both_sizes_and_the_way_out():
    Budget(10).check(MAX_SIZE)
    Budget(10, 7).check(7)
    with pytest.raises(TooLargeError, match=r"its 10 bytes .* 4\.0 GiB or more, and 4\.0 GiB are"):
        Budget(10).check(MAX_SIZE + 1)
    with pytest.raises(TooLargeError, match=r"8 bytes or more, and 7 bytes .* by max_size"):
        Budget(10, 7).check(8)
    Budget(10, MAX_SIZE + 1).check(MAX_SIZE + 1)


def test_sizes_in_words():
    assert in_words(2**20 - 1) == "1,048,575 bytes"
    assert (in_words(2**20), in_words(2**30), in_words(2**42)) == ("1.0 MiB", "1.0 GiB",
                                                                   "4,096.0 GiB")  # fmt: skip
