"""The study of digits in words, a table and pictures; every number comes from the study."""

import platform
from datetime import datetime
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from kernelatoms import __version__, n_threads
from kernelatoms.cli.digits import (
    IMAGE_SHAPE,
    LINEAR,
    LKDL,
    Study,
    add_noise,
    drop_pixels,
    unit_rows,
)
from kernelatoms.report import (
    Picture,
    Section,
    Table,
    atoms_figure,
    code_figure,
    compare_in_words,
    convergence_figure,
    images_figure,
    mean_and_error,
)
from kernelatoms.report.figures.classes import confusion_figure
from kernelatoms.report.figures.scores import robustness_figure
from kernelatoms.report.figures.style import share_shades, signed_shades

Array = NDArray[Any]

TITLE = "Class dictionaries on digits: linear K-SVD and LKDL"
_ATOMS_A_CLASS = 8
_EXAMPLE_CLASS = 3


def results_table(study: Study) -> Table:
    """Return accuracy and time of both models; the same table for terminal and page."""
    settings = study.settings
    noise = settings.noise_levels.index(settings.noise_shown)
    dropped = settings.dropped_levels.index(settings.dropped_shown)
    rows = []
    for name, measured in study.measured.items():
        scores = np.array(measured.noise), np.array(measured.dropped)
        shown = scores[0][:, 0], scores[0][:, noise], scores[1][:, dropped]
        rows.append(
            [
                name,
                *(_percent(values) for values in shown),
                f"{np.median(measured.fit_seconds):.2f}",
                f"{1e6 * np.median(measured.predict_seconds):.0f}",
            ]
        )
    header = [
        "model",
        "clean",
        f"noise {settings.noise_shown:g}",
        f"{100 * settings.dropped_shown:.0f}% dropped",
        "fit s",
        "predict µs/signal",
    ]
    return Table(header, rows, _caption(study))


def summary(study: Study) -> str:
    """Say which model is more accurate where, as the numbers have it."""
    settings = study.settings
    linear, lkdl = study.measured[LINEAR], study.measured[LKDL]
    noise = settings.noise_levels.index(settings.noise_shown)
    dropped = settings.dropped_levels.index(settings.dropped_shown)

    def column(kind: str, level: int) -> tuple[Array, Array]:
        ours, theirs = (np.array(getattr(model, kind)) for model in (lkdl, linear))
        return ours[:, level], theirs[:, level]

    return compare_in_words(
        {
            "on clean digits": column("noise", 0),
            f"under noise of {settings.noise_shown:g}": column("noise", noise),
            f"with {100 * settings.dropped_shown:.0f}% of the pixels dropped": column(
                "dropped", dropped
            ),
        },
        LKDL,
        LINEAR,
    )


def make_sections(study: Study) -> list[Section]:
    """Return the report's sections."""
    return [
        Section(
            "Accuracy and time",
            "Each class of digits gets a dictionary of its own; a digit belongs to the class whose "
            "dictionary leaves the least of it unexplained. LKDL does the same in the feature "
            "space of a kernel, on virtual samples.",
            table=results_table(study),
        ),
        _robustness(study),
        _atoms(study),
        _codes(study),
        _confusion(study),
        _convergence(study),
    ]


def footer(study: Study) -> str:
    """Return what made the page, and when."""
    return (
        f"Made by the kernelatoms {__version__} demo, seed {study.settings.seed}, on "
        f"{datetime.now():%Y-%m-%d}, with scikit-learn {sklearn.__version__}, numpy "
        f"{np.__version__} and Python {platform.python_version()} on {_threads()}."
    )


def _caption(study: Study) -> str:
    settings = study.settings
    return (
        f"Accuracy in % on held-out digits ({len(study.split.train)} to learn from, "
        f"{len(study.split.test)} to test): mean ± standard error of {settings.repetitions} "
        "repetitions, each with its own split, start and corruption; splits share digits, so take "
        "errors as a guide. Pixels lie between 0 and 1; "
        "noise is Gaussian, dropped pixels are 0, and rows have norm 1. "
        f"Dictionaries: {settings.n_atoms} atoms a class, {settings.n_nonzero_coefs} nonzeros a "
        f"code, at most {settings.max_iter} passes of K-SVD. LKDL: kernel (x'y)^{settings.degree}, "
        f"{_landmarks(study)} landmarks ({100 * settings.n_landmarks:.0f}% of the training rows, "
        f"{settings.sampling}). Times are medians on {_threads()}, after a warm-up."
    )


def _robustness(study: Study) -> Section:
    settings = study.settings
    noise = {name: np.array(m.noise) for name, m in study.measured.items()}
    dropped = {name: np.array(m.dropped) for name, m in study.measured.items()}
    bars = f"Mean and standard error of {settings.repetitions} repetitions."
    return Section(
        "Robustness",
        "Both models learn from clean digits and classify the same corrupted ones, with the same "
        "number of nonzeros. Part of the difference is not the kernel's: a linear model with fewer "
        "nonzeros is more robust, too, and a little less accurate on clean digits.",
        pictures=[
            Picture(
                robustness_figure(
                    settings.noise_levels, noise, xlabel="standard deviation of the noise"
                ),
                f"Gaussian noise on pixels between 0 and 1. {bars}",
                f"Accuracy against noise. {_in_words(noise, settings.noise_levels)}",
            ),
            Picture(
                robustness_figure(
                    settings.dropped_levels, dropped, xlabel="share of pixels dropped"
                ),
                f"Pixels at random places set to 0. {bars}",
                f"Accuracy against dropped pixels. {_in_words(dropped, settings.dropped_levels)}",
            ),
            _examples(study),
        ],
    )


def _examples(study: Study) -> Picture:
    settings, split = study.settings, study.split
    rng = np.random.default_rng(settings.seed)
    digits = np.array([split.test[split.test_labels == c][0] for c in _classes(study)])
    noisy = add_noise(digits, settings.noise_shown, rng)
    dropped = drop_pixels(digits, settings.dropped_shown, rng)
    share = f"{100 * settings.dropped_shown:.0f}%"
    return Picture(
        images_figure(
            unit_rows(np.vstack([digits, noisy, dropped])),
            IMAGE_SHAPE,
            n_columns=len(digits),
            row_labels=["clean", f"noise {settings.noise_shown:g}", f"{share} dropped"],
        ),
        f"Test digits as the models see them: clean, under noise of {settings.noise_shown:g}, "
        f"and with {share} of the pixels dropped.",
        "A row of clean digits, a row of noisy ones and a row with pixels dropped.",
        signed_shades("Shades, of the largest value of all:"),
    )


def _atoms(study: Study) -> Section:
    rows = unit_rows(study.split.train)
    labels = [str(c) for c in _classes(study)]
    pictures = []
    for name, what in ((LINEAR, "atoms"), (LKDL, "pre-images of atoms")):
        linearizer, classifier = _parts(study.measured[name].model)
        atoms = []
        for label, learner in zip(classifier.classes_, classifier.dictionaries_, strict=True):
            signals = rows[study.split.train_labels == label]
            signals = signals if linearizer is None else linearizer.transform(signals)
            uses = np.bincount(learner.transform(signals).indices, minlength=learner.n_atoms_)
            often = np.argsort(-uses, kind="stable")[:_ATOMS_A_CLASS]
            atoms.append(_in_pixels(linearizer, learner.components_[often]))
        n_columns = min(len(some) for some in atoms)
        stack = np.vstack([some[:n_columns] for some in atoms])
        pictures.append(
            Picture(
                atoms_figure(_positive(stack), IMAGE_SHAPE, n_columns=n_columns, row_labels=labels),
                f"{name}: {what}, the {n_columns} that most training digits use, a row a class.",
                f"A grid of small images, one row for each digit class: {what} of {name}.",
                signed_shades("Shades, of the atom's largest value:"),
            )
        )
    return Section(
        "Atoms",
        "What the dictionaries are made of. An atom's sign is free: its largest value is shown as "
        "positive (red). LKDL's atoms live in feature space; their pre-images, estimated by "
        "ridge regression, show about which pixels they stand for.",
        pictures=pictures,
    )


def _codes(study: Study) -> Section:
    digit = unit_rows(study.split.test[study.split.test_labels == _EXAMPLE_CLASS][:1])
    pictures = []
    for name in (LINEAR, LKDL):
        linearizer, classifier = _parts(study.measured[name].model)
        learner = classifier.dictionaries_[list(classifier.classes_).index(_EXAMPLE_CLASS)]
        signal = digit if linearizer is None else linearizer.transform(digit)
        code = learner.transform(signal).toarray()[0]
        atoms = _in_pixels(linearizer, learner.components_)
        where = (
            ""
            if linearizer is None
            else " Atoms, sum and rest are pre-images; the class is decided in feature space."
        )
        pictures.append(
            Picture(
                code_figure(digit[0], atoms, code, IMAGE_SHAPE),
                f"{name}: the first test digit {_EXAMPLE_CLASS}, coded over the dictionary of its "
                f"class.{where}",
                f"A digit {_EXAMPLE_CLASS}, the sum of {np.count_nonzero(code)} atoms that stands "
                "for it, the rest, all coefficients, and the atoms used.",
                signed_shades("Shades, of the digit's, or the atom's own, largest value:"),
            )
        )
    return Section(
        "A signal's sparse code",
        "A digit is written as a sum of few atoms. What the sum leaves over, as a share of the "
        "digit's energy, tells how well the dictionary's class fits.",
        pictures=pictures,
    )


def _confusion(study: Study) -> Section:
    truth, classes = study.split.test_labels, _classes(study)
    pictures = []
    for name, measured in study.measured.items():
        matrix = confusion_matrix(truth, measured.noisy_predictions, labels=classes)
        wrong = int(matrix.sum() - np.trace(matrix))
        words = f"{name}: {wrong} of {matrix.sum()} digits are taken for another"
        shades = share_shades("Of a true class's digits:")
        figure = confusion_figure(matrix, classes)
        pictures.append(Picture(figure, f"{words}.", f"{words}.", shades))
    return Section(
        "Confusion",
        f"The first repetition under noise of {study.settings.noise_shown:g}: true classes down, "
        "answers across.",
        pictures=pictures,
    )


def _convergence(study: Study) -> Section:
    curves = {}
    rows = unit_rows(study.split.train)
    for name, measured in study.measured.items():
        linearizer, classifier = _parts(measured.model)
        signals = rows if linearizer is None else linearizer.transform(rows)
        energy = float(np.vdot(signals, signals))
        curves[name] = 100 * _total_objective(classifier.dictionaries_) / energy
    ends = "; ".join(f"{name} ends at {curve[-1]:.1f}%" for name, curve in curves.items())
    return Section(
        "Convergence",
        "How much of the training signals' energy the codes miss after every pass of K-SVD, all "
        "classes together. The two models measure energy in different spaces.",
        pictures=[
            Picture(
                convergence_figure(curves, ylabel="energy missed, %"),
                f"First repetition: {ends}.",
                f"Energy missed against passes. {ends}.",
            )
        ],
    )


def _total_objective(learners: list[Any]) -> Array:
    """Return the classes' objectives summed, pass by pass; who stopped early stays where it was."""
    n_passes = max(learner.n_iter_ for learner in learners)
    total = np.zeros(n_passes)
    for learner in learners:
        total += np.pad(learner.objective_, (0, n_passes - learner.n_iter_), mode="edge")
    return total


def _parts(model: Any) -> tuple[Any, Any]:
    """Return (linearizer or None, classifier) of either model."""
    return tuple(model.named_steps.values()) if hasattr(model, "named_steps") else (None, model)


def _in_pixels(linearizer: Any, atoms: Array) -> Array:
    return atoms if linearizer is None else atoms @ linearizer.preimage_coef_


def _positive(atoms: Array) -> Array:
    """Return atoms with the signs that make their largest values positive."""
    largest = np.take_along_axis(atoms, np.abs(atoms).argmax(axis=1)[:, None], axis=1)
    return np.where(largest < 0, -atoms, atoms)


def _classes(study: Study) -> list[int]:
    return np.unique(study.split.train_labels).tolist()


def _percent(scores: Array) -> str:
    mean, error = mean_and_error(scores)
    return f"{100 * mean:.1f} ± {100 * error:.1f}"


def _in_words(scores: dict[str, Array], levels: tuple[float, ...]) -> str:
    return " ".join(
        f"{name}: from {100 * values[:, 0].mean():.1f}% at {levels[0]:g} to "
        f"{100 * values[:, -1].mean():.1f}% at {levels[-1]:g}."
        for name, values in scores.items()
    )


def _landmarks(study: Study) -> int:
    linearizer, _ = _parts(study.measured[LKDL].model)
    return int(linearizer.n_landmarks_)


def _threads() -> str:
    count = n_threads()
    return f"{count} thread{'s' if count > 1 else ''}"
