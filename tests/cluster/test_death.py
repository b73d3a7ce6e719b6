"""Workers that are killed cost time only; a scheduler that is lost is said in words."""

import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import dask
import numpy as np
import pytest
from sklearn.base import clone

from dask_cases import SMALL, made_rows, sha256, wait_until
from kernelatoms import MOD, Checkpoint, KernelLinearizer, KernelMOD, open_rows

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings(SMALL)]

MODEL = MOD(24, n_nonzero_coefs=4, max_iter=6, tol=0, random_state=0)
SEED = int(os.environ.get("KERNELATOMS_SEED") or secrets.randbits(32))
N_KILLS = 20


def rows():
    return made_rows(n_chunks=24, n_rows=1_000, n_columns=32)[0]


def learned(model=MODEL):
    return sha256(clone(model).fit(rows()))


@pytest.fixture(scope="module")
def here():
    """Return the checksum of what is learned by threads of this process."""
    return learned()


def process_ids(client):
    """Return the processes of workers that answer; one that has just died may still be listed."""
    answers = client.run(os.getpid, on_error="return")
    return {address: number for address, number in answers.items() if isinstance(number, int)}


def kill_later(client, process_id, seconds):
    """Return a thread that kills a worker soon."""
    thread = threading.Timer(seconds, os.kill, (process_id, signal.SIGKILL))
    thread.start()
    return thread


@pytest.fixture(scope="module")
def three(clusters):
    """Compute on three workers."""
    return clusters(3)


def test_workers_killed_at_any_moment(here, three):
    """At moments spread over a fit: sampling, first and later passes, the sums in between."""
    rng = np.random.default_rng(SEED)
    with three.as_current():
        learned()
        start = time.monotonic()
        assert learned() == here
        lasts = time.monotonic() - start
        for n in range(N_KILLS):
            three.wait_for_workers(2, timeout=60)
            victim = rng.choice(sorted(process_ids(three).values()))
            killer = kill_later(three, victim, lasts * (n + rng.random()) / N_KILLS)
            assert learned() == here, f"kill {n}, again with: KERNELATOMS_SEED={SEED}"
            killer.join()


class Killer:
    """Kills, once, the worker that is given a task of a name, or that has done it."""

    def __init__(self, name, finish, process_ids):
        self.name, self.finish, self.process_ids = name, finish, process_ids
        self.killed = []

    def transition(self, key, start, finish, *args, **kwargs):
        name = key[0] if isinstance(key, tuple) else key
        if finish != self.finish or self.killed or not str(name).startswith(self.name):
            return
        task = self.scheduler.tasks[key]
        worker = task.processing_on or next(iter(task.who_has), None)
        if worker is not None and worker.address in self.process_ids:
            self.killed.append(str(key))
            os.kill(self.process_ids[worker.address], signal.SIGKILL)


@contextmanager
def killing(client, name, finish):
    from distributed.diagnostics.plugin import SchedulerPlugin

    class Plugin(Killer, SchedulerPlugin):
        pass

    plugin = Plugin(name, finish, process_ids(client))
    plugin.scheduler = client.cluster.scheduler
    plugin.scheduler.add_plugin(plugin, name="killer")
    try:
        yield plugin
    finally:
        plugin.scheduler.remove_plugin("killer")


@pytest.mark.parametrize(
    ("name", "finish"),
    [
        ("pick-rows", "processing"), ("send-atoms", "memory"), ("code-rows", "processing"),
        ("code-rows", "memory"), ("add-sums", "processing"), ("add-sums", "memory"),
    ],
)  # fmt: skip
def test_workers_killed_in_each_phase(name, finish, here, three):
    three.wait_for_workers(3, timeout=60)
    with three.as_current(), killing(three, name, finish) as plugin:
        assert learned() == here
    assert len(plugin.killed) == 1


@pytest.mark.parametrize("name", ["transform", "send-model", "residual-norms"])
def test_workers_killed_while_they_answer(name, three):
    from kernelatoms import residual_norms

    X = rows()
    model = clone(MODEL).fit(X[:1_000].compute())
    expected = model.transform(X).compute(scheduler="threads")
    norms = residual_norms(X, model, model.transform(X)).compute(scheduler="threads")
    three.wait_for_workers(3, timeout=60)
    with three.as_current(), killing(three, name, "memory") as plugin:
        codes = model.transform(X)
        np.testing.assert_array_equal(residual_norms(X, model, codes).compute(), norms)
        np.testing.assert_array_equal(codes.compute().toarray(), expected.toarray())
        assert model.score(X) == pytest.approx(model.score(X.compute()), rel=1e-6)
    assert len(plugin.killed) == 1


def test_chunks_that_died_with_their_worker_are_made_again(here, three):
    three.wait_for_workers(3, timeout=60)
    with three.as_current():
        X = rows().persist()
        assert sha256(clone(MODEL).fit(X)) == here
        os.kill(min(process_ids(three).values()), signal.SIGKILL)
        assert sha256(clone(MODEL).fit(X)) == here


def test_the_only_worker_is_killed(here, new_cluster):
    with new_cluster(1) as client, client.as_current():
        (victim,) = process_ids(client).values()
        killer = kill_later(client, victim, 1.0)
        assert learned() == here
        killer.join()
        assert victim not in process_ids(client).values()


def test_a_chunk_that_kills_its_worker_every_time(new_cluster):
    def deadly(block, block_info=None):
        if block_info and block_info[0]["chunk-location"][0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        new_cluster(1) as client,
        client.as_current(),
    ):
        X = made_rows()[0]
        bad = X.map_blocks(deadly, meta=X._meta)
        with pytest.raises(RuntimeError, match="Several workers died one after another") as caught:
            clone(MODEL).fit(bad)
        assert "Use smaller chunks (X.rechunk(...)) or workers with more" in str(caught.value)
        assert type(caught.value.__cause__).__name__ == "KilledWorker"
        assert clone(MODEL).fit(X).n_atoms_ == 24


class AtPass:
    """Does something when a pass begins."""

    max_propagation_depth = None

    def __init__(self, number, do):
        self.left, self.do = number, do

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "pass":
            self.left -= 1
            if self.left == 0:
                self.do()

    def on_fit_task_end(self, estimator, context):
        return False


@contextmanager
def cluster_by_commands(folder):
    """Yield the client and the process of a scheduler of its own, with a worker."""
    from distributed import Client

    file = folder / "scheduler.json"
    options = {
        "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
        "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    }  # fmt: skip
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
         "--dashboard-address", "127.0.0.1:0", "--host", "127.0.0.1", "--scheduler-file", file],
        **options,
    )  # fmt: skip
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", file,
         "--nthreads", "1", "--no-dashboard", "--no-nanny"],
        **options,
    )  # fmt: skip
    try:
        wait_until(file.exists)
        # So long a client looks for a scheduler that is gone.
        client = Client(scheduler_file=str(file), set_as_default=False, timeout=8)
        client.wait_for_workers(1, timeout=60)
        try:
            yield client, scheduler
        finally:
            client.close(timeout=2)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def test_a_lost_scheduler_is_said_and_the_checkpoint_goes_on(here, three, tmp_path):
    checkpoint = tmp_path / "fit.checkpoint"
    quiet = logging.getLogger("distributed")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL + 1)
    try:
        with (
            cluster_by_commands(tmp_path) as (client, scheduler),
            client.as_current(),
        ):
            lost = AtPass(4, scheduler.kill)
            with pytest.raises(ConnectionError) as caught:
                clone(MODEL).set_callbacks(Checkpoint(checkpoint), lost).fit(rows())
    finally:
        quiet.setLevel(level)
    assert str(caught.value).startswith("The connection to the Dask scheduler was lost while ")
    assert "a fit with a Checkpoint goes on from its last pass" in str(caught.value)
    n_left = []
    with three.as_current():
        again = clone(MODEL).set_callbacks(
            Checkpoint(checkpoint), AtPass(1, lambda: n_left.append(1))
        )
        assert sha256(again.fit(rows())) == here
    assert again.n_iter_ == 6
    assert n_left == [1]


def test_errors_of_a_users_kernel_come_back_once(client, tmp_path):
    this_process, calls = os.getpid(), tmp_path / "calls"

    def my_kernel(a, b):
        if os.getpid() != this_process:
            with open(calls, "a") as file:
                print(float(np.asarray(a)[0, 0]), file=file)
            raise LookupError("mine")
        return np.asarray(a) @ np.asarray(b).T

    model = KernelMOD(
        6, kernel=my_kernel, coordinates=KernelLinearizer(n_landmarks=20), random_state=0
    )
    with pytest.raises(LookupError, match="mine") as caught:
        model.fit(made_rows()[0])
    assert "my_kernel" in [entry.name for entry in caught.traceback]
    assert any(note.startswith("In chunk ") for note in caught.value.__notes__)
    rows_seen = calls.read_text().split()
    assert len(rows_seen) == len(set(rows_seen)), "a chunk was tried again"


def n_tasks(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_interrupts_leave_no_tasks(client):
    def slowly(block, _):
        time.sleep(0.3)
        return len(block)

    source = open_rows(made_rows(n_chunks=40)[0])
    thread = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        source.reduce(slowly, block_rows=500)
    assert time.monotonic() - start < 4  # of 6 seconds
    thread.join()
    wait_until(lambda: client.run_on_scheduler(n_tasks) == 0)
    assert source.reduce(lambda block, _: len(block), block_rows=500) == 20_000
