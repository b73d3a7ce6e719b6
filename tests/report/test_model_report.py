"""The report on a fitted model: its numbers against numpy's, its pictures against the model."""

import html
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from kernelatoms import KSVD, MOD, ClassDictionaryClassifier, KernelLinearizer, nystrom_error
from kernelatoms.report import coding, model_sections, write_model_report
from kernelatoms.report.anatomy import dissect
from kernelatoms.report.sections.training import measure_map
from kernelatoms.report.words import percent

pytestmark = pytest.mark.filterwarnings("error")


def quick(n_atoms=8, n_nonzero_coefs=2, learner=KSVD):
    return learner(n_atoms=n_atoms, n_nonzero_coefs=n_nonzero_coefs, max_iter=4, random_state=0)


def classifier(n_atoms=8, n_nonzero_coefs=2):
    return ClassDictionaryClassifier(quick(n_atoms, n_nonzero_coefs), random_state=0)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600], X[600:900], y[600:900]


@pytest.fixture(scope="module")
def few(digits):
    """Digits of three classes: pages of few classes have few figures, and those few axes."""
    X, y, new, truth = digits
    return X[y < 3], y[y < 3], new[truth < 3], truth[truth < 3]


@pytest.fixture(scope="module")
def wine():
    data = load_wine()
    names = np.array(["red", "rosé", "white"])[data.target]
    train = np.arange(len(names)) % 2 == 0
    return data.data[train], names[train], data.data[~train], names[~train]


@pytest.fixture(scope="module")
def wine_model(wine):
    model = make_pipeline(StandardScaler(), Normalizer(), classifier())
    return model.fit(*wine[:2])


@pytest.fixture(scope="module")
def lkdl(digits):
    model = make_pipeline(
        Normalizer(),
        KernelLinearizer("poly", degree=2, gamma=1, coef0=0, n_landmarks=100, random_state=0),
        classifier(),
    )
    return model.fit(*digits[:2])


@pytest.fixture(scope="module")
def lkdl_sections(lkdl, digits):
    """The sections on a pipeline with a kernel map, made once: drawing takes most of the time."""
    facts = {"seed": 7, "file": "/a/long/name" * 5}
    return model_sections(lkdl, *digits[2:], image_shape=(8, 8), facts=facts)


@pytest.fixture(scope="module")
def wine_sections(wine_model, wine):
    return model_sections(wine_model, *wine[2:])


def by_title(sections):
    return {section.title: section for section in sections}


def words_of(sections):
    """Return every word of the sections: texts, tables, captions, alternatives."""
    parts = []
    for section in sections:
        parts += [section.title, section.text]
        if section.table is not None:
            parts += [section.table.caption, *section.table.header]
            parts += [cell for row in section.table.rows for cell in row]
        parts += [word for picture in section.pictures for word in (picture.caption, picture.alt)]
    return "\n".join(parts)


def shares_left(model, rows):
    """Return |x - D w|^2 / |x|^2 of every row over every dictionary, by public names only."""
    last = model[-1] if hasattr(model, "steps") else model
    signals = np.asarray(model[:-1].transform(rows) if hasattr(model, "steps") else rows)
    learners = last.dictionaries_ if hasattr(last, "dictionaries_") else [last]
    left = [
        ((signals - learner.transform(signals) @ learner.components_) ** 2).sum(axis=1)
        for learner in learners
    ]
    return np.array(left).T / (signals**2).sum(axis=1, keepdims=True)


def confusion_on(picture):
    (ax,) = picture.figure.axes
    return {
        (int(text.get_position()[1]), int(text.get_position()[0])): int(text.get_text())
        for text in ax.texts
    }


# The page as a whole


def test_page_is_whole_and_self_contained(lkdl, digits, tmp_path):
    options = {"facts": {"data": "digits <600..900>"}, "timing": {"fit": 1.5}}
    path = tmp_path / "report.html"
    assert path == write_model_report(path, lkdl, *digits[2:], image_shape=(8, 8), **options)
    text = path.read_text(encoding="utf-8")
    assert len(text) < 3_000_000
    assert "://" not in text
    assert "<script" not in text
    assert re.findall("<h2>(.*?)</h2>", text) == [
        "What was fitted",
        "Convergence and kernel map",
        "Atoms and codes",
        "Atoms one by one",
        "Accuracy",
        "Worst mistakes",
        "Time",
    ]
    images = re.findall(r"<img [^>]*>", text)
    alts = [html.unescape(found) for found in re.findall(r'alt="(.*?)"', text)]
    assert len(images) == len(alts) == len(set(alts)) == 16
    assert "digits &lt;600..900&gt;" in text
    assert "<h1>Class dictionaries under the poly kernel: what was learned</h1>" in text
    score = percent(lkdl.score(digits[2], digits[3]))
    assert f'<p class="lead">{round(300 * lkdl.score(*digits[2:]))} of 300 labelled rows' in text
    assert f"are classified right: {score} (95% interval" in text


def test_title_is_the_callers(lkdl, tmp_path):
    path = write_model_report(tmp_path / "x.html", lkdl, title="Mine & yours")
    assert "<h1>Mine &amp; yours</h1>" in path.read_text(encoding="utf-8")


def test_steps_settings_and_sizes(lkdl, lkdl_sections):
    section = lkdl_sections[0]
    assert "1. Normalizer as it comes." in section.text
    assert (
        "2. KernelLinearizer with kernel 'poly', gamma 1, degree 2, coef0 0, n_landmarks 100 and "
        "random_state 0." in section.text
    )
    assert "dictionary (KSVD with n_atoms 8, n_nonzero_coefs 2, max_iter 4" in section.text
    assert "Classes: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9." in section.text
    assert "file: /a/long/name" in section.text  # too long for a cell on a phone
    assert [list(row) for row in section.table.rows] == [
        ["features", "64"],
        ["landmarks", "100"],
        ["components of the kernel map", str(lkdl[1].n_components_)],
        ["classes", "10"],
        ["atoms per class", "8"],
        ["nonzeros per code, at most", "2"],
        ["rows in this report", "300"],
        ["seed", "7"],
    ]


def test_without_rows_nothing_is_said_about_rows(lkdl):
    titles = list(by_title(model_sections(lkdl, image_shape=(8, 8))))
    assert titles == ["What was fitted", "Convergence and kernel map", "Atoms", "Atoms one by one"]


def test_timing_holds_what_was_recorded_and_measured(wine_model, wine, monkeypatch):
    monkeypatch.setattr(coding, "_TIMED_ROWS", 50)
    monkeypatch.setenv("KERNELATOMS_NUM_THREADS", "3")
    section = model_sections(wine_model, wine[2], timing={"map": 0.25, "learn": 12})[-1]
    assert section.title == "Time"
    assert [list(row) for row in section.table.rows[:2]] == [["map", "0.25 s"], ["learn", "12 s"]]
    name, measured = section.table.rows[2]
    assert name == "predict, per row"
    assert 0 < float(measured.removesuffix(" µs")) < 1e6
    assert "predict on 50 rows of 89, evenly spread, at once" in section.text
    assert "on 3 threads" in section.text


# Learning


def test_convergence_is_relative_to_the_first_pass(lkdl, lkdl_sections):
    section = by_title(lkdl_sections)["Convergence and kernel map"]
    total = np.zeros(4)
    for learner in lkdl[-1].dictionaries_:
        total += np.append(learner.objective_, [learner.objective_[-1]] * (4 - learner.n_iter_))
    # Ten classes are too many for one plot: each has a small one, beside all together.
    plots = [ax for ax in section.pictures[0].figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in plots] == [str(c) for c in range(10)]
    for ax, learner in zip(plots, lkdl[-1].dictionaries_, strict=True):
        together, own = ax.lines
        np.testing.assert_allclose(together.get_ydata(), 100 * total / total[0])
        np.testing.assert_allclose(
            own.get_ydata(), 100 * learner.objective_ / learner.objective_[0]
        )
    assert f"is at {percent(total[-1] / total[0])} of the first" in section.pictures[0].caption


@pytest.mark.parametrize(
    ("max_iter", "tol", "words"),
    [
        (3, 0.0, "Learning used all 3 passes allowed; it had not converged, so more may lower it."),
        (30, 0.5, "Learning stopped early, after 4 passes of at most 30: three passes together"),
        (4, 0.5, "Learning used all 4 passes allowed; it had converged."),
        (1, 0.0, "One pass was recorded: there is no curve to draw."),
    ],
)
def test_words_say_how_learning_ended(max_iter, tol, words, digits):
    model = KSVD(16, n_nonzero_coefs=2, max_iter=max_iter, tol=tol, random_state=0).fit(digits[0])
    section = by_title(model_sections(model))["Convergence"]
    assert words in section.text
    assert len(section.pictures) == (max_iter > 1)


def test_batches_are_no_early_stop(digits):
    model = quick(16, 2, MOD).partial_fit(digits[0])
    text = by_title(model_sections(model))["Convergence"].text
    assert "learned in batches" in text
    assert "stopped early" not in text


def test_data_without_error_have_no_curve():
    X = np.tile([[2.0, 0.0, 0.0]], (5, 1))
    model = KSVD(2, n_nonzero_coefs=1, max_iter=2, random_state=0).fit(X)
    section = by_title(model_sections(model, X))["Convergence"]
    assert "The first pass left nothing over" in section.text
    assert section.pictures == []


def test_kernel_map_states_its_error_and_spectrum(lkdl, lkdl_sections, digits, monkeypatch):
    seen = lkdl[0].transform(digits[2])
    section = by_title(lkdl_sections)["Convergence and kernel map"]
    error = percent(nystrom_error(lkdl[1], seen))
    assert "On all 300 rows, inner products of virtual samples differ" in section.text
    assert f"from the kernel matrix by {error} of its Frobenius norm." in section.text
    values = lkdl[1].eigenvalues_
    line = section.pictures[1].figure.axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), values / values[0])
    shares = np.cumsum(values) / values.sum()
    half, most = np.flatnonzero(shares >= 0.5)[0] + 1, np.flatnonzero(shares >= 0.9)[0] + 1
    assert f"lies in {half} of {len(values)} components, nine tenths in {most}." in (
        section.pictures[1].caption
    )
    monkeypatch.setattr("kernelatoms.report.sections.training._NYSTROM_ROWS", 100)
    text = measure_map(dissect(lkdl), digits[2])
    some = seen[np.linspace(0, 299, 100).round().astype(int)]
    assert "On 100 of the 300 rows, evenly spread," in text
    assert percent(nystrom_error(lkdl[1], some)) in text


def test_a_map_alone(digits, tmp_path):
    model = KernelLinearizer(gamma=1e-3, n_landmarks=50, random_state=0).fit(digits[0])
    sections = model_sections(model, digits[2])
    assert list(by_title(sections)) == ["What was fitted", "Kernel map", "Time"]
    assert sections[-1].table.rows[0][0] == "transform, per row"
    path = write_model_report(tmp_path / "map.html", make_pipeline(Normalizer(), model), digits[2])
    assert "inner products of virtual samples differ" in path.read_text(encoding="utf-8")


def test_precomputed_kernels_have_codes_but_no_pictures_of_atoms(digits):
    K = digits[0] @ digits[0].T / 1e4
    kernel_map = KernelLinearizer("precomputed", n_landmarks=60, random_state=0)
    model = make_pipeline(kernel_map, classifier()).fit(K, digits[1])
    sections = by_title(model_sections(model, K, digits[1]))
    assert "Codes" in sections
    assert len(sections["Codes"].pictures) == 2
    assert "On all 600 rows" in sections["Convergence and kernel map"].text
    mistakes = sections["Worst mistakes"].pictures
    assert len(mistakes) == min(6, (model.predict(K) != digits[1]).sum())
    assert len(mistakes[0].figure.axes) == 2  # the codes; there is no row to draw
    new = model_sections(model, digits[2] @ digits[0].T / 1e4)
    assert "differ from the kernel matrix" not in words_of(new)  # k(new, new) is not known


# Atoms


def drawn_images(picture):
    (ax,) = picture.figure.axes
    return np.array([np.asarray(image.get_array()).ravel() for image in ax.images])


def scaled(atoms):
    """Return atoms at largest value +1."""
    peaks = np.take_along_axis(atoms, np.abs(atoms).argmax(axis=1)[:, None], axis=1)
    return atoms / peaks


def test_most_used_atoms_are_drawn(digits):
    model = quick(80, 3).fit(digits[0])
    uses = (model.transform(digits[2]).toarray() != 0).sum(axis=0)
    often = sorted(range(80), key=lambda atom: (-uses[atom], atom))
    section = by_title(model_sections(model, digits[2], image_shape=(8, 8)))["Atoms and codes"]
    np.testing.assert_allclose(
        drawn_images(section.pictures[0]), scaled(model.components_)[often[:64]], atol=1e-12
    )
    assert section.pictures[0].caption == "64 of 80 atoms, those that most rows use."
    first = by_title(model_sections(model, image_shape=(8, 8)))["Atoms"].pictures[0]
    np.testing.assert_allclose(drawn_images(first), scaled(model.components_)[:64], atol=1e-12)
    curve = section.pictures[2].figure.axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(curve, np.sort(uses)[::-1] / 300)
    assert f"{np.count_nonzero(uses)} of 80 atoms are used by at least one row" in (
        section.pictures[2].caption
    )


def test_atoms_go_back_through_scalers_and_kernel_map(digits):
    X = digits[0] + np.random.default_rng(0).normal(size=digits[0].shape)  # no constant pixels
    scaler, kernel_map = StandardScaler(), KernelLinearizer(gamma=0.01, n_landmarks=60)
    model = make_pipeline(scaler, Normalizer(), kernel_map.set_params(random_state=0), quick())
    model.fit(X)
    section = by_title(model_sections(model, image_shape=(8, 8)))["Atoms"]
    expected = model[-1].components_ @ kernel_map.preimage_coef_ * scaler.scale_
    np.testing.assert_allclose(drawn_images(section.pictures[0]), scaled(expected), atol=1e-9)
    assert "pre-images" in section.text
    assert "Values are those after Normalizer." in section.text
    assert "differences from the centre" in section.text


def test_tables_keep_the_units_of_their_scaler(wine):
    model = make_pipeline(StandardScaler(), quick()).fit(wine[0])
    section = by_title(model_sections(model))["Atoms"]
    ax = section.pictures[0].figure.axes[0]
    np.testing.assert_allclose(ax.images[0].get_array(), scaled(model[-1].components_).T)
    assert "Values are those after StandardScaler." in section.text


def test_a_rotation_is_undone_in_tables_too(wine):
    model = make_pipeline(PCA(5, random_state=0), quick(6, 1)).fit(wine[0])
    ax = by_title(model_sections(model))["Atoms"].pictures[0].figure.axes[0]
    expected = model[-1].components_ @ model[0].components_
    np.testing.assert_allclose(ax.images[0].get_array(), scaled(expected).T)


def test_inverses_that_bend_sums_are_left_alone(digits):
    bend = FunctionTransformer(np.log1p, np.expm1)
    model = make_pipeline(bend, quick()).fit(digits[0])
    section = by_title(model_sections(model, image_shape=(8, 8)))["Atoms"]
    np.testing.assert_allclose(
        drawn_images(section.pictures[0]), scaled(model[-1].components_), atol=1e-12
    )
    assert "Values are those after FunctionTransformer." in section.text


def test_columns_that_cannot_be_traced_back_are_numbered(wine):
    names = load_wine().feature_names
    model = make_pipeline(PolynomialFeatures(2), Normalizer(), quick()).fit(wine[0][:, :4])
    section = by_title(
        model_sections(model, wine[2][:, :4], image_shape=(2, 2), feature_names=names[:4])
    )["Atoms and codes"]
    labels = section.pictures[0].figure.axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == [f"feature {i}" for i in range(15)]
    assert "Values are those after PolynomialFeatures and Normalizer." in section.text


def test_names_come_from_the_caller_or_the_data_frame(wine):
    frame = pd.DataFrame(wine[0], columns=load_wine().feature_names)
    rows = pd.DataFrame(wine[2], columns=load_wine().feature_names)
    model = make_pipeline(StandardScaler(), classifier()).fit(frame, wine[1])

    def names(**options):
        picture = by_title(model_sections(model, rows, **options))["Atoms and codes"]
        return [label.get_text() for label in picture.pictures[0].figure.axes[0].get_yticklabels()]

    assert names()[:2] == ["alcohol", "malic_acid"]
    mine = [f"${i}$ of _{i}_" for i in range(13)]
    assert names(feature_names=mine)[1] == r"\$1\$ of _1_"


def test_a_row_of_the_grid_for_each_class(lkdl, lkdl_sections, digits):
    picture = by_title(lkdl_sections)["Atoms and codes"]
    labels = picture.pictures[0].figure.axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == [str(c) for c in range(10)]
    # The fourth row: class 3, coded over its dictionary where that was the answer.
    rows = digits[2][lkdl.predict(digits[2]) == 3]
    learner = lkdl[-1].dictionaries_[3]
    uses = (learner.transform(lkdl[:-1].transform(rows)).toarray() != 0).sum(axis=0)
    order = sorted(range(8), key=lambda atom: (-uses[atom], atom))
    expected = scaled(learner.components_[order] @ lkdl[1].preimage_coef_)
    np.testing.assert_allclose(drawn_images(picture.pictures[0])[24:32], expected, atol=1e-9)


def test_classes_with_fewer_atoms_leave_gaps(digits):
    rare = np.concatenate([np.flatnonzero(digits[1] == 0)[:30], np.flatnonzero(digits[1] == 1)[:3]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the learner says itself that it clips
        model = classifier().fit(digits[0][rare], digits[1][rare])
    picture = by_title(model_sections(model, image_shape=(8, 8)))["Atoms"].pictures[0]
    images = picture.figure.axes[0].images
    filled = [not np.ma.getmaskarray(image.get_array()).any() for image in images]
    assert filled == [True] * 8 + [True] * 3 + [False] * 5


# Codes


def test_shares_left_over_and_the_typical_row(digits):
    model = quick(20, 3).fit(digits[0])
    shares = shares_left(model, digits[2])[:, 0]
    section = by_title(model_sections(model, digits[2], image_shape=(8, 8)))["Atoms and codes"]
    example, _, histogram = section.pictures[1:]
    low, middle, high = np.percentile(shares, [5, 50, 95])
    assert f"at most {percent(middle)} of their energy" in histogram.caption
    assert f"between {percent(low)} and {percent(high)}" in histogram.caption
    assert sum(bar.get_height() for bar in histogram.figure.axes[0].patches) == 300
    row = int(re.match(r"Row (\d+), ", example.caption)[1])
    assert abs(shares[row] - middle) == pytest.approx(np.abs(shares - middle).min())
    assert percent(shares[row]) in example.caption
    signal, approximation = (ax.images[0].get_array() for ax in example.figure.axes[:2])
    np.testing.assert_allclose(np.ravel(signal), digits[2][row])
    code = model.transform(digits[2][[row]])
    np.testing.assert_allclose(np.ravel(approximation), (code @ model.components_)[0])


def test_blocks_do_not_change_numbers(lkdl, digits, monkeypatch):
    whole = coding.code_rows(dissect(lkdl), digits[2], digits[3])
    monkeypatch.setattr(coding, "_BLOCK_ROWS", 7)
    blocks = coding.code_rows(dissect(lkdl), digits[2], digits[3])
    for name in ("energy", "least", "own", "other"):
        np.testing.assert_allclose(getattr(blocks, name), getattr(whole, name), atol=1e-9)
    np.testing.assert_array_equal(blocks.chosen, whole.chosen)
    np.testing.assert_array_equal(np.concatenate(blocks.uses), np.concatenate(whole.uses))


# Answers


def test_answers_against_numpy(wine_model, wine_sections, wine):
    X, y = wine[2:]
    sections = by_title(wine_sections)
    shares = shares_left(wine_model, X)
    classes = wine_model.classes_
    truth = np.array([list(classes).index(label) for label in y])
    answers = shares.argmin(axis=1)
    right = answers == truth
    often = max((y == label).mean() for label in classes)
    text = sections["Accuracy"].text
    assert (
        f"{right.sum()} of {len(y)} labelled rows are classified right: {percent(right.mean())}"
        in text
    )
    assert f'Always answering "{max(classes, key=list(y).count)}", the most frequent' in text
    assert f"would be right for {percent(often)}." in text

    expected = {}
    for pair in zip(truth, answers, strict=True):
        expected[pair] = expected.get(pair, 0) + 1
    assert confusion_on(sections["Accuracy"].pictures[0]) == expected
    assert sections["Accuracy"].pictures[0].caption.startswith(f"{(~right).sum()} of {len(y)}")

    own = shares[np.arange(len(y)), truth]
    others = np.where(np.arange(3) == truth[:, None], np.inf, shares).min(axis=1)
    assert f"is {percent(np.median(own))} by the row's own" in sections["Accuracy"].pictures[1].alt
    assert f"{percent(np.median(others))} by the best other" in sections["Accuracy"].pictures[1].alt

    wrong = np.flatnonzero(~right)
    assert len(wrong) > 6
    worst = sorted(wrong, key=lambda row: others[row] - own[row])[:6]
    assert [list(row) for row in sections["Worst mistakes"].table.rows] == [
        [str(row), y[row], classes[answers[row]], percent(own[row]), percent(others[row])]
        for row in worst
    ]
    assert f"The 6 of {len(wrong)} mistakes" in sections["Worst mistakes"].text


def test_medians_of_every_class_are_drawn(wine_model, wine_sections, wine):
    X, y = wine[2:]
    ax = by_title(wine_sections)["Accuracy"].pictures[1].figure.axes[0]
    shares = shares_left(wine_model, X)
    for c, label in enumerate(wine_model.classes_):
        mine = shares[y == label]
        rest = np.delete(mine, c, axis=1).min(axis=1)
        for line, values in zip(ax.lines, (mine[:, c], rest), strict=True):
            assert line.get_xdata()[c] == pytest.approx(np.median(values))
            assert round(line.get_ydata()[c]) == c
        assert ax.get_yticklabels()[c].get_text() == label


def test_codes_of_a_mistake_are_those_of_both_dictionaries(lkdl, lkdl_sections, digits):
    section = by_title(lkdl_sections)["Worst mistakes"]
    row, true, taken = (int(cell) for cell in section.table.rows[0][:3])
    signal = lkdl[:-1].transform(digits[2][[row]])
    axes = section.pictures[0].figure.axes
    assert len(axes) == 5
    np.testing.assert_allclose(
        np.ravel(axes[0].images[0].get_array()), digits[2][row] / np.linalg.norm(digits[2][row])
    )
    for c, image, stems in ((true, axes[1], axes[3]), (taken, axes[2], axes[4])):
        learner = lkdl[-1].dictionaries_[c]
        code = learner.transform(signal)
        pixels = (code @ learner.components_) @ lkdl[1].preimage_coef_
        np.testing.assert_allclose(image.images[0].get_array(), pixels.reshape(8, 8), atol=1e-9)
        np.testing.assert_allclose(stems.lines[1].get_xdata(), code.indices)
        np.testing.assert_allclose(stems.lines[1].get_ydata(), code.data)


def test_no_mistakes_shows_the_closest_calls(digits):
    X, y = digits[0][:60], digits[1][:60]
    keep = y < 2
    model = make_pipeline(Normalizer(), classifier(5, 3)).fit(X[keep], y[keep])
    assert model.score(X[keep], y[keep]) == 1
    sections = by_title(model_sections(model, X[keep], y[keep]))
    section = sections["Closest calls"]
    shares = shares_left(model, X[keep])
    own, other = np.where(y[keep] == 0, shares.T, shares.T[::-1])
    nearest = np.argsort(other - own)[:6]
    assert [int(row[0]) for row in section.table.rows] == nearest.tolist()
    assert "no mistakes among rows" in section.text
    assert "classified right: 100.0% (95% interval" in sections["Accuracy"].text
    assert "to 100.0%)" in sections["Accuracy"].text


def test_unknown_labels_are_mistakes_and_said_so(wine_model, wine):
    X, y = wine[2], wine[3].astype(object)
    right = wine_model.predict(X) == y
    y[:4] = ["blue", "blue", None, "green"]
    sections = by_title(model_sections(wine_model, X, y))
    text = sections["Accuracy"].text
    assert f"{right[4:].sum()} of {len(y)} labelled rows are classified right" in text
    assert (
        "4 rows with labels that the model never met (blue: 2, None: 1, green: 1) count as" in text
    )
    assert sum(confusion_on(sections["Accuracy"].pictures[0]).values()) == len(y) - 4
    assert not {"0", "1", "2", "3"} & {row[0] for row in sections["Worst mistakes"].table.rows}
    none = by_title(model_sections(wine_model, X, ["blue"] * len(y)))
    assert "0 of 89 labelled rows are classified right: 0.0%" in none["Accuracy"].text
    assert "Worst mistakes" not in none
    assert none["Accuracy"].pictures == []


def test_labels_without_classifier_are_not_used(digits):
    sections = model_sections(quick().fit(digits[0]), digits[2], digits[3])
    assert "this model does not classify: they are not used" in sections[0].text
    assert "Accuracy" not in by_title(sections)


def test_many_classes_give_a_table_of_pairs(rng):
    n_classes, n_features = 25, 40
    bases = rng.normal(size=(n_classes, 2, n_features))
    y = np.tile(np.arange(n_classes), 12)
    X = np.einsum("nk,nkf->nf", rng.normal(size=(len(y), 2)), bases[y])
    X += 0.7 * rng.normal(size=X.shape)
    names = np.array([f"class {c:02d} with a name that is too long for a cell" for c in range(25)])
    model = classifier(3, 1).fit(X[:150], names[y[:150]])
    sections = by_title(model_sections(model, X[150:], names[y[150:]]))
    section = sections["Accuracy"]
    answers = shares_left(model, X[150:]).argmin(axis=1)
    counts = np.zeros((25, 25), int)
    for pair in zip(y[150:], answers, strict=True):
        counts[pair] += 1
    np.fill_diagonal(counts, 0)
    pairs = sorted(np.argwhere(counts).tolist(), key=lambda pair: -counts[tuple(pair)])
    all_classes, some, *every = section.folds
    expected = [
        (f"class {i:02d}", f"class {j:02d}", f"{counts[i, j]} of 6 ({percent(counts[i, j] / 6)})")
        for i, j in pairs
    ]
    found = [(row[0][:8], row[1][:8], row[2]) for row in some.content.rows]
    assert some.is_open
    assert found == expected[:20]
    assert some.summary == f"The most frequent {len(found)} of {len(pairs)} confusions that occur"
    if len(pairs) > 20:  # the whole list is folded
        (whole,) = every
        assert whole.summary == f"All {len(pairs)} confusions"
        assert not whole.is_open
        assert len(whole.content.rows) == len(pairs)
    assert all(len(row[0]) <= 32 for row in section.table.rows)
    # The twelve classes of which the fewest rows are right, and all of them in a fold.
    right = 6 - counts.sum(axis=1)
    worst = np.argsort(right, kind="stable")[:12]
    assert [(row[0][:8], row[1], row[2]) for row in section.table.rows] == [
        (f"class {c:02d}", "6", percent(right[c] / 6)) for c in worst
    ]
    assert section.table.caption.startswith("The 12 least accurate of 25 classes.")
    assert (all_classes.summary, len(all_classes.content.rows)) == ("All 25 classes", 25)
    assert len(section.pictures) == 1
    assert len(section.pictures[0].figure.axes[0].get_yticks()) == 20
    assert "20 least accurate of 25 classes are drawn" in section.pictures[0].caption
    assert "the first 12 of 25 classes" in sections["Atoms and codes"].pictures[0].caption
    assert "class 19" in sections["What was fitted"].text
    assert "class 20" not in sections["What was fitted"].text
    assert "(the first 20 of 25)" in sections["What was fitted"].text
    (fold,) = sections["What was fitted"].folds
    assert fold.summary == "All 25 classes"
    assert "class 24" in fold.content


# Odd data


def test_imputed_rows_of_two_classes_in_single_precision(wine, tmp_path):
    X = wine[0].astype(np.float32)
    X[::7, 2] = np.nan
    y = np.where(wine[1] == "red", "_$yes$", "<no>")
    kernel_map = KernelLinearizer(gamma=0.02, random_state=0)
    model = make_pipeline(SimpleImputer(), StandardScaler(), kernel_map, classifier()).fit(X, y)
    path = write_model_report(tmp_path / "x.html", model, X, y)
    text = path.read_text(encoding="utf-8")
    assert "&lt;no&gt;" in text
    assert percent(model.score(X, y)) in text
    assert "SimpleImputer" in text


@pytest.mark.parametrize("mapped", [False, True])
def test_rows_with_missing_values(few, mapped):
    X, y = few[2][:60].copy(), few[3][:60]
    X[:20, ::5] = np.nan
    steps = [KernelLinearizer("poly", degree=2, gamma=1e-3, random_state=0)] if mapped else []
    model = make_pipeline(*steps, classifier()).fit(*few[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # estimates from few pixels are said to be uncertain
        sections = model_sections(model, X, y, image_shape=(8, 8))
        right = model.score(X, y)
        model_sections(model, np.where(np.arange(64) % 3, X, np.nan), y)  # no row is complete
    assert percent(right) in words_of(sections)
    assert "nan" not in words_of(sections)
    if mapped:
        assert "On 40 of the 60 rows, evenly spread and complete" in words_of(sections)


def test_rows_without_energy(few):
    X, y = few[2][:40].copy(), few[3][:40]
    X[[3, 5]] = 0
    X[7] = 4
    model = classifier().fit(*few[:2])
    sections = model_sections(model, X, y, image_shape=(8, 8))
    assert "2 rows of energy 0 have nothing to leave over" in words_of(sections)
    assert "nan" not in words_of(sections)
    histogram = by_title(sections)["Atoms and codes"].pictures[3]
    assert "Half of 38 rows" in histogram.caption
    nothing = model_sections(model, np.zeros((5, 64)), y[:5])
    assert "5 rows of energy 0" in words_of(nothing)
    only = model_sections(quick().fit(few[0]), np.zeros((1, 64)))
    assert "1 row of energy 0 has nothing to leave over" in words_of(only)


def test_pipelines_of_any_make(few):
    X, y = few[0][:100], few[1][:100]
    after = make_pipeline(
        make_pipeline("passthrough", Normalizer()),
        KernelLinearizer(lambda A, B: (A @ B.T) ** 2, n_landmarks=40, random_state=0),
        Normalizer(),
        classifier(),
    ).fit(X, y)
    section = by_title(model_sections(after, X, image_shape=(8, 8)))["Atoms and codes"]
    assert len(section.pictures[0].figure.axes[0].images) == 24
    svd = make_pipeline(TruncatedSVD(10, random_state=0), classifier())
    rows = scipy.sparse.csr_array(X)
    svd.fit(rows, y)
    sections = by_title(model_sections(svd, rows, y, image_shape=(8, 8)))
    assert percent(svd.score(rows, y)) in sections["Accuracy"].text
    expected = scaled(svd[-1].dictionaries_[0].components_ @ svd[0].components_)
    drawn = drawn_images(by_title(model_sections(svd, image_shape=(8, 8)))["Atoms"].pictures[0])
    np.testing.assert_allclose(drawn[:8], expected, atol=1e-9)
    frames = make_pipeline(StandardScaler(), classifier()).set_output(transform="pandas")
    frames.fit(pd.DataFrame(X).rename(columns=str), y)
    assert model_sections(frames, pd.DataFrame(X[:40]).rename(columns=str), pd.Series(y[:40]))
    one = by_title(model_sections(svd, X[:1].tolist(), y[:1].tolist(), image_shape=(8, 8)))
    assert "of 1 labelled rows are classified right" in one["Accuracy"].text


def test_one_feature(rng, tmp_path):
    X = rng.normal(size=(20, 1))
    model = KSVD(2, n_nonzero_coefs=1, max_iter=2, random_state=0).fit(X)
    path = write_model_report(tmp_path / "x.html", model, X, feature_names=["size"])
    assert "2 of 2 atoms" in path.read_text(encoding="utf-8")


def test_thousands_of_features_and_many_classes(rng, tmp_path):
    y = np.repeat(np.arange(100), 4)
    X = rng.normal(size=(100, 8064)).astype(np.float32)[y]
    X += 0.3 * rng.normal(size=X.shape).astype(np.float32)
    model = make_pipeline(Normalizer(), classifier(2, 1)).fit(X, y)
    path = write_model_report(tmp_path / "x.html", model, X[::20], y[::20])
    text = path.read_text(encoding="utf-8")
    assert len(text) < 3_000_000
    assert "the first 12 of 100 classes" in text


# Arguments


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"image_shape": (8, 9)}, ValueError, r"image_shape=\(8, 9\) makes 72 pixels, but .* 64"),
        ({"image_shape": 64}, ValueError, "image_shape must be"),
        ({"image_shape": (8, 8, 1, 1)}, ValueError, "image_shape must be"),
        ({"image_shape": (8.0, 8.0)}, TypeError, "image_shape's sides must be a whole number"),
        ({"image_shape": (-8, -8)}, ValueError, "image_shape's sides must be at least 1"),
        ({"X": np.ones((3, 63))}, ValueError, "X must have the 64 columns that the model learned"),
        ({"X": np.ones(64)}, ValueError, "X must be a table of at least one row"),
        ({"X": np.ones((0, 64))}, ValueError, "X must be a table of at least one row"),
        (
            {"X": np.ones((3, 64)), "y": [1, 2]},
            ValueError,
            "y must hold one label for each of the 3",
        ),
        ({"y": [1, 2]}, ValueError, "y needs the rows it labels"),
        ({"feature_names": ["a", "b"]}, ValueError, "feature_names must name each of the 64"),
        ({"feature_names": "ab"}, TypeError, "feature_names must be a list of names"),
        ({"facts": "none"}, TypeError, "facts must be a mapping"),
        ({"timing": [1]}, TypeError, "timing must be a mapping"),
        ({"timing": {"fit": "long"}}, TypeError, r"timing\['fit'\] must be a number at least 0"),
        ({"timing": {"fit": -1}}, ValueError, r"timing\['fit'\] must be at least 0"),
    ],
)
def test_bad_arguments_are_named_before_work(options, error, message, lkdl, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelatoms.report.model.code_rows", lambda *_: pytest.fail("work began"))
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(error, match=message):
        write_model_report(path, lkdl, **options)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_models_that_cannot_be_reported_on(digits):
    X, y = digits[:2]
    with pytest.raises(NotFittedError, match=r"model must be fitted .* its KSVD is not"):
        model_sections(make_pipeline(Normalizer(), KSVD()))
    with pytest.raises(NotFittedError, match="its KernelLinearizer is not"):
        model_sections(make_pipeline(KernelLinearizer(), quick().fit(X)))
    with pytest.raises(TypeError, match=r"model must be a fitted KSVD, MOD, .* ends in Logistic"):
        model_sections(make_pipeline(Normalizer(), LogisticRegression()).fit(X[:50], y[:50]))
    with pytest.raises(TypeError, match="got None"):
        model_sections(None)
    search = GridSearchCV(classifier(), {"dictionary__n_atoms": [4]}, cv=2).fit(X[:200], y[:200])
    with pytest.raises(TypeError, match="best_estimator_: pass that"):
        model_sections(search)
    assert model_sections(search.best_estimator_)


def test_a_path_that_cannot_be_written_is_refused_before_work(lkdl, digits, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelatoms.report.model.code_rows", lambda *_: pytest.fail("work began"))
    with pytest.raises(OSError, match="does not exist; make it first"):
        write_model_report(tmp_path / "missing" / "x.html", lkdl, digits[2])


# Rows that are no images


def test_named_features_are_bars_under_the_sum(wine_model, wine_sections, wine):
    section = by_title(wine_sections)["Atoms and codes"]
    picture = section.pictures[1]
    row = int(re.match(r"Row (\d+), ", picture.caption)[1])
    seen = wine_model[:-1].transform(wine[2][[row]])
    learner = wine_model[-1].dictionaries_[shares_left(wine_model, wine[2])[row].argmin()]
    code = learner.transform(seen)
    ax, stems = picture.figure.axes
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], seen[0])
    np.testing.assert_allclose(ax.lines[0].get_xdata(), (code @ learner.components_)[0])
    np.testing.assert_allclose(stems.lines[1].get_ydata(), code.data)


def test_of_many_named_features_those_that_tell_the_two_sums_apart_are_drawn(rng):
    X = rng.normal(size=(60, 20))
    y = np.arange(60) % 2
    model = classifier(5, 1).fit(X, y)
    section = by_title(model_sections(model, X, 1 - y, feature_names=list("abcdefghijklmnopqrst")))
    section = section["Worst mistakes"]
    row = int(section.table.rows[0][0])
    sums = [
        np.ravel(learner.transform(X[[row]]) @ learner.components_)
        for learner in model.dictionaries_
    ]
    apart = sorted(np.argsort(-np.abs(sums[0] - sums[1]))[:12])
    ax = section.pictures[0].figure.axes[0]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["abcdefghijklmnopqrst"[i] for i in apart]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], X[row][apart])
    assert "12 features on which the two sums differ most" in section.pictures[0].caption


def test_many_features_are_curves(rng):
    X = rng.normal(size=(50, 5000))
    model = KSVD(3, n_nonzero_coefs=2, max_iter=1, random_state=0).fit(X)
    atoms, example = by_title(model_sections(model, X))["Atoms and codes"].pictures[:2]
    curves = [line for line in atoms.figure.axes[0].lines if len(line.get_xdata()) > 2]
    assert len(curves) == 3
    for line in curves:  # 0.42 of a cell high at its largest value, which is never left out
        y = line.get_ydata()
        assert np.abs(y - np.floor(y) - 0.5).max() == pytest.approx(0.42)
    row = int(re.match(r"Row (\d+), ", example.caption)[1])
    drawn = example.figure.axes[0].lines[0].get_ydata()
    assert len(drawn) == 1200
    assert (drawn.min(), drawn.max()) == (X[row].min(), X[row].max())
