"""Online LKDL, the paper's first direction for future work: MNIST as a stream whose classes drift.

Digits 0 to 4 come first, then 5 to 9, in batches; one dictionary per class learns from each batch
by MOD. The map's landmarks are chosen from the first batch, and kept; or renewed every few batches,
from the last two batches or from a uniform sample of all rows so far, and dictionaries follow.
Beside them: LKDL that learns from all rows so far at once. Rows have unit norm, float32.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from kernelatoms import MOD, ClassDictionaryClassifier, KernelLinearizer
from kernelatoms.datasets import load_mnist
from reproduction.figure import Claim, Curves, PaperFigure
from reproduction.kcrc.data import Split
from reproduction.study import DataHome, Setting, Size, Study

Array = NDArray[Any]

KEPT = "online, landmarks kept"
RECENT = "online, renewed from recent rows"
SAMPLED = "online, renewed from a sample of all rows"
BATCH = "LKDL, all rows so far at once"
_LATE = 5  # digits from here on come in the second half

_PARAMETERS = {
    "n_rows": 40_000, "batch": 1000, "landmarks": 200, "degree": 2, "n_atoms": 100, "n_nonzero": 8,
    "passes": 5, "renew_every": 4, "n_recent": 2000, "n_sampled": 2000, "judge_every": 5000,
}  # fmt: skip
PLACES = tuple(5000 * i for i in range(1, 9))


def measure_stream(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return accuracies in percent when so many rows (x) have been seen.

    On test rows of all digits that have come so far, and of those that come now.
    """
    key = tuple((name, value) for name, value in setting.items() if name != "x")
    if setting["method"] == BATCH:
        return _at_once(key, setting["x"], seed, data_home)
    return dict(_streamed(key, seed, data_home)[setting["x"]])


@lru_cache(maxsize=1)
def _streamed(
    key: tuple[tuple[str, Any], ...], seed: int, data_home: DataHome
) -> Mapping[int, Mapping[str, float]]:
    """Go through the stream once; return what was measured on the way, by rows seen."""
    setting, found = dict(key), {}
    rows, size = _stream(setting["n_rows"], seed, data_home), setting["batch"]
    rng = np.random.default_rng([seed, 1])
    sample, drawn = rows.train[:0], np.empty(0)
    linearizer, model = _learners(setting, seed)
    for start in range(0, len(rows.train), size):
        X, y = rows.train[start : start + size], rows.train_labels[start : start + size]
        # Those of the smallest numbers, drawn for every row, are a uniform sample of all.
        sample, drawn = np.concatenate([sample, X]), np.concatenate([drawn, rng.random(len(X))])
        kept = np.argsort(drawn)[: setting["n_sampled"]]
        sample, drawn = sample[kept], drawn[kept]
        if start == 0:
            linearizer.fit(X)
        elif setting["method"] != KEPT and (start // size) % setting["renew_every"] == 0:
            seen = start + len(X)
            recent = rows.train[max(seen - setting["n_recent"], 0) : seen]
            choice = recent if setting["method"] == RECENT else sample
            model.change_coordinates(linearizer.renew(choice))
        model.partial_fit(linearizer.transform(X), y)
        if (start + size) % setting["judge_every"] == 0:
            found[start + size] = _accuracies(linearizer, model, rows, y)
    return found


def _at_once(
    key: tuple[tuple[str, Any], ...], n_seen: int, seed: int, data_home: DataHome
) -> dict[str, float]:
    setting = dict(key)
    rows = _stream(setting["n_rows"], seed, data_home)
    X, y = rows.train[:n_seen], rows.train_labels[:n_seen]
    linearizer, model = _learners(setting, seed)
    model.fit(linearizer.fit(X).transform(X), y)
    return _accuracies(linearizer, model, rows, y[-setting["batch"] :])


def _learners(setting: Setting, seed: int) -> tuple[KernelLinearizer, ClassDictionaryClassifier]:
    linearizer = KernelLinearizer(
        "poly", degree=setting["degree"], gamma=1, coef0=0, n_landmarks=setting["landmarks"],
        random_state=seed,
    )  # fmt: skip
    learner = MOD(
        setting["n_atoms"], n_nonzero_coefs=setting["n_nonzero"], max_iter=setting["passes"], tol=0
    )
    return linearizer, ClassDictionaryClassifier(learner, random_state=seed)


def _accuracies(
    linearizer: KernelLinearizer, model: ClassDictionaryClassifier, rows: Split, coming: Array
) -> dict[str, float]:
    tested = np.isin(rows.test_labels, model.classes_)
    late = bool((coming >= _LATE).mean() > 0.5)
    now = (rows.test_labels[tested] >= _LATE) == late
    right = model.predict(linearizer.transform(rows.test[tested])) == rows.test_labels[tested]
    return {"accuracy": 100 * float(right.mean()), "now": 100 * float(right[now].mean())}


@lru_cache(maxsize=1)
def _stream(n_rows: int, seed: int, data_home: DataHome) -> Split:
    """Return training rows in the order in which they come, half of them late digits; test rows."""
    mnist = load_mnist(data_home=data_home)
    order = np.random.default_rng(seed).permutation(len(mnist.X_train))
    late = mnist.y_train[order] >= _LATE
    order = np.concatenate([order[~late][: n_rows // 2], order[late][: n_rows // 2]])
    train, test = (
        normalize(X.reshape(len(X), -1).astype(np.float32))
        for X in (mnist.X_train[order], mnist.X_test)
    )
    return Split(train, mnist.y_train[order], test, mnist.y_test)


def _settings(methods: tuple[str, ...], places: tuple[int, ...]) -> list[Setting]:
    return [{"method": method, "x": x} for method in methods for x in places]


STREAM = Study(
    name="lkdl/online",
    dataset="mnist",
    quick=Size(_settings((KEPT, RECENT), (20_000, 40_000)), 1, "40 s"),
    full=Size(_settings((KEPT, RECENT, SAMPLED, BATCH), PLACES), 5, "5 min"),
    measure=measure_stream,
    parameters=_PARAMETERS,
)

# Figures ------------------------------------------------------------------------------------------

# Online learning uses every row once, and ends so many points below all rows at once, at most.
_CLOSE = 1.0


def _claims_all(curves: Curves) -> list[Claim]:
    end = PLACES[-1]
    claims = []
    for method in (KEPT, SAMPLED):
        if len(curves.at(method, end)) and len(curves.at(BATCH, end)):
            ours, batch = curves.mean(method, end), curves.mean(BATCH, end)
            claims.append(
                Claim(
                    f"{method}: at the end at most {_CLOSE:g} point below learning at once",
                    ours >= batch - _CLOSE,
                    f"{ours:.2f} and {batch:.2f}",
                )
            )
    return claims


def _claims_now(curves: Curves) -> list[Claim]:
    end = PLACES[-1]
    n = min(len(curves.at(RECENT, end)), len(curves.at(KEPT, end)))
    if n < 2:
        return []
    gains = curves.at(RECENT, end)[:n] - curves.at(KEPT, end)[:n]
    error = float(gains.std(ddof=1) / np.sqrt(n))
    return [
        Claim(
            "At the end, landmarks renewed from recent rows are better for the digits that come "
            "now than those kept, by more than two standard errors of the difference",
            float(gains.mean()) > 2 * error,
            f"{gains.mean():+.2f} ± {error:.2f} points",
        )
    ]


_TEXT = (
    "Our addition; the paper names online learning as future work. MNIST in batches of 1,000 rows, "
    "digits 0 to 4 first, then 5 to 9; (x'y)^2, 200 landmarks, 100 atoms per class, 8 nonzeros, "
    "each batch seen once. Landmarks come from the first batch and are kept, or renewed every 4 "
    "batches from the last 2,000 rows, or from a uniform sample of 2,000 of all rows so far; "
    "learning at once makes 5 passes over all rows so far. "
)
FIGURES = (
    PaperFigure(
        name="lkdl/online",
        title="Online LKDL: accuracy against rows seen, when classes drift (MNIST)",
        text=_TEXT + "Test rows are those of all digits that have come so far.",
        source="the paper has no such experiment",
        study=STREAM,
        measured=lambda measures: measures["accuracy"],
        reported={},
        claims=_claims_all,
        xlabel="rows seen",
        ylabel="accuracy, %",
        place="{:,.0f}",
    ),
    PaperFigure(
        name="lkdl/online-now",
        title="Online LKDL: accuracy on the digits that come now (MNIST)",
        text=_TEXT + "Test rows are those of the five digits that the stream brings at that time; "
        "answers may be any digit that has come so far.",
        source="the paper has no such experiment",
        study=STREAM,
        measured=lambda measures: measures["now"],
        reported={},
        claims=_claims_now,
        xlabel="rows seen",
        ylabel="accuracy, %",
        place="{:,.0f}",
    ),
)
