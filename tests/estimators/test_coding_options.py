"""What pursuits can be asked for: stops, signs, candidates, energies, many atoms, residuals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import oracles.pursuits
from kernelatoms import (
    KSCDL,
    KSVD,
    ClassDictionaryClassifier,
    KernelKSVD,
    SparseCoder,
    residual_norms,
    sparse_encode,
)
from kernelatoms.coding import problem as sizes
from kernelatoms.engine.cpu import l1, products


def draw(rng, n=20, n_features=12, n_atoms=40):
    D = rng.standard_normal((n_atoms, n_features))
    return rng.standard_normal((n, n_features)), D / np.linalg.norm(D, axis=1, keepdims=True)


def left_of(X, D, codes):
    return np.linalg.norm(X - codes @ D, axis=1)


@given(
    seed=st.integers(0, 2**31), absolute=st.booleans(), selection=st.sampled_from(["omp", "ols"])
)
def test_every_signal_stops_at_its_own_residual(seed, absolute, selection):
    rng = np.random.default_rng(seed)
    X, D = draw(rng)
    bounds = rng.uniform(0.05, 0.9, len(X)) * (np.linalg.norm(X, axis=1) if absolute else 1)
    codes = sparse_encode(X, D, max_residual=bounds, absolute=absolute, selection=selection)
    limit = bounds if absolute else bounds * np.linalg.norm(X, axis=1)
    assert (left_of(X, D, codes) <= limit * (1 + 1e-9)).all()
    for x, w, bound in zip(X, codes.toarray(), limit, strict=True):
        support, _ = oracles.pursuits.omp(
            x, D, 12, max_residual=bound / np.linalg.norm(x), ols=selection == "ols"
        )
        assert sorted(support) == np.flatnonzero(w).tolist()


def test_one_number_is_that_number_for_all(rng):
    X, D = draw(rng)
    one = sparse_encode(X, D, max_residual=0.3)
    many = sparse_encode(X, D, max_residual=np.full(len(X), 0.3))
    np.testing.assert_array_equal(one.toarray(), many.toarray())
    far = sparse_encode(X, D, max_residual=100.0, absolute=True)
    assert far.nnz == 0
    X = D[:20] + 0.1 * X
    kernel = sparse_encode(X, D, max_residual=0.4, absolute=True, kernel="rbf", gamma=0.1)
    norms = residual_norms(X, D, kernel, kernel="rbf", gamma=0.1)
    assert (norms <= 0.4 + 1e-6).all()
    assert 20 <= kernel.nnz < 200


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"max_residual": np.ones(3)},
            ValueError,
            r"one for each of the 20 signals, got shape",
        ),
        (
            {"max_residual": np.full(20, 1.5)},
            ValueError,
            r"max_residual\[0\] must be at least 0",
        ),
        ({"max_residual": -1.0, "absolute": True}, ValueError, "max_residual must be at least 0"),
        ({"absolute": True}, ValueError, "absolute=True tells what max_residual means"),
        ({"absolute": 1, "max_residual": 0.1}, TypeError, "absolute must be True or False, got 1"),
        ({"positive": "no"}, TypeError, "positive must be True or False, got 'no'"),
        ({"method": "ridge"}, ValueError, "method='ridge' needs mu"),
        ({"method": "ridge", "mu": 0.0}, ValueError, "mu must be above 0"),
        ({"mu": 1.0}, ValueError, "mu belongs to method='ridge', not to 'omp'"),
        ({"energy": np.ones(20)}, ValueError, "energy belongs to kernel='precomputed'"),
        ({"candidates": np.zeros((20, 2), int)}, ValueError, "row 0 names one twice"),
        ({"candidates": np.full((20, 2), 40)}, ValueError, r"candidates must be atoms 0\.\.39"),
    ],
)
def test_bad_options_are_named(options, error, message, rng):
    with pytest.raises(error, match=message):
        sparse_encode(*draw(rng), **options)


# Signs --------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**31), kernel=st.sampled_from(["linear", "rbf", "poly"]))
def test_non_negative_codes_have_no_way_down(seed, kernel):
    """On the support the gradient vanishes, and coefficients are positive."""
    rng = np.random.default_rng(seed)
    X, D = (np.abs(rows) for rows in draw(rng, n=8))
    options = {"kernel": kernel, "gamma": 0.2, "degree": 2}
    w = sparse_encode(X, D, n_nonzero_coefs=4, positive=True, sparse_output=False, **options)
    assert (w >= 0).all()
    assert ((w > 0).sum(axis=1) <= 4).all()
    from kernelatoms.similarity import make_kernel

    k = make_kernel(kernel, gamma=0.2, degree=2)
    gradient = k(X, D) - w @ k(D, D)
    scale = np.sqrt(k.diag(X))[:, None] * np.sqrt(k.diag(D))
    assert (np.abs(np.where(w > 0, gradient / scale, 0)) < 1e-6).all()


# Energies and certificates ------------------------------------------------------------------------


def test_given_energies_are_those_of_the_kernel(rng):
    X, D = draw(rng)
    given_products = {"kernel": "precomputed", "energy": np.vecdot(X, X)}
    for options in ({"max_residual": 0.4}, {"method": "lasso", "alpha": 0.2}):
        rows = sparse_encode(X, D, **options)
        precomputed = sparse_encode(X @ D.T, D @ D.T, **options, **given_products)
        np.testing.assert_allclose(precomputed.toarray(), rows.toarray(), atol=1e-6)
    norms = residual_norms(X @ D.T, D @ D.T, rows, **given_products)
    np.testing.assert_allclose(norms, left_of(X, D, rows), atol=1e-7)
    with pytest.raises(ValueError, match="max_residual needs k"):
        sparse_encode(X @ D.T, D @ D.T, kernel="precomputed", max_residual=0.4)
    one_atom = np.square(X @ D.T).max(axis=1)
    for energy, whose in ((0.9 * one_atom, "one atom alone"), (1.01 * one_atom, "the code of")):
        with pytest.raises(ValueError, match=rf"energy\[0\] = .* is less than the .* that {whose}"):
            sparse_encode(X @ D.T, D @ D.T, kernel="precomputed", energy=energy, n_nonzero_coefs=4)
    for energy, message in ((np.ones(3), "energy must hold k"), (-np.ones(20), "not be negative")):
        with pytest.raises(ValueError, match=message):
            sparse_encode(X @ D.T, D @ D.T, kernel="precomputed", energy=energy)


def test_a_missed_gap_brings_a_warning(rng, monkeypatch):
    X, D = draw(rng)
    for name in ("MOST_ACTIVE", "MOST_ACTIVE_AT_ALL"):
        monkeypatch.setattr(l1, name, 0)
    monkeypatch.setattr(l1, "MOST_PASSES", 1)
    with pytest.warns(ConvergenceWarning, match="gap above gap_tol=1e-06 of the energy for 20 of"):
        sparse_encode(X, D, method="lasso", alpha=0.01)


def objective(X, D, w, alpha):
    X, D, w = (np.asarray(part, np.longdouble) for part in (X, D, w))
    return 0.5 * ((X - w @ D) ** 2).sum(axis=1) + alpha * np.abs(w).sum(axis=1)


def test_gaps_are_those_of_the_codes_that_are_returned(rng):
    """Rounded to float32, codes are farther from the minimum than those that were found."""
    X, D = (rows.astype(np.float32) for rows in draw(rng, n=30, n_atoms=60))
    w, gap = sparse_encode(
        X, D, method="lasso", alpha=0.05, gap_tol=1e-13, return_gap=True, sparse_output=False
    )
    exact, found = sparse_encode(
        X.astype(float), D.astype(float), method="lasso", alpha=0.05, gap_tol=1e-13,
        return_gap=True, sparse_output=False,
    )  # fmt: skip
    excess = objective(X, D, w, 0.05) - objective(X, D, exact, 0.05)
    assert w.dtype == np.float32
    assert (excess > found).all()  # which the gap of the code that was found would not tell
    assert (gap >= excess).all()


# Many atoms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"n_nonzero_coefs": 5},
        {"n_nonzero_coefs": 5, "selection": "ols"},
        {"n_nonzero_coefs": 5, "positive": True},
        {"max_residual": 0.5},
        {"method": "lasso", "alpha": 0.1},
        {"method": "lasso", "alpha": 0.1, "positive": True},
    ],
)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_a_gram_matrix_codes_are_the_same(options, kernel, dtype, rng, monkeypatch):
    X, D = (rows.astype(dtype) for rows in draw(rng, n=25, n_atoms=300))
    options = {**options, "kernel": kernel, "gamma": 0.1}
    if options.get("method") == "lasso":
        options["gap_tol"] = 1e-10
    expected = sparse_encode(X, D, **options).toarray()
    with monkeypatch.context() as patch:
        patch.setattr(products, "_FEWEST_ATOMS", 100)
        patch.setattr(products, "_MOST_BYTES", 1000)
        for name in ("LinearAtoms", "KernelAtoms"):
            home = f"kernelatoms.coding.atom_products.{name}.gram"
            patch.setattr(home, property(lambda self: 1 / 0))
        found = sparse_encode(X, D, **options).toarray()
    if dtype == np.float32 and "n_nonzero_coefs" not in options:
        # A bound that rounding decides, a gap at rounding level: residuals agree, codes need not.
        # |D (w - w')| <= sqrt(2 gap) for l1 codes, and a gap is at most 32 eps of the energy.
        found, expected = (
            residual_norms(X, D, codes, kernel=kernel, gamma=0.1) for codes in (found, expected)
        )
    tolerance = 2e-2 if dtype == np.float32 else 2e-4
    np.testing.assert_allclose(found, expected, atol=tolerance)


def test_the_gram_matrix_is_made_where_it_saves_work(rng):
    from kernelatoms.coding import LinearProblem

    few, many = rng.standard_normal((10, 4)), rng.standard_normal((5000, 4))
    atoms = rng.standard_normal((4096, 4))
    assert sizes.prefers_no_gram(LinearProblem(few, atoms), 10)
    assert not sizes.prefers_no_gram(LinearProblem(many, atoms), 10)
    assert not sizes.prefers_no_gram(LinearProblem(few, atoms[:4095]), 10)
    known = LinearProblem(few, atoms)
    _ = known.gram
    assert not sizes.prefers_no_gram(known, 10)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
@pytest.mark.parametrize(
    "options",
    [{"n_nonzero_coefs": 3}, {"method": "lasso", "alpha": 0.1}, {"method": "ridge", "mu": 0.1}],
)
def test_candidates_are_dictionaries_of_their_own(kernel, options, rng):
    X, D = draw(rng, n=15)
    lists = np.array([rng.permutation(40)[:9] for _ in X])
    lists[::3, 5:] = -1
    options = {**options, "kernel": kernel, "gamma": 0.2}
    codes = sparse_encode(X, D, candidates=lists, **options).toarray()
    for x, w, own in zip(X, codes, lists, strict=True):
        own = np.sort(own[own >= 0])
        alone = sparse_encode(x[None], D[own], **options).toarray()[0]
        np.testing.assert_allclose(w[own], alone, atol=1e-6)
        assert np.count_nonzero(w) == np.count_nonzero(w[own])


# Other ways in and out ----------------------------------------------------------------------------


class NamedCoder(SparseCoder):
    """A subclass with a parameter of its own."""

    def __init__(self, dictionary, *, title="", n_nonzero_coefs=None):
        super().__init__(dictionary, n_nonzero_coefs=n_nonzero_coefs)
        self.title = title


def test_a_coder_may_have_parameters_of_its_own(rng):
    X, D = rng.standard_normal((5, 6)), rng.standard_normal((8, 6))
    codes = NamedCoder(D, title="mine", n_nonzero_coefs=2).fit(X).transform(X)
    expected = SparseCoder(D, n_nonzero_coefs=2).fit(X).transform(X)
    np.testing.assert_array_equal(codes.toarray(), expected.toarray())


def test_a_coder_decodes_without_fit(rng):
    D = rng.standard_normal((8, 6))
    codes = np.eye(8)[:3]
    np.testing.assert_array_equal(SparseCoder(D).inverse_transform(codes), D[:3])


def test_a_coder_is_the_function(rng):
    X, D = draw(rng)
    for options in (
        {"n_nonzero_coefs": 2},
        {"method": "lasso", "alpha": 0.2, "positive": True},
        {"method": "ridge", "mu": 0.1},
        {"max_residual": 0.3, "kernel": "rbf", "gamma": "scale"},
    ):
        coder = SparseCoder(D, **options).fit(X)
        expected = sparse_encode(X, D, **options)
        np.testing.assert_array_equal(coder.transform(X).toarray(), expected.toarray())
    back = SparseCoder(D, n_nonzero_coefs=2).fit(X)
    codes = back.transform(X)
    np.testing.assert_allclose(back.inverse_transform(codes), codes @ D)
    assert back.get_feature_names_out()[0] == "sparsecoder0"
    with pytest.raises(ValueError, match="inverse_transform needs kernel='linear'"):
        SparseCoder(D, kernel="rbf").fit(X).inverse_transform(codes)
    with pytest.raises(ValueError, match="kernel='precomputed' has no rows to code"):
        SparseCoder(D, kernel="precomputed").fit(X)


def test_ridge_codes_solve_the_normal_equations(rng):
    X, D = draw(rng)
    w = sparse_encode(X, D, method="ridge", mu=0.3, sparse_output=False)
    np.testing.assert_allclose(w @ (D @ D.T + 0.3 * np.eye(40)), X @ D.T, atol=1e-10)
    np.testing.assert_allclose(residual_norms(X, D, w), left_of(X, D, w))


def test_residual_norms_of_any_codes(rng):
    X, D = draw(rng)
    w = rng.standard_normal((20, 40))
    np.testing.assert_allclose(residual_norms(X, D, w), left_of(X, D, w))
    phi = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0}
    features = [np.einsum("si,sj->sij", rows, rows).reshape(len(rows), -1) for rows in (X, D)]
    np.testing.assert_allclose(residual_norms(X, D, w, **phi), left_of(*features, w))
    learner = KernelKSVD(10, n_nonzero_coefs=3, random_state=0).fit(X)
    codes = learner.transform(X)
    energy = len(X)  # k(x, x) = 1
    assert 1 - (residual_norms(X, learner, codes) ** 2).sum() / energy == pytest.approx(
        learner.score(X)
    )
    with pytest.raises(ValueError, match=r"codes must have shape \(20, 40\)"):
        residual_norms(X, D, w[:3])


def test_kscdl_codes_by_omp_where_asked(rng):
    X = rng.random((80, 6))
    model = KSCDL(20, alpha=0.05, random_state=0).fit(X)
    atoms = model.components_
    by_omp = model.set_params(transform_n_nonzero_coefs=3).transform(X)
    expected = sparse_encode(X, atoms, n_nonzero_coefs=3, kernel="rbf", gamma=model.gamma_)
    np.testing.assert_allclose(by_omp.toarray(), expected.toarray(), atol=1e-10)
    assert np.diff(by_omp.indptr).max() == 3
    with pytest.warns(UserWarning, match="transform_n_nonzero_coefs=50 is more than there are at"):
        model.set_params(transform_n_nonzero_coefs=50).transform(X)


def test_collective_codes_use_what_was_asked_for(rng):
    """Joint codes span all atoms: the smallest class does not clip them."""
    X = rng.standard_normal((60, 10))
    y = np.repeat([0, 1, 2], [25, 32, 3])
    model = ClassDictionaryClassifier(
        KSVD(8, n_nonzero_coefs=6), scheme="collective", random_state=0
    )
    with pytest.warns(UserWarning, match="n_atoms=8 is more than the smallest class") as warned:
        model.fit(X, y)
    assert len(warned) == 1
    codes, _ = model._code_jointly(X)
    assert np.diff(codes.to_csr().indptr).max() == 6


def test_estimates_of_incomplete_signals_are_never_silent(rng):
    """Kernel values from parts of rows need not belong to any vector: they are made to."""
    D = np.abs(rng.standard_normal((60, 16)))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = D[:30].copy()
    X[:, :12] = np.nan
    options = {"kernel": "poly", "degree": 4, "gamma": 1.0, "coef0": 0.0, "n_nonzero_coefs": 8}
    with pytest.warns(UserWarning, match="estimates that contradict each other"):
        codes = sparse_encode(X, D, **options)
    G = (D @ D.T) ** 4
    energies = np.vecdot(codes @ G, codes.toarray())
    estimate = (np.nansum(X**2, axis=1) * 16 / 4) ** 4
    assert (energies <= estimate * (1 + 1e-6)).all()
