"""What cannot fit into memory says so before work starts, with an estimate and the way out."""

import numpy as np
import pytest

from kernelatoms import (
    KSVD,
    MOD,
    CRCClassifier,
    KernelKSVD,
    KernelLinearizer,
    SparseCoder,
    SRCClassifier,
    lasso_path,
    sparse_encode,
)
from kernelatoms.engine.cpu import threads, values
from kernelatoms.features import memory

MIB = 2**20
X = np.ones((20_000, 2))
D = np.random.default_rng(0).standard_normal((1_000, 2))
WIDE = np.random.default_rng(0).standard_normal((5_000, 2))  # its Gram matrix: 191 MiB


@pytest.fixture(scope="module")
def learner():
    return KSVD(dict_init=D, sparse_output=False, max_iter=1, n_nonzero_coefs=1).fit(D)


@pytest.fixture(scope="module")
def mapper():
    return KernelLinearizer(n_landmarks=100, random_state=0).fit(WIDE)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """100 MiB; whoever starts to work has not looked first."""

    def work(*_):
        raise AssertionError("work has started")

    # Rows are looked at before: are they finite?
    monkeypatch.setattr(values, "each", lambda look, items: [look(item) for item in items])

    monkeypatch.setattr(memory, "available_bytes", lambda: 100 * MIB)
    monkeypatch.setattr(threads, "_share", work)


def refused(words, function, *args, **kwargs):
    with pytest.raises(ValueError, match=f"{words}.* need about .* GiB of memory, and 0.0977 GiB"):
        function(*args, **kwargs)


@pytest.mark.parametrize(
    "options", [{"n_nonzero_coefs": 2}, {"method": "lasso", "alpha": 0.1}, {"kernel": "rbf"}]
)
def test_dense_codes(options):
    refused("Dense codes", sparse_encode, X, D, sparse_output=False, **options)


def test_dense_codes_of_ridge():
    refused("Dense codes", sparse_encode, X, D, method="ridge", mu=0.1)


def test_dense_codes_of_estimators(learner):
    coder = SparseCoder(D, n_nonzero_coefs=2, sparse_output=False).fit(X[:5])
    refused("Dense codes", coder.transform, X)
    refused("Dense codes", learner.transform, X)


def test_many_nonzeros():
    atoms = np.random.default_rng(0).standard_normal((600, 600))
    rows = np.ones((20_000, 600))
    refused("Codes of 20000 signals", sparse_encode, rows, atoms, n_nonzero_coefs=500)


def test_paths():
    refused("Codes of 20000 signals", lasso_path, X, D, alphas=[0.1])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_pairs_of_atoms(kernel):
    for options in ({"method": "fksc", "alpha": 0.1}, {"method": "ridge", "mu": 0.1}):
        refused("Inner products", sparse_encode, X[:9], WIDE, kernel=kernel, **options)


def test_sums_over_codes():
    refused("Sums over the codes", MOD(n_atoms=3_000, alpha=0.1).fit, WIDE)
    refused("Sums over the codes", MOD(n_atoms=3_000).partial_fit, WIDE)


def test_kernel_matrices_of_rows_and_landmarks():
    refused("Exact coordinates", KernelKSVD(n_atoms=5).fit, WIDE)
    refused("The kernel matrix of 3000 landmarks", KernelLinearizer(n_landmarks=3_000).fit, WIDE)


def test_virtual_samples(mapper):
    refused(f"{mapper.n_components_} virtual samples", mapper.transform, np.ones((10**6, 2)))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_training_rows_as_dictionary(kernel):
    labels = np.arange(len(WIDE)) % 2
    for model in (CRCClassifier(kernel, mu=0.1), SRCClassifier(kernel)):
        refused("Inner products of all pairs of 5000 training rows", model.fit, WIDE, labels)


def test_local_and_explicit_dictionaries_need_no_pairs():
    labels = np.arange(len(WIDE)) % 2
    CRCClassifier("rbf", mu=0.1, n_neighbors=3).fit(WIDE, labels)
    CRCClassifier(residual_norm="l1", mu=0.1).fit(WIDE, labels)
