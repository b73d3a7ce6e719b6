"""Kernels as they are compiled for a card, without one: all threads of a program must agree.

A scalar is a copy in every thread. Where threads add up products, one each, the compiler may fuse a
thread's own product into its sum with the others': copies then differ in the last bit, and threads
part where they decide something by it. No interpreter shows that. (Sweeps of K-SVD decide nothing.)
"""

import importlib.util
import re

import pytest

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("triton") is None:
    pytest.skip("needs torch and Triton", allow_module_level=True)

import os

if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("nothing is compiled", allow_module_level=True)

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernelatoms.engine.gpu import update_kernels
from kernelatoms.engine.gpu.arrays import norm_kernels
from kernelatoms.engine.gpu.greedy import exact as greedy_exact
from kernelatoms.engine.gpu.greedy import kernels as greedy_kernels
from kernelatoms.engine.gpu.greedy import many_atoms, screens
from kernelatoms.engine.gpu.l1 import kernels as l1_kernels

POINTERS = {
    "double": "*fp64", "float": "*fp32", "half": "*fp16", "int": "*i32",
    "small": "*i8",
}  # fmt: skip


def compiled(kernel, pointers, numbers=None, *, options=None, **constants):
    """Compile for an H200: pointers by the type of what they point at, numbers by name, constants.

    Arguments that are not named are 32-bit integers.
    """
    types = {name: POINTERS[kind] for kind, names in pointers.items() for name in names.split()}
    types |= numbers or {}
    signature = {
        name: "constexpr" if name in constants else types.get(name, "i32")
        for name in kernel.arg_names
    }
    source = ASTSource(kernel, signature, constants)
    target = GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options=options or {"num_warps": 1}).asm["ptx"]


def fused_sums(ptx):
    """Return the instructions that add a product of this thread to a number of another one."""
    of_others, found = set(), []
    for line in ptx.splitlines():
        into, *given = re.findall(r"%\w+", line) or [""]
        if "shfl.sync" in line or ("mov.b" in line and of_others & set(given)):
            of_others.add(into)
        if "fma.rn.f" in line and given[-1] in of_others:
            found.append(line.strip())
    return found


PURSUIT = {
    "float": "gram norms2 out_values scratch signals atoms norms_of_signals numbers corr_numbers",
    "double": "until out_explained", "int": "out_ids out_counts", "small": "out_unsettled",
}  # fmt: skip
STEP = {
    "float": "signals residuals units slacks sizes atoms norms2 directions triangle out_w "
    "exact_at first_gain", "half": "halves", "double": "energy until explained",
    "int": "who keys out_ids counts", "small": "going unsettled",
}  # fmt: skip


@pytest.mark.parametrize("n_nonzero", [4, 16, 32, 64])
@pytest.mark.parametrize("n_atoms", [32, 1024])
@pytest.mark.parametrize("positive", [False, True])
def test_pursuits(n_nonzero, n_atoms, positive):
    layout = greedy_kernels._layout(n_nonzero, n_atoms)
    constants = {"R": layout.pop("R"), "F": 128, "EVEN": True, "POSITIVE": positive}
    for rows in (False, True):
        pointers = {**PURSUIT, "half": "half corr" if rows else "half"}
        pointers["float"] += "" if rows else " corr"
        ptx = compiled(
            greedy_kernels._pursue, pointers, options=layout, K=n_nonzero, M=n_atoms, OLS=False,
            ROWS=rows, **constants,
        )  # fmt: skip
        assert not fused_sums(ptx)


def test_ols():
    pointers = {**PURSUIT, "float": PURSUIT["float"] + " corr half"}
    ptx = compiled(
        greedy_kernels._pursue, pointers, K=16, M=1024, OLS=True, ROWS=False, POSITIVE=False,
        EVEN=True, R=4, F=128,
    )  # fmt: skip
    assert not fused_sums(ptx)


@pytest.mark.parametrize("n_features", [8, 32, 64])
def test_halves_and_norms(n_features):
    ptx = compiled(
        greedy_kernels._halve, {"float": "signals sizes", "half": "halves"}, P=n_features,
        options={"num_warps": 1, "enable_fp_fusion": False},
    )  # fmt: skip
    assert not fused_sums(ptx)
    ptx = compiled(
        norm_kernels._squared_norms, {"float": "rows", "double": "squares"}, R=4, P=128,
        options={"num_warps": 2},
    )  # fmt: skip
    assert not fused_sums(ptx)


@pytest.mark.parametrize(("n_nonzero", "exact"), [(2, False), (16, True), (64, True)])
@pytest.mark.parametrize("positive", [False, True])
def test_exact_pursuits(n_nonzero, positive, exact):
    pointers = {
        "double": "corr gram until out_explained", "float": "out_values",
        "int": "out_ids out_counts", "small": "out_unsettled",
    }  # fmt: skip
    ptx = compiled(
        greedy_exact._pursue_exactly, pointers, K=n_nonzero, M=32, POSITIVE=positive, EXACT=exact,
        options={"num_warps": max(1, n_nonzero // 16), "enable_fp_fusion": False},
    )  # fmt: skip
    assert not fused_sums(ptx)


@pytest.mark.parametrize(
    ("n_nonzero", "n_features"), [(2, 8), (4, 32), (16, 64), (32, 1024), (64, 128)]
)
@pytest.mark.parametrize("positive", [False, True])
def test_steps_over_many_atoms(n_nonzero, n_features, positive):
    for eight_bits, parts in ((False, 1), (True, 1), (True, 2)):
        ptx = compiled(
            many_atoms._step, STEP, K=n_nonzero, P=n_features, T=64, BN=128 * parts, J=4, S=4,
            PARTS=parts, POSITIVE=positive, EIGHT_BITS=eight_bits,
            options=many_atoms._program(n_nonzero, n_features, 64),
        )  # fmt: skip
        assert not fused_sums(ptx)


@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize("copies", [False, True])
def test_screens_are_made_for_tensor_cores(eight_bits, copies):
    # Where the card copies tiles by itself, products of a program are one loop: a pass of the
    # compiler that no interpreter runs.
    kind, columns = ("i8", 128) if eight_bits else ("fp16", 64)
    rows = f"tensordesc<{kind}[128, {columns}]>" if copies else f"*{kind}"
    ptx = compiled(
        screens._screen, {"int": "keys"}, {"rows": rows, "atoms": rows},
        options={"num_warps": 4, "num_stages": 3},
        BM=128, BN=128, BK=columns, GROUP=8, PROGRAMS=264, POSITIVE=False, TMA=copies,
        EIGHT_BITS=eight_bits,
    )  # fmt: skip
    assert ("s32.s8.s8" if eight_bits else "f32.f16.f16") in ptx
    assert ("cp.async.bulk.tensor" in ptx) == copies


@pytest.mark.parametrize("positive", [False, True])
def test_ends_over_many_atoms(positive):
    pointers = {
        "float": "triangle zs norms2 out_values", "double": "explained",
        "int": "ids counts out_ids", "small": "unsettled",
    }  # fmt: skip
    for n_nonzero in (2, 32):
        ptx = compiled(
            many_atoms._finish, pointers, K=n_nonzero, POSITIVE=positive,
            options={"num_warps": 1, "enable_fp_fusion": False},
        )  # fmt: skip
        assert not fused_sums(ptx)


@pytest.mark.parametrize("n_atoms", [16, 32, 64, 128])
@pytest.mark.parametrize(
    ("grams", "positive", "started"),
    [("float", False, True), ("float", True, True), ("double", False, False)],
)
def test_paths(n_atoms, grams, positive, started):
    pointers = {"float": "", "double": "gradients starts weights lefts"}
    pointers[grams] += " grams"
    ptx = compiled(
        l1_kernels._follow, pointers, {"tol": "fp32"}, K=n_atoms, R=8, POSITIVE=positive,
        STARTED=started,
        options={"num_warps": l1_kernels._WARPS[n_atoms], "enable_fp_fusion": True},
    )  # fmt: skip
    assert not fused_sums(ptx)


@pytest.mark.parametrize("n_features", [16, 64, 1024])
def test_descent(n_features):
    ptx = compiled(
        update_kernels._descend, {"double": "gram left atoms steps moved"}, P=n_features,
        S=update_kernels._STEPS, options={"num_warps": max(1, n_features // 128)},
    )  # fmt: skip
    assert not fused_sums(ptx)
