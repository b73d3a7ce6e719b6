"""Contact sheets: what is drawn is the model's, numbers under it are those of ``atom_numbers``."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from draws import later
from kernelatoms import (
    KSCDL,
    KSVD,
    ClassDictionaryClassifier,
    KernelKSVD,
    LCKSVDClassifier,
    atom_numbers,
    atom_preimages,
    make_lkdl,
)
from kernelatoms.report import atoms_figure, contact_sheet, model_sections
from kernelatoms.report.figures.images import as_panel, check_image_shape, panel_shape

GREEDY = {"n_nonzero_coefs": 3, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300], X[300:420] / 16, y[300:420]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def images(figure):
    return np.array([image.get_array() for image in figure.axes[0].images])


def scaled(rows):
    return rows / np.abs(rows).max(axis=1, keepdims=True)


def section_of(model, *data, **options):
    found = model_sections(model, *data, **options)
    return next(section for section in found if section.title == "Atoms one by one")


def test_atoms_by_energy_with_their_numbers(digits):
    X, _, new, labels = digits
    model = KSVD(40, **GREEDY).fit(X)
    figure = contact_sheet(model, new, labels, image_shape=(8, 8))
    numbers = atom_numbers(model, new, labels)
    order = np.argsort(-numbers.energy, kind="stable")[:30]
    atoms = model.components_[order]
    largest = atoms[np.arange(30), np.abs(atoms).argmax(axis=1)]
    expected = scaled(atoms * np.sign(largest)[:, None]).reshape(-1, 8, 8)
    np.testing.assert_allclose(images(figure), expected, atol=1e-12)
    words = texts(figure)
    for place, j in enumerate(order):
        assert words[4 * place : 4 * place + 4] == [
            f"atom {j}",
            f"energy {100 * numbers.energy[j]:.1f}%",
            f"coherence {numbers.coherence[j]:.2f}",
            f"{100 * numbers.purity[j]:.0f}% class {numbers.purest[j]}",
        ]


@pytest.mark.parametrize(
    ("order", "by"),
    [
        ("use", lambda n: -n.uses),
        ("purity", lambda n: -n.purity),
        ("coherence", lambda n: -n.coherence),
        ("number", lambda n: np.arange(12)),
    ],
)
def test_orders(order, by, digits):
    X, _, new, labels = digits
    model = KSVD(12, **GREEDY).fit(X)
    figure = contact_sheet(model, new, labels, order=order, n_atoms=5)
    first = np.argsort(by(atom_numbers(model, new, labels)), kind="stable")[:5]
    assert [word for word in texts(figure) if word.startswith("atom")] == [
        f"atom {j}" for j in first
    ]


def test_without_rows_atoms_come_by_number_with_coherences_alone(digits):
    model = KSVD(3, **GREEDY).fit(digits[0])
    coherence = atom_numbers(model).coherence
    expected = [word for j in range(3) for word in (f"atom {j}", f"coherence {coherence[j]:.2f}")]
    assert texts(contact_sheet(model)) == expected


@pytest.mark.parametrize("kind", ["kernel", "lkdl"])
def test_kernel_atoms_are_shown_by_preimages_with_their_errors(kind, digits):
    X, _, new, _ = digits
    model = KernelKSVD(6, gamma=0.05, **GREEDY)
    if kind == "lkdl":
        model = make_lkdl(KSVD(6, **GREEDY), gamma=0.05, n_landmarks=50, random_state=0)
    figure = contact_sheet(model.fit(X), new, image_shape=(8, 8), order="number")
    found = atom_preimages(model)
    np.testing.assert_allclose(images(figure), scaled(found.rows).reshape(-1, 8, 8), atol=1e-9)
    errors = [word for word in texts(figure) if word.startswith("error")]
    assert errors == [f"error {100 * error:.1f}%" for error in found.error]


def test_rows_as_atoms_have_no_error(digits):
    model = KSCDL(4, max_iter=2, random_state=0).fit(digits[0])
    figure = contact_sheet(model, image_shape=(8, 8))
    expected = scaled(model.components_).reshape(-1, 8, 8)
    np.testing.assert_allclose(images(figure), expected, atol=1e-12)
    assert not any(word.startswith("error") for word in texts(figure))


def test_where_there_is_a_linear_inverse_only(digits):
    X = digits[0]
    model = make_lkdl(KernelKSVD(4, **GREEDY), gamma=0.05, random_state=0).fit(X)
    figure = contact_sheet(model, image_shape=(8, 8))
    back = model[1].components_ @ model[0].preimage_coef_
    largest = back[np.arange(4), np.abs(back).argmax(axis=1)]
    expected = scaled(back * np.sign(largest)[:, None]).reshape(-1, 8, 8)
    np.testing.assert_allclose(images(figure), expected, atol=1e-9)
    assert not any(word.startswith("error") for word in texts(figure))
    assert "linear pre-images" in section_of(model, image_shape=(8, 8)).pictures[0].caption


@pytest.mark.parametrize("kind", ["own", "joint"])
def test_atoms_of_classes_name_them(kind, digits):
    X, y, new, labels = digits
    words = np.array([f"digit {c}" for c in range(10)])
    model = ClassDictionaryClassifier(KSVD(2, **GREEDY | {"n_nonzero_coefs": 2}), random_state=0)
    if kind == "joint":
        model = LCKSVDClassifier(20, **GREEDY)
    model.fit(X, words[y])
    found = texts(contact_sheet(model, new, words[labels], order="number", image_shape=(8, 8)))
    assert found[::4] == [f"{j} of digit {j // 2}" for j in range(20)]
    numbers = atom_numbers(model, new, words[labels])
    shown = [f"{100 * numbers.purity[j]:.0f}% digit {numbers.purest[j]}" for j in range(20)]
    used = numbers.uses > 0
    assert [word for word, some in zip(found[3::4], used, strict=True) if some] == [
        word for word, some in zip(shown, used, strict=True) if some
    ]
    assert [word for word, some in zip(found[3::4], used, strict=True) if not some] == [
        "no class"
    ] * int((~used).sum())


def test_tables_are_bars_with_names():
    data = load_iris(as_frame=True)
    model = make_pipeline(StandardScaler(), KSVD(3, **GREEDY)).fit(data.data)
    figure = contact_sheet(model, data.data, data.target)
    names = [word for word in texts(figure) if word.endswith("(cm)")]
    assert names == list(data.data.columns)
    widths = [bar.get_width() for bar in figure.axes[0].patches if bar.get_height() > 0.05]
    ordered = model[-1].components_[np.argsort(-atom_numbers(model, data.data).energy)]
    largest = ordered[np.arange(3), np.abs(ordered).argmax(axis=1)]
    expected = scaled(ordered * np.sign(largest)[:, None]).ravel()
    np.testing.assert_allclose(widths / np.abs(widths).max(), expected, atol=1e-9)


def test_bars_of_energy_are_relative_to_the_largest(digits):
    X, _, new, _ = digits
    model = KSVD(4, **GREEDY).fit(X)
    energy = np.sort(atom_numbers(model, new).energy)[::-1]
    bars = contact_sheet(model, new, image_shape=(8, 8)).axes[0].patches
    widths = np.array([bar.get_width() for bar in bars])
    np.testing.assert_allclose(widths[1::2] / widths[::2], energy / energy[0])


@pytest.mark.slow
def test_everything_stays_inside_of_the_figure(digits):
    X, y, *_ = digits
    for n_atoms, shape in ((2, (8, 8)), (100, (8, 8)), (20, None), (3, (2, 32)), (3, (64, 1))):
        model = KSVD(n_atoms, n_nonzero_coefs=2, max_iter=1, random_state=0).fit(X)
        names = np.array(["a very long name of a class", "b"])[y % 2]
        figure = contact_sheet(model, X, names, image_shape=shape, n_atoms=n_atoms)
        figure.canvas.draw()
        box = figure.bbox
        for artist in (*figure.axes[0].texts, *figure.axes[0].images):
            extent = artist.get_window_extent()
            assert min(extent.x0 - box.x0, box.x1 - extent.x1) >= 0
            assert min(extent.y0 - box.y0, box.y1 - extent.y1) >= 0
        assert len([t for t in texts(figure) if t.startswith("atom")]) == n_atoms


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"order": "beauty"}, ValueError, "order must be one of 'energy'"),
        ({"order": "energy"}, ValueError, "order='energy' needs X"),
        ({"order": "purity"}, ValueError, "order='purity' needs y"),
        ({"n_atoms": 0}, ValueError, "n_atoms must be at least 1"),
        ({"n_atoms": 2.5}, TypeError, "n_atoms must be a whole number"),
        ({"image_shape": (8, 9)}, ValueError, "makes 72 pixels"),
        ({"image_shape": (4, 4, 5)}, ValueError, "up to 4 channels"),
        ({"image_shape": "8x8"}, ValueError, "image_shape must be"),
        ({"feature_names": ["a"]}, ValueError, "feature_names must name each of the 64"),
    ],
)
def test_bad_arguments(options, error, message, digits):
    model = KSVD(4, **GREEDY).fit(digits[0])
    with pytest.raises(error, match=message):
        contact_sheet(model, **options)


def test_precomputed_kernels_cannot_be_drawn(digits):
    K = digits[0] @ digits[0].T
    with pytest.raises(ValueError, match="no way back"):
        contact_sheet(KernelKSVD(3, kernel="precomputed", **GREEDY).fit(K))


# Channels


def test_channels_as_pictures():
    image = np.arange(24.0).reshape(2, 3, 4) / 24
    np.testing.assert_array_equal(as_panel(image[..., 0], 1.0), image[..., 0])
    np.testing.assert_allclose(as_panel(image[..., :3], 2.0), image[..., :3] / 2)
    signed = image[..., :3] - 0.5
    np.testing.assert_allclose(as_panel(signed, 1.0), (signed + 1) / 2)
    two = as_panel(image[..., :2], 1.0)
    np.testing.assert_allclose(two[:, :, 0], np.hstack([image[..., 0], image[..., 1]]))
    four = as_panel(image, 1.0)
    np.testing.assert_allclose(four[:2], image[..., :3] / image[..., :3].max())
    np.testing.assert_allclose(four[2:, :, 1], image[..., 3] / image[..., 3].max())
    faint = np.array([[[-0.04, 0.5, 1.0]]])
    np.testing.assert_allclose(as_panel(faint, 1.0), [[[0, 0.5, 1]]])


@pytest.mark.parametrize(
    ("shape", "panel"),
    [((2, 3), (2, 3)), ((2, 3, 2), (2, 6)), ((2, 3, 3), (2, 3)), ((2, 3, 4), (4, 3))],
)
def test_panels_have_their_shape(shape, panel):
    assert panel_shape(shape) == panel
    assert as_panel(np.ones(shape), 1.0).shape[:2] == panel


def test_image_shapes():
    assert check_image_shape(None, 5) is None
    assert check_image_shape([2, 3], 6) == (2, 3)
    assert check_image_shape((2, 3, 1), 6) == (2, 3)
    assert check_image_shape(np.array([2, 3, 4]), 24) == (2, 3, 4)
    with pytest.raises(ValueError, match="height times width times channels"):
        check_image_shape((2, 3, 3), 6)


@pytest.mark.parametrize("channels", [later(2), 3, later(4)])
def test_reports_on_images_of_several_channels(channels, rng):
    X = rng.random((60, 4 * 5 * channels))
    y = np.arange(60) % 2
    shape = (4, 5, channels)
    model = ClassDictionaryClassifier(KSVD(4, n_nonzero_coefs=2, max_iter=1), random_state=0)
    for fitted in (model.fit(X, y), LCKSVDClassifier(8, **GREEDY).fit(X, y)):
        sections = model_sections(fitted, X, y, image_shape=shape)
        for section in sections:
            for picture in section.pictures:
                picture.figure.canvas.draw()
    figure = atoms_figure(X[:3], shape)
    expected = as_panel(X[1].reshape(shape) / X[1].max(), 1.0)
    np.testing.assert_allclose(images(figure)[1], expected)


# The section of a report


def test_section_says_what_the_numbers_are(digits):
    X, _, new, labels = digits
    model = KSVD(40, **GREEDY).fit(X)
    section = section_of(model, new, labels, image_shape=(8, 8))
    numbers = atom_numbers(model, new, labels)
    assert [list(row) for row in section.table.rows] == [
        ["mutual coherence", f"{numbers.mutual_coherence:.3f}"],
        ["mean coherence of an atom", f"{numbers.mean_coherence:.3f}"],
        ["atoms in use", f"{numbers.n_used} of 40"],
        ["atoms in effect", f"{numbers.n_effective:.1f}"],
        ["mean purity, by energy", f"{100 * numbers.mean_purity:.1f}%, by chance 10.0%"],
    ]
    first, second = section.pictures
    share = np.sort(numbers.energy)[-30:].sum()
    assert first.caption == (
        f"30 of 40 atoms, those of the most energy. They carry {100 * share:.1f}% of it."
    )
    assert second.caption == "The next 15 atoms."
    best = int(numbers.energy.argmax())
    assert f"atom {best}: energy {100 * numbers.energy[best]:.1f}%" in first.alt
    assert len(first.figure.axes[0].images) == len(second.figure.axes[0].images) == 15


def test_section_on_kernel_atoms_and_on_rows_without_labels(digits):
    X, _, new, labels = digits
    model = KernelKSVD(8, gamma=0.05, **GREEDY).fit(X)
    section = section_of(model, new, image_shape=(8, 8))
    middle = np.median(atom_preimages(model).error)
    (picture,) = section.pictures
    assert f"half of these have at most {100 * middle:.1f}%" in picture.caption
    assert "purity" not in section.text
    assert len(section.table.rows) == 4
    some = labels.astype(object)
    some[:20] = None
    found = section_of(LCKSVDClassifier(20, **GREEDY).fit(X, digits[1]), new, some)
    assert "Measured on 100 of 120 rows" in found.text


def test_many_rows_are_measured_on_some(digits, monkeypatch):
    X, _, new, labels = digits
    monkeypatch.setattr("kernelatoms.report.sections.atoms._MEASURED_ROWS", 50)
    section = section_of(KSVD(8, **GREEDY).fit(X), pd.DataFrame(new).to_numpy(), labels)
    assert "Measured on 50 of 120 rows" in section.text


@pytest.mark.parametrize("kind", ["kernel", "lkdl"])
def test_a_page_does_not_wait_for_many_preimages_over_very_many_anchors(kind, digits, monkeypatch):
    model = KernelKSVD(12, gamma=0.05, **GREEDY)
    if kind == "lkdl":
        model = make_lkdl(KSVD(12, **GREEDY), gamma=0.05, n_landmarks=300, random_state=0)
    model.fit(digits[0])
    monkeypatch.setattr("kernelatoms.report.sections.atoms._CHEAP_ANCHORS", 300 * 64 // 4)
    (picture,) = section_of(model, image_shape=(8, 8)).pictures
    assert picture.caption.startswith("7 of 12 atoms, the first.")
    monkeypatch.setattr("kernelatoms.report.sections.atoms._CHEAP_ANCHORS", 300 * 64 // 40)
    (picture,) = section_of(model, image_shape=(8, 8)).pictures
    assert picture.caption.startswith("5 of 12 atoms")
