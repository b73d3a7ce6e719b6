"""KSCDL as the FKSC paper publishes it: its solvers, stops, step and start; the same elsewhere."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.estimator_checks import check_estimator

from kernelatoms import KSCDL, ClassDictionaryClassifier, load_model, save_model, sparse_encode
from kernelatoms.coding import OMP, GivenProblem
from kernelatoms.coding.lasso import fksc, ksc
from kernelatoms.coding.problem import linear_problems
from kernelatoms.coding.pursuits import KSC
from kernelatoms.learning.loop import learn
from kernelatoms.learning.runs import UpdateResult
from kernelatoms.learning.state import LearnerState
from kernelatoms.similarity.factory import names_of_kernels
from oracles import kscdl as book

PSD_KERNELS = [name for name in names_of_kernels("has_gradient") if name != "sigmoid"]
PRINTED = {"method": "fksc", "change_tol": 1e-3, "step": 1.0, "dict_init": "normal"}


@given(
    seed=st.integers(0, 2**31),
    n_features=st.integers(1, 6),
    n_atoms=st.integers(1, 9),
    kernel=st.sampled_from(PSD_KERNELS),
    method=st.sampled_from(["ksc", "fksc"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_published_solvers_have_the_codes_of_lasso(
    seed, n_features, n_atoms, kernel, method, dtype
):
    """Both are minima, to a gap of 1e-6 of k(x, x)."""
    X = np.random.default_rng(seed).standard_normal((25, n_features)).astype(dtype)
    model = KSCDL(
        n_atoms, alpha=0.2, kernel=kernel, degree=2, method=method, max_iter=1, random_state=seed
    ).fit(X)
    assert model.components_.dtype == dtype
    atoms, rows = (A.astype(np.float64) for A in (model.components_, X))
    options = {"metric": kernel, "degree": 2, "coef0": 1, "gamma": model.gamma_}
    K, B, C = (
        pairwise_kernels(A, D, filter_params=True, **options)
        for A, D in ((atoms, atoms), (rows, atoms), (rows, rows))
    )
    reached = []
    for solver in ("lasso", method):
        W = model.set_params(method=solver).transform(X).toarray().astype(np.float64)
        bent = 0.5 * np.einsum("ij,jk,ik->i", W, K, W) - (W * B).sum(axis=1)
        reached.append(bent + 0.2 * np.abs(W).sum(axis=1))
    np.testing.assert_allclose(*reached, rtol=0, atol=1e-5 * C.diagonal().max())


def test_ksc_and_fksc_learn_the_same_atoms(rng):
    X = rng.standard_normal((40, 3))
    atoms = [
        KSCDL(5, alpha=0.1, gamma=0.5, method=method, max_iter=4, tol=0, random_state=0)
        .fit(X)
        .components_
        for method in ("lasso", "ksc", "fksc")
    ]
    np.testing.assert_allclose(atoms[1], atoms[0], atol=1e-2)
    np.testing.assert_allclose(atoms[2], atoms[1], atol=1e-2)


def test_linear_kernel_is_the_linear_lasso(rng):
    X = rng.standard_normal((30, 4))
    model = KSCDL(6, alpha=0.2, kernel="linear", method="fksc", max_iter=3, random_state=0).fit(X)
    linear = sparse_encode(X, model.components_, method="lasso", alpha=0.2)
    np.testing.assert_allclose(model.transform(X).toarray(), linear.toarray(), atol=5e-3)


@pytest.mark.parametrize("method", ["ksc", "fksc"])
def test_objective_does_not_rise_with_a_line_search(method, rng):
    X = rng.standard_normal((40, 3))
    model = KSCDL(6, alpha=0.05, gamma=0.5, method=method, max_iter=8, tol=0, random_state=0)
    assert (np.diff(model.fit(X).objective_) <= 1e-6 * len(X)).all()


@pytest.mark.parametrize("method", ["ksc", "fksc"])
def test_as_printed_against_plain_numpy(method, rng):
    X, start = rng.standard_normal((20, 3)), rng.standard_normal((5, 3))
    options = {"alpha": 0.05, "gamma": 0.5, "change_tol": 1e-2, "step": 1.5}
    model = KSCDL(method=method, dict_init=start, max_iter=6, **options).fit(X)
    atoms, reached = book.as_printed(X, start, 0.05, 0.5, 1.5, 1e-2, 6)
    if method == "ksc":
        np.testing.assert_allclose(model.objective_, reached, rtol=1e-9)
        np.testing.assert_allclose(model.state_.dictionary, atoms, atol=1e-9)
    else:  # stopped somewhere else on the way to the same codes
        np.testing.assert_allclose(model.objective_, reached[: model.n_iter_], rtol=3e-2)


def test_learning_stops_on_the_change_of_the_atoms(rng):
    X, start = rng.standard_normal((20, 3)), rng.standard_normal((5, 3))
    options = {"alpha": 0.05, "gamma": 0.5, "step": 1.0, "method": "ksc", "dict_init": start}
    _, reached = book.as_printed(X, start, 0.05, 0.5, 1.0, 0.02, 100)
    model = KSCDL(change_tol=0.02, **options).fit(X)
    assert 1 < model.n_iter_ == len(reached) < 100
    assert KSCDL(change_tol=10.0, **options).fit(X).n_iter_ == 1


class Halving:
    """An update that makes all atoms half as long."""

    accepts = (OMP,)

    def apply(self, rows, codes, dictionary):
        return UpdateResult(dictionary / 2, 1.0)

    def new_atoms(self, rows):
        return None


@pytest.mark.parametrize(("change_tol", "n_passes"), [(0.5, 1), (0.49, 3)])
def test_the_change_is_measured_by_the_atoms_before_the_pass(change_tol, n_passes):
    """|D - D_before| = |D_before| / 2, which is |D|."""
    X = np.eye(3)
    state = LearnerState.start(X)
    learn(
        linear_problems, X, OMP(1), Halving(), state, max_iter=3, tol=0, change_tol=change_tol
    )  # fmt: skip
    assert len(state.objective) == n_passes


def test_unused_atoms_stay_with_the_papers_step(rng):
    X = rng.standard_normal((20, 2))
    far = np.full((1, 2), 50.0)
    start = np.vstack([X[:3], far])
    options = {"alpha": 0.1, "gamma": 1.0, "max_iter": 2, "dict_init": start}
    printed = KSCDL(method="fksc", change_tol=0.0, step=1.0, **options).fit(X)
    np.testing.assert_array_equal(printed.components_[3], far[0])
    assert (KSCDL(**options).fit(X).components_[3] != far[0]).all()


def test_the_papers_step_makes_no_atom_longer_than_the_longest_row(rng):
    """Else l1 codes under an unbounded kernel shrink as atoms grow."""
    X = rng.standard_normal((30, 3))
    model = KSCDL(4, kernel="linear", alpha=0.5, step=1.0, max_iter=20, random_state=0).fit(X)
    longest = np.linalg.norm(X, axis=1).max()
    lengths = np.linalg.norm(model.state_.dictionary, axis=1)
    assert lengths.max() == pytest.approx(longest)


def test_nothing_coded_is_nothing_changed(rng):
    """W = 0 changes by 0 of 0, which counts as no change; so do atoms that nobody uses."""
    X = rng.standard_normal((10, 2))
    start = np.full((3, 2), 100.0)
    with pytest.warns(UserWarning, match="empty"):
        model = KSCDL(gamma=1.0, **{**PRINTED, "dict_init": start}).fit(X)
    np.testing.assert_array_equal(model.components_, start)
    assert model.n_iter_ == 1
    problem = GivenProblem(np.eye(3), np.zeros((4, 3)), np.ones(4))
    for solve in (ksc, fksc):
        codes = solve(problem, 0.1, change_tol=1e-3)
        assert codes.n_nonzero == 0
        assert (codes.n_passes <= 2).all()  # one in each stage


def test_fitting_twice_is_fitting_once(rng):
    X = rng.standard_normal((30, 3))
    model = KSCDL(5, alpha=0.02, gamma=0.3, max_iter=4, random_state=0, **PRINTED)
    once = clone(model).fit(X)
    again = clone(model).fit(X).fit(X)
    np.testing.assert_array_equal(once.components_, again.components_)
    np.testing.assert_array_equal(once.objective_, again.objective_)
    # In two halves, each of which goes on where the last one stopped.
    halves = clone(model).set_params(max_iter=2, warm_start=True).fit(X).fit(X)
    np.testing.assert_array_equal(halves.components_, once.components_)


class TestSparseEncode:
    def problem(self, rng):
        X, D = rng.standard_normal((8, 3)), rng.standard_normal((12, 3))
        return X, D, {"alpha": 0.05, "kernel": "rbf", "gamma": 0.3}

    @pytest.mark.parametrize("change_tol", [0.3, 1e-3])
    def test_the_stop_is_the_papers(self, change_tol, rng):
        X, D, options = self.problem(rng)
        codes = sparse_encode(X, D, method="ksc", change_tol=change_tol, **options).toarray()
        K, B = (book.matrix(book.rbf(0.3), A, D) for A in (D, X))
        by_hand = [book.published_codes(K, b, 0.05, change_tol) for b in B]
        np.testing.assert_allclose(codes, by_hand, atol=1e-9)
        model = KSCDL(method="ksc", alpha=0.05, gamma=0.3, change_tol=change_tol, dict_init=D)
        model.fit(X)
        learned = model.components_
        K, B = (book.matrix(book.rbf(0.3), A, learned) for A in (learned, X))
        by_hand = [book.published_codes(K, b, 0.05, change_tol) for b in B]
        np.testing.assert_allclose(model.transform(X).toarray(), by_hand, atol=1e-9)

    def test_the_gap_tells_what_is_left(self, rng):
        X, D, options = self.problem(rng)
        gaps = [
            sparse_encode(X, D, method="fksc", change_tol=tol, return_gap=True, **options)[1].max()
            for tol in (0.5, 1e-6)
        ]
        assert gaps[0] > 1e-4 > gaps[1]

    def test_a_hundred_passes_at_most(self, rng):
        D = 1 + 1e-3 * rng.standard_normal((30, 5))
        X = 1 + 1e-3 * rng.standard_normal((6, 5))
        gram, corr = D @ D.T, X @ D.T
        problem = GivenProblem(gram, corr, (X**2).sum(axis=1))
        for solve in (ksc, fksc):
            assert (solve(problem, 1e-4, change_tol=0.0).n_passes == 100).all()
            assert (solve(problem, 1e-4, change_tol=0.0, max_passes=7).n_passes == 7).all()

    @pytest.mark.filterwarnings("error")
    def test_rows_of_zeros_are_no_trouble(self, rng):
        X, D, _ = self.problem(rng)
        X[:3] = 0
        for method in ("ksc", "fksc"):
            codes = sparse_encode(X, D, method=method, alpha=0.05, change_tol=1e-3).toarray()
            assert not codes[:3].any()
            assert codes[3:].any()

    def test_one_stop_only(self, rng):
        X, D, options = self.problem(rng)
        with pytest.raises(ValueError, match="gap_tol and change_tol are two stops"):
            sparse_encode(X, D, method="ksc", change_tol=1e-3, gap_tol=1e-3, **options)
        with pytest.raises(ValueError, match="change_tol must be at least 0"):
            sparse_encode(X, D, method="ksc", change_tol=-1, **options)


def test_stage_one_of_fksc_stops_at_the_same_change(rng):
    """Both repeats of Algorithm 2 end "until w converges": at one tolerance."""
    D = rng.standard_normal((30, 20))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((10, 20))
    problem = GivenProblem(D @ D.T, X @ D.T, (X**2).sum(axis=1))
    passes = [fksc(problem, 0.1, change_tol=tol).n_passes.sum() for tol in (0.5, 1e-3)]
    assert passes[0] <= 4 * len(X) < passes[1]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "omp"}, "method must be one of 'lasso', 'ksc', 'fksc', got 'omp'"),
        ({"change_tol": 1e-3}, "change_tol belongs to method='ksc' or 'fksc', not to 'lasso'"),
        ({"method": "ksc", "change_tol": -1.0}, "change_tol must be at least 0"),
        ({"method": "ksc", "change_tol": 1e-3, "tol": 0.1}, "tol does not count where change_tol"),
        ({"method": "fksc", "positive": True}, "positive belongs to method='lasso';"),
        ({"step": 0}, "step must be above 0"),
        ({"step": 2.5}, "step must be .* at most 2"),
    ],
)
def test_bad_parameters_are_named(parameters, words, rng):
    for fit in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=words):
            getattr(KSCDL(**parameters), fit)(rng.standard_normal((9, 2)))


def test_what_does_not_go_together(rng):
    X = rng.standard_normal((12, 2))
    with pytest.raises(ValueError, match="step belongs to fit, not to partial_fit"):
        KSCDL(step=1.0).partial_fit(X)
    batches = KSCDL(3, method="fksc", change_tol=1e-3, gamma=1.0).partial_fit(X).partial_fit(X)
    assert batches.state_.n_batches == 2
    local = ClassDictionaryClassifier(KSCDL(4, method="fksc", gamma=1.0), n_neighbors=2)
    with pytest.raises(ValueError, match=r"method='fksc' codes over all atoms .* n_neighbors"):
        local.fit(X, np.arange(12) % 2).predict(X)
    with pytest.raises(ValueError, match="takes no n_neighbors"):
        KSC(0.1)(GivenProblem(np.eye(2), X, np.ones(12)), np.zeros((12, 1), np.int32))
    with pytest.raises(ValueError, match="method must be one of 'ksc', 'fksc', got 'lasso'"):
        KSC(0.1, "lasso")(GivenProblem(np.eye(2), X, np.ones(12)))


def test_a_start_that_is_far_from_all_rows_is_named(rng):
    X = 30 + 1e-2 * rng.standard_normal((20, 3))
    with pytest.warns(UserWarning, match=r"start from rows \(dict_init=None\)"):
        KSCDL(4, dict_init="normal", gamma=1.0, step=1.0, max_iter=2, random_state=0).fit(X)


def test_drawn_atoms_of_classes_are_clipped_with_one_warning(rng):
    """``dict_init="normal"`` gives no atoms: their number is that of the class's rows, at most."""
    X, y = rng.standard_normal((12, 2)), np.repeat([0, 1, 1], 4)
    learner = KSCDL(9, gamma=0.1, alpha=0.01, max_iter=2, dict_init="normal")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ClassDictionaryClassifier(learner, random_state=0).fit(X, y)
    assert ["smallest class has rows (4)" in str(one.message) for one in said] == [True]
    assert [own.n_atoms_ for own in model.dictionaries_] == [4, 8]


def test_model_files_keep_the_choice(tmp_path, rng):
    X = rng.standard_normal((20, 3))
    model = KSCDL(4, alpha=0.02, gamma=0.3, max_iter=2, random_state=0, **PRINTED).fit(X)
    save_model(model, tmp_path / "model.skops")
    again, _ = load_model(tmp_path / "model.skops")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(X).toarray(), model.transform(X).toarray())


@pytest.mark.slow
def test_scikit_learns_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(KSCDL(method="fksc", change_tol=1e-3, step=1.0, max_iter=3))
