"""Chunks of Dask on a device: tensors as chunks, and workers whose device is chosen."""

from contextlib import nullcontext

import numpy as np
import pytest

torch = pytest.importorskip("torch")

da = pytest.importorskip("dask.array")

from dask import delayed  # noqa: E402

from kernelatoms import KSAD, KSVD, MOD, ClassDictionaryClassifier  # noqa: E402
from kernelatoms.engine import gpu  # noqa: E402
from kernelatoms.engine.gpu import cpu_as_device  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Chunks of X")
CUDA = torch.cuda.is_available()
NAME = "cuda" if CUDA else "cpu"


@pytest.fixture
def device():
    """A card, or tensors of the CPU as those of a device."""
    with nullcontext() if CUDA else cpu_as_device():
        yield NAME


def case(rng, n=600):
    B = rng.standard_normal((3, 4, 12)).astype(np.float32)
    y = rng.integers(0, 3, n)
    X = np.einsum("nk,nkp->np", rng.standard_normal((n, 4)).astype(np.float32), B[y])
    X += 0.05 * rng.standard_normal(X.shape).astype(np.float32)
    return X, y, da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)


def as_tensors(X):
    """Return a Dask array whose chunks are tensors."""
    parts = [
        da.from_delayed(
            delayed(lambda chunk: torch.from_numpy(np.array(chunk)).to(NAME))(part),
            shape=(200, X.shape[1]), dtype=X.dtype,
        )
        for part in X.to_delayed()[:, 0]
    ]  # fmt: skip
    return da.concatenate(parts)


def count_on_device(monkeypatch):
    """Return a list that grows by a number of rows for every block coded on a device."""
    coded = []
    omp = gpu.omp

    def counted(gram, *given, **options):
        coded.append(type(gram).__name__)
        return omp(gram, *given, **options)

    monkeypatch.setattr(gpu, "omp", counted)
    return coded


@pytest.mark.parametrize("make", [MOD, KSVD])
@pytest.mark.parametrize("how", ["tensors", "chosen"])
def test_passes_run_on_the_device_and_sums_come_back(make, how, rng, device, monkeypatch):
    _, _, D, _ = case(rng)
    learner = make(n_atoms=20, n_nonzero_coefs=3, max_iter=3, random_state=0)
    here = make(n_atoms=20, n_nonzero_coefs=3, max_iter=3, random_state=0).fit(D)
    coded = count_on_device(monkeypatch)
    if how == "chosen":
        monkeypatch.setenv("KERNELATOMS_DEVICE", device)
        learner.fit(D)
    else:
        learner.fit(as_tensors(D))
    assert len(coded) >= 3 * 3  # a block per chunk, in each of three passes
    assert isinstance(learner.components_, np.ndarray)
    assert learner.components_.dtype == np.float32
    np.testing.assert_allclose(learner.objective_, here.objective_, rtol=1e-3)
    monkeypatch.delenv("KERNELATOMS_DEVICE", raising=False)
    again = make(n_atoms=20, n_nonzero_coefs=3, max_iter=3, random_state=0)
    np.testing.assert_array_equal(again.fit(D).components_, here.components_)


def test_classes_learn_and_answer_on_the_device(rng, device, monkeypatch):
    X, _, D, Y = case(rng)
    model = ClassDictionaryClassifier(KSVD(n_atoms=8, n_nonzero_coefs=3), random_state=0)
    monkeypatch.setenv("KERNELATOMS_DEVICE", device)
    assert model.fit(D, Y).score(D, Y) > 0.95
    answers = model.predict(D).compute()
    monkeypatch.delenv("KERNELATOMS_DEVICE")
    assert isinstance(answers, np.ndarray)
    assert np.mean(answers == model.predict(X)) > 0.99


def test_codes_of_tensors_are_csr_arrays_of_scipy(rng, device):
    X, _, D, _ = case(rng)
    model = MOD(n_atoms=20, n_nonzero_coefs=3, max_iter=2, random_state=0).fit(D)
    codes = model.transform(as_tensors(D)).compute()
    np.testing.assert_allclose(codes.toarray(), model.transform(X).toarray(), atol=1e-3)


def test_what_works_on_the_cpu_alone_stays_there(rng, device, monkeypatch):
    _, _, D, _ = case(rng)
    here = KSAD(n_atoms=6, max_iter=2, random_state=0).fit(D)
    monkeypatch.setenv("KERNELATOMS_DEVICE", device)
    there = KSAD(n_atoms=6, max_iter=2, random_state=0).fit(D)
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)
    there = KSAD(n_atoms=6, max_iter=2, random_state=0).fit(as_tensors(D))
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-5)
