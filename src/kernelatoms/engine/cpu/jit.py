"""Compilation of the engine's loops: nogil, cached on disk, announced.

The first process on a machine compiles (seconds) and logs that to the ``kernelatoms`` logger; later
ones load machine code from the cache.

Files of the cache are never trusted to be what their names say: a damaged one would be run as
machine code, and numba's own index may point to code of an older source if a process is killed
between two writes. Whatever is wrong with the cache costs a compilation.

What a loop computes with ``reassoc`` depends on how LLVM orders its sums, so the same source must
become the same machine code in every process, whatever it compiled before. With numba alone, the
linker chooses among copies of a called loop, their names contain a count of what the process has
compiled, Python's stack at a branch has the order of a set, and the first user of a function that
numba compiles by itself (``x ** 2`` calls one) decides whether it has ``reassoc``. Here copies
belong to the loop they were made for, loops are linked as they are stored, what lies on the stack
is sorted, and numba's functions are shared only by loops with the same flags.

See docs/decisions/005-compiled-functions.md and docs/decisions/006-same-machine-code-everywhere.md.
"""

import functools
import logging
import os
import pickle
import secrets
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import llvmlite
import numba
from llvmlite import binding as llvm
from numba.core import event, ir
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.core.untyped_passes import TranslateByteCode

logger = logging.getLogger("kernelatoms")

# No 'nnan' or 'ninf': results on overflow must stay defined. 'reassoc' and 'contract' are what
# vectorised sums need; 'nsz' lets LLVM drop the bookkeeping of -0.
FASTMATH = {"reassoc", "contract", "nsz"}

_DIGEST_BYTES = 32


def jit(
    *, fastmath: bool = False, inline: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a loop without the GIL and keep the machine code on disk.

    The cache notices changes in the files that jitted functions are imported from; constants may
    come from the same files. Jitted functions say ``np.float64``, not ``float``, which leaves a
    float32 what it is. ``inline`` puts a function into those that call it, which saves them handing
    over references to arrays and counting them; each copy takes its time to compile.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": FASTMATH if fastmath else False,
        "inline": "always" if inline else "never",
        "pipeline_class": _StableCompiler,
    }

    def compile_lazily(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled = numba.njit(**options)(function)
        # Without a folder to cache in (read-only installation and no home) each process compiles.
        with suppress(RuntimeError):
            compiled._cache = _Cache(function)
        compiled.compile = _undisturbed(_with_own_target(compiled.compile))
        return compiled

    return compile_lazily


def _undisturbed(compile_for: Callable[..., Any]) -> Callable[..., Any]:
    """Let Ctrl-C wait until a compilation has ended.

    In the middle of one it may hit between LLVM's freeing an object and numba's noting that, and
    the process ends in a double free.
    """

    @functools.wraps(compile_for)
    def compile_undisturbed(*args: Any, **kwargs: Any) -> Any:
        handler = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or not callable(handler):
            return compile_for(*args, **kwargs)
        pressed: list[tuple[int, FrameType | None]] = []
        signal.signal(signal.SIGINT, lambda *now: pressed.append(now))
        try:
            return compile_for(*args, **kwargs)
        finally:
            signal.signal(signal.SIGINT, handler)
            if pressed:
                handler(*pressed[0])

    return compile_undisturbed


def _with_own_target(compile_for: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop, and what numba compiles for it, while numba's target is ours."""

    @functools.wraps(compile_for)
    def compile_for_own_target(*args: Any, **kwargs: Any) -> Any:
        target = cpu_target.target_context
        with global_compiler_lock:
            kind = target.__class__  # ours, where a loop is compiled for another
            target.__class__ = _Target
            try:
                return compile_for(*args, **kwargs)
            finally:
                target.__class__ = kind

    return compile_for_own_target


class _Target(CPUContext):
    """numba's target, where loops with the same flags share the functions that numba compiles.

    numba keeps those of ``x ** 2``, ``np.hypot``, ... by the types of their arguments: compiled for
    a loop with ``reassoc``, they would have it in every later loop, and the other way round.
    """

    _functions: ClassVar[dict[Any, dict[Any, Any]]] = {}  # by flags

    def subtarget(self, **options: Any) -> Any:
        """Return a copy for loops with some options."""
        target = super().subtarget(**options)
        flags = frozenset(target.fastmath.flags) if target.fastmath else None
        target.cached_internal_func = self._functions.setdefault(flags, {})
        return target


class _StableCompiler(Compiler):
    """numba's compiler, for machine code that is the same in every process."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function into a library of its own."""
        library = _Library(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()
        self.state.library = library
        return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        """Return numba's passes and ours."""
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(_SortStack, TranslateByteCode)
            pipeline.finalize()
        return pipelines


@register_pass(mutates_CFG=False, analysis_only=False)
class _SortStack(FunctionPass):
    """Assign what a block leaves on the stack, ``$phi...``, by name: numba's order is a set's."""

    _name = "kernelatoms_sort_stack"

    def __init__(self) -> None:  # numba's is abstract
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            places = [
                i
                for i, statement in enumerate(block.body)
                if isinstance(statement, ir.Assign) and statement.target.name.startswith("$phi")
            ]
            statements = sorted((block.body[i] for i in places), key=lambda each: each.target.name)
            for i, statement in zip(places, statements, strict=True):
                block.body[i] = statement
        return True


class _Library(JITCodeLibrary):
    """The machine code of one loop, and a module to link and inline it in others."""

    _shared_module: Any

    def _finalize_final_module(self) -> None:
        """Make functions of other libraries private, now that they are optimised.

        Before, LLVM would inline many more of them, and compile for minutes. numba knows NRT_incref
        and the like, which only count references, by their names.
        """
        for function in self._final_module.functions:
            if (
                not function.is_declaration
                and function.linkage == llvm.Linkage.linkonce_odr
                and function.name.startswith("_ZN")
            ):
                function.linkage = llvm.Linkage.internal
        super()._finalize_final_module()

    def _get_module_for_linking(self) -> Any:
        """Return the module as a process that loads it from disk would see it."""
        if self._shared_module is None:
            bitcode = super()._get_module_for_linking().as_bitcode()
            self._shared_module = llvm.parse_bitcode(bitcode)
        return self._shared_module


class _Cache(FunctionCache):
    """numba's cache of one function, over checked files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # numba looks at the function's own file only, and not at those it imports loops from.
        names = (getattr(value, "_cache", None) for value in function.__globals__.values())
        imported = [cache.stamps for cache in names if isinstance(cache, _Cache)]
        self.stamps: set[Any] = {self._impl.locator.get_source_stamp()}.union(*imported)
        base = Path(self.cache_path) / self._impl.filename_base
        self._cache_file = _CheckedFiles(base, (*_compiler_state(), *sorted(self.stamps)))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code for later processes, if there is room for it."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell_once(
                f"kernelatoms cannot keep its compiled loops in {self.cache_path} "
                f"({error.strerror}). Every process will compile them anew; NUMBA_CACHE_DIR "
                "chooses another folder."
            )


@functools.cache
def _compiler_state() -> tuple[Any, ...]:
    """Return what machine code depends on besides a loop's own file."""
    try:
        source = Path(__file__).read_bytes()
    except OSError:  # an application without sources, which do not change then
        source = b""
    return numba.__version__, llvmlite.__version__, sorted(FASTMATH), source


class _CheckedFiles:
    """One file for each signature and processor; begins with a digest of all it depends on."""

    def __init__(self, base: Path, state: tuple[Any, ...]) -> None:
        self._base, self._state = base, state

    def load(self, key: Any) -> Any:
        """Return what was saved; None if it was not, or by another state of the source."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return pickle.loads(data) if digest == self._digest(key, data) else None

    def save(self, key: Any, data: Any) -> None:
        """Write a file whole, over that of another state of the source."""
        content = dumps(data)
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            temporary.write_bytes(self._digest(key, content) + content)
            os.replace(temporary, path)
        finally:
            with suppress(OSError):
                temporary.unlink()

    def _path(self, key: Any) -> Path:
        name = blake2b(repr(key).encode(), digest_size=8).hexdigest()
        return self._base.with_name(f"{self._base.name}.{name}.nbc")

    def _digest(self, key: Any, data: bytes) -> bytes:
        return blake2b(repr((self._state, key)).encode() + data, digest_size=_DIGEST_BYTES).digest()


@functools.cache
def _tell_once(text: str) -> None:
    logger.warning(text)


class _Announcer(event.Listener):
    """Log once per process that compilation has started."""

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__ or ""  # others make functions of text
        if module.startswith("kernelatoms."):
            _tell_once(
                "kernelatoms compiles its inner loops for this machine: some seconds, once; "
                "later runs load them from the cache (NUMBA_CACHE_DIR chooses its folder)."
            )

    def on_end(self, event: Any) -> None:
        """Do nothing."""


event.register("numba:compile", _Announcer())
