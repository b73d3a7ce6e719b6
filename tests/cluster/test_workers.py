"""Workers: their version and memory, where chunks lie, what is said of them."""

import gc
import pickle
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import kernelatoms
from dask_cases import SMALL, in_dask, made_rows, wait_until
from kernelatoms import MOD, ClassDictionaryClassifier, open_rows

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings(SMALL)]

MODEL = MOD(12, n_nonzero_coefs=3, max_iter=3, tol=0, random_state=0)


def set_version(version):
    kernelatoms.__version__ = version


def test_a_worker_with_another_version_is_refused_by_name(client):
    X, _ = made_rows()
    other = sorted(client.scheduler_info(n_workers=-1)["workers"])[1]
    client.run(set_version, "0.0.1", workers=[other])
    words = f"The worker {other} has kernelatoms 0.0.1, and here is {kernelatoms.__version__}."
    try:
        with pytest.raises(RuntimeError) as caught:
            clone(MODEL).fit(X)
    finally:
        client.run(set_version, kernelatoms.__version__, workers=[other])
    assert str(caught.value).startswith(words)
    assert clone(MODEL).fit(X).n_atoms_ == 12


def test_a_worker_that_joins_with_another_version_is_refused(new_cluster):
    with new_cluster(1) as client, client.as_current():
        source = open_rows(made_rows()[0])
        work = {"work": lambda block, _: len(block), "block_rows": 100}
        assert source.reduce(**work) == 6_000
        (first,) = client.scheduler_info(n_workers=-1)["workers"]
        client.cluster.scale(2)
        client.wait_for_workers(2, timeout=60)
        (joined,) = set(client.scheduler_info(n_workers=-1)["workers"]) - {first}
        client.run(set_version, "9.9", workers=[joined])
        with pytest.raises(RuntimeError, match=rf"The worker {joined} has kernelatoms 9\.9"):
            source.reduce(**work)


def test_a_worker_without_the_package_is_refused(client, monkeypatch):
    def no_package(*_, **__):
        return {"tcp://10.0.0.9:1234": ModuleNotFoundError("No module named 'kernelatoms'")}

    monkeypatch.setattr(client, "run", no_package)
    with pytest.raises(RuntimeError, match="0.9:1234 has no kernelatoms".replace(".", r"\.")):
        clone(MODEL).fit(made_rows()[0])


def test_chunks_of_a_closed_client(client):
    from distributed import Client

    with Client(client.scheduler.address, set_as_default=False) as other, other.as_current():
        X, y = (one.persist() for one in made_rows())
        source = open_rows(X)
        model = clone(MODEL).fit(X)
    for use in (
        lambda: clone(MODEL).fit(X), lambda: open_rows(X), lambda: source.collect(),
        lambda: source.reduce(lambda block, _: 0, block_rows=100),
        lambda: model.transform(X), lambda: model.score(X),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="The chunks of X are on a cluster whose client is cl"):
            use()
    with pytest.raises(ValueError, match="The chunks of y are on a cluster whose client is closed"):
        ClassDictionaryClassifier(MODEL).fit(made_rows()[0], y)
    again = pickle.loads(pickle.dumps(model))
    rows = made_rows()[0][:500]
    np.testing.assert_array_equal(
        again.transform(rows.compute()).toarray(), model.transform(rows).compute().toarray()
    )


def sent_so_far(dask_worker):
    return dask_worker.transfer_outgoing_bytes_total


def sent(client):
    """Return how many bytes workers have sent to each other and to clients, all together."""
    return sum(client.run(sent_so_far).values())


def test_rows_stay_where_they_are(client):
    """Ten passes send less than one copy of the rows: Dask lends some to a worker without work."""
    X = made_rows(n_chunks=16, n_rows=20_000)[0].persist()
    model = clone(MODEL).fit(X)
    source, before = open_rows(X), sent(client)
    for _ in range(5):
        source.reduce(lambda block, _: block.T @ block, block_rows=1000)
        model.score(X)
    assert sent(client) - before < X.nbytes
    before = sent(client)
    X[:, :8].compute()  # half of the rows, which are seen
    assert sent(client) - before >= X.nbytes / 2


def test_chunks_are_held_as_long_as_they_are_needed(client, caplog):
    """Rows that nobody else holds are not given up by the workers, and are afterwards."""
    frame = dd.from_pandas(pd.DataFrame(np.eye(60, 4), columns=list("abcd")), npartitions=4)
    model = clone(MODEL).fit(made_rows()[0])
    made = [
        (open_rows(made_rows()[0].persist()), 6_000),
        (open_rows(made_rows()[0].persist().rechunk({1: 5})), 6_000),
        (open_rows(frame.persist()), 60),
        (open_rows(frame[["a", "c"]].persist()), 60),
    ]
    codes = model.transform(made_rows()[0].persist())
    gc.collect()
    for source, n in made:
        for _ in range(2):
            assert source.reduce(lambda block, _: len(block), block_rows=100) == n
    assert codes.compute().shape == (6_000, 12)
    del made, source, codes
    gc.collect()
    wait_until(lambda: not client.run_on_scheduler(_all_keys))
    assert not any("run_spec" in one.getMessage() for one in caplog.records)


def test_the_plan_tells_workers_and_their_memory(client, caplog):
    for model in (clone(MODEL), ClassDictionaryClassifier(clone(MODEL), random_state=0)):
        caplog.clear()
        with caplog.at_level("INFO", logger="kernelatoms"):
            model.fit(*made_rows())
        (record,) = [one for one in caplog.records if one.name == "kernelatoms"]
        words = record.getMessage()
        assert words.startswith("6,000 rows in 12 chunks (0.4 MiB, at most 0.0 MiB each)")
        assert "2 workers, " in words
        assert "of memory each" in words


def warned(rows):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        rows.plan(12, rows.n_features)
    return [str(one.message) for one in found]


def test_chunks_too_large_for_workers(new_cluster):
    with new_cluster(1, memory_limit="1GiB") as client, client.as_current():
        large, fitting = (da.zeros((2 * n, 1024), chunks=(n, -1)) for n in (40_000, 30_000))
        (words,) = warned(open_rows(large))
        assert words.startswith("Chunks of X are up to 312.5 MiB, more than a quarter of a worker")
        assert "(1.0 GiB)" in words
        assert warned(open_rows(fitting)) == []
        small = open_rows(in_dask(np.zeros((100, 4)), 50))
        assert warned(small)[0].startswith("Chunks of X are as small as 2 KiB")


def test_small_chunks_are_warned_of_once(client):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        clone(MODEL).fit(made_rows()[0])
    assert [str(one.message)[:29] for one in found] == ["Chunks of X are as small as 3"]


def test_another_scheduler_may_be_asked_for(client):
    before = client.run_on_scheduler(_all_computations)  # the last hundred
    with dask.config.set(scheduler="threads"):
        clone(MODEL).fit(made_rows()[0])
    assert client.run_on_scheduler(_all_computations) == before
    clone(MODEL).fit(made_rows()[0])
    assert client.run_on_scheduler(_all_computations) != before


def _all_computations(dask_scheduler):
    return [str(one.id) for one in dask_scheduler.computations]


def _all_keys(dask_scheduler):
    return [str(key) for key in dask_scheduler.tasks]
