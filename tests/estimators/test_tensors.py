"""Tensors in, tensors out: every estimator that takes them agrees with itself on numpy arrays.

Once on tensors of the CPU, which the CPU's machine works on, and once with these counted as a
device's, which the machine of tensors works on (or on a card, where there is one).
"""

import copy
import os
import pickle
import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import kernelatoms as ka
from kernelatoms.estimators.devices.conversion import as_numpy

torch = pytest.importorskip("torch")

from kernelatoms.engine.gpu import cpu_as_device  # noqa: E402

CUDA = torch.cuda.is_available()
PLACES = ["cpu", "device"]


@pytest.fixture(params=PLACES)
def place(request):
    """Work on tensors of the CPU, or on a device: a card, or the CPU taken for one."""
    on_device = request.param == "device"
    with cpu_as_device() if on_device and not CUDA else nullcontext():
        yield torch.device("cuda" if on_device and CUDA else "cpu")


@pytest.fixture
def device():
    """Work on a device."""
    with nullcontext() if CUDA else cpu_as_device():
        yield torch.device("cuda" if CUDA else "cpu")


def draw(seed=0, n=120, n_features=8, dtype=np.float64):
    """Return rows of three kinds, and the kind of each."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    centres = 2 * rng.standard_normal((3, n_features))
    return (centres[y] + rng.standard_normal((n, n_features))).astype(dtype), y


def tensor(array, device):
    return torch.tensor(array, device=device)


def plain(value):
    """Return tensors, sparse or not, and scipy's matrices as numpy arrays."""
    if isinstance(value, torch.Tensor):
        return value.to_dense().cpu().numpy()
    return value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)


def near(found, expected, rtol=1e-7):
    found, expected = plain(found), plain(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    finite = expected[np.isfinite(expected)] if expected.dtype.kind == "f" else expected
    atol = rtol * float(np.abs(finite).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def tensors_of(model):
    """Yield the arrays that a fitted model holds, at any depth, with their names."""
    for name, value in vars(model).items():
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, torch.Tensor | np.ndarray):
                yield name, part
            elif hasattr(part, "__dict__"):
                yield from tensors_of(part)


CODINGS = [
    {"n_nonzero_coefs": 3},
    {"n_nonzero_coefs": 3, "selection": "ols"},
    {"n_nonzero_coefs": 3, "positive": True},
    {"max_residual": 0.3},
    {"max_residual": 1.0, "absolute": True},
    {"method": "lasso", "alpha": 0.3},
    {"method": "lasso", "alpha": 0.3, "positive": True, "sparse_output": False},
    {"method": "ridge", "mu": 0.1},
    {"method": "threshold", "alpha": 0.5},
]


class TestSparseEncode:
    @pytest.mark.parametrize("options", CODINGS, ids=str)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_codes_are_those_of_arrays(self, options, dtype, place):
        X, _ = draw(dtype=dtype)
        atoms = draw(1, 20, dtype=dtype)[0]
        atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
        expected = ka.sparse_encode(X, atoms, **options)
        found = ka.sparse_encode(tensor(X, place), tensor(atoms, place), **options)
        assert found.device.type == place.type
        dense = options.get("sparse_output") is False
        assert found.layout == (torch.strided if dense else torch.sparse_csr)
        near(found, expected, 1e-3 if dtype == np.float32 else 1e-7)

    @pytest.mark.parametrize(
        "kernel",
        ["linear", "poly", "cosine", "rbf", "laplacian", "chi2"],
    )
    @pytest.mark.parametrize("options", [{"n_nonzero_coefs": 3}, {"method": "ridge", "mu": 0.1}])
    @pytest.mark.parametrize("local", [False, True])
    def test_under_kernels(self, kernel, options, local, place):
        X, atoms = np.abs(draw()[0]), np.abs(draw(1, 20)[0])
        options = {**options, "kernel": kernel, "gamma": 0.05}
        near_ones = {}
        if local:
            lists = np.argsort(np.random.default_rng(2).random((len(X), 20)), axis=1)[:, :6]
            lists[0, 2:] = -1
            near_ones = {"candidates": lists}
        expected = ka.sparse_encode(X, atoms, **options, **near_ones)
        ours = tensor(X, place), tensor(atoms, place)
        near(ka.sparse_encode(*ours, **options, **near_ones), expected)
        if local:  # lists as tensors
            near(ka.sparse_encode(*ours, **options, candidates=tensor(lists, place)), expected)

    def test_precomputed_values_and_energies(self, place):
        X, atoms = draw()[0], draw(1, 20)[0]
        given = (X @ atoms.T, atoms @ atoms.T)
        options = {"kernel": "precomputed", "max_residual": 0.4}
        expected = ka.sparse_encode(*given, energy=np.vecdot(X, X), **options)
        ours = [tensor(part, place) for part in given]
        for energy in (np.vecdot(X, X), tensor(np.vecdot(X, X), place)):
            near(ka.sparse_encode(*ours, energy=energy, **options), expected)

    def test_goals_starts_gaps_and_paths(self, place):
        X, atoms = draw()[0], draw(1, 20)[0]
        ours = tensor(X, place), tensor(atoms, place)
        goals = np.linspace(0.2, 0.9, len(X))
        near(
            ka.sparse_encode(*ours, max_residual=tensor(goals, place)),
            ka.sparse_encode(X, atoms, max_residual=goals),
        )
        for given in (goals, torch.tensor(goals)):  # the host's are brought to the rows
            near(
                ka.sparse_encode(*ours, max_residual=given),
                ka.sparse_encode(X, atoms, max_residual=goals),
            )
        options = {"method": "lasso", "alpha": 0.3, "return_gap": True}
        expected, gap = ka.sparse_encode(X, atoms, **options)
        codes, own_gap = ka.sparse_encode(*ours, **options)
        near(codes, expected)
        assert own_gap.device.type == place.type
        assert float(own_gap.max()) <= 1e-6 * np.vecdot(X, X).max()
        assert gap.shape == own_gap.shape
        for start in (codes, codes.to_dense(), expected.toarray()):
            near(ka.sparse_encode(*ours, **options, start=start)[0], expected, 1e-4)
        path, own = (ka.lasso_path(*rows, n_alphas=3) for rows in ((X, atoms), ours))
        assert all(part.device.type == place.type for part in (own.alphas, own.gaps, *own.codes))
        for one, other in zip(own.codes, path.codes, strict=True):
            near(one, other, 1e-3)

    def test_over_the_atoms_of_a_fitted_learner(self, place):
        X, _ = draw()
        learner = ka.KSVD(12, n_nonzero_coefs=2, max_iter=2, random_state=0)
        expected = ka.sparse_encode(X, clone(learner).fit(X), n_nonzero_coefs=3)
        ours = tensor(X, place)
        near(ka.sparse_encode(ours, learner.fit(ours), n_nonzero_coefs=3), expected)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_is_coded_in_float32(self, dtype, place):
        X, atoms = (tensor(rows, place).to(dtype) for rows in (draw()[0], draw(1, 20)[0]))
        found = ka.sparse_encode(X, atoms, n_nonzero_coefs=3)
        assert found.dtype == torch.float32
        wide = [part.float().cpu().numpy() for part in (X, atoms)]
        near(found, ka.sparse_encode(*wide, n_nonzero_coefs=3), 1e-3)

    def test_whole_numbers_strides_and_one_signal(self, place):
        X, atoms = (np.round(3 * rows).astype(np.int64) for rows in (draw()[0], draw(1, 20)[0]))
        found = ka.sparse_encode(tensor(X, place), tensor(atoms, place), n_nonzero_coefs=2)
        assert found.dtype == torch.float64
        expected = ka.sparse_encode(X, atoms, n_nonzero_coefs=2)
        near(found, expected)
        turned = tensor(np.ascontiguousarray(X.T), place).T.double()
        near(ka.sparse_encode(turned, tensor(atoms, place).double(), n_nonzero_coefs=2), expected)
        for i in (0, 7):  # in a batch and alone
            one = ka.sparse_encode(
                tensor(X[i : i + 1], place), tensor(atoms, place), n_nonzero_coefs=2
            )
            near(one, expected[[i]])

    def test_more_atoms_than_a_gram_matrix_is_made_for(self, device, monkeypatch):
        X, atoms = draw(n=30)[0], draw(1, 300)[0]
        atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
        expected = [ka.sparse_encode(X, atoms, **options).toarray() for options in CODINGS[:6]]
        monkeypatch.setattr("kernelatoms.engine.gpu.arrays.linalg._MOST_ATOMS", 100)
        for name in ("LinearAtoms", "KernelAtoms"):
            path = f"kernelatoms.coding.atom_products.{name}.gram"
            monkeypatch.setattr(path, property(lambda self: pytest.fail("a Gram matrix")))
        for options, codes in zip(CODINGS[:6], expected, strict=True):
            near(ka.sparse_encode(tensor(X, device), tensor(atoms, device), **options), codes, 1e-5)
        ours = (tensor(X, device), tensor(atoms, device))
        monkeypatch.undo()
        near(
            ka.sparse_encode(*ours, n_nonzero_coefs=3, kernel="rbf"),
            ka.sparse_encode(X, atoms, n_nonzero_coefs=3, kernel="rbf"),
        )

    def test_a_users_kernel_is_called_with_tensors(self, device):
        X, atoms = draw()[0], draw(1, 20)[0]
        seen = set()

        def kernel(A, B):
            seen.add(type(A))
            return (A @ B.T + 1) ** 2

        found = ka.sparse_encode(
            tensor(X, device), tensor(atoms, device), n_nonzero_coefs=3, kernel=kernel
        )
        assert seen == {torch.Tensor}
        near(found, ka.sparse_encode(X, atoms, n_nonzero_coefs=3, kernel=kernel))
        with pytest.raises(TypeError, match="must return one there, not ndarray"):
            ka.sparse_encode(
                tensor(X, device),
                tensor(atoms, device),
                kernel=lambda A, B: np.ones((len(A), len(B))),
            )


class TestDecodersFromFiles:
    """Weights and activations of language models, as safetensors files hold them."""

    def write(self, path, dtype):
        """Write an autoencoder's decoder, both ways round, and activations of many tokens."""
        files = pytest.importorskip("safetensors.torch")
        X = draw(n=60)[0]
        directions = draw(1, 40)[0]
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        directions[7] = 0  # dead
        weights = {"W_dec": directions, "decoder.weight": directions.T, "b_dec": X.mean(axis=0),
                   "resid": X.reshape(4, 15, -1)}  # fmt: skip
        tensors = {name: torch.tensor(part).to(dtype) for name, part in weights.items()}
        files.save_file({name: part.contiguous() for name, part in tensors.items()}, path)
        return files.load_file

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    @pytest.mark.parametrize(
        "options",
        [
            {"n_nonzero_coefs": 3},
            {"n_nonzero_coefs": 3, "positive": True},
            {"method": "lasso", "alpha": 0.3, "positive": True},
        ],
        ids=str,
    )
    def test_codes_are_those_of_arrays(self, options, dtype, place, tmp_path):
        path = tmp_path / "sae.safetensors"
        weights = self.write(path, dtype)(path, device=str(place))
        decoder, rows = weights["W_dec"], weights["resid"].flatten(0, -2)
        assert decoder.dtype == rows.dtype == dtype
        # 16-bit numbers are taken for what they are; numpy has no bfloat16.
        given = [part.cpu().float().numpy() for part in (rows, decoder)]
        expected = ka.sparse_encode(*given, **options)
        codes = ka.sparse_encode(rows, decoder, **options)
        near(codes, expected, 1e-4)
        assert not plain(codes)[:, 7].any()
        near(codes @ decoder.float(), expected @ given[1], 1e-4)
        near(ka.sparse_encode(rows, weights["decoder.weight"].T, **options), expected, 1e-4)

    def test_activations_and_weights_of_two_types(self, place, tmp_path):
        path = tmp_path / "sae.safetensors"
        weights = self.write(path, torch.bfloat16)(path, device=str(place))
        decoder, rows = weights["W_dec"], weights["resid"].flatten(0, -2).float()
        wide = ka.sparse_encode(rows, decoder.float(), n_nonzero_coefs=3)
        near(ka.sparse_encode(rows, decoder, n_nonzero_coefs=3), wide)
        near(ka.sparse_encode(rows.bfloat16(), decoder.float(), n_nonzero_coefs=3), wide)

    def test_weights_that_are_refused(self, place, tmp_path):
        path = tmp_path / "sae.safetensors"
        weights = self.write(path, torch.float32)(path, device=str(place))
        rows = weights["resid"].flatten(0, -2)
        with pytest.raises(ValueError, match=r"looks transposed: pass dictionary\.T"):
            ka.sparse_encode(rows, weights["decoder.weight"])
        with pytest.raises(ValueError, match=r"X must have rows.*\(4, 15, 8\).*flatten\(0, -2\)"):
            ka.sparse_encode(weights["resid"], weights["W_dec"])
        with pytest.raises(TypeError, match=r"dictionary must be an array.*got dict"):
            ka.sparse_encode(rows, weights)
        with pytest.raises(ValueError, match="dictionary requires gradients"):
            ka.sparse_encode(rows, torch.nn.Parameter(weights["W_dec"]))
        with pytest.raises(ValueError, match=r"X is a tensor of torch\.float8.*float\(\)"):
            ka.sparse_encode(rows.to(torch.float8_e4m3fn), weights["W_dec"])
        with pytest.raises(ValueError, match="X is on meta, and tensors must be on the CPU or on"):
            ka.sparse_encode(rows.to("meta"), weights["W_dec"].to("meta"))
        with pytest.raises(ValueError, match=r"X is on .* and dictionary on meta"):
            ka.sparse_encode(rows, weights["W_dec"].to("meta"))


LEARNERS = {
    "KSVD": lambda: ka.KSVD(12, n_nonzero_coefs=2, max_iter=4),
    "KSVD, ols": lambda: ka.KSVD(12, n_nonzero_coefs=2, selection="ols", max_iter=3),
    "MOD": lambda: ka.MOD(12, n_nonzero_coefs=2, max_iter=4),
    "MOD, l1": lambda: ka.MOD(12, alpha=0.5, max_iter=3),
    "MOD, positive": lambda: ka.MOD(12, n_nonzero_coefs=2, positive=True, max_iter=3),
    "KernelKSVD": lambda: ka.KernelKSVD(12, gamma=0.05, n_nonzero_coefs=2, max_iter=3),
    "KernelMOD": lambda: ka.KernelMOD(12, kernel="poly", gamma=0.1, n_nonzero_coefs=2, max_iter=3),
    "KernelMOD, pruned": lambda: ka.KernelMOD(
        12, gamma=0.05, n_nonzero_coefs=2, coordinates=0.05, max_iter=3
    ),
    "KernelKSVD, landmarks": lambda: ka.KernelKSVD(
        12, gamma=0.05, n_nonzero_coefs=2, max_iter=3,
        coordinates=ka.KernelLinearizer(n_landmarks=40),
    ),
}  # fmt: skip
MAPS = {
    "rbf": lambda: ka.KernelLinearizer(gamma="scale", n_landmarks=40),
    "poly": lambda: ka.KernelLinearizer("poly", gamma="spread", n_landmarks=40, n_components=10),
    "randomized": lambda: ka.KernelLinearizer(n_landmarks=100, n_components=5, solver="randomized"),
    **{
        name: lambda name=name: ka.KernelLinearizer("poly", degree=2, n_landmarks=30, sampling=name)
        for name in ("diagonal", "column-norm", "kmeans", "coreset", "rpcholesky")
    },
}
CLASSIFIERS = {
    "classes": lambda: ka.ClassDictionaryClassifier(ka.KSVD(6, n_nonzero_coefs=2, max_iter=3)),
    "collective": lambda: ka.ClassDictionaryClassifier(
        ka.KSVD(6, n_nonzero_coefs=2, max_iter=3), scheme="collective"
    ),
    "near atoms": lambda: ka.ClassDictionaryClassifier(
        ka.MOD(6, n_nonzero_coefs=2, max_iter=3), n_neighbors=3, calibrate=True
    ),
    "kernel": lambda: ka.ClassDictionaryClassifier(
        ka.KernelKSVD(6, gamma=0.05, n_nonzero_coefs=2, max_iter=3)
    ),
    "kernel, collective": lambda: ka.ClassDictionaryClassifier(
        ka.KernelMOD(6, gamma="scale", n_nonzero_coefs=2, max_iter=3), scheme="collective"
    ),
    "CRC": lambda: ka.CRCClassifier(),
    "CRC, rbf": lambda: ka.CRCClassifier("rbf", mu=0.1),
    "CRC, feature space": lambda: ka.CRCClassifier("rbf", projection=None),
    "CRC, unit columns": lambda: ka.CRCClassifier("rbf", normalize_columns=True),
    "CRC, unit columns of neighbours": lambda: ka.CRCClassifier(
        "rbf", normalize_columns=True, n_neighbors=9
    ),
    "CRC, kpca": lambda: ka.CRCClassifier("rbf", projection="kpca"),
    "CRC, neighbours": lambda: ka.CRCClassifier("rbf", n_neighbors=9, calibrate=True),
    "CRC, by l1": lambda: ka.CRCClassifier("laplacian", n_neighbors=9, distance="l1", n_coarse=20),
    "SRC": lambda: ka.SRCClassifier(alpha=0.05),
    "SRC, greedy": lambda: ka.SRCClassifier(n_nonzero_coefs=3),
}


def both(make, place, dtype=np.float64, labelled=False):
    """Return a model fitted on arrays, one on tensors, and the rows of both."""
    X, y = draw(dtype=dtype)
    ours, labels = tensor(X, place), tensor(y, place)
    models = [make(), make()]
    for model in models:
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
    if labelled:
        return models[0].fit(X, y), models[1].fit(ours, labels), X, ours
    return models[0].fit(X), models[1].fit(ours), X, ours


class TestLearners:
    @pytest.mark.parametrize("name", LEARNERS)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_they_learn_the_same(self, name, dtype, place):
        model, own, X, ours = both(LEARNERS[name], place, dtype)
        if dtype == np.float32:  # rounding picks other atoms some day: as good ones
            assert own.score(ours) == pytest.approx(model.score(X), rel=0.02)
            assert plain(own.components_).dtype == np.float32
            return
        near(own.components_, model.components_, 1e-6)
        near(own.objective_, model.objective_, 1e-6)
        codes = own.transform(ours)
        near(codes, model.transform(X), 1e-6)
        for given in (codes, codes.to_dense()):
            near(own.inverse_transform(given), model.inverse_transform(model.transform(X)), 1e-6)
        assert own.score(ours) == pytest.approx(model.score(X), rel=1e-6)
        near(own.set_params(sparse_output=False).transform(ours), model.transform(X), 1e-6)

    @pytest.mark.parametrize("name", LEARNERS)
    def test_fitted_attributes_are_tensors_there(self, name, place):
        model, own, _, ours = both(LEARNERS[name], place)
        assert own.fit(ours) is own
        held = dict(tensors_of(own))
        assert held
        for attribute, value in held.items():
            assert isinstance(value, torch.Tensor), attribute
            assert value.device.type == place.type, attribute
        for attribute, value in tensors_of(model):
            assert isinstance(value, np.ndarray), attribute
        assert set(vars(own)) == set(vars(model))

    @pytest.mark.parametrize("name", ["MOD", "MOD, l1"])
    def test_batches(self, name, place):
        X, _ = draw()
        model, own = (LEARNERS[name]().set_params(random_state=0) for _ in range(2))
        for start in range(0, 120, 30):
            model.partial_fit(X[start : start + 30])
            assert own.partial_fit(tensor(X[start : start + 30], place)) is own
        near(own.components_, model.components_, 1e-6)
        near(own.state_.sums.gram, model.state_.sums.gram, 1e-6)
        near(own.state_.use, model.state_.use, 1e-6)

    @pytest.mark.parametrize("name", ["KSVD", "MOD", "KernelKSVD"])
    def test_warm_starts_and_given_atoms(self, name, place):
        X, _ = draw()
        start = draw(3, 12)[0]
        model, own = LEARNERS[name](), LEARNERS[name]()
        model.set_params(dict_init=start).fit(X)
        own.set_params(dict_init=tensor(start, place)).fit(tensor(X, place))
        near(own.components_, model.components_, 1e-6)
        for _ in range(2):
            model.set_params(warm_start=True).fit(X)
            own.set_params(warm_start=True).fit(tensor(X, place))
        near(own.components_, model.components_, 1e-5)
        near(own.objective_, model.objective_, 1e-5)

    @pytest.mark.parametrize("name", MAPS)
    def test_kernel_maps(self, name, place):
        model, own, X, ours = both(MAPS[name], place)
        near(own.landmarks_, model.landmarks_)
        near(own.eigenvalues_, model.eigenvalues_, 1e-6)
        # Signs of eigenvectors are settled; products with those of small values are noisy.
        near(own.transform(ours), model.transform(X), 1e-5)
        F = own.fit_transform(ours)
        assert F.device.type == place.type
        near(F @ F.T, model.transform(X) @ model.transform(X).T, 1e-6)
        near(own.inverse_transform(F), model.inverse_transform(model.transform(X)), 1e-3)
        assert ka.nystrom_error(own, ours) == pytest.approx(ka.nystrom_error(model, X), rel=1e-4)

    @pytest.mark.parametrize("dtype", [None, "float32", "float64"])
    def test_types_of_virtual_samples(self, dtype, place):
        for rows in (np.float32, np.float64):
            model, own, X, ours = both(
                lambda: ka.KernelLinearizer(n_landmarks=30, dtype=dtype), place, rows
            )
            near(own.transform(ours), model.transform(X), 1e-3 if rows == np.float32 else 1e-2)

    def test_a_given_dictionary(self, place):
        X, atoms = draw()[0], draw(1, 20)[0]
        model = ka.SparseCoder(atoms, n_nonzero_coefs=2).fit(X)
        own = ka.SparseCoder(tensor(atoms, place), n_nonzero_coefs=2).fit(tensor(X, place))
        codes = own.transform(tensor(X, place))
        near(codes, model.transform(X))
        near(own.inverse_transform(codes), model.inverse_transform(model.transform(X)))
        near(clone(own).fit_transform(tensor(X, place)), codes)

    def test_precomputed(self, place):
        X, _ = draw()
        K = (X @ X.T + 1.0) ** 2
        for make in (
            lambda: ka.KernelKSVD(8, kernel="precomputed", n_nonzero_coefs=2, max_iter=2),
            lambda: ka.KernelLinearizer("precomputed", n_landmarks=30),
        ):
            model, own = (make().set_params(random_state=0) for _ in range(2))
            model.fit(K)
            own.fit(tensor(K, place))
            near(own.transform(tensor(K, place)), model.transform(K), 1e-5)


class TestClassifiers:
    METHODS: ClassVar = ("decision_function", "predict_proba", "predict")

    @pytest.mark.parametrize("name", CLASSIFIERS)
    def test_they_answer_the_same(self, name, place):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model, own, X, ours = both(CLASSIFIERS[name], place, labelled=True)
        y = draw()[1]
        for method in self.METHODS:
            found = getattr(own, method)(ours)
            assert found.device.type == place.type
            near(found, getattr(model, method)(X), 1e-4)
        for labels in (y, tensor(y, place), y.tolist()):
            assert own.score(ours, labels) == model.score(X, y)
        if isinstance(model, ka.CRCClassifier):
            near(own.codes(ours), model.codes(X), 1e-4)
            found, expected = plain(own.residuals(ours)), model.residuals(X)
            np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))

    @pytest.mark.parametrize("name", ["classes", "CRC"])
    def test_forms_of_labels(self, name, place):
        X, y = draw()
        ours = tensor(X, place)
        words = np.array(["a", "b", "c"])[y]
        model = CLASSIFIERS[name]().set_params(random_state=0)
        assert isinstance(model.fit(ours, y).classes_, np.ndarray)
        assert isinstance(model.predict(ours), torch.Tensor)
        assert isinstance(model.fit(ours, tensor(y, place)).classes_, torch.Tensor)
        assert model.classes_.tolist() == [0, 1, 2]
        answers = model.predict(ours)
        assert answers.dtype == torch.int64
        assert isinstance(model.fit(ours, words).classes_, np.ndarray)
        said = model.predict(ours)
        assert isinstance(said, np.ndarray)
        assert said.tolist() == np.array(["a", "b", "c"])[plain(answers)].tolist()
        assert model.score(ours, words.tolist()) == np.mean(said == words)
        two = model.fit(ours[tensor(y < 2, place)], words[y < 2])
        assert two.decision_function(ours).shape == (len(X),)

    def test_in_pipelines(self, place):
        def make():
            return make_pipeline(
                ka.RowNormalizer(offset=1.0),
                ka.KernelLinearizer(gamma=1.0, n_landmarks=50, random_state=0),
                ka.ClassDictionaryClassifier(ka.KSVD(6, n_nonzero_coefs=2), random_state=0),
            )

        X, y = draw()
        ours, labels = tensor(X, place), tensor(y, place)
        model, own = make().fit(X, y), make().fit(ours, labels)
        near(own.predict(ours), model.predict(X))
        assert own.score(ours, labels) == model.score(X, y)

    def test_the_atoms_of_every_class_are_tensors(self, place):
        _, own, _, _ = both(CLASSIFIERS["kernel"], place, labelled=True)
        for learner in own.dictionaries_:
            for attribute, value in tensors_of(learner):
                assert isinstance(value, torch.Tensor), attribute


class TestTheDoor:
    def test_without_tensors_torch_is_not_imported(self):
        code = (
            "import sys, numpy as np, kernelatoms as ka\n"
            "X = np.random.default_rng(0).normal(size=(40, 6))\n"
            "ka.KSVD(8, max_iter=2).fit(X).transform(X)\n"
            "ka.CRCClassifier().fit(X, np.arange(40) % 2).predict(X)\n"
            "assert 'torch' not in sys.modules, 'torch'\n"
            "assert 'kernelatoms.engine.gpu' not in sys.modules, 'gpu'\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_a_model_stays_as_it_is_but_by_learning(self, place):
        _, own, _, ours = both(LEARNERS["MOD"], place)
        before = dict(vars(own))
        own.transform(ours), own.score(ours), own.inverse_transform(own.transform(ours))
        assert set(vars(own)) == set(before)
        assert all(vars(own)[name] is value for name, value in before.items())

    def test_a_fit_that_fails_changes_nothing(self, place):
        _, own, _, ours = both(LEARNERS["MOD"], place)
        before, use = dict(vars(own)), own.state_.use.clone()
        del before["_fitted_states"]  # ``set_params`` drops it
        drawn = own.state_.random_state.get_state()[1].copy()
        bad = ours.clone()
        bad[3, 2] = torch.inf
        for learn in (own.fit, own.partial_fit):
            with pytest.raises(ValueError, match="infinity"):
                learn(bad)
        with pytest.raises(ValueError, match="n_nonzero_coefs"):
            own.set_params(n_nonzero_coefs=-1).partial_fit(ours)
        own.set_params(n_nonzero_coefs=2)
        assert all(vars(own)[name] is value for name, value in before.items())
        assert torch.equal(own.state_.use, use)
        np.testing.assert_array_equal(own.state_.random_state.get_state()[1], drawn)

    def test_many_threads_may_ask_one_model(self, place):
        _, own, _, ours = both(LEARNERS["KSVD"], place)
        expected = plain(own.transform(ours))
        found = {}

        def ask(i):
            found[i] = plain(own.transform(ours[i * 10 : i * 10 + 10]))

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(6):
            near(found[i], expected[i * 10 : i * 10 + 10])

    def test_a_gram_matrix_is_computed_once_for_a_model(self, device, monkeypatch):
        _, own, _, ours = both(LEARNERS["KSVD"], device)
        from kernelatoms.engine import gpu

        made = []
        compute = gpu.gram_matrix
        monkeypatch.setattr(gpu, "gram_matrix", lambda atoms: made.append(0) or compute(atoms))
        first = plain(own.transform(ours))
        near(own.transform(ours), first)
        assert len(made) == 1
        own.components_ = own.components_.clone()  # not edited in place
        own.transform(ours)
        assert len(made) == 2

    def test_tensors_must_be_on_one_device(self, device):
        X, y = draw()
        ours = tensor(X, device)
        atoms = X[:10]
        name = "cuda:0" if CUDA else "cpu as a device"
        with pytest.raises(ValueError, match=f"X is on {name} and dictionary on cpu.*to_device"):
            ka.sparse_encode(ours, atoms)
        with pytest.raises(ValueError, match=f"X is on cpu and dictionary on {name}.*to_device"):
            ka.sparse_encode(X, tensor(atoms, device))
        model, own, _, _ = both(LEARNERS["KSVD"], device)
        with pytest.raises(ValueError, match=rf"X is on {name} and KSVD.components_ on cpu"):
            model.transform(ours)
        with pytest.raises(ValueError, match=rf"X is on cpu and KSVD.components_ on {name}"):
            own.transform(X)
        with pytest.raises(ValueError, match=r"codes is on cpu and KSVD.components_ on"):
            own.inverse_transform(model.transform(X))
        classes = CLASSIFIERS["classes"]().fit(X, y)
        with pytest.raises(ValueError, match=r"dictionaries_\[0\].components_ on cpu"):
            classes.predict(ours)
        coder = ka.SparseCoder(atoms)
        with pytest.raises(ValueError, match=r"SparseCoder.dictionary on cpu"):
            coder.fit(ours)
        with pytest.raises(ValueError, match=r"KSVD.dict_init on cpu"):
            ka.KSVD(dict_init=atoms).fit(ours)

    def test_a_model_can_be_fitted_anew_on_another_device(self, device):
        X, _ = draw()
        model = ka.KSVD(8, n_nonzero_coefs=2, max_iter=2, random_state=0).fit(X)
        expected = model.components_
        near(model.fit(tensor(X, device)).components_, expected)
        assert isinstance(model.components_, torch.Tensor)
        near(model.fit(X).components_, expected)
        assert isinstance(model.components_, np.ndarray)
        with pytest.raises(ValueError, match="to_device"):
            model.set_params(warm_start=True).fit(tensor(X, device))

    def test_numpy_and_tensors_of_the_cpu_are_on_one_device(self):
        X, y = draw()
        atoms = X[:10]
        expected = ka.sparse_encode(X, atoms)
        near(ka.sparse_encode(torch.tensor(X), atoms), expected)
        assert scipy.sparse.issparse(ka.sparse_encode(X, torch.tensor(atoms)))
        model = ka.KSVD(8, max_iter=2).fit(torch.tensor(X))
        assert isinstance(model.components_, torch.Tensor)
        assert scipy.sparse.issparse(model.transform(X))
        assert isinstance(model.components_, torch.Tensor)
        classifier = ka.CRCClassifier().fit(X, y)
        assert isinstance(classifier.predict(torch.tensor(X)), torch.Tensor)

    def test_memory_is_shared_with_tensors_of_the_cpu(self):
        X = torch.tensor(draw()[0])
        model = ka.SparseCoder(X[:10], n_nonzero_coefs=2).fit(X)
        assert model.dictionary.data_ptr() == X.data_ptr()
        own = ka.CRCClassifier(normalize=False).fit(X, np.sort(draw()[1]))
        assert own.dictionary_.shape == X.shape

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X: X.requires_grad_(), "X requires gradients.*detach"),
            (lambda X: X[0], "Expected 2D array, got 1D array"),
            (lambda X: X[:0], "0 sample"),
            (lambda X: X[:, :0], "0 feature"),
            (lambda X: X * torch.inf, "infinity|NaN"),
            (lambda X: X.to(torch.complex64), "[Cc]omplex data not supported"),
            (lambda X: X[:, :5], "8 features|one column per feature|expecting 8"),
        ],
    )
    def test_rows_that_are_refused(self, change, message, place):
        y = draw()[1]
        _, own, _, ours = both(LEARNERS["KSVD"], place)
        bad = change(ours.clone())
        with pytest.raises(ValueError, match=message):
            own.transform(bad)
        with pytest.raises(ValueError, match=message):
            ka.sparse_encode(bad, ours[:10])
        if "features" not in message:
            with pytest.raises(ValueError, match=message):
                ka.KSVD(8).fit(bad)
            with pytest.raises(ValueError, match=message):
                ka.CRCClassifier().fit(bad, y[: len(bad)])

    def test_missing_values_are_for_the_cpu(self, device):
        _, own, _, ours = both(LEARNERS["KSVD"], device)
        bad = ours.clone()
        bad[5, 1] = torch.nan
        with pytest.raises(ValueError, match=r"NaN \(row 5 is the first\).*on the CPU alone"):
            own.transform(bad)
        with pytest.raises(ValueError, match="NaN"):
            ka.CRCClassifier().fit(bad, draw()[1])

    def test_missing_values_of_tensors_of_the_cpu(self):
        X, _ = draw()
        X[5, 1] = np.nan
        atoms = draw(1, 10)[0]
        near(ka.sparse_encode(torch.tensor(X), torch.tensor(atoms)), ka.sparse_encode(X, atoms))

    def test_what_runs_on_the_cpu_alone_says_so(self, device):
        X, y = draw()
        ours = tensor(X, device)
        with pytest.raises(ValueError, match=r"method='ksc'.*CPU alone"):
            ka.sparse_encode(ours, ours[:10], method="ksc", alpha=0.1)
        distance = ka.similarity.DistanceKernel("l2")
        with pytest.raises(ValueError, match=r"kernel DistanceKernel\(l2\).*CPU alone"):
            ka.sparse_encode(ours, ours[:10], kernel=distance)
        with pytest.raises(ValueError, match="CPU alone"):
            ka.KernelLinearizer("correlation").fit(ours)
        with pytest.raises(ValueError, match=r"residual_norm='l1'.*CPU alone"):
            ka.CRCClassifier(residual_norm="l1").fit(ours, y)
        with pytest.raises(ValueError, match=r"distance 'correlation'.*CPU alone"):
            ka.CRCClassifier(n_neighbors=5, distance="correlation").fit(ours, y)
        with pytest.raises(ValueError, match="search='exact'"):
            ka.CRCClassifier(n_neighbors=5, search="approximate").fit(ours, y)

    def test_data_frames_hold_no_tensors(self, place):
        _, own, _, ours = both(MAPS["rbf"], place)
        own.set_output(transform="pandas")
        with pytest.raises(ValueError, match="set_output"):
            own.transform(ours)
        samples = torch.ones((2, own.n_components_), dtype=torch.float64, device=place)
        assert own.inverse_transform(samples).shape == (2, 8)


SETTINGS = {
    "autocast": lambda: torch.autocast("cuda" if CUDA else "cpu", torch.bfloat16),
    "a default device": lambda: torch.device("meta"),
    "inference": torch.inference_mode,
}


class TestWhateverTorchIsTold:
    @pytest.mark.parametrize("setting", SETTINGS)
    @pytest.mark.parametrize("name", ["KSVD", "MOD, l1", "KernelMOD"])
    def test_learners_learn_the_same(self, setting, name, place):
        ours = tensor(draw(dtype=np.float32)[0], place)
        expected, own = (LEARNERS[name]().set_params(random_state=0) for _ in range(2))
        expected.fit(ours)
        with SETTINGS[setting]():
            own.fit(ours)
            codes = own.transform(ours)
        assert own.components_.device == ours.device
        near(own.components_, expected.components_, 1e-5)
        near(codes, expected.transform(ours), 1e-5)
        near(own.transform(ours), codes)

    @pytest.mark.parametrize("setting", SETTINGS)
    @pytest.mark.parametrize("name", ["classes", "CRC, neighbours", "SRC"])
    def test_classifiers_too(self, setting, name, place):
        X, y = draw(dtype=np.float32)
        ours = tensor(X, place)
        expected = CLASSIFIERS[name]().set_params(random_state=0).fit(ours, y)
        with SETTINGS[setting]():
            found = clone(expected).fit(ours, y).decision_function(ours)
        near(found, expected.decision_function(ours), 1e-4)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
    def test_types_are_those_of_the_rows(self, dtype, place):
        X, y = draw(dtype=np.float32)
        ours = tensor(X, place)
        before = torch.get_default_dtype()
        expected = [ka.sparse_encode(ours, ours[:20], **options) for options in CODINGS]
        torch.set_default_dtype(dtype)
        try:
            for options, codes in zip(CODINGS, expected, strict=True):
                near(ka.sparse_encode(ours, ours[:20], **options), codes)
            for name in ("classes", "CRC"):
                model = CLASSIFIERS[name]().set_params(random_state=0)
                assert model.fit(ours, y).score(ours, y) > 0.5
        finally:
            torch.set_default_dtype(before)


class TestStrangeTensors:
    def test_numbers_of_torchs(self, place, tmp_path):
        X, _ = draw()
        ours = tensor(X, place)
        for options in (
            {"n_nonzero_coefs": 2}, {"max_residual": 0.25}, {"method": "lasso", "alpha": 0.25},
            {"n_nonzero_coefs": 2, "kernel": "rbf", "gamma": 0.0625},
        ):  # fmt: skip
            expected = ka.sparse_encode(X, X[:20], **options)
            for where in ("cpu", place):  # the host's meet tensors of any device
                given = {
                    name: value if isinstance(value, str) else torch.tensor(value, device=where)
                    for name, value in options.items()
                }
                near(ka.sparse_encode(ours, ours[:20], **given), expected, 1e-5)
        alpha = torch.tensor(0.25)
        own = ka.MOD(12, alpha=alpha, max_iter=2, random_state=0).fit(ours)
        near(own.components_, clone(own).set_params(alpha=0.25).fit(ours).components_)
        assert own.alpha is alpha
        assert ka.to_device(own, "cpu").get_params()["alpha"] == 0.25
        assert isinstance(ka.to_device(own, "cpu").alpha, float)
        with pytest.raises(ValueError, match="alpha requires gradients"):
            ka.sparse_encode(ours, ours[:20], method="lasso", alpha=alpha.requires_grad_())
        assert ka.to_device(torch.tensor(3.0, device=place), "cpu").shape == ()
        assert as_numpy(alpha.detach(), "learned_").shape == ()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_labels_of_16_bits(self, dtype, place):
        X, y = draw()
        model = ka.CRCClassifier(mu=0.1).fit(tensor(X, place), tensor(y, place).to(dtype))
        assert model.classes_.dtype == torch.float32
        near(
            model.predict(tensor(X, place)), model.classes_[model.predict(tensor(X, place)).long()]
        )

    def test_no_labels(self, place):
        for model in (CLASSIFIERS["classes"](), ka.CRCClassifier()):
            with pytest.raises(ValueError, match="requires y to be passed, but the target y is"):
                model.fit(tensor(draw()[0], place), None)

    @pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint8, torch.int16])
    def test_whole_numbers_of_any_size(self, dtype, place):
        X = np.round(9 * np.abs(draw()[0]))
        ours = tensor(X, place).to(dtype)
        found = ka.sparse_encode(ours, ours[:20])
        assert found.dtype == torch.float64
        near(found, ka.sparse_encode(X, X[:20]))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X: X.to(torch.uint64), "X is a tensor of torch.uint64.*give X.float"),
            (lambda X: X.to(torch.complex64).to_sparse_csr(), "Complex data not supported: X"),
            (lambda X: torch.nested.nested_tensor([X[0], X[1]]), "X is a nested tensor.*padded"),
        ],
    )
    def test_refused(self, change, message, place):
        ours = tensor(np.abs(draw()[0]), place)
        with pytest.raises(ValueError, match=message):
            ka.sparse_encode(change(ours), ours[:10])
        with pytest.raises(ValueError, match=message):
            ka.KSVD(8).fit(change(ours))

    def test_a_kernel_may_return_half_precision(self, device):
        ours = tensor(draw()[0], device)
        found = ka.sparse_encode(ours, ours[:20], kernel=lambda A, B: (A @ B.T).half())
        assert found.dtype == torch.float64
        assert float(found.values().abs().max()) > 0


FOR_THE_CPU = {
    "KSCDL": lambda: ka.KSCDL(8, max_iter=1, random_state=0),
    "KSAD": lambda: ka.KSAD(8, max_iter=1, random_state=0),
    "KSADClassifier": lambda: ka.KSADClassifier(8, max_iter=1, random_state=0),
    "DKSVDClassifier": lambda: ka.DKSVDClassifier(12, max_iter=1, random_state=0),
    "FDDLClassifier": lambda: ka.FDDLClassifier(4, max_iter=1, random_state=0),
    "NearestImputer": lambda: ka.NearestImputer(),
    "TrainingImputer": lambda: ka.TrainingImputer(),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestWhatIsForTheCpu:
    """What works on the CPU alone takes tensors of the CPU, and says so of others."""

    METHODS: ClassVar = (
        "transform", "predict", "predict_proba", "decision_function", "kneighbors", "explain",
    )  # fmt: skip

    @pytest.mark.parametrize("name", FOR_THE_CPU)
    def test_estimators(self, name):
        X, y = draw()
        model, own = FOR_THE_CPU[name]().fit(X, y), FOR_THE_CPU[name]()
        ours = torch.tensor(X)
        assert own.fit(ours, torch.tensor(y)) is own
        for attribute, value in tensors_of(own):
            assert isinstance(value, np.ndarray), attribute
        with nullcontext() if CUDA else cpu_as_device():
            there = tensor(X, "cuda" if CUDA else "cpu")
            with pytest.raises(ValueError, match=rf"{name} works on the CPU alone.*to_device"):
                FOR_THE_CPU[name]().fit(there, y)
        for method in [method for method in self.METHODS if hasattr(model, method)]:
            found, expected = getattr(own, method)(ours), getattr(model, method)(X)
            if method != "explain":
                near(found, expected)
            if hasattr(model, "inverse_transform") and method == "transform":
                near(own.inverse_transform(found), model.inverse_transform(expected))
            with nullcontext() if CUDA else cpu_as_device():
                message = rf"{name}.* works on the CPU alone, and X is on .*to_device"
                with pytest.raises(ValueError, match=message):
                    getattr(model, method)(there)

    def test_tensors_among_parameters(self):
        X, _ = draw()
        model, own = (
            ka.KSCDL(max_iter=1, dict_init=start).fit(X) for start in (X[:8], torch.tensor(X[:8]))
        )
        near(own.components_, model.components_)
        assert isinstance(own.dict_init, torch.Tensor)

    def functions(self, X, y, learner, kernels, classes, crc):
        """Yield the functions, by name, as calls."""
        rows, atoms = X[:30], X[:12]
        codes = learner.transform(rows)
        yield "residual_norms", lambda: ka.residual_norms(rows, learner, codes)
        yield "residual_norms", lambda: ka.residual_norms(rows, atoms, learner.transform(rows))
        yield "decode", lambda: ka.decode(learner, codes).rows
        yield "atom_numbers", lambda: ka.atom_numbers(learner, rows).coherence
        yield "atom_preimages", lambda: ka.atom_preimages(kernels).rows
        yield "preimage", lambda: ka.preimage(atoms, atoms[:, :1], gamma=0.1).rows
        yield "denoise_rows", lambda: ka.denoise_rows(rows, sigma=0.5, dictionary=learner)
        yield "denoise_image", lambda: ka.denoise_image(X, sigma=0.5, patch_size=4, max_iter=1)
        yield "choose_sizes", lambda: ka.choose_sizes(classes, X, y, n_atoms=[4], cv=2).scores
        yield "estimate_sigma", lambda: ka.estimate_sigma(X)
        yield "explain", lambda: [one.residuals for one in ka.explain(classes, rows)]
        yield "explain", lambda: [one.residuals for one in crc.explain(rows)]

    def calls(self, form, place="cpu"):
        X, y = draw()
        X = form(X, place) if form is tensor else form(X)
        learner = LEARNERS["KSVD"]().set_params(random_state=0).fit(X)
        kernels = LEARNERS["KernelKSVD"]().set_params(random_state=0).fit(X)
        classes = CLASSIFIERS["classes"]().set_params(random_state=0).fit(X, y)
        crc = ka.CRCClassifier(mu=0.1).fit(X, y)
        return list(self.functions(X, y, learner, kernels, classes, crc))

    def test_functions(self):
        given = self.calls(np.asarray), self.calls(tensor)
        for (name, expected), (_, found) in zip(*given, strict=True):
            assert not isinstance(found(), torch.Tensor), name
            near(found(), expected(), 1e-6)

    def test_functions_elsewhere(self, device):
        for name, call in self.calls(tensor, device):
            with pytest.raises(ValueError, match=rf"{name} works on the CPU alone.*to_device"):
                call()

    @pytest.mark.skipif(CUDA, reason="with a card kernels go where an array says that it is")
    def test_a_fitted_state_is_of_one_device(self, device, monkeypatch):
        from kernelatoms.engine.gpu import DeviceArray

        owner, atoms, made = ka.KSVD(), DeviceArray(tensor(draw()[0], device)), []
        monkeypatch.setattr(ka.KSVD, "_make_fitted", lambda self, bring: made.append(bring))
        for name in ("cuda:0", "cuda:0", "cuda:1"):
            there = torch.device(name)
            monkeypatch.setattr(DeviceArray, "device", property(lambda self, there=there: there))
            owner._fitted(atoms)
        assert len(made) == 2


class TestToDevice:
    def there(self, model):
        """Bring a model to the device of these tests, which may be the CPU taken for one."""
        if CUDA:
            return ka.to_device(model, "cuda")
        from kernelatoms.estimators.devices.conversion import moved

        return moved(model, lambda value, name: value if name == "classes_" else (
            torch.tensor(value) if value.dtype.kind in "biuf" else value))  # fmt: skip

    @pytest.mark.parametrize("name", ["KSVD", "MOD", "KernelKSVD"])
    def test_there_and_back(self, name, device):
        model, own, X, ours = both(LEARNERS[name], device)
        near(self.there(model).transform(ours), model.transform(X), 1e-6)
        back = ka.to_device(own, "cpu")
        assert back is not own
        for attribute, value in tensors_of(back):
            assert isinstance(value, np.ndarray), attribute
        near(back.transform(X), model.transform(X), 1e-6)
        assert isinstance(own.components_, torch.Tensor)

    def test_pipelines_and_classes(self, device):
        X, y = draw()
        ours, labels = tensor(X, device), tensor(y, device)
        own = make_pipeline(ka.RowNormalizer(), CLASSIFIERS["classes"]()).fit(ours, labels)
        back = ka.to_device(own, "cpu")
        assert type(back[-1].classes_) is np.ndarray
        near(back.predict(X), own.predict(ours))
        near(self.there(back).predict(ours), own.predict(ours))

    def test_a_copy_goes_on_by_itself(self, device):
        _, own, X, _ = both(LEARNERS["MOD"], device)
        before = plain(own.components_).copy()
        n_batches = own.state_.n_batches
        ka.to_device(own, "cpu").partial_fit(X)
        assert own.state_.n_batches == n_batches
        near(own.components_, before)

    def test_arrays(self, device):
        X, _ = draw()
        assert ka.to_device(X, "cpu") is X
        back = ka.to_device(tensor(X, device), "cpu")
        assert isinstance(back, np.ndarray)
        near(back, X)
        codes = ka.sparse_encode(tensor(X, device), tensor(X[:10], device))
        assert scipy.sparse.issparse(ka.to_device(codes, torch.device("cpu")))
        if CUDA:
            assert ka.to_device(X, "cuda").device.type == "cuda"

    def test_a_model_that_is_there_is_copied(self):
        model = ka.KSVD(8)
        assert ka.to_device(model, "cpu") is not model

    def test_refused(self):
        with pytest.raises(TypeError, match="model_or_array must be"):
            ka.to_device("KSVD", "cpu")
        for device in ("nowhere", "meta"):
            with pytest.raises(ValueError, match="device must be 'cpu', 'cuda'"):
                ka.to_device(np.ones((2, 2)), device)
        if not CUDA:
            with pytest.raises(ValueError, match="torch finds no CUDA"):
                ka.to_device(np.ones((2, 2)), "cuda")

    @pytest.mark.parametrize("name", ["KSVD", "MOD", "KernelMOD"])
    def test_files_are_the_same_wherever_a_model_was_fitted(self, name, device, tmp_path):
        pytest.importorskip("skops")
        model, own, X, ours = both(LEARNERS[name], device)
        again, _ = ka.load_model(ka.save_model(own, tmp_path / "own.skops"))
        assert isinstance(own.components_, torch.Tensor)
        for attribute, value in tensors_of(again):
            assert isinstance(value, np.ndarray), attribute
        near(again.transform(X), own.transform(ours), 1e-6)
        assert set(vars(again)) == set(vars(model))

    def test_classifiers_in_files(self, device, tmp_path):
        pytest.importorskip("skops")
        for name in ("classes", "CRC, neighbours"):
            _, own, X, ours = both(CLASSIFIERS[name], device, labelled=True)
            again, _ = ka.load_model(ka.save_model(own, tmp_path / "own.skops"))
            near(again.predict(X), own.predict(ours))

    def test_copies_and_pickles(self, place):
        _, own, _, ours = both(LEARNERS["KSVD"], place)
        for other in (copy.deepcopy(own), pickle.loads(pickle.dumps(own)), copy.copy(own)):
            near(other.transform(ours), own.transform(ours))


def test_scikit_learns_own_check_of_tensors():
    """Namespaces, devices, shapes and values of outputs and attributes, for torch on the CPU."""
    code = """
import warnings
import torch
import kernelatoms as ka
from kernelatoms.estimators.devices.conversion import as_numpy
from sklearn.utils.estimator_checks import check_array_api_input
warnings.simplefilter("ignore")
learner = dict(n_nonzero_coefs=2, max_iter=3, random_state=0, sparse_output=False)
for model in (
    ka.KSVD(6, **learner), ka.MOD(6, **learner), ka.KernelKSVD(6, gamma=0.1, **learner),
    ka.KernelMOD(6, gamma=0.1, **learner), ka.KernelLinearizer(gamma=0.1, random_state=0),
    ka.ClassDictionaryClassifier(ka.KSVD(6), random_state=0), ka.CRCClassifier(),
    ka.CRCClassifier("rbf", n_neighbors=9), ka.SRCClassifier(n_nonzero_coefs=3), ka.RowNormalizer(),
    ka.SparseCoder(torch.eye(10)[:6], n_nonzero_coefs=2, sparse_output=False),
):
    for dtype in ("float32", "float64"):
        check_array_api_input(
            type(model).__name__, model, "torch", dtype_name=dtype, check_values=True
        )
    print(type(model).__name__)
"""
    # scikit-learn checks nothing unless scipy is told so before it is imported.
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "SCIPY_ARRAY_API": "1"}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.split()) == 11


class PowerCut(BaseException):
    """Ends a fit."""


class CutAfter:
    """A callback that ends a fit when pass ``n`` (from 0) begins."""

    max_propagation_depth = None

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.n -= context.task_name == "pass"
        if self.n < 0:
            raise PowerCut

    def on_fit_task_end(self, estimator, context):
        return False


KEPT = [
    ka.KSVD(8, max_iter=4, tol=0, random_state=0),
    ka.MOD(8, max_iter=4, tol=0, alpha=0.1, random_state=0),
    ka.KernelKSVD(8, max_iter=4, tol=0, random_state=0),
    ka.ClassDictionaryClassifier(ka.MOD(4, max_iter=4, tol=0), random_state=0),
]


@pytest.mark.parametrize("estimator", KEPT, ids=lambda one: type(one).__name__)
def test_a_stopped_fit_goes_on_where_the_rows_are(estimator, place, tmp_path):
    rows, y = draw(n=60)
    X = tensor(rows, place)
    path = tmp_path / "run.ckpt"
    whole = clone(estimator).fit(X, y)
    with pytest.raises(PowerCut):
        clone(estimator).set_callbacks(CutAfter(3), ka.Checkpoint(path)).fit(X, y)
    again = clone(estimator).set_callbacks(ka.Checkpoint(path)).fit(X, y)
    pairs = zip(*(getattr(one, "dictionaries_", [one]) for one in (again, whole)), strict=True)
    for one, other in pairs:
        assert torch.equal(one.components_, other.components_)
        assert torch.equal(torch.as_tensor(one.objective_), torch.as_tensor(other.objective_))
    if place.type == "cpu":
        return
    with pytest.raises(ValueError, match="device is 'cuda"):
        clone(estimator).set_callbacks(ka.Checkpoint(path)).fit(rows, y)
