"""The ``kernelatoms`` command in a process of its own."""

import multiprocessing
import subprocess

import pytest

from forked import be_the_command

# Imports take two seconds of every process; here they are done once, by that from which all
# commands are forked.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["kernelatoms.cli.app", "kernelatoms.report.model", "kernelatoms.files.models.model_file",
     "kernelatoms.files.tables.features", "kernelatoms.files.tables.csv_tables",
     "kernelatoms.files.tables.arrow_tables", "skops.io", "pyarrow.csv", "pyarrow.parquet",
     "matplotlib.figure", "matplotlib.backends.backend_agg",
     "typer._adapters"]  # the last brings pydantic, in versions of typer that need it
)  # fmt: skip


@pytest.fixture
def start_command(tmp_path):
    """Start ``kernelatoms ...`` in an empty folder, with these files for what it says."""

    def start(arguments, said, path=(), env=None):
        argv = ["kernelatoms", *map(str, arguments)]
        process = FORKS.Process(target=be_the_command, args=(argv, path, tmp_path, env or {}, said))
        process.start()
        return process

    return start


@pytest.fixture
def command(start_command, tmp_path):
    """Run ``kernelatoms ...``; returns the finished process.

    Like ``python -m kernelatoms``, or ``as_script``: like the console script, which does not find
    modules of the current folder by itself.
    """

    def run(*arguments, as_script=False, env=None):
        said = [tmp_path / ".stdout", tmp_path / ".stderr"]
        path = [] if as_script else [str(tmp_path)]
        process = start_command(arguments, said, path, env)
        process.join(timeout=120)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(arguments, 120)
        texts = [file.read_text() for file in said]
        for file in said:
            file.unlink()
        return subprocess.CompletedProcess(arguments, process.exitcode, *texts)

    return run
