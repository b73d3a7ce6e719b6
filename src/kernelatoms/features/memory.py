"""Memory estimates: work that cannot fit is refused before it starts.

See docs/decisions/042-blocks-and-sums.md.
"""

import os
from pathlib import Path
from typing import Any

from kernelatoms.engine import is_device_array, machine

_GIB = 2**30
# Asking for free memory takes longer than work of this size, on the CPU and on a GPU.
_ALWAYS_FITS, _ALWAYS_FITS_DEVICE = 2**26, 2**28


def check_fits(n_bytes: float, what: str, instead: str, *, like: Any = None) -> None:
    """Refuse work that needs more memory than there is.

    - ``n_bytes``: a lower bound of what it needs.
    - ``what``, ``instead``: the work as the beginning of a sentence, and what to do instead.
    - ``like``: an array on the device of the work; the default is host memory.
    """
    on_device = is_device_array(like)
    if n_bytes < (_ALWAYS_FITS_DEVICE if on_device else _ALWAYS_FITS):
        return
    available = machine(like).free_bytes(like) if on_device else available_bytes()
    if available is not None and n_bytes > available:
        raise ValueError(
            f"{what[:1].upper()}{what[1:]} need about {gib(n_bytes)} of memory, and "
            f"{gib(available)} are available. {instead}"
        )


def check_dense_fits(n_signals: int, n_atoms: int, itemsize: int, *, like: Any = None) -> None:
    """Refuse codes as a dense array, if that needs more memory than there is."""
    check_fits(
        float(n_signals) * n_atoms * itemsize,
        f"dense codes of {n_signals} signals over {n_atoms} atoms",
        "Keep codes sparse (sparse_output=True, no data frames), or code fewer signals at a time.",
        like=like,
    )


def check_gram_fits(n_atoms: int, itemsize: int, *, like: Any = None) -> None:
    """Refuse the inner products of all pairs of atoms, if they need more memory than there is."""
    check_fits(
        float(n_atoms) ** 2 * itemsize,
        f"inner products of all pairs of {n_atoms} atoms",
        "Use fewer atoms, or a greedy or l1 pursuit (method='omp' or 'lasso') over rows as atoms, "
        "which needs no such matrix.",
        like=like,
    )


def available_bytes() -> int | None:
    """Return how much memory this process could still get; None where the system does not say.

    That is what the machine has free or can free, swap included, within the limits of the container
    (cgroup) and of the process itself (``ulimit -v``).
    """
    limits = [_machine_bytes(), _container_bytes(), _process_bytes()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def _machine_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if ":" in line}
        return fields["MemAvailable"] + fields.get("SwapFree", 0)
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _process_bytes() -> int | None:
    """Return what the limit on this process's address space leaves; None where there is none."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError, IndexError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(limit - used, 0)


def _container_bytes(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return what the memory limits of this process's cgroups leave; None where there are none."""
    found: list[int] = []
    for folder, limit_name, usage_name, cache_name in _cgroups(root):
        try:
            limit = int((folder / limit_name).read_text())  # "max" where there is none
            usage = int((folder / usage_name).read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        # Cached files count as used, and go when memory is asked for.
        found.append(max(limit - usage + int(stat.get(cache_name, 0)), 0))
    return min(found) if found else None


def _cgroups(root: Path) -> list[tuple[Path, str, str, str]]:
    """Return the folders of this process's cgroups, innermost first, and the names in them."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        top, names = root, ("memory.max", "memory.current", "inactive_file")
        if "memory" in controllers.split(","):
            top = root / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        elif controllers:
            continue
        folder = top / path.lstrip("/")
        places = (place for place in (folder, *folder.parents) if place.is_relative_to(top))
        found += [(place, *names) for place in places]
    return found


def gib(n_bytes: float) -> str:
    """Return a number of bytes in words."""
    return f"{n_bytes / _GIB:,.3g} GiB" if n_bytes < 1000 * _GIB else f"{n_bytes / _GIB:,.0f} GiB"
