"""``KSAD`` and ``KSADClassifier``: identities, batches, neighbours, and what users get wrong."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, normalize

import oracles.ksad
from contracts.learner import LearnerContract
from kernelatoms import (
    KSAD,
    ClassDictionaryClassifier,
    KernelLinearizer,
    KSADClassifier,
    explain,
    load_model,
    preimage,
    save_model,
)
from kernelatoms.features.linear_algebra import leading_eigenpairs
from kernelatoms.learning.procrustes import polar_factor
from kernelatoms.similarity import RBFKernel

PAPER = {"kernel": "poly", "degree": 8, "gamma": 1, "coef0": 0}


def blobs(rng, n=90, n_features=5, n_classes=3, dtype=np.float64):
    labels = rng.integers(n_classes, size=n)
    labels[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)
    centres = 2 * rng.standard_normal((n_classes, n_features))
    X = centres[labels] + 0.7 * rng.standard_normal((n, n_features))
    return X.astype(dtype), np.array(["a", "b", "c", "d", "e", "f"])[labels]


class TestKSADAsLearner(LearnerContract):
    one_atom = {"l1_weight": 0.3}  # noqa: RUF012

    def make(self, **parameters):
        return KSAD(**parameters)


class TestKSAD:
    def test_virtual_samples_are_coded_as_the_paper_says(self, rng):
        X = rng.standard_normal((60, 4))
        model = KSAD(12, l1_weight=0.2, max_iter=4, tol=0, random_state=3).fit(X)
        state = np.random.RandomState(3)
        linearizer = KernelLinearizer(
            gamma="spread", n_landmarks=48, n_components=12, random_state=state
        ).fit(X)
        F = linearizer.transform(X)
        Z = polar_factor(F[np.sort(state.permutation(60)[:12])])
        weight = 0.2 * np.sqrt(np.mean(np.sum(F**2, axis=1)))
        J = []
        for _ in range(4):
            Q = oracles.ksad.soft(F @ Z.T, weight / 2)
            Z = oracles.ksad.procrustes(F.T, Q.T).T
            J.append(np.sum((F - Q @ Z) ** 2) + weight * np.abs(Q).sum())
        assert model.l1_weight_ == pytest.approx(weight)
        np.testing.assert_allclose(model.objective_, J)
        np.testing.assert_allclose(model.dual_coef_, linearizer.dual_coef_ @ Z.T, atol=1e-6)
        codes = oracles.ksad.soft(F @ Z.T, weight / 2)
        np.testing.assert_allclose(model.transform(X).toarray(), codes, atol=1e-8)

    @given(
        seed=st.integers(0, 2**31),
        kernel=st.sampled_from(["linear", "rbf", "poly", "laplacian"]),
        l1_weight=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
        sampling=st.sampled_from(["uniform", "kmeans", "rpcholesky"]),
        dtype=st.sampled_from([np.float32, np.float64]),
    )
    def test_atoms_are_orthonormal_and_the_objective_never_rises(
        self, seed, kernel, l1_weight, sampling, dtype
    ):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 6)).astype(dtype)
        gamma = None if kernel == "linear" else "spread"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the rank of a linear kernel
            model = KSAD(
                9, kernel=kernel, gamma=gamma, l1_weight=l1_weight, sampling=sampling, tol=0,
                max_iter=6, random_state=0,
            ).fit(X)  # fmt: skip
        eps = np.finfo(dtype).eps
        close = 1e-12 if dtype == np.float64 else 1e-5
        atoms = model.state_.dictionary.astype(np.float64)
        assert np.abs(atoms @ atoms.T - np.eye(len(atoms))).max() < close
        assert np.abs(model.atom_gram_ - np.eye(model.n_atoms_)).max() < close
        F_energy = len(X) * (model.l1_weight_ / l1_weight) ** 2 if l1_weight else np.sum(X**2) ** 2
        assert np.all(np.diff(model.objective_) <= 50 * eps * (F_energy + model.objective_[0]))

    def test_without_a_threshold_nothing_in_the_span_is_lost(self, rng):
        X = rng.standard_normal((50, 4))
        model = KSAD(50, l1_weight=0, n_landmarks=50, gamma=0.3, random_state=0).fit(X)
        assert model.n_atoms_ == 50
        assert model.score(X) == pytest.approx(1, abs=1e-6)
        codes = model.transform(X).toarray()
        np.testing.assert_allclose(codes @ codes.T, RBFKernel(0.3)(X, X), atol=1e-8)

    def test_the_linear_kernel_keeps_rows(self, rng):
        X = rng.standard_normal((60, 5))
        with pytest.warns(UserWarning, match=r"n_atoms=9 is more than the rank of the kernel"):
            model = KSAD(9, kernel="linear", gamma=None, l1_weight=0, random_state=0).fit(X)
        assert model.n_atoms_ == 5
        np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-6)

    @pytest.mark.parametrize("learn", [KSAD.fit, KSAD.partial_fit])
    @pytest.mark.parametrize(
        ("dtype", "exponent"),
        [
            *((np.float32, e) for e in (-80, -60, 60, 100)),
            *((np.float64, e) for e in (-400, 300, 480)),
        ],
    )
    def test_the_linear_kernel_does_not_care_about_the_unit(self, dtype, exponent, learn, rng):
        X = rng.standard_normal((40, 6)).astype(dtype)
        far = np.ldexp(X, exponent)
        near_one, model = (
            learn(KSAD(4, kernel="linear", max_iter=3, random_state=0), rows) for rows in (X, far)
        )
        found, expected = model.transform(far).toarray(), near_one.transform(X).toarray()
        atol = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(np.ldexp(found, -exponent), expected, atol=atol)
        np.testing.assert_allclose(model.components_, near_one.components_, atol=atol)

    def test_one_batch_of_all_rows_is_one_pass(self, rng):
        X = rng.standard_normal((80, 5))
        parts = {"n_atoms": 10, "random_state": 0}
        once = KSAD(max_iter=1, **parts).fit(X)
        batch = KSAD(**parts).partial_fit(X)
        np.testing.assert_allclose(batch.dual_coef_, once.dual_coef_, atol=1e-8)
        assert batch.objective_[0] == pytest.approx(once.objective_[0])
        assert batch.l1_weight_ == once.l1_weight_

    def test_sums_of_batches_add_up(self, rng):
        """A second batch turns the atoms by its sums and those of the first, faded."""
        X = rng.standard_normal((120, 5))
        model = KSAD(10, forget=0.25, random_state=0).partial_fit(X[:70])
        before, sums = model.state_.dictionary, model.state_.sums.cross
        coef = model.dual_coef_ @ before  # k(x, anchors) -> virtual samples
        F = RBFKernel(model.gamma_)(X[70:], model.anchors_) @ coef
        Q = oracles.ksad.soft(F @ before.T, model.l1_weight_ / 2)
        model.partial_fit(X[70:])
        expected = oracles.ksad.procrustes((0.25 * sums + Q.T @ F).T, np.eye(10)).T
        np.testing.assert_allclose(model.state_.dictionary, expected, atol=1e-6)
        np.testing.assert_allclose(model.dual_coef_, coef @ expected.T, atol=1e-6)
        assert model.n_iter_ == 1

    def test_many_batches_come_near_fit(self, rng):
        X = rng.standard_normal((600, 5)) @ rng.standard_normal((5, 5))
        whole = KSAD(20, max_iter=30, random_state=0).fit(X)
        model = KSAD(20, forget=0.9, random_state=0)
        for _ in range(10):
            for batch in np.split(X, 6):
                model.partial_fit(batch)
        start = KSAD(20, max_iter=1, random_state=0).fit(X)

        def l1_of(model):  # all energy is kept but for the threshold: sparser is better
            return np.abs(model.transform(X).toarray()).sum()

        assert l1_of(model) < 0.7 * l1_of(start) + 0.3 * l1_of(whole)

    def test_batches_after_fit_go_on(self, rng):
        X = rng.standard_normal((90, 5))
        model = KSAD(10, max_iter=3, random_state=0).fit(X)
        components = model.components_.copy()
        model.partial_fit(X[:30])
        assert model.state_.n_batches == 4  # three passes were as good as batches
        assert model.components_.shape == components.shape
        assert (model.components_ != components).any()
        with pytest.raises(ValueError, match="4 features"):
            model.partial_fit(X[:, :4])

    def test_what_batches_cannot_do_is_said(self, rng):
        X = rng.standard_normal((30, 5))
        with pytest.raises(ValueError, match=r"n_atoms=0\.5 is a share of the rows"):
            KSAD(0.5).partial_fit(X)
        with pytest.raises(ValueError, match="partial_fit needs rows"):
            KSAD(5, kernel="precomputed").partial_fit(X @ X.T)

    def test_precomputed_is_the_kernel_itself(self, rng):
        X, new = rng.standard_normal((40, 4)), rng.standard_normal((7, 4))
        kernel = RBFKernel(0.2)
        one = KSAD(8, gamma=0.2, random_state=0).fit(X)
        other = KSAD(8, kernel="precomputed", gamma=None, random_state=0).fit(kernel(X, X))
        np.testing.assert_allclose(
            other.transform(kernel(new, X)).toarray(), one.transform(new).toarray(), atol=1e-6
        )
        with pytest.raises(ValueError, match="inverse_transform needs the training rows"):
            other.inverse_transform(np.ones((1, 8)))

    def test_missing_values_are_estimated_but_for_the_linear_kernel(self, rng):
        X = rng.standard_normal((40, 6))
        holed = X.copy()
        holed[0, 2] = np.nan
        model = KSAD(8, random_state=0).fit(X)
        assert np.isfinite(model.transform(holed).toarray()).all()
        linear = KSAD(4, kernel="linear", gamma=None, random_state=0).fit(X)
        with pytest.raises(ValueError, match="NaN"):
            linear.transform(holed)

    def test_a_threshold_above_everything_leaves_nothing(self, rng):
        X = rng.standard_normal((40, 4))
        model = KSAD(6, l1_weight=100, random_state=0).fit(X)
        assert model.transform(X).nnz == 0
        assert model.score(X) == 0
        assert np.abs(model.atom_gram_ - np.eye(6)).max() < 1e-12

    def test_it_serves_as_a_dictionary_of_classes(self, rng):
        X, y = blobs(rng)
        for scheme in ("distributive", "collective"):
            model = ClassDictionaryClassifier(KSAD(5, gamma=0.1), scheme=scheme, random_state=0)
            assert model.fit(X, y).score(X, y) > 0.8

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"l1_weight": -1}, ValueError, "l1_weight must be at least 0, got -1"),
            ({"l1_weight": "a"}, TypeError, "l1_weight must be a number"),
            ({"forget": 0}, ValueError, "forget must be above 0"),
            ({"sampling": "best"}, ValueError, "sampling must be one of 'uniform'"),
            ({"n_landmarks": 0}, ValueError, "n_landmarks must be at least 1"),
            ({"solver": "fast"}, ValueError, "solver must be one of 'auto', 'full', 'randomized'"),
            ({"gamma": "wide"}, ValueError, "gamma must be above 0 and finite"),
        ],
    )
    def test_bad_parameters_are_named(self, parameters, error, message, rng):
        with pytest.raises(error, match=message):
            KSAD(5, **parameters).fit(rng.standard_normal((20, 4)))

    def test_by_default_there_are_500_atoms_or_one_per_row(self, rng):
        X = 10 * rng.standard_normal((520, 30))
        model = KSAD(max_iter=1, random_state=0).fit(X)
        assert (model.n_atoms_, len(model.anchors_)) == (500, 520)
        few = KSAD(max_iter=1, random_state=0).fit(X[:40])
        assert (few.n_atoms_, len(few.anchors_)) == (40, 40)

    def test_more_atoms_than_landmarks_are_clipped(self, rng):
        X = rng.standard_normal((40, 4))
        with pytest.warns(UserWarning, match=r"n_atoms=20 is more than the rank .* \(8\)") as seen:
            model = KSAD(20, n_landmarks=8, random_state=0).fit(X)
        assert len(seen) == 1
        assert model.n_atoms_ == 8
        given_landmarks = KSAD(sampling=X[:6], random_state=0).fit(X)
        assert given_landmarks.n_atoms_ == 6
        share = KSAD(0.25, n_landmarks=0.5, random_state=0).fit(X)
        assert share.n_atoms_ == 10
        assert len(share.anchors_) == 20


class TestKSADClassifier:
    @pytest.mark.parametrize("literal", [True, False])
    def test_the_literal_method_is_the_papers(self, literal, rng):
        """Algorithm 1 with the signs that its words ask for, line by line.

        ``as_published`` with scatter as numbers and step 15, or matrices and a threshold.
        """
        X, y = blobs(rng, n=60)
        X = np.abs(normalize(X))
        other = {} if literal else {"scatter": "full", "threshold_new": True}
        model = KSADClassifier.as_published(7, max_iter=3, random_state=1, **other)
        model.fit(X[:40], y[:40])
        state = np.random.RandomState(1)
        linearizer = KernelLinearizer(
            n_landmarks=28, n_components=7, random_state=state, **PAPER
        ).fit(X[:40])
        order = np.argsort(y[:40], kind="stable")
        F, labels = (
            linearizer.transform(X[:40])[order],
            np.unique(y[:40][order], return_inverse=1)[1],
        )
        Z = polar_factor(F[np.sort(state.permutation(40)[:7])])
        size = np.sqrt(np.mean(np.sum(F**2, axis=1)))
        l1, fisher = 0.1 * size, 0.01 * size**2
        Q = oracles.ksad.soft(F @ Z.T, l1 / 2)
        if literal:
            term = oracles.ksad.scalar_discrimination
            classes = [Q[labels == c] for c in range(3)]
            mean = sum(np.mean(np.sum((own - own.mean(axis=0)) ** 2, axis=1)) for own in classes)
        else:
            term = oracles.ksad.discrimination
            mean = np.trace(oracles.ksad.scatters(Q.T, labels, 0)[0]) / 7
        ridge, a = 2 * fisher + 0.01 * mean, 1.0
        for reached in model.objective_:
            Z = oracles.ksad.procrustes(F.T, Q.T).T
            uphill, a = oracles.ksad.slope(term, Q.T, labels, ridge).T, max(a / 2, 1)
            while True:
                weights = (l1, fisher, ridge)
                new = oracles.ksad.step(F.T, Z.T, Q.T, labels, *weights, a, uphill.T).T
                promised = term(Q.T, labels, ridge) + np.sum(uphill * (new - Q))
                short = fisher * (promised - term(new.T, labels, ridge))
                if short <= (a - 1) * np.sum((new - Q) ** 2):
                    break
                a *= 2
            Q = new
            J = oracles.ksad.objective(F.T, Z.T, Q.T, labels, l1, fisher, ridge, term)
            assert reached == pytest.approx(J, abs=1e-6)
        order_of_atoms = [
            int(np.abs(model.codes_[order] - Q[:, [j]]).sum(axis=0).argmin()) for j in range(7)
        ]
        assert sorted(order_of_atoms) == list(range(7))
        np.testing.assert_allclose(model.codes_[order][:, order_of_atoms], Q, atol=1e-6)
        tests = linearizer.transform(X[40:]) @ Z.T
        if not literal:
            tests = oracles.ksad.soft(tests, l1 / 2)
        codes = model.transform(X[40:]).toarray()
        np.testing.assert_allclose(codes[:, order_of_atoms], tests, atol=1e-6)
        apart = np.sum((tests[:, None] - Q) ** 2, axis=2)
        np.testing.assert_array_equal(model.predict(X[40:]), y[:40][order][apart.argmin(axis=1)])

    def test_as_published_is_what_the_paper_prints(self):
        published = KSADClassifier.as_published(240, random_state=3)
        params = clone(published).get_params()
        assert {key: params[key] for key in PAPER} == PAPER
        assert (params["n_atoms"], params["random_state"]) == (240, 3)
        assert (params["l1_weight"], params["fisher_weight"], params["max_iter"]) == (0.1, 0.01, 20)
        assert (params["scatter"], params["threshold_new"]) == ("scalar", False)
        assert (params["distance"], params["n_neighbors"]) == ("l2", 1)
        assert (params["solver"], params["sampling"]) == ("randomized", "uniform")
        assert not params["within_class_metric"]
        other = KSADClassifier.as_published(240, degree=2, l1_weight=0.2)
        assert (other.degree, other.l1_weight, other.fisher_weight) == (2, 0.2, 0.01)
        with pytest.raises(TypeError, match="n_atom"):
            KSADClassifier.as_published(240, n_atom=3)

    def test_as_published_without_the_term_can_be_fitted(self):
        """Scatter, which is published too, would be refused as unused."""
        X, y = load_digits(return_X_y=True)
        model = KSADClassifier.as_published(10, fisher_weight=0, random_state=0)
        assert model.fit(X[:60], y[:60]).scatter == "full"
        with pytest.raises(ValueError, match="scatter belongs to fisher_weight above 0"):
            model.set_params(scatter="scalar").fit(X[:60], y[:60])

    @pytest.mark.parametrize("learner", [KSAD, KSADClassifier])
    def test_the_randomised_solver_is_reached_at_the_default_landmarks(
        self, learner, rng, monkeypatch
    ):
        """Four landmarks per atom: its basis of 3.2 vectors per atom is smaller."""
        X, y = blobs(rng, n=900, n_features=30)
        asked = []

        def counted(W, k, *args, **kwargs):
            asked.append((len(W), k))
            return leading_eigenpairs(W, k, *args, **kwargs)

        monkeypatch.setattr("kernelatoms.features.coordinates.leading_eigenpairs", counted)
        models = {
            solver: learner(150, gamma=0.05, solver=solver, max_iter=1, random_state=0).fit(X, y)
            for solver in ("randomized", "full", "auto")
        }
        assert asked == [(600, 150)]
        # Another basis of the same space, but for what the random start misses.
        spans = [
            RBFKernel(0.05)(X[:50], m.anchors_) @ m.dual_coef_ for m in list(models.values())[:2]
        ]
        one, other = (span @ span.T for span in spans)
        np.testing.assert_allclose(one, other, atol=0.02 * np.abs(other).max())

    def test_new_codes_without_threshold(self, rng):
        X, y = blobs(rng)
        with_it = KSADClassifier(20, l1_weight=0.3, random_state=0).fit(X, y)
        bare = KSADClassifier(20, l1_weight=0.3, threshold_new=False, random_state=0).fit(X, y)
        np.testing.assert_array_equal(bare.codes_, with_it.codes_)  # training codes have it
        products = bare.transform(X).toarray()
        assert (products != 0).all()
        threshold = bare.l1_weight_ / 2
        expected = oracles.ksad.soft(products, threshold)
        np.testing.assert_allclose(with_it.transform(X).toarray(), expected, atol=1e-12)

    @given(
        seed=st.integers(0, 2**31),
        within=st.booleans(),
        fisher=st.sampled_from([0.0, 0.01, 10.0]),
        dtype=st.sampled_from([np.float32, np.float64]),
    )
    def test_the_objective_never_rises(self, seed, within, fisher, dtype):
        X, y = blobs(np.random.default_rng(seed), dtype=dtype)
        model = KSADClassifier(
            12, within_class_metric=within, fisher_weight=fisher, l1_weight=0.1, max_iter=8, tol=0,
            random_state=0,
        ).fit(X, y)  # fmt: skip
        J = model.objective_
        assert len(J) == 8
        slack = 1e3 * np.finfo(dtype).eps * (np.abs(J[0]) + len(X))
        assert np.all(np.diff(J) <= slack)

    def test_with_a_square_dictionary_and_no_threshold_distances_stay(self, rng):
        """The rotation alone changes nothing: neighbours are those of virtual samples."""
        X, y = blobs(rng, n=150)
        model = KSADClassifier(
            30, l1_weight=0, fisher_weight=0, within_class_metric=False, distance="l2",
            n_neighbors=1, random_state=0,
        ).fit(X[:100], y[:100])  # fmt: skip
        linearizer = KernelLinearizer(
            gamma="spread", n_landmarks=100, n_components=30, random_state=0
        ).fit(X[:100])
        knn = KNeighborsClassifier(1).fit(linearizer.transform(X[:100]), y[:100])
        np.testing.assert_array_equal(
            model.predict(X[100:]), knn.predict(linearizer.transform(X[100:]))
        )

    def test_the_metric_is_the_one_of_training_classes(self, rng):
        X, y = blobs(rng, n=150)
        model = KSADClassifier(
            20, l1_weight=0, fisher_weight=0, shrinkage=0.05, n_neighbors=1, random_state=0
        ).fit(X[:100], y[:100])
        linearizer = KernelLinearizer(
            gamma="spread", n_landmarks=80, n_components=20, random_state=np.random.RandomState(0)
        ).fit(X[:100])
        F, new = linearizer.transform(X[:100]), linearizer.transform(X[100:])
        labels = np.unique(y[:100], return_inverse=True)[1]
        metric = oracles.ksad.metric(F.T, labels, 0.05)
        F, new = normalize(F @ metric), normalize(new @ metric)
        codes = model.transform(X[100:]).toarray()
        np.testing.assert_allclose(codes @ model.codes_.T, new @ F.T, atol=1e-6)
        np.testing.assert_array_equal(model.predict(X[100:]), y[:100][(new @ F.T).argmax(axis=1)])
        # Atoms as vectors of feature space: the metric is undone.
        K = RBFKernel(model.gamma_)(model.anchors_, model.anchors_)
        both = model.analysis_coef_.T @ K @ model.dual_coef_
        np.testing.assert_allclose(both, np.eye(20), atol=1e-6)

    def test_defaults_are_those_that_were_measured(self):
        """Those of "our defaults" on the pages of the paper: change them with new records only."""
        ours = KSADClassifier().get_params()
        assert (ours["kernel"], ours["gamma"], ours["n_atoms"]) == ("rbf", "spread", None)
        assert (ours["l1_weight"], ours["fisher_weight"], ours["shrinkage"]) == (0.01, 0, 0.01)
        assert (ours["n_neighbors"], ours["distance"]) == (3, "correlation")
        assert ours["within_class_metric"]

    def test_digits_are_told_apart_with_the_metric_and_without(self):
        X, y = load_digits(return_X_y=True)
        X = normalize(X)
        plain, ours = (
            KSADClassifier(100, within_class_metric=way, random_state=0)
            .fit(X[:600], y[:600])
            .score(X[600:], y[600:])
            for way in (False, True)
        )
        assert ours > 0.94
        assert plain > 0.9

    def test_neighbours_vote_and_equal_votes_go_to_the_nearest(self, rng):
        X, y = blobs(rng)
        model = KSADClassifier(20, n_neighbors=4, random_state=0).fit(X, y)
        new = blobs(rng)[0]
        rows = model.kneighbors(new)
        assert rows.shape == (90, 4)
        shares = model.predict_proba(new)
        for row, share, label in zip(rows, shares, model.predict(new), strict=True):
            votes = {c: np.sum(y[row] == c) for c in model.classes_}
            places = {c: np.flatnonzero(y[row] == c)[:1] for c in model.classes_}
            weighed = [votes[c] + np.sum(0.5 ** (places[c] + 1.0)) for c in model.classes_]
            np.testing.assert_allclose(share, weighed / np.sum(weighed))
            best = max(votes.values())
            first = next(y[r] for r in row if votes[y[r]] == best)
            assert label == first

    def test_distances_are_of_angles_or_of_codes(self, rng):
        X, y = blobs(rng)
        model = KSADClassifier(20, l1_weight=0.3, n_neighbors=1, random_state=0).fit(X, y)
        codes = model.transform(X).toarray()
        cosines = normalize(codes) @ normalize(model.codes_).T
        np.testing.assert_array_equal(model.kneighbors(X)[:, 0], cosines.argmax(axis=1))
        model.set_params(distance="l2")
        apart = np.sum((codes[:, None] - model.codes_) ** 2, axis=2)
        np.testing.assert_array_equal(model.kneighbors(X)[:, 0], apart.argmin(axis=1))

    def test_atoms_belong_to_the_class_that_uses_them_most(self, rng):
        X, y = blobs(rng)
        model = KSADClassifier(20, random_state=0).fit(X, y)
        energies = np.stack([np.mean(model.codes_[y == c] ** 2, axis=0) for c in model.classes_])
        np.testing.assert_array_equal(model.atom_classes_, energies.argmax(axis=0))
        assert np.all(np.diff(model.atom_classes_) >= 0)

    def test_explanations_name_the_training_rows(self, rng):
        X, y = blobs(rng)
        model = make_pipeline(Normalizer(), KSADClassifier(20, l1_weight=0.2, random_state=0))
        why = explain(model.fit(X, y), X[:2])[1]
        assert why.label == model.predict(X[1:2])[0]
        rows = model[-1].kneighbors(normalize(X[1:2]))[0]
        np.testing.assert_array_equal(why.neighbors, rows)
        assert [model.classes_[c] for c in why.neighbor_owners] == y[rows].tolist()
        assert f"Nearest training rows, from 0: {rows[0]} ('{y[rows[0]]}')" in str(why)
        assert why.to_dict()["neighbors"][0] == {"row": int(rows[0]), "label": y[rows[0]]}
        code = model.transform(X[1:2]).toarray()[0]
        np.testing.assert_allclose(code[why.atoms], why.coefficients)

    def test_approximate_search_says_what_it_needs(self, rng, monkeypatch):
        X, y = blobs(rng)
        model = KSADClassifier(20, search="approximate", random_state=0).fit(X, y)
        monkeypatch.setitem(__import__("sys").modules, "pynndescent", None)
        with pytest.raises(ImportError, match=r"kernelatoms\[ann\]"):
            model.predict(X)

    def test_it_is_a_scikit_learn_citizen(self, rng, tmp_path):
        X, y = blobs(rng)
        grid = GridSearchCV(
            KSADClassifier(10, random_state=0),
            {"n_neighbors": [1, 3], "shrinkage": [0.01, 1]},
            cv=2,
        ).fit(X, y)
        best = grid.best_estimator_
        save_model(best, tmp_path / "model.skops")
        again, _ = load_model(tmp_path / "model.skops")
        np.testing.assert_array_equal(again.predict(X), best.predict(X))
        np.testing.assert_array_equal(again.transform(X).toarray(), best.transform(X).toarray())

    def test_float32_is_near_float64(self, rng):
        X, y = blobs(rng)
        single = KSADClassifier(15, random_state=0).fit(X.astype(np.float32), y)
        double = KSADClassifier(15, random_state=0).fit(X, y)
        assert single.codes_.dtype == np.float32
        assert np.mean(single.predict(X.astype(np.float32)) == double.predict(X)) > 0.95

    def test_the_unit_of_rows_does_not_matter(self, rng):
        X, y = blobs(rng)
        one, other = (KSADClassifier(15, random_state=0).fit(c * X, y) for c in (1, 1024))
        np.testing.assert_allclose(one.codes_, other.codes_, atol=1e-8)
        literal = {"within_class_metric": False, "kernel": "poly", "degree": 2, "coef0": 0}
        one, other = (
            KSADClassifier(8, gamma=1, random_state=0, **literal).fit(c * X, y) for c in (1, 2)
        )
        np.testing.assert_allclose(4 * one.codes_, other.codes_, atol=1e-6)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("within", [False, True])
    @pytest.mark.parametrize("exponent", [-80, 60, 100])
    def test_float32_far_from_one_under_the_linear_kernel(self, exponent, within, rng):
        X, y = rng.standard_normal((40, 6)).astype(np.float32), np.arange(40) % 3
        given = {"kernel": "linear", "within_class_metric": within, "max_iter": 3}
        far = np.ldexp(X, exponent)
        near_one, model = (
            KSADClassifier(4, **given, random_state=0).fit(rows, y) for rows in (X, far)
        )
        np.testing.assert_array_equal(model.predict(far), near_one.predict(X))

    def test_precomputed_is_the_kernel_itself(self, rng):
        X, y = blobs(rng)
        kernel = RBFKernel(0.2)
        one = KSADClassifier(8, gamma=0.2, random_state=0).fit(X[:60], y[:60])
        other = KSADClassifier(8, kernel="precomputed", gamma=None, random_state=0)
        other.fit(kernel(X[:60], X[:60]), y[:60])
        K = kernel(X[60:], X[:60])
        np.testing.assert_array_equal(other.predict(K), one.predict(X[60:]))
        assert len(other.explain(K[:1])) == 1

    def test_a_class_of_one_row_and_classes_of_one_row_each(self, rng):
        X, y = blobs(rng)
        y = y.astype(object)
        y[0] = "alone"
        model = KSADClassifier(10, n_neighbors=1, fisher_weight=0, random_state=0).fit(X, y)
        assert model.predict(X[:1])[0] == "alone"
        single = np.array([f"class {i}" for i in range(len(X))])
        with pytest.warns(UserWarning, match="No class has two different rows"):
            model = KSADClassifier(10, n_neighbors=1, random_state=0).fit(X, single)
        assert not model.in_metric_
        assert np.mean(model.predict(X) == single) > 0.95

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("fisher_weight", [0, 1e-20, 1e-3])
    def test_hardly_any_shrinkage_is_no_trouble(self, fisher_weight, dtype, rng):
        X, y = blobs(rng, n=30, n_features=40, dtype=dtype)  # scatter within classes is singular
        model = KSADClassifier(
            30, shrinkage=1e-300, fisher_weight=fisher_weight, max_iter=5, random_state=0
        ).fit(X, y)
        assert np.isfinite(model.codes_).all()
        assert np.isfinite(model.predict_proba(X)).all()

    def test_more_neighbours_than_rows_are_clipped(self, rng):
        X, y = blobs(rng, n=20)
        with pytest.warns(UserWarning, match=r"n_neighbors=99 is more than there are rows \(20\)"):
            model = KSADClassifier(5, n_neighbors=99).fit(X, y)
        assert model.n_neighbors_ == 20
        with pytest.warns(UserWarning, match=r"n_atoms=50 is more than there are rows \(20\)"):
            assert KSADClassifier(50).fit(X, y).n_atoms_ <= 20

    def test_equal_rows_and_rank_one_maps_are_defined(self, rng):
        X = np.repeat(rng.standard_normal((2, 3)), 6, axis=0)
        y = np.repeat(["a", "b"], 6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = KSADClassifier(5, random_state=0).fit(X, y)
            assert model.n_atoms_ == 2
            assert model.score(X, y) == 1
            line = KSADClassifier(3, kernel="linear", gamma=None, random_state=0)
            assert line.fit(np.arange(1.0, 9)[:, None], np.arange(8) % 2).n_atoms_ == 1

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"n_atoms": 0}, ValueError, "n_atoms must be at least 1, got 0"),
            ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1"),
            ({"shrinkage": 0}, ValueError, "shrinkage must be above 0"),
            ({"fisher_weight": -1}, ValueError, "fisher_weight must be at least 0"),
            ({"l1_weight": np.nan}, ValueError, "l1_weight"),
            ({"distance": "far"}, ValueError, "distance must be one of 'correlation', 'l2'"),
            ({"scatter": "vector"}, ValueError, "scatter must be one of 'full', 'scalar'"),
            ({"solver": "fast"}, ValueError, "solver must be one of 'auto', 'full', 'randomized'"),
            ({"threshold_new": 0}, TypeError, "threshold_new must be True or False"),
            ({"search": "lucky"}, ValueError, "search must be one of 'exact', 'approximate'"),
            ({"within_class_metric": 1}, TypeError, "within_class_metric must be True or False"),
            ({"kernel": "sigmoidal"}, ValueError, "kernel"),
        ],
    )
    def test_bad_parameters_are_named(self, parameters, error, message, rng):
        X, y = blobs(rng, n=20)
        with pytest.raises(error, match=message):
            KSADClassifier(**{"n_atoms": 5, **parameters}).fit(X, y)

    def test_bad_data_are_refused(self, rng):
        X, y = blobs(rng, n=20)
        with pytest.raises(ValueError, match="at least two classes"):
            KSADClassifier(5).fit(X, np.full(20, "a"))
        with pytest.raises(NotFittedError):
            KSADClassifier(5).predict(X)
        model = KSADClassifier(5).fit(X, y)
        X[0, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            model.predict(X)
        with pytest.raises(ValueError, match="NaN"):
            KSADClassifier(5).fit(X, y)

    def test_unseen_labels_are_never_right(self, rng):
        X, y = blobs(rng)
        model = KSADClassifier(10, random_state=0).fit(X, y)
        assert model.score(X, np.full(len(y), "new")) == 0

    def test_preimages_of_atoms_under_even_degrees(self, rng):
        """x'y is the root from 0 up: right for non-negative rows, defined for others."""
        X, y = blobs(rng)
        model = KSADClassifier(6, random_state=0, **PAPER).fit(np.abs(normalize(X)), y)
        found = preimage(model.dual_coef_, model.anchors_, method="distance", **PAPER)
        assert np.isfinite(found.rows).all()
        signed = KSADClassifier(6, random_state=0, **PAPER).fit(normalize(X), y)
        found = preimage(signed.dual_coef_, signed.anchors_, **PAPER)
        assert np.isfinite(found.rows).all()
        assert np.isfinite(found.error).all()
