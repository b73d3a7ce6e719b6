"""The same bits from any number of workers and threads, and from threads of this process."""

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dask_cases import SMALL, made_rows, sha256
from kernelatoms import KSAD, KSVD, MOD, ClassDictionaryClassifier, KernelLinearizer

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings(SMALL)]

MODELS = {
    "MOD": MOD(12, n_nonzero_coefs=3, max_iter=4, tol=0, random_state=0),
    "MOD l1": MOD(12, alpha=0.3, max_iter=3, tol=0, random_state=0),
    "KSAD": KSAD(12, max_iter=3, tol=0, random_state=0),
    "class dictionaries": make_pipeline(
        KernelLinearizer(n_landmarks=40, random_state=0),
        ClassDictionaryClassifier(KSVD(6, max_iter=3, tol=0), random_state=0),
    ),
}


def learned(model):
    """Return the checksum of what a model learns where there is a client, or in this process."""
    return sha256(clone(model).fit(*made_rows()))


@pytest.fixture(scope="module")
def here():
    """Return the checksums of what is learned by threads of this process."""
    return {name: learned(model) for name, model in MODELS.items()}


def test_checksums_tell_models_apart(here):
    assert len(set(here.values())) == len(MODELS)
    other = clone(MODELS["MOD"]).set_params(random_state=1)
    assert learned(other) != here["MOD"]


def test_any_number_of_workers(here, new_cluster):
    with new_cluster(1) as client, client.as_current():
        for n_workers in (1, 2, 3, 4, 8):
            client.cluster.scale(n_workers)
            client.wait_for_workers(n_workers, timeout=60)
            found = {name: learned(model) for name, model in MODELS.items()}
            assert found == here, f"{n_workers} workers"


def test_any_number_of_threads(here, clusters):
    with clusters(1, 2).as_current():
        assert {name: learned(model) for name, model in MODELS.items()} == here


def test_chunks_that_lie_on_workers(here, client):
    X, y = made_rows()
    X, y = X.persist(), y.persist()
    for name, model in MODELS.items():
        assert sha256(clone(model).fit(X, y)) == here[name]


class Scaled:
    """Changes the number of workers when a pass begins."""

    max_propagation_depth = None

    def __init__(self, cluster, sizes):
        self.cluster, self.sizes, self.seen = cluster, list(sizes), set()

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "pass" and self.sizes:
            self.seen.add(len(self.cluster.scheduler_info["workers"]))
            self.cluster.scale(self.sizes.pop(0))  # and does not wait

    def on_fit_task_end(self, estimator, context):
        return False


def test_workers_that_join_and_retire_during_a_fit(new_cluster):
    model = MOD(12, n_nonzero_coefs=3, max_iter=12, tol=0, random_state=0)
    rows = {"n_chunks": 40, "n_rows": 2_000}
    here = sha256(clone(model).fit(made_rows(**rows)[0]))
    with new_cluster(1) as client, client.as_current():
        X = made_rows(**rows)[0].persist()
        sizes = Scaled(client.cluster, [3, 3, 3, 3, 1, 1, 1, 2, 2, 2, 2, 1])
        assert sha256(clone(model).set_callbacks(sizes).fit(X)) == here
    assert len(sizes.seen) > 1, "all passes had the same workers"


def test_cold_compile_caches(here, new_cluster, tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    with new_cluster(1, env=env) as client, client.as_current():
        assert learned(MODELS["MOD"]) == here["MOD"]
        assert any(tmp_path.rglob("*.nbc"))  # compiled there
        assert learned(MODELS["MOD"]) == here["MOD"]
