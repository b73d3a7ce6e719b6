"""Numpy rows through a device: the same answers, in the same form, as the CPU's.

On a card where there is one, else on the CPU taken for one.
"""

import threading
import warnings
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import kernelatoms as ka
from kernelatoms.estimators.devices import streaming

torch = pytest.importorskip("torch")

from kernelatoms.engine import gpu  # noqa: E402
from kernelatoms.engine.gpu import cpu_as_device  # noqa: E402
from kernelatoms.engine.gpu.arrays.streaming import Transfers  # noqa: E402

CUDA = torch.cuda.is_available()
NAME = "cuda" if CUDA else "cpu"


@pytest.fixture
def a_card():
    """Have a device to choose."""
    with nullcontext() if CUDA else cpu_as_device():
        yield


@pytest.fixture
def chosen(a_card):
    """Have it chosen by ``with chosen(): ...``."""
    return lambda: ka.use_device(NAME)


@pytest.fixture
def blocks(monkeypatch):
    """Note how many rows every block has that goes to the device; a few rows make one."""
    seen = []
    load = Transfers.load
    monkeypatch.setattr(streaming, "_BLOCK_BYTES", 8 * 8 * 50)
    monkeypatch.setattr(
        Transfers, "load", lambda self, rows: seen.append(len(rows)) or load(self, rows)
    )
    return seen


def draw(seed=0, n=120, n_features=8, dtype=np.float64):
    """Return rows of three kinds, and the kind of each."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    centres = 2 * rng.standard_normal((3, n_features))
    return (centres[y] + rng.standard_normal((n, n_features))).astype(dtype), y


def same(found, expected, rtol=1e-6):
    """Check that two answers are of one form, and near each other."""
    assert type(found) is type(expected)
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, rtol)
        return
    if scipy.sparse.issparse(expected):
        assert found.indices.dtype == expected.indices.dtype
        assert found.indptr.dtype == expected.indptr.dtype
        assert found.has_sorted_indices
        found, expected = found.toarray(), expected.toarray()
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    atol = rtol * float(np.abs(expected[np.isfinite(expected)]).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


CODINGS = [
    {"n_nonzero_coefs": 3},
    {"n_nonzero_coefs": 3, "positive": True, "sparse_output": False},
    {"max_residual": 0.3},
    {"method": "lasso", "alpha": 0.3, "gap_tol": 1e-9, "return_gap": True},
    {"method": "ridge", "mu": 0.1},
    {"n_nonzero_coefs": 3, "kernel": "rbf", "gamma": 0.05},
]


class TestSparseEncode:
    @pytest.mark.parametrize("options", CODINGS, ids=str)
    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
    def test_codes_are_the_same(self, options, dtype, chosen, blocks):
        X, atoms = 4 * draw()[0], draw(1, 20)[0]
        X, atoms = X.astype(dtype), (4 * atoms).astype(dtype)
        expected = ka.sparse_encode(X, atoms, **options)
        assert not blocks
        with chosen():
            found = ka.sparse_encode(X, atoms, **options)
        assert sum(blocks) == len(X)
        assert len(blocks) > 1
        if "return_gap" in options:
            assert found[1].shape == expected[1].shape
            assert found[1].dtype == expected[1].dtype
            found, expected = found[0], expected[0]
        same(found, expected, 2e-3 if dtype == np.float32 else 1e-6)

    @settings(
        max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(n=st.integers(1, 70), rows=st.integers(1, 80), seed=st.integers(0, 99))
    def test_blocks_of_any_size(self, n, rows, seed, a_card):
        X, atoms = draw(seed, n)[0], draw(seed + 1, 12)[0]
        expected = ka.sparse_encode(X, atoms, n_nonzero_coefs=2)
        with pytest.MonkeyPatch.context() as patch, ka.use_device(NAME):
            patch.setattr(streaming, "_BLOCK_BYTES", 8 * 8 * rows)
            same(ka.sparse_encode(X, atoms, n_nonzero_coefs=2), expected)

    def test_arguments_of_rows_are_cut_with_them(self, chosen, blocks):
        X, atoms = draw()[0], draw(1, 20)[0]
        lists = np.argsort(np.random.default_rng(2).random((len(X), 20)), axis=1)[:, :6]
        goals = np.linspace(0.2, 0.9, len(X))
        start = ka.sparse_encode(X, atoms, method="lasso", alpha=0.4)
        lasso = {"method": "lasso", "alpha": 0.3}
        for options in (
            {"candidates": lists, "n_nonzero_coefs": 2},
            {"candidates": lists.tolist(), "method": "ridge", "mu": 0.1},
            {"max_residual": goals},
            {"max_residual": goals.tolist()},
            lasso | {"start": start},
            lasso | {"start": start.toarray()},
        ):
            expected = ka.sparse_encode(X, atoms, **options)
            with chosen():
                same(ka.sparse_encode(X, atoms, **options), expected, 1e-4)
        given_values = (X @ atoms.T, atoms @ atoms.T)
        options = {"kernel": "precomputed", "energy": np.vecdot(X, X), "max_residual": 0.4}
        expected = ka.sparse_encode(*given_values, **options)
        with chosen():
            same(ka.sparse_encode(*given_values, **options), expected)
            with pytest.raises(ValueError, match="max_residual"):
                ka.sparse_encode(X, atoms, max_residual=goals[:-1])

    def test_over_lists_and_learners(self, chosen, blocks):
        X, _ = draw()
        learner = ka.KSVD(12, n_nonzero_coefs=2, max_iter=2, random_state=0).fit(X)
        for atoms in (learner, X[:10].tolist()):
            expected = ka.sparse_encode(X, atoms, n_nonzero_coefs=3)
            with chosen():
                same(ka.sparse_encode(X, atoms, n_nonzero_coefs=3), expected)
        assert isinstance(learner.components_, np.ndarray)

    @pytest.mark.parametrize("seed", range(2))
    def test_arguments_in_any_order(self, seed, chosen, blocks):
        """The rows are X, wherever it stands in the call."""
        rng = np.random.default_rng(seed)
        X, atoms = draw(seed)[0], draw(seed + 9, 20)[0]
        learner = made("KSVD").fit(X)

        def codes_of_path(**arguments):
            return ka.lasso_path(**arguments).codes

        calls = [
            (ka.sparse_encode, {"X": X, "dictionary": atoms, "n_nonzero_coefs": 3}),
            (ka.sparse_encode, {"X": X, "dictionary": learner, "max_residual": np.full(120, 0.5)}),
            (codes_of_path, {"X": X, "dictionary": atoms, "alphas": np.array([2.0, 1.0])}),
            (ka.nystrom_error, {"linearizer": made("map").fit(X), "X": X}),
            (made("SRC").fit(X, np.arange(120) % 2).score, {"X": X, "y": np.arange(120) % 2}),
            (lambda **rows: made("CRC").fit(**rows).predict(X=X), {"X": X, "y": draw(seed)[1]}),
        ]
        for call, arguments in calls:
            expected = call(**arguments)
            names = rng.permutation(list(arguments))
            for order in (names, names[::-1]):
                blocks.clear()
                with chosen():
                    found = call(**{name: arguments[name] for name in order})
                assert sum(blocks) >= len(X)
                same(found, expected, 1e-4)

    def test_calls_that_python_refuses(self, chosen):
        X, y = draw()
        model = made("CRC").fit(X, y)
        calls = [
            lambda: ka.sparse_encode(dictionary=X),
            lambda: ka.sparse_encode(X, X, X=X),
            lambda: ka.sparse_encode(X, X, atoms=X),
            lambda: model.predict(X, 5),
            lambda: model.explain(X, 5),
            lambda: model.predict(),
            lambda: ka.explain(model, X, 5),
        ]
        for call in calls:
            with pytest.raises(TypeError) as expected:
                call()
            with chosen(), pytest.raises(TypeError) as found:
                call()
            assert str(found.value) == str(expected.value)

    def test_paths_and_strange_rows(self, chosen, blocks):
        X, atoms = draw()[0], draw(1, 20)[0]
        with chosen():
            given_weights = ka.lasso_path(X, atoms, alphas=np.array([2.0, 1.0]))
        same(given_weights.alphas, np.array([2.0, 1.0]))
        expected = ka.lasso_path(X, atoms, n_alphas=3)
        swapped = np.asfortranarray(X).astype(">f8")
        swapped.flags.writeable = False
        codes = ka.sparse_encode(X, atoms)
        with chosen():
            path = ka.lasso_path(X, atoms, n_alphas=3)
            same(ka.sparse_encode(swapped, atoms), codes)
            same(ka.sparse_encode(X[::-1], atoms), codes[::-1])
        same(path.alphas, expected.alphas)
        same(path.codes, expected.codes, 1e-4)


MODELS = {
    "KSVD": lambda: ka.KSVD(12, n_nonzero_coefs=2, max_iter=3),
    "MOD": lambda: ka.MOD(12, n_nonzero_coefs=2, max_iter=3),
    "MOD, l1": lambda: ka.MOD(12, alpha=0.5, max_iter=3),
    "KernelMOD": lambda: ka.KernelMOD(12, kernel="poly", gamma=0.1, n_nonzero_coefs=2, max_iter=3),
    "map": lambda: ka.KernelLinearizer(gamma="scale", n_landmarks=40),
    "unit": lambda: ka.RowNormalizer(offset=1.0),
    "coder": lambda: ka.SparseCoder(draw(1, 20)[0], n_nonzero_coefs=2),
    "classes": lambda: ka.ClassDictionaryClassifier(ka.KSVD(6, n_nonzero_coefs=2, max_iter=3)),
    "near atoms": lambda: ka.ClassDictionaryClassifier(
        ka.MOD(6, n_nonzero_coefs=2, max_iter=3), n_neighbors=3, calibrate=True
    ),
    "CRC": lambda: ka.CRCClassifier("rbf", mu=0.1),
    "CRC, neighbours": lambda: ka.CRCClassifier("rbf", n_neighbors=9, calibrate=True),
    "SRC": lambda: ka.SRCClassifier(n_nonzero_coefs=3),
    "pipeline": lambda: make_pipeline(
        ka.RowNormalizer(offset=1.0),
        ka.KernelLinearizer(gamma=1.0, n_landmarks=50, random_state=0),
        ka.ClassDictionaryClassifier(ka.KSVD(6, n_nonzero_coefs=2), random_state=0),
    ),
}
METHODS = ("transform", "predict", "predict_proba", "decision_function", "codes", "residuals")


def made(name):
    model = MODELS[name]()
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestModels:
    @pytest.mark.parametrize("name", MODELS)
    def test_they_learn_and_answer_the_same(self, name, chosen, blocks):
        X, y = draw()
        words = np.array(["one", "two", "three"])[y]
        model, own = made(name).fit(X, words), made(name)
        with chosen():
            assert own.fit(X, words) is own
        assert sum(blocks) >= len(X)
        assert set(vars(own)) == set(vars(model))
        for attribute, value in vars(model).items():
            assert type(vars(own)[attribute]) is type(value), attribute
            if isinstance(value, np.ndarray):
                same(vars(own)[attribute], value, 1e-5)
        for method in [method for method in METHODS if hasattr(model, method)]:
            expected = getattr(model, method)(X)
            blocks.clear()
            with chosen():
                found = getattr(own, method)(X)
            assert len(blocks) > 1, method
            same(found, expected, 1e-4)
        if hasattr(model, "score"):
            with chosen():
                assert own.score(X, words) == pytest.approx(model.score(X, words), rel=1e-6)

    @pytest.mark.parametrize("name", ["KSVD", "map", "CRC"])
    def test_float32_stays_float32(self, name, chosen, blocks):
        X, y = draw(dtype=np.float32)
        with chosen():
            own = made(name).fit(X, y)
            method = "decision_function" if name == "CRC" else "transform"
            assert getattr(own, method)(X).dtype == getattr(made(name).fit(X, y), method)(X).dtype

    def test_batches_and_warm_starts(self, chosen):
        X, _ = draw()
        model, own = made("MOD"), made("MOD")
        for start in range(0, 120, 30):
            model.partial_fit(X[start : start + 30])
            with chosen():
                own.partial_fit(X[start : start + 30])
        same(own.components_, model.components_)
        assert own.state_.n_batches == model.state_.n_batches
        for one in (model, own):
            one.set_params(warm_start=True)
        model.fit(X)
        with chosen():
            own.fit(X)
        same(own.components_, model.components_, 1e-5)
        assert isinstance(own.state_.dictionary, np.ndarray)

    def test_models_are_used_here_and_there(self, chosen):
        X, _ = draw()
        model = made("KSVD").fit(X)
        before = dict(vars(model))
        expected = model.transform(X)
        for _ in range(2):
            with chosen():
                same(model.transform(X), expected)
            same(model.transform(X), expected)
        assert all(vars(model)[name] is value for name, value in before.items())

    def test_a_fit_that_fails_changes_nothing(self, chosen):
        X, _ = draw()
        model = made("MOD").fit(X)
        before = dict(vars(model))
        del before["_fitted_states"]  # made again on first use
        with chosen(), pytest.raises(ValueError, match="infinity"):
            model.fit(np.where(X > 3, np.inf, X))
        assert all(vars(model)[name] is value for name, value in before.items())
        with chosen(), pytest.raises(NotFittedError):
            made("MOD").transform(X)

    def test_what_is_no_numpy_array_stays_on_the_cpu(self, chosen, blocks, monkeypatch):
        X, y = draw()
        model = made("classes").fit(X, y)
        expected = model.predict(X)
        monkeypatch.setenv("KERNELATOMS_DEVICE", NAME)  # for the threads of a fit, too
        with chosen():
            with monkeypatch.context() as alone:
                alone.setenv("KERNELATOMS_NUM_THREADS", "1")
                made("classes").fit(X.tolist(), y)
            for rows in (scipy.sparse.csr_array(X), X.tolist()):
                same(model.predict(rows), expected)
                made("classes").fit(rows, y)
            coder = made("KSVD").fit(scipy.sparse.csr_array(X))
            assert not blocks
            coder.inverse_transform(coder.transform(X))
            with pytest.raises(ValueError, match="Expected 2D"):
                model.predict(X[0])

    def test_other_estimators_stay_on_the_cpu(self, chosen, blocks):
        X, y = draw()
        with chosen():
            model = ka.DKSVDClassifier(12, max_iter=2, random_state=0).fit(X, y)
            model.predict(X), model.predict_proba(X), model.score(X, y)
        assert not blocks

    def test_data_frames_out(self, chosen, blocks):
        pytest.importorskip("pandas")
        X, _ = draw()
        model = made("map").set_output(transform="pandas").fit(X)
        expected = model.transform(X)
        with chosen():
            found = model.transform(X)
        assert len(blocks) > 1
        assert list(found.columns) == list(expected.columns)
        same(found.to_numpy(), expected.to_numpy(), 1e-5)

    def test_errors_of_maps(self, chosen, blocks):
        X, _ = draw()
        model = made("map").fit(X)
        expected = ka.nystrom_error(model, X)
        with chosen():
            assert ka.nystrom_error(model, X) == pytest.approx(expected, rel=1e-6)
        assert sum(blocks) == len(X)

    def test_cross_validation(self, chosen):
        X, y = draw()
        expected = cross_val_score(made("CRC"), X, y, cv=3)
        with chosen():
            np.testing.assert_array_equal(cross_val_score(made("CRC"), X, y, cv=3), expected)

    def test_warnings_come_once(self, chosen, blocks):
        X, _ = draw()
        atoms = X[:4]
        for place in (nullcontext, chosen):
            with place(), warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                ka.sparse_encode(X, atoms, n_nonzero_coefs=7)
            assert [w.category for w in heard] == [UserWarning]
            assert "n_nonzero_coefs" in str(heard[0].message)


@pytest.fixture
def moves(monkeypatch):
    """Note the tensors that arrays other than rows become, as copies: as on a card."""
    seen = []

    def note(array, device):
        tensor = torch.tensor(np.array(array), device=device)
        seen.append(weakref.ref(tensor))
        return tensor

    monkeypatch.setattr("kernelatoms.engine.gpu.arrays.conversion.from_host", note)
    return seen


def fail_after(work):
    work()
    raise KeyError


def alive(moves):
    """Return how many of them are there still, without waiting for the collector."""
    return sum(moved() is not None for moved in moves)


ASKED = {
    "KSVD": "transform", "map": "transform", "coder": "transform", "classes": "predict",
    "near atoms": "predict_proba", "CRC": "decision_function", "pipeline": "predict",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestFittedAnew:
    @pytest.mark.parametrize("name", ["KSVD", "KernelMOD", "map", "classes", "CRC", "SRC"])
    def test_is_as_fresh(self, name, chosen):
        """One instance learns and answers here, there and of tensors, in turn."""

        def tensors(model, X, y):
            rows = torch.tensor(X, device=NAME)
            return getattr(model.fit(rows, y), asked)(rows)

        def there(model, X, y):
            with chosen():
                return getattr(model.fit(X, y), asked)(X)

        def here(model, X, y):
            return getattr(model.fit(X, y), asked)(X)

        model = made(name)
        asked = "transform" if hasattr(model, "transform") else "decision_function"
        X, y = draw(n=60)
        for rows in [(X, y), (X, y[::-1] % 2), (X[:40, :6].astype(np.float32), y[:40])]:
            for do in (here, there, tensors):
                found, expected = do(model, *rows), do(made(name), *rows)
                assert type(found) is type(expected)
                if isinstance(found, torch.Tensor):
                    found, expected = (to_numpy(answer) for answer in (found, expected))
                same(found, expected, 1e-6 if rows[0].dtype == np.float64 else 1e-3)


def to_numpy(tensor):
    return tensor.to_dense().cpu().numpy()


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestWhatStays:
    @pytest.mark.parametrize("name", ASKED)
    def test_a_model_is_brought_once(self, name, chosen, moves):
        X, y = draw()
        model = made(name).fit(X, y)
        ask = getattr(model, ASKED[name])
        with chosen():
            first = ask(X[:50])
            n_moves = len(moves)
            assert n_moves > 0
            for start in (0, 50, 100):
                same(ask(X[start : start + 50])[:20], ask(X)[start : start + 20], 1e-5)
            same(ask(X[:50]), first)
            assert len(moves) == n_moves
        with chosen():
            same(ask(X[:50]), first)
        assert len(moves) > n_moves

    def test_so_is_its_gram_matrix_and_arrays_are_brought_by_each_call(
        self, chosen, moves, monkeypatch
    ):
        X, atoms = draw()[0], draw(1, 20)[0]
        learner, grams, compute = made("KSVD").fit(X), [], gpu.gram_matrix
        monkeypatch.setattr(gpu, "gram_matrix", lambda atoms: grams.append(0) or compute(atoms))
        with chosen():
            for _ in range(3):
                ka.sparse_encode(X, atoms)
            assert len(moves) == len(grams) == 3
            grams.clear()
            for _ in range(3):
                learner.transform(X), learner.score(X)
            assert len(grams) == 1

    def test_new_attributes_are_noticed(self, chosen, moves):
        X, y = draw()
        model = made("KSVD").fit(X)
        classes = made("classes").fit(X, y)
        with chosen():
            first = model.transform(X)
            classes.predict(X)
            moves.clear()
            model.components_ = model.components_[::-1].copy()
            turned = model.transform(X)
            assert len(moves) == 1
            dense = model.set_params(sparse_output=False).transform(X)
            classes.dictionaries_ = classes.dictionaries_[::-1]
            found = classes.decision_function(X)
        same(dense, turned.toarray())
        model.set_params(sparse_output=True)
        same(found, classes.decision_function(X))
        same(turned, model.transform(X))
        model.components_ = model.components_[::-1].copy()
        same(first, model.transform(X))

    def test_what_learns_is_brought_afresh(self, chosen, moves):
        X, _ = draw()
        model, own = made("MOD"), made("MOD")
        for start in range(0, 120, 30):
            model.partial_fit(X[start : start + 30])
            with chosen():
                own.partial_fit(X[start : start + 30])
                same(own.transform(X), model.transform(X))
                own.partial_fit(X[start : start + 30])
                model.partial_fit(X[start : start + 30])
                same(own.transform(X), model.transform(X))
        with chosen():
            own.transform(X)
            moves.clear()
            same(own.fit(X).transform(X), model.fit(X).transform(X))
            assert moves

    def test_nothing_stays_too_long(self, chosen, moves):
        X, atoms = draw()[0], draw(1, 20)[0]
        model = made("KSVD").fit(X)
        with chosen():
            model.transform(X), ka.sparse_encode(X, atoms), ka.sparse_encode(X, atoms.tolist())
            assert alive(moves) == 1 < len(moves)  # arrays that no model has are let go
            made("MOD").fit(X)
            assert alive(moves) == 0
            model.transform(X)
            assert alive(moves) > 0
            del model
            assert alive(moves) == 0
            model = made("KSVD").fit(X)
            model.transform(X)
            assert alive(moves) == 1
        assert alive(moves) == 0
        with pytest.raises(KeyError), chosen():
            fail_after(lambda: model.transform(X))
        assert len(moves) > 1
        assert alive(moves) == 0

    def test_where_the_variable_chooses(self, a_card, moves, monkeypatch):
        X, _ = draw()
        model = made("KSVD").fit(X)
        monkeypatch.setenv("KERNELATOMS_DEVICE", NAME)
        model.transform(X)
        n_moves = len(moves)
        model.transform(X)
        assert len(moves) == n_moves > 0
        del model
        assert alive(moves) == 0

    def test_memory_is_for_rows_first(self, chosen, moves, monkeypatch):
        X, _ = draw()
        model = made("KSVD").fit(X)
        path = "kernelatoms.engine.gpu.arrays.streaming.free_memory"
        with chosen():
            # An eighth of what is free is to hold the rows.
            for free, n_expected in ((8 * X.nbytes, 0), (8 * X.nbytes - 1, 1)):
                model.transform(X)
                moves.clear()
                monkeypatch.setattr(path, lambda device, free=free: free)
                model.transform(X)
                assert len(moves) == n_expected


class TestMemory:
    @pytest.fixture
    def small(self, monkeypatch):
        """Have memory for so many rows at once only."""
        arrived = Transfers.arrived

        def limit(most):
            def too_many(self, loaded):
                if len(loaded[0]) > most:
                    raise torch.cuda.OutOfMemoryError("CUDA out of memory")
                return arrived(self, loaded)

            monkeypatch.setattr(Transfers, "arrived", too_many)

        return limit

    @pytest.mark.parametrize("most", [1, 7, 25])
    def test_blocks_are_halved(self, most, small, chosen, blocks):
        X, atoms = draw()[0], draw(1, 20)[0]
        expected = ka.sparse_encode(X, atoms, method="lasso", alpha=0.3, return_gap=True)
        small(most)
        with chosen():
            found = ka.sparse_encode(X, atoms, method="lasso", alpha=0.3, return_gap=True)
        same(found[0], expected[0])
        assert found[1].shape == (len(X),)
        assert max(blocks) > most >= min(blocks)

    @pytest.mark.parametrize("n", [1, 3, 120])
    def test_large_blocks_are_copied_by_several_threads(self, n, chosen, blocks, monkeypatch):
        X, atoms = draw(n=n)[0], draw(1, 20)[0]
        expected = ka.sparse_encode(X, atoms)
        monkeypatch.setattr("kernelatoms.engine.gpu.arrays.streaming._LARGE", 0)
        with chosen():
            same(ka.sparse_encode(X, atoms), expected)
        assert sum(blocks) == n

    def test_in_the_middle(self, chosen, blocks, monkeypatch):
        X, atoms = draw()[0], draw(1, 20)[0]
        expected = ka.sparse_encode(X, atoms)
        mark, n_marks = Transfers.mark, []

        def once(self):
            n_marks.append(0)
            if len(n_marks) == 2:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory")
            return mark(self)

        monkeypatch.setattr(Transfers, "mark", once)
        with chosen():
            same(ka.sparse_encode(X, atoms), expected)
        assert len(n_marks) > 3

    def test_not_even_one_row(self, small, chosen):
        X, _ = draw()
        small(0)
        with chosen(), pytest.raises(MemoryError, match=r"has too little memory.*partial_fit"):
            ka.sparse_encode(X, X[:10])
        with chosen(), pytest.raises(MemoryError, match=r"has too little memory.*partial_fit"):
            made("KSVD").fit(X)

    def test_rows_that_do_not_fit_whole_are_refused_before(self, chosen, blocks, monkeypatch):
        X, _ = draw()
        monkeypatch.setattr("kernelatoms.features.memory._ALWAYS_FITS_DEVICE", 0)
        monkeypatch.setattr(gpu, "free_bytes", lambda like: 1000)
        message = r"rows of X.*need about .*memory.*available.*MOD.partial_fit.*KERNELATOMS_DEVICE"
        with chosen(), pytest.raises(ValueError, match=message):
            made("KSVD").fit(X)
        assert not blocks

    def test_small_free_memory_makes_small_blocks(self, chosen, blocks, monkeypatch):
        X, atoms = draw()[0], draw(1, 20)[0]
        monkeypatch.setattr(
            "kernelatoms.engine.gpu.arrays.streaming.free_memory", lambda device: 8 * 28 * 8 * 10
        )
        with chosen():
            ka.sparse_encode(X, atoms)
        assert blocks == [10] * 12


class TestRefusals:
    @pytest.mark.parametrize("row", [0, 5, 117])
    def test_missing_values(self, row, chosen, blocks):
        X, y = draw()
        model = made("KSVD").fit(X)
        X[row, 1] = np.nan
        message = rf"NaN \(row {row} is the first\).*CPU alone.*use_device or KERNELATOMS_DEVICE"
        for ask in (model.transform, model.fit, lambda X: ka.CRCClassifier().fit(X, y)):
            with chosen(), pytest.raises(ValueError, match=message):
                ask(X)
            if ask == model.transform:
                assert ask(X).shape == (120, 12)

    def test_what_runs_on_the_cpu_alone(self, chosen):
        X, y = draw()
        with chosen():
            with pytest.raises(ValueError, match=r"method='ksc'.*CPU alone.*use_device"):
                ka.sparse_encode(X, X[:10], method="ksc", alpha=0.1)
            with pytest.raises(ValueError, match=r"CPU alone.*use_device"):
                ka.KernelLinearizer("correlation").fit(X)
            with pytest.raises(ValueError, match=r"residual_norm='l1'.*use_device"):
                ka.CRCClassifier(residual_norm="l1").fit(X, y)
            with pytest.raises(TypeError, match=r"must return one there.*use_device"):
                ka.sparse_encode(X, X[:10], kernel=lambda A, B: np.ones((len(A), len(B))))


class TestTheChoice:
    def test_the_variable_and_who_wins(self, a_card, blocks, monkeypatch):
        X, _ = draw()
        expected = ka.sparse_encode(X, X[:10])
        monkeypatch.setenv("KERNELATOMS_DEVICE", NAME)
        same(ka.sparse_encode(X, X[:10]), expected)
        assert sum(blocks) == len(X)
        if CUDA:
            blocks.clear()
            with ka.use_device("cpu"):
                ka.sparse_encode(X, X[:10])
            assert not blocks
        blocks.clear()
        monkeypatch.setenv("KERNELATOMS_DEVICE", "nowhere")
        with pytest.raises(ValueError, match="KERNELATOMS_DEVICE=nowhere: device must be 'cpu'"):
            ka.sparse_encode(X, X[:10])
        with ka.use_device(NAME):
            same(ka.sparse_encode(X, X[:10]), expected)
        monkeypatch.setenv("KERNELATOMS_DEVICE", "")
        blocks.clear()
        same(ka.sparse_encode(X, X[:10]), expected)
        assert not blocks

    def test_it_ends_with_the_context(self, chosen, blocks):
        X, _ = draw()
        with pytest.raises(KeyError), chosen():
            raise KeyError
        ka.sparse_encode(X, X[:10])
        assert not blocks

    def test_it_is_one_of_a_thread(self, chosen, blocks):
        X, _ = draw()
        with chosen():
            other = threading.Thread(target=ka.sparse_encode, args=(X, X[:10]))
            other.start()
            other.join()
        assert not blocks

    def test_contexts_in_contexts_and_in_threads(self, chosen, blocks):
        X, atoms = draw()[0], draw(1, 20)[0]
        expected, both_in = ka.sparse_encode(X, atoms), threading.Barrier(2)
        found = []

        def ask(fails):
            try:
                with chosen():
                    both_in.wait()
                    same(ka.sparse_encode(X, atoms), expected)
                    both_in.wait()
                    if fails:
                        raise KeyError
                    same(ka.sparse_encode(X, atoms), expected)
                    found.append(len(X))
            except KeyError:
                both_in.wait()
                blocks_before = len(blocks)
                same(ka.sparse_encode(X, atoms), expected)
                found.append(len(blocks) - blocks_before)
            else:
                both_in.wait()

        others = [threading.Thread(target=ask, args=(fails,)) for fails in (False, True)]
        with chosen():
            for other in others:
                other.start()
            for other in others:
                other.join()
            assert sorted(found) == [0, len(X)]
            ka.sparse_encode(X, atoms)
            with pytest.raises(KeyError), chosen():
                fail_after(lambda: ka.sparse_encode(X, atoms))
            ka.sparse_encode(X, atoms)
            assert sum(blocks) == 6 * len(X)

    def test_whatever_else_torch_is_told(self, chosen, blocks):
        X, _ = draw(dtype=np.float32)
        model = made("KSVD").fit(X)
        expected = model.transform(X)
        kinds = ("cpu", *(["cuda"] if CUDA else []))
        for setting in (torch.device("meta"), *(torch.autocast(k, torch.bfloat16) for k in kinds)):
            with chosen(), setting:
                same(model.transform(X), expected, 1e-4)
                same(made("KSVD").fit(X).components_, model.components_, 1e-3)

    def test_the_cpu_is_no_device_whatever_the_default(self, blocks):
        X, _ = draw()
        with ka.use_device("cpu"), torch.device("meta"):
            ka.sparse_encode(X, X[:10])
        assert not blocks

    def test_the_cpu_is_no_device(self, blocks):
        X, _ = draw()
        with ka.use_device("cpu"), ka.use_device(torch.device("cpu")):
            ka.sparse_encode(X, X[:10])
        assert not blocks

    def test_tensors_say_themselves_where_they_are(self, chosen, blocks):
        X, _ = draw()
        with chosen():
            found = ka.sparse_encode(*(torch.tensor(rows, device=NAME) for rows in (X, X[:10])))
        assert isinstance(found, torch.Tensor)
        assert not blocks

    @pytest.mark.parametrize("name", ["gpu", "", "cuda:x", None, 0, "mps"])
    def test_wrong_names(self, name):
        with pytest.raises(ValueError, match="device must be 'cpu', 'cuda'"), ka.use_device(name):
            pytest.fail("chosen")

    def test_cards_that_are_not_there(self):
        message = "there are . CUDA devices" if CUDA else "torch finds no CUDA"
        with pytest.raises(ValueError, match=message), ka.use_device("cuda:9"):
            pytest.fail("chosen")

    def test_clones_know_nothing_of_it(self, chosen):
        with chosen():
            assert clone(made("KSVD")).get_params() == made("KSVD").get_params()
