"""Means, errors and the sentence that follows from them."""

import numpy as np
import pytest

from kernelatoms.report import compare_in_words, mean_and_error


def test_mean_and_error_over_runs(rng):
    scores = rng.random((7, 3))
    mean, error = mean_and_error(scores)
    for column in range(3):
        values = scores[:, column]
        spread = np.sqrt(((values - values.mean()) ** 2).sum() / 6)
        assert mean[column] == pytest.approx(values.sum() / 7)
        assert error[column] == pytest.approx(spread / np.sqrt(7))


@pytest.mark.parametrize("scores", [[0.5], 0.5, np.empty((0, 3))])
def test_one_run_has_no_error(scores):
    with pytest.raises(ValueError, match="scores must hold at least two runs"):
        mean_and_error(scores)


def test_words_follow_the_numbers():
    base = np.array([0.5, 0.6, 0.7])
    words = compare_in_words(
        {
            "here": (base + np.array([0.10, 0.11, 0.12]), base),
            "there": (base - np.array([0.20, 0.21, 0.22]), base),
            "elsewhere": (base + np.array([0.01, -0.01, 0.0]), base),
            "nowhere": (base, base),
        },
        "A",
        "B",
    )
    assert words == (
        "A is more accurate than B here (+11.0 ± 0.6 points); "
        "A is less accurate than B there (-21.0 ± 0.6 points); "
        "A and B cannot be told apart elsewhere (+0.0 ± 0.6 points) "
        "and nowhere (+0.0 ± 0.0 points)."
    )


def test_runs_are_compared_in_pairs():
    # Runs differ by far more than the models do; only the paired difference shows it.
    base = np.array([0.1, 0.5, 0.9, 0.3])
    better = base + np.array([0.02, 0.021, 0.019, 0.02])
    assert compare_in_words({"here": (better, base)}, "A", "B").startswith("A is more accurate")
    assert compare_in_words({"here": (base, better)}, "A", "B").startswith("A is less accurate")
    shuffled = better[[1, 2, 3, 0]]
    assert "cannot be told apart" in compare_in_words({"here": (shuffled, base)}, "A", "B")


def test_bad_scores_are_named():
    with pytest.raises(ValueError, match=r"scores\['here'\] must be two lists"):
        compare_in_words({"here": ([0.1, 0.2], [0.1, 0.2, 0.3])}, "A", "B")
    with pytest.raises(ValueError, match="at least one condition"):
        compare_in_words({}, "A", "B")
