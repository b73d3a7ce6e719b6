"""Many small problems in one launch: the solutions are those of each."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import kernelatoms as ka  # noqa: E402
from kernelatoms.engine import gpu  # noqa: E402
from kernelatoms.engine.gpu import linalg, work  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(
    ("held", "free", "enough"), [(24, None, True), (26, 50, True), (26, 49, False), (90, 60, True)]
)
def test_free_memory_is_asked_for_where_much_is_held(held, free, enough, monkeypatch):
    on_card = SimpleNamespace(is_cuda=True, device="cuda:0")
    whole = SimpleNamespace(total_memory=100)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: whole)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: held)
    monkeypatch.setattr(work, "free_bytes", lambda tensor: free)
    assert work.is_mostly_free(on_card) == enough


def test_short_memory_makes_halves():
    seen = []

    def double(numbers, most=2):
        if len(numbers) > most:
            raise torch.OutOfMemoryError("too many")
        seen.append(numbers)
        return [2 * number for number in numbers]

    assert work.in_halves(double, list(range(5))) == [0, 2, 4, 6, 8]
    assert seen == [[0, 1], [2], [3, 4]]
    with pytest.raises(torch.OutOfMemoryError):
        work.in_halves(lambda numbers: double(numbers, most=0), [1, 2, 3])


def test_factors_and_solutions_of_many_are_those_of_each():
    rng = np.random.default_rng(0)
    sizes = [5, 8, 5, 5]
    bases = [rng.standard_normal((n, 3 * n)) for n in sizes]
    grams = [torch.tensor(base @ base.T / len(base), device=DEVICE) for base in bases]
    rights = [torch.tensor(rng.standard_normal((n, 4)), device=DEVICE) for n in sizes]
    grams[2] = -grams[2]
    factors = linalg.cholesky_all(grams)
    assert factors[2] is None
    for i, gram in enumerate(grams):
        alone = linalg.cholesky(gram)
        assert (alone is None) == (factors[i] is None)
        if alone is not None:
            torch.testing.assert_close(factors[i], alone, rtol=1e-12, atol=1e-12)
    sound = [0, 1, 3]
    some = [factors[i] for i in sound]
    inner = linalg.solve_triangular_all(some, [rights[i] for i in sound])
    found = linalg.solve_triangular_all(some, inner, transposed=True)
    for i, solution in zip(sound, found, strict=True):
        torch.testing.assert_close(grams[i] @ solution, rights[i], rtol=1e-10, atol=1e-10)


def rows_of_classes():
    """Return rows in float64 of four classes of different sizes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [40, 25, 31, 40])
    X = rng.standard_normal((4, 6, 9))[y, rng.integers(6, size=len(y))]
    return X + 0.3 * rng.standard_normal(X.shape), y


def fitted(learner, monkeypatch, together):
    """Return the dictionaries of classes, learned together or one after another."""
    X, y = rows_of_classes()
    model = ka.ClassDictionaryClassifier(learner, random_state=0)
    with monkeypatch.context() as patch, gpu.cpu_as_device():
        if not together:
            patch.setattr(gpu, "UPDATES_TOGETHER", 1)
        return model.fit(torch.tensor(X, device=DEVICE), y).dictionaries_


def test_dictionaries_by_mod_are_those_of_one_after_another(monkeypatch):
    at_once = []
    for name in ("cholesky_ex", "solve_triangular"):
        way = getattr(torch.linalg, name)
        monkeypatch.setattr(
            torch.linalg,
            name,
            lambda A, *given, way=way, **more: [at_once.append(len(A)), way(A, *given, **more)][1],
        )
    learner = ka.MOD(8, n_nonzero_coefs=2, max_iter=12, tol=1e-3)
    expected = fitted(learner, monkeypatch, together=False)
    assert set(at_once) == {1}
    found = fitted(learner, monkeypatch, together=True)
    assert max(at_once) > 1
    for own, theirs in zip(found, expected, strict=True):
        assert own.n_iter_ == theirs.n_iter_
        torch.testing.assert_close(own.components_, theirs.components_, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(own.objective_, theirs.objective_, rtol=1e-9, atol=1e-9)


def test_a_class_that_fails_leaves_the_classifier_as_it_was(monkeypatch):
    X, y = rows_of_classes()
    X, model = torch.tensor(X, device=DEVICE), ka.ClassDictionaryClassifier(ka.MOD(8))
    real, calls = gpu.residuals, []

    def fail(*given):
        calls.append(None)
        if len(calls) == 3:
            raise FloatingPointError("the third class")
        return real(*given)

    monkeypatch.setattr(gpu, "residuals", fail)
    with gpu.cpu_as_device(), pytest.raises(FloatingPointError, match="the third class"):
        model.fit(X, y)
    assert not hasattr(model, "dictionaries_")
