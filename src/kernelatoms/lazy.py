"""Names of a package that load when they are first used (PEP 562), so that importing it is cheap.

What needs an extra says so when the extra is not installed.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

#: Packages that come with ``kernelatoms[cli]``.
OF_CLI = {"matplotlib", "PIL", "pyarrow", "rich", "skops", "typer", "zstandard"}


def lazy_names(
    package: str, homes: Mapping[str, str], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    ``homes`` has the module of every name, below ``kernelatoms``; ``modules`` are names, too.
    """
    modules = tuple(modules)

    def get(name: str) -> Any:
        if name not in homes and name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            if name in modules:
                value = import_module(f"{package}.{name}")
            else:
                value = getattr(import_module(f"kernelatoms.{homes[name]}"), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in OF_CLI:
                raise ImportError(missing_extra(f"{package}.{name}", error.name or "")) from error
            raise
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes, *modules})

    return get, names


def load_extra(module: str, what: str, extra: str = "cli") -> Any:
    """Return a module of an extra; where it is not installed, say who needs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(missing_extra(what, error.name or module, extra)) from error


def missing_extra(what: str, module: str, extra: str = "cli") -> str:
    """Return what to say where a package of an extra is not installed."""
    return f"{what} needs {module}, which is not installed: pip install 'kernelatoms[{extra}]'."
