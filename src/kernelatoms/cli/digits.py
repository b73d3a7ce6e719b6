"""The demo's study: linear K-SVD and LKDL class dictionaries on clean and corrupted digits.

Every repetition draws a new split, learns both models from the same rows, and lets both classify
the same test digits: clean, with noise, with pixels dropped. Settings follow the LKDL paper's
digit experiment (kernel (x'y)^4, 5 nonzeros, 10 repetitions), with fewer atoms for smaller images.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer, n_threads, report
from kernelatoms.report.figures.scores import robustness_figure
from kernelatoms.report.figures.style import signed_shades
from kernelatoms.report.words import count_words

Array = NDArray[Any]

TITLE = "Class dictionaries on digits: linear K-SVD and LKDL"
LINEAR, LKDL = "linear K-SVD", "LKDL"
# The levels that table and summary show, and the places of the clean digits.
NOISE, DROPPED = 0.3, 0.5


@dataclass(frozen=True)
class Settings:
    """What a study depends on beside the data."""

    seed: int = 0
    repetitions: int = 10
    n_digits: int | None = None  # all of them
    n_atoms: int = 40
    max_iter: int = 10
    noise_levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    dropped_levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

    def seed_of(self, repetition: int) -> int:
        """Return the seed of a repetition."""
        return int(np.random.default_rng([self.seed, repetition, 0]).integers(2**31))


QUICK = Settings(
    repetitions=2, n_digits=600, n_atoms=20, max_iter=3,
    noise_levels=(0.0, NOISE), dropped_levels=(0.0, DROPPED),
)  # fmt: skip


@dataclass
class Measured:
    """What one model did: a row per repetition, a column per level of corruption."""

    model: Any = None  # fitted, of the first repetition
    noise: list[list[float]] = field(default_factory=list)
    dropped: list[list[float]] = field(default_factory=list)
    fit_seconds: list[float] = field(default_factory=list)
    predict_seconds: list[float] = field(default_factory=list)  # per signal


@dataclass(frozen=True)
class Study:
    """The settings, the test digits of the first repetition, and what each model did."""

    settings: Settings
    test: Array
    test_labels: Array
    measured: dict[str, Measured]


def run_study(settings: Settings, on_step: Callable[[int, int, str], None]) -> Study:
    """Learn and classify, warmed up by a first fit; ``on_step(done, total, what)`` shows steps."""
    pixels, labels = load_digits(return_X_y=True)
    pixels, labels = pixels[: settings.n_digits] / 16, labels[: settings.n_digits]
    measured = {name: Measured() for name in make_models(settings, 0)}
    total = 2 + settings.repetitions * len(measured)
    on_step(0, total, "warming up")
    train, test, train_labels, test_labels = draw_split(settings, pixels, labels, 0)
    study = Study(settings, test, test_labels, measured)
    for model in make_models(settings, 0).values():
        model.fit(unit_rows(train), train_labels).predict(unit_rows(test))
    done = 1
    for repetition in range(settings.repetitions):
        train, test, train_labels, test_labels = draw_split(settings, pixels, labels, repetition)
        tests = list(corrupted(settings, test, repetition))
        for name, model in make_models(settings, settings.seed_of(repetition)).items():
            on_step(done, total, f"repetition {repetition + 1} of {settings.repetitions}")
            start = time.perf_counter()
            model.fit(unit_rows(train), train_labels)
            measured[name].fit_seconds.append(time.perf_counter() - start)
            _classify(measured[name], model, tests, test_labels)
            measured[name].model = measured[name].model or model
            done += 1
    on_step(done, total, "drawing the report")
    return study


def _classify(
    measured: Measured, model: Any, tests: list[tuple[str, Array]], labels: Array
) -> None:
    """Classify every test, and record accuracies and times."""
    measured.noise.append([])
    measured.dropped.append([])
    for kind, signals in tests:
        start = time.perf_counter()
        predictions = model.predict(signals)
        measured.predict_seconds.append((time.perf_counter() - start) / len(signals))
        getattr(measured, kind)[-1].append(float(np.mean(predictions == labels)))


def make_models(settings: Settings, seed: int) -> dict[str, Any]:
    """Return the two models, not yet fitted."""
    learner = KSVD(settings.n_atoms, n_nonzero_coefs=5, max_iter=settings.max_iter)
    linearizer = KernelLinearizer(
        "poly", degree=4, gamma=1, coef0=0, sampling="kmeans", n_landmarks=0.3, random_state=seed
    )
    return {
        LINEAR: ClassDictionaryClassifier(learner, random_state=seed),
        LKDL: make_pipeline(linearizer, ClassDictionaryClassifier(learner, random_state=seed)),
    }


def draw_split(settings: Settings, pixels: Array, labels: Array, repetition: int) -> list[Array]:
    """Return training and test digits and their labels, all classes in both."""
    parts: list[Array] = train_test_split(
        pixels, labels, test_size=0.4, stratify=labels, random_state=settings.seed_of(repetition)
    )
    return parts


def corrupted(settings: Settings, pixels: Array, repetition: int) -> Iterator[tuple[str, Array]]:
    """Yield (kind, unit-norm rows) for every level of every corruption; level 0 is clean."""
    rng = np.random.default_rng([settings.seed, repetition, 1])
    for level in settings.noise_levels:
        yield "noise", unit_rows(add_noise(pixels, level, rng))
    for level in settings.dropped_levels:
        yield "dropped", unit_rows(drop_pixels(pixels, level, rng))


def add_noise(pixels: Array, sigma: float, rng: np.random.Generator) -> Array:
    """Return pixels with Gaussian noise of this standard deviation."""
    return pixels + sigma * rng.standard_normal(pixels.shape)


def drop_pixels(pixels: Array, share: float, rng: np.random.Generator) -> Array:
    """Return pixels with this share of every image, at random places, set to 0."""
    places = rng.random(pixels.shape).argsort(axis=1)[:, : round(share * pixels.shape[1])]
    dropped = pixels.copy()
    np.put_along_axis(dropped, places, 0.0, axis=1)
    return dropped


def unit_rows(pixels: Array) -> Array:
    """Return rows of norm 1 (empty images stay 0) in single precision, as the models take them."""
    return normalize(pixels).astype(np.float32)


def shown_scores(study: Study, name: str) -> dict[str, Array]:
    """Return the accuracies that table and summary show, of all repetitions, by condition."""
    settings, measured = study.settings, study.measured[name]
    noise, dropped = np.array(measured.noise).T, np.array(measured.dropped).T
    half = dropped[settings.dropped_levels.index(DROPPED)]
    return {
        "on clean digits": noise[0],
        f"under noise of {NOISE:g}": noise[settings.noise_levels.index(NOISE)],
        f"with {100 * DROPPED:.0f}% of the pixels dropped": half,
    }


def results_table(study: Study) -> report.Table:
    """Return accuracy and time of both models; the same table for terminal and page."""
    rows = []
    for name, measured in study.measured.items():
        scores = (report.mean_and_error(values) for values in shown_scores(study, name).values())
        accuracies = [f"{100 * mean:.1f} ± {100 * error:.1f}" for mean, error in scores]
        fit, predict = np.median(measured.fit_seconds), np.median(measured.predict_seconds)
        rows.append([name, *accuracies, f"{fit:.2f}", f"{1e6 * predict:.0f}"])
    header = [
        "model", "clean", f"noise {NOISE:g}", f"{100 * DROPPED:.0f}% dropped", "fit s",
        "predict µs/signal",
    ]  # fmt: skip
    caption = (
        f"Accuracy in % on {len(study.test)} held-out digits: mean ± standard error of "
        f"{study.settings.repetitions} repetitions, each with its own split, start and corruption. "
        "Splits share digits, so take errors as a guide. Pixels lie between 0 and 1; noise is "
        "Gaussian, dropped pixels are 0, and rows have norm 1. Times are medians on "
        f"{count_words(n_threads(), 'thread')}, after a warm-up."
    )
    return report.Table(header, rows, caption)


def summary(study: Study) -> str:
    """Say which model is more accurate where."""
    theirs = shown_scores(study, LINEAR)
    pairs = {where: (ours, theirs[where]) for where, ours in shown_scores(study, LKDL).items()}
    return report.compare_in_words(pairs, LKDL, LINEAR)


def make_sections(study: Study) -> list[report.Section]:
    """Return the report: the table, robustness, and the sections of both fitted models."""
    sections = [
        report.Section(
            "Accuracy and time",
            "Each class of digits gets a dictionary of its own; a digit belongs to the class whose "
            "dictionary leaves the least of it unexplained. LKDL does the same in the feature "
            "space of a kernel, on virtual samples.",
            table=results_table(study),
        ),
        _robustness(study),
    ]
    rows = unit_rows(study.test)
    unseen = report.RowsOfFile(learned=0.0)
    for name, measured in study.measured.items():
        found = report.model_sections(
            measured.model, rows, study.test_labels, image_shape=(8, 8), rows=unseen
        )
        sections += [replace(section, title=f"{name}: {section.title}") for section in found]
    return sections


def _robustness(study: Study) -> report.Section:
    settings = study.settings
    pictures = []
    for kind, levels, xlabel, what in (
        ("noise", settings.noise_levels, "standard deviation of the noise",
         "Gaussian noise on pixels between 0 and 1"),
        ("dropped", settings.dropped_levels, "share of pixels dropped",
         "Pixels at random places set to 0"),
    ):  # fmt: skip
        scores = {name: np.array(getattr(m, kind)) for name, m in study.measured.items()}
        words = " ".join(
            f"{name}: from {100 * values[:, 0].mean():.1f}% at {levels[0]:g} to "
            f"{100 * values[:, -1].mean():.1f}% at {levels[-1]:g}."
            for name, values in scores.items()
        )
        figure = robustness_figure(levels, scores, xlabel=xlabel)
        caption = f"{what}. Mean and standard error of {settings.repetitions} repetitions."
        pictures.append(report.Picture(figure, caption, f"Accuracy; {what}. {words}"))
    return report.Section(
        "Robustness",
        "Both models learn from clean digits and classify the same corrupted ones, with the same "
        "number of nonzeros. Part of the difference is not the kernel's: a linear model with fewer "
        "nonzeros is more robust, too, and a little less accurate on clean digits.",
        pictures=[*pictures, _examples(study)],
    )


def _examples(study: Study) -> report.Picture:
    rng = np.random.default_rng(study.settings.seed)
    classes = np.unique(study.test_labels)
    digits = np.array([study.test[study.test_labels == c][0] for c in classes])
    stack = [digits, add_noise(digits, NOISE, rng), drop_pixels(digits, DROPPED, rng)]
    labels = ["clean", f"noise {NOISE:g}", f"{100 * DROPPED:.0f}% dropped"]
    rows = unit_rows(np.vstack(stack))
    return report.Picture(
        report.images_figure(rows, (8, 8), n_columns=len(digits), row_labels=labels),
        f"Test digits as the models see them: {', '.join(labels)}.",
        "A row of clean digits, a row of noisy ones and a row with pixels dropped.",
        signed_shades("Shades, of the largest value of all:"),
    )
