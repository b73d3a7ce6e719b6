"""The demo's study: linear K-SVD and LKDL class dictionaries on clean and corrupted digits.

Every repetition draws a new split, learns both models from the same rows, and lets both classify
the same test digits: clean, with noise, with pixels dropped. Settings follow the LKDL paper's
digit experiment (kernel (x'y)^4, 5 nonzeros, 10 repetitions), with fewer atoms for smaller images.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer

Array = NDArray[Any]

IMAGE_SHAPE = (8, 8)
LINEAR, LKDL = "linear K-SVD", "LKDL"


@dataclass(frozen=True)
class Settings:
    """Everything that a study depends on, the data set aside."""

    seed: int = 0
    repetitions: int = 10
    n_digits: int | None = None  # all of them
    test_share: float = 0.4
    n_atoms: int = 40
    n_nonzero_coefs: int = 5
    max_iter: int = 10
    degree: int = 4
    sampling: str = "kmeans"
    n_landmarks: float = 0.3
    noise_levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    dropped_levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    # The levels that the table and the confusion matrices show.
    noise_shown: float = 0.3
    dropped_shown: float = 0.5


QUICK = Settings(
    repetitions=2, n_digits=600, n_atoms=20, max_iter=3,
    noise_levels=(0.0, 0.3), dropped_levels=(0.0, 0.5),
)  # fmt: skip


@dataclass(frozen=True)
class Split:
    """Digits to learn from and digits to classify: pixels between 0 and 1, not yet normalised."""

    train: Array
    test: Array
    train_labels: Array
    test_labels: Array


@dataclass
class Measured:
    """What one model did: a row per repetition, a column per level of corruption."""

    model: Any = None  # fitted, of the first repetition
    noise: list[list[float]] = field(default_factory=list)
    dropped: list[list[float]] = field(default_factory=list)
    fit_seconds: list[float] = field(default_factory=list)
    predict_seconds: list[float] = field(default_factory=list)  # per signal
    noisy_predictions: Array | None = None  # of the first repetition, at ``noise_shown``


@dataclass(frozen=True)
class Study:
    """The settings, the split of the first repetition, and what each model did."""

    settings: Settings
    split: Split
    measured: dict[str, Measured]


def run_study(settings: Settings, on_step: Callable[[int, int, str], None]) -> Study:
    """Learn and classify; ``on_step(done, total, what)`` hears about every step.

    A first fit outside the clock loads the inner loops, or compiles them on a new machine.
    """
    pixels, labels = load_pixels(settings)
    measured = {name: Measured() for name in make_models(settings, 0)}
    total = 2 + settings.repetitions * len(measured)
    on_step(0, total, "warming up")
    first = draw_split(settings, pixels, labels, repetition=0)
    for model in make_models(settings, 0).values():
        model.fit(unit_rows(first.train), first.train_labels).predict(unit_rows(first.test))
    done = 1
    for repetition in range(settings.repetitions):
        split = draw_split(settings, pixels, labels, repetition)
        tests = list(corrupted(settings, split.test, repetition))
        for name, model in make_models(settings, _seed_of(settings, repetition)).items():
            what = f"repetition {repetition + 1} of {settings.repetitions}"
            on_step(done, total, what)
            _measure(settings, measured[name], model, split, tests)
            done += 1
    on_step(done, total, "drawing the report")
    return Study(settings, first, measured)


def make_models(settings: Settings, seed: int) -> dict[str, Any]:
    """Return the two models, not yet fitted."""
    learner = KSVD(
        settings.n_atoms,
        n_nonzero_coefs=settings.n_nonzero_coefs,
        max_iter=settings.max_iter,
    )
    linearizer = KernelLinearizer(
        "poly",
        degree=settings.degree,
        gamma=1,
        coef0=0,
        sampling=settings.sampling,
        n_landmarks=settings.n_landmarks,
        random_state=seed,
    )
    return {
        LINEAR: ClassDictionaryClassifier(learner, random_state=seed),
        LKDL: make_pipeline(linearizer, ClassDictionaryClassifier(learner, random_state=seed)),
    }


def load_pixels(settings: Settings) -> tuple[Array, Array]:
    """Return scikit-learn's digits with values between 0 and 1, and their labels."""
    pixels, labels = load_digits(return_X_y=True)
    return pixels[: settings.n_digits] / 16, labels[: settings.n_digits]


def draw_split(settings: Settings, pixels: Array, labels: Array, repetition: int) -> Split:
    """Return a repetition's digits to learn from and to test on, all classes in both."""
    parts = train_test_split(
        pixels,
        labels,
        test_size=settings.test_share,
        stratify=labels,
        random_state=_seed_of(settings, repetition),
    )
    return Split(*parts)


def corrupted(
    settings: Settings, pixels: Array, repetition: int
) -> Iterator[tuple[str, float, Array]]:
    """Yield (kind, level, unit-norm rows) for every corruption; level 0 is clean."""
    rng = np.random.default_rng([settings.seed, repetition, 1])
    for level in settings.noise_levels:
        yield "noise", level, unit_rows(add_noise(pixels, level, rng))
    for level in settings.dropped_levels:
        yield "dropped", level, unit_rows(drop_pixels(pixels, level, rng))


def add_noise(pixels: Array, sigma: float, rng: np.random.Generator) -> Array:
    """Return pixels with Gaussian noise of this standard deviation."""
    return pixels + sigma * rng.standard_normal(pixels.shape)


def drop_pixels(pixels: Array, share: float, rng: np.random.Generator) -> Array:
    """Return pixels with this share of every image, at random places, set to 0."""
    n_pixels = pixels.shape[1]
    places = rng.random(pixels.shape).argsort(axis=1)[:, : round(share * n_pixels)]
    dropped = pixels.copy()
    np.put_along_axis(dropped, places, 0.0, axis=1)
    return dropped


def unit_rows(pixels: Array) -> Array:
    """Return rows of norm 1 (empty images stay 0) in single precision, as the models take them."""
    return normalize(pixels).astype(np.float32)


def _measure(
    settings: Settings,
    measured: Measured,
    model: Any,
    split: Split,
    tests: list[tuple[str, float, Array]],
) -> None:
    """Fit one model, classify every test, and write down accuracies and times."""
    rows = unit_rows(split.train)
    start = time.perf_counter()
    model.fit(rows, split.train_labels)
    measured.fit_seconds.append(time.perf_counter() - start)
    accuracies: dict[str, list[float]] = {"noise": [], "dropped": []}
    for kind, level, signals in tests:
        start = time.perf_counter()
        predictions = model.predict(signals)
        measured.predict_seconds.append((time.perf_counter() - start) / len(signals))
        accuracies[kind].append(float(np.mean(predictions == split.test_labels)))
        first = measured.noisy_predictions is None
        if first and kind == "noise" and level == settings.noise_shown:
            measured.noisy_predictions = predictions
    measured.noise.append(accuracies["noise"])
    measured.dropped.append(accuracies["dropped"])
    if measured.model is None:
        measured.model = model


def _seed_of(settings: Settings, repetition: int) -> int:
    return int(np.random.default_rng([settings.seed, repetition, 0]).integers(2**31))
