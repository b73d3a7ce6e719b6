"""Machine code that depends on source, signature and processor alone, not on a process's past.

What a loop computes with ``reassoc`` depends on how LLVM orders its sums, so the same source must
become the same machine code: in the process that compiles it and in those that load it, beside
loops compiled here or earlier, by other processes and in any order. numba alone does not give that:

- The machine code of a loop holds copies of those it calls, optimised once more with it, under
  names that any process may define. The linker takes the first definition it has seen: the callee's
  own code where it was just compiled, the copy where the caller alone was loaded.
- These names contain a count of what the process has compiled. Copies that have one name in a
  process that compiles everything, and are one function there, are two beside loaded code.
- The order of what lies on Python's stack at a branch is that of a set of strings, another one in
  every process.

So copies belong to the loop they were made for, loops are linked as they are stored, and what lies
on the stack is sorted.

See docs/decisions/006-same-machine-code-everywhere.md.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import binding as llvm
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.untyped_passes import TranslateByteCode


class StableCompiler(Compiler):
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
    """Assign what a block leaves on the stack, ``$phi...``, in the order of the names.

    Any order is right: numba's own is that of a set.
    """

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
