"""What is done in blocks on all threads is the same to the last bit on any number of them."""

import numpy as np
import pytest

from kernelatoms import CRCClassifier, KernelLinearizer, SRCClassifier, sparse_encode
from kernelatoms.coding.codes import PaddedCodes
from kernelatoms.engine.cpu import scale, values
from kernelatoms.estimators.classifiers import row_coding
from kernelatoms.features.samplers import SAMPLERS
from kernelatoms.learning.state import atoms_from_rows, atoms_from_sums
from kernelatoms.similarity.gammas import gamma_by_norms, gamma_by_variance

THREADS = (1, 2, 5, 16)


@pytest.fixture
def on_threads(monkeypatch):
    """Call a function on each number of threads, with small blocks; all results must be equal."""
    for module in (values, scale):
        monkeypatch.setattr(module, "_AT_ONCE", 2000)
    for name in ("_VALUES_AT_ONCE", "_GRAM_VALUES_AT_ONCE", "_ATOM_VALUES_AT_ONCE"):
        monkeypatch.setattr(row_coding, name, 2000)

    def call(function):
        found = []
        for threads in THREADS:
            monkeypatch.setenv("KERNELATOMS_NUM_THREADS", str(threads))
            found.append(function())
        for other in found[1:]:
            np.testing.assert_equal(other, found[0])
        return found[0]

    return call


def draw(seed, n, dtype=np.float64, n_classes=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    X = rng.standard_normal((n_classes, 9))[labels] + 0.7 * rng.standard_normal((n, 9))
    return X.astype(dtype), labels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine", "laplacian"])
@pytest.mark.parametrize("sampling", [name for name in SAMPLERS if name != "kmeans"])
def test_maps(on_threads, sampling, kernel, dtype):
    X = np.abs(draw(0, 700, dtype)[0]) / 10

    def mapped():
        linearizer = KernelLinearizer(kernel, n_landmarks=30, sampling=sampling, random_state=0)
        return linearizer.fit(X).gamma_, linearizer.transform(X)

    on_threads(mapped)


@pytest.mark.parametrize("size", [1.0, 1e-100, 1e100])
def test_gammas(on_threads, size):
    X = draw(0, 700)[0]
    X[3, 2] = np.nan
    known = X[~np.isnan(X)]
    found = on_threads(lambda: (gamma_by_variance(X * size), gamma_by_norms(X * size)))
    expected = np.array([1 / (9 * known.var()), 1 / (9 * (known**2).mean())])
    np.testing.assert_allclose(found, expected / size / size, rtol=1e-12)


OPTIONS = [
    {},
    {"kernel": "rbf"},
    {"kernel": "rbf", "projection": None},
    {"n_neighbors": 12},
    {"kernel": "rbf", "n_neighbors": 12},
    {"kernel": "rbf", "n_neighbors": 12, "n_coarse": 20},
    {"kernel": "poly", "n_neighbors": 12, "distance": "l1"},
    {"residual_norm": "l1"},
    {"residual_norm": "l1", "n_neighbors": 12},
]


@pytest.mark.parametrize("make", [CRCClassifier, SRCClassifier])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_codes_over_training_rows(on_threads, make, options):
    X, y = draw(1, 60)
    T = draw(2, 150)[0]
    weight = {"mu": 0.1} if make is CRCClassifier else {"alpha": 0.05}

    def seen():
        model = make(**options, **weight).fit(X, y)
        codes = model.codes(T)
        told = [one.residuals for one in model.explain(T[:20])]
        return (
            model.predict(T), model.decision_function(T), model.residuals(T),
            codes.indptr, codes.indices, codes.data, told,
        )  # fmt: skip

    labels, scores, residuals, *_ = on_threads(seen)
    model = make(**options, **weight).fit(X, y)
    each = [model.decision_function(row[None])[0] for row in T[:40]]  # the answer to one by one
    np.testing.assert_allclose(scores[:40], each, rtol=1e-5, atol=1e-6)
    assert labels.shape == (150,)
    assert residuals.shape == (150, 4)


def test_search_of_neighbours_by_an_index(on_threads):
    pytest.importorskip("pynndescent")
    X, y = draw(1, 200)
    T = draw(2, 150)[0]
    model = CRCClassifier(
        "rbf", mu=0.1, n_neighbors=12, distance="l2", search="approximate", random_state=0
    ).fit(X, y)
    found = model.predict(T)
    for _ in range(3):
        np.testing.assert_array_equal(model.predict(T), found)


@pytest.mark.parametrize("max_residual", [None, 0.6])
def test_codes_and_their_matrices(on_threads, max_residual):
    X, D = draw(3, 3000, np.float32)[0], draw(4, 30, np.float32)[0]
    X[::7] = 0  # no nonzeros, as padding

    def coded():
        found = sparse_encode(X, D, n_nonzero_coefs=3, max_residual=max_residual)
        return found.indptr, found.indices, found.data

    on_threads(coded)


def test_padding_is_left_out_of_matrices_and_counts(on_threads, monkeypatch):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, 5000)
    indices = np.sort(rng.permuted(np.tile(np.arange(6), (5000, 1)), axis=1)[:, :3], axis=1)
    values_ = rng.standard_normal((5000, 3))
    padding = np.arange(3) >= counts[:, None]
    indices[padding], values_[padding] = -1, 0
    codes = PaddedCodes(
        n_atoms=6, error=np.zeros(5000), indices=indices.astype(np.int32), values=values_
    )
    expected = np.zeros((5000, 6))
    rows = np.repeat(np.arange(5000), counts)
    expected[rows, indices[~padding]] = values_[~padding]
    matrix, uses = on_threads(lambda: (codes.to_csr().toarray(), codes.uses()))
    np.testing.assert_array_equal(matrix, expected)
    np.testing.assert_array_equal(uses, (expected != 0).sum(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_starting_atoms(on_threads, dtype):
    X = draw(5, 2000, dtype)[0]
    X[::3] = 0

    def drawn():
        rng = np.random.RandomState(0)
        return atoms_from_rows(X, 50, rng), atoms_from_sums(X, 50, 3, rng)

    rows, sums = on_threads(drawn)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(sums, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_norms(on_threads, dtype, size):
    X = (draw(6, 3000)[0] * size).astype(dtype)
    X[5] = 0
    norms2, unit = on_threads(lambda: (scale.squared_norms(X), scale.unit_rows(X)))
    exact = np.linalg.norm(X.astype(np.longdouble), axis=1)
    np.testing.assert_allclose(np.sqrt(norms2), exact.astype(float), rtol=1e-13)
    assert unit.dtype == dtype
    assert not unit[5].any()
    each = np.concatenate([scale.unit_rows(row[None]) for row in X[:100]])
    np.testing.assert_array_equal(unit[:100], each)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_words_of_scikit_learn(on_threads, bad):
    """Rows are looked at on all threads, and scikit-learn says what is wrong with them."""
    X, y = draw(7, 900)
    model = CRCClassifier(mu=0.1).fit(X, y)
    X[700, 3] = bad

    def refused():
        with pytest.raises(ValueError, match="Input X contains") as told:
            model.predict(X)
        return str(told.value)

    word = "NaN" if np.isnan(bad) else "infinity or a value too large for dtype('float64')"
    assert f"Input X contains {word}" in on_threads(refused)
    with pytest.raises(ValueError, match="Input X contains"):
        CRCClassifier(mu=0.1).fit(X * 1.0 if not np.isnan(bad) else np.full_like(X, np.inf), y)


def test_rows_whose_sum_overflows_are_finite(on_threads):
    X = np.full((500, 3), np.finfo(np.float32).max / 4)
    X[1] = 1.0
    X = X.astype(np.float32)
    found = on_threads(
        lambda: KernelLinearizer("cosine", n_landmarks=2, random_state=0).fit(X).transform(X)
    )
    np.testing.assert_allclose(np.abs(found), 1, rtol=1e-5)
