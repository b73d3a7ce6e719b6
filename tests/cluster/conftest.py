"""Clusters of worker processes on this machine."""

import logging
from contextlib import ExitStack, contextmanager

import pytest


@contextmanager
def cluster_of(n_workers, threads=1, **options):
    """Yield the client of a new cluster: processes, each with a nanny that starts it again.

    Where dead workers may be restarted in the test, ``wait_for_workers`` waits for them.
    """
    import dask
    from distributed import Client, LocalCluster

    # Dask gives up a worker that is dead 15 seconds after it died: one that was started again and
    # has just been killed once more, too.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(
            n_workers=n_workers, threads_per_worker=threads, processes=True,
            dashboard_address=None, silence_logs=logging.CRITICAL,
            # Without a dashboard there is a page of the scheduler's health nevertheless.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            **options,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        client.wait_for_workers(n_workers, timeout=60)
        yield client


@pytest.fixture(scope="session")
def clusters():
    """Return clients of clusters that all tests share, by their numbers of workers and threads.

    ``with clusters(2, 1).as_current():`` computes there.
    """
    started = {}
    with ExitStack() as opened:

        def client_of(n_workers, threads=1):
            key = n_workers, threads
            if key not in started:
                started[key] = opened.enter_context(cluster_of(n_workers, threads))
            started[key].wait_for_workers(n_workers, timeout=60)
            return started[key]

        yield client_of


@pytest.fixture
def client(clusters):
    """Compute on two workers of one thread each, which all tests share."""
    shared = clusters(2)
    with shared.as_current():
        yield shared


@pytest.fixture
def new_cluster():
    """Start clusters that end with the test: ``with new_cluster(2) as client``."""
    return cluster_of
