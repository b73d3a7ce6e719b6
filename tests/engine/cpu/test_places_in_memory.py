"""Results do not depend on where arrays lie in memory."""

import ast
from pathlib import Path

import numpy as np
import pytest

from kernelatoms.engine.cpu import local_grams, masked


def laid_out(arrays, order, gap):
    """Return copies of arrays in one piece of memory, in this order and so many numbers apart."""
    memory, at, out = np.zeros(sum(a.size for a in arrays) + gap * len(arrays)), 0, list(arrays)
    for i in order:
        size = arrays[i].size
        out[i] = memory[at : at + size].reshape(arrays[i].shape)
        out[i][:] = arrays[i]
        at += size + gap
    return out


PLACES = [(order, gap) for order in [(0, 1, 2), (1, 0, 2), (2, 0, 1)] for gap in (0, 2, 1000)]


@pytest.mark.parametrize("n_features", [4, 5, 17, 20])
def test_squared_norms_of_neighbours(n_features, rng):
    X, rows = rng.standard_normal((5, n_features)), rng.standard_normal((24, n_features))
    candidates = rng.integers(0, 24, (5, 7)).astype(np.int32)
    candidates[0] = 23
    found = set()
    for order, gap in PLACES:
        signals, atoms, centred = laid_out([X, rows, np.zeros((5, 7, n_features))], order, gap)
        squares = np.empty((5, 7))
        local_grams._centre(signals, atoms, candidates, centred, squares)
        found.add(squares.tobytes())
    assert len(found) == 1


def adds_up(loop):
    return any(isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
               for node in ast.walk(loop))  # fmt: skip


def writes(loop):
    return any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
               for node in ast.walk(loop))  # fmt: skip


def innermost(function):
    for node in ast.walk(function):
        if isinstance(node, ast.For) and not any(
            isinstance(inner, ast.For | ast.While) for part in node.body for inner in ast.walk(part)
        ):
            yield node


def test_sums_have_loops_of_their_own():
    """A loop that also writes is compiled for arrays close together and for others, see _centre."""
    n_sums = 0
    for path in Path(masked.__file__).parent.glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            if not any("fastmath=True" in ast.unparse(one) for one in function.decorator_list):
                continue
            for loop in innermost(function):
                n_sums += adds_up(loop)
                # Where it only counts what it writes, the order does not matter.
                if adds_up(loop) and writes(loop):
                    assert (path.name, function.name) == ("nearest.py", "_keep"), loop.lineno
    assert n_sums > 20
