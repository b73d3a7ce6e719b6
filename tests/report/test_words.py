"""Small pieces of plain English, and curves of few points."""

import pytest

from kernelatoms import KSVD
from kernelatoms.report.embedding import stand_in
from kernelatoms.report.figures.rows import outline
from kernelatoms.report.sections.scores import first_of, wilson_interval
from kernelatoms.report.words import (
    count_words,
    isolate,
    labels_words,
    settings_in_words,
    shorten,
)


def test_numbers_have_their_nouns():
    assert count_words(1, "row") == "1 row"
    assert count_words(1200, "row") == "1,200 rows"
    assert count_words(2, "class", "classes") == "2 classes"


def test_long_names_end_early():
    assert shorten("a long name", 8) == "a long …"
    assert shorten("中文的名字", 8) == "中文的…"


def test_words_from_right_to_left_stand_apart():
    assert isolate("rose") == "rose"
    assert isolate("ורד") != "ורד"


def test_letters_that_are_missing_have_stand_ins():
    assert stand_in("a中") == "a—"
    assert stand_in("กี") == "n"


def test_of_many_labels_the_first_are_named():
    assert labels_words(["a", "b"], 3) == "a, b"
    assert labels_words(range(31), 3) == "0, 1, 2 (the first 3 of 31)"


def test_settings_that_are_not_the_defaults_are_named():
    assert settings_in_words(KSVD(n_atoms=30, max_iter=5)) == "KSVD with n_atoms 30 and max_iter 5"
    assert settings_in_words(KSVD()) == "KSVD as it comes"


def test_lists_say_how_they_begin():
    assert first_of(7, 7, "row") == "All 7 rows"
    assert first_of(500, 1234, "row") == "The first 500 of 1,234 rows"


def test_intervals_of_shares():
    assert wilson_interval(95, 100) == pytest.approx((0.888, 0.978), abs=5e-4)


def test_long_curves_keep_their_lowest_and_highest_values():
    places, values = outline([0, 9, 1, 2, 3, 3, -5, 4], most=4)
    assert places.tolist() == [0, 1, 4, 5]
    assert values.tolist() == [0, 9, -5, 4]
