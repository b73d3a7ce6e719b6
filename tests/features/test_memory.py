"""What cannot fit is refused with an estimate; what is known of the system's memory."""

from pathlib import Path

import pytest

from kernelatoms.features import memory
from kernelatoms.features.memory import available_bytes, check_fits

GIB = 2**30


def test_what_fits_passes_and_what_does_not_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * GIB)
    check_fits(8 * GIB, "all of it", "Do less.")
    message = r"^Atoms need about 5,121 GiB of memory, and 8 GiB are available\. Do less\.$"
    with pytest.raises(ValueError, match=message):
        check_fits(5121 * GIB, "atoms", "Do less.")
    with pytest.raises(ValueError, match=r"need about 8\.5 GiB"):
        check_fits(8.5 * GIB, "atoms", "Do less.")


def test_nothing_is_refused_where_the_system_does_not_say(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    check_fits(1e30, "atoms", "Do less.")


def test_the_tightest_limit_counts(monkeypatch):
    monkeypatch.setattr(memory, "_machine_bytes", lambda: 8 * GIB)
    monkeypatch.setattr(memory, "_container_bytes", lambda: None)
    assert available_bytes() == 8 * GIB
    monkeypatch.setattr(memory, "_container_bytes", lambda: 2 * GIB)
    assert available_bytes() == 2 * GIB
    monkeypatch.setattr(memory, "_machine_bytes", lambda: None)
    assert available_bytes() == 2 * GIB
    monkeypatch.setattr(memory, "_container_bytes", lambda: None)
    assert available_bytes() is None


def test_this_machine_has_some_memory():
    found = available_bytes()
    assert found is None or 2**20 < found < 2**60


def container(folder, names, limit, usage, cache):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {cache}\n")


V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("memory.max", "memory.current", "inactive_file")


@pytest.mark.parametrize(
    ("lines", "top", "names"),
    [("0::/jobs/one\n", "", V2), ("4:cpu,memory:/jobs/one\n0::/\n", "memory", V1)],
    ids=["version 2", "version 1"],
)
def test_limits_of_containers(lines, top, names, tmp_path, monkeypatch):
    """The innermost and all around it count, cached files as free, 'max' as no limit."""
    read = Path.read_text

    def read_text(path, *args, **kwargs):
        return lines if path == Path("/proc/self/cgroup") else read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read_text)
    assert memory._container_bytes(tmp_path) is None
    container(tmp_path / top / "jobs" / "one", names, 1000, 300, 50)
    assert memory._container_bytes(tmp_path) == 750
    container(tmp_path / top / "jobs", names, 900, 500, 0)
    assert memory._container_bytes(tmp_path) == 400
    container(tmp_path / top / "jobs", names, "max", 500, 0)
    assert memory._container_bytes(tmp_path) == 750
    container(tmp_path / top / "jobs" / "one", names, 100, 300, 50)
    assert memory._container_bytes(tmp_path) == 0


def test_limits_of_the_process(monkeypatch):
    """``ulimit -v``: what is left of the address space, not all of it."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert memory._process_bytes() is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**60, 2**60))
    found = memory._process_bytes()
    if found is None:
        pytest.skip("the system does not say how much is used")
    assert 2**60 - 2**50 < found < 2**60 - 2**20
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1, 1))
    assert memory._process_bytes() == 0
    monkeypatch.setattr(memory, "_machine_bytes", lambda: 8 * GIB)
    monkeypatch.setattr(memory, "_container_bytes", lambda: None)
    assert available_bytes() == 0
