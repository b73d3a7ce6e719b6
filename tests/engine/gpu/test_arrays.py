"""``DeviceArray`` is numpy on tensors: the same numbers, shapes and types, or a TypeError."""

import copy
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelatoms.engine import cpu, is_array, is_device_array, machine, to_numpy

torch = pytest.importorskip("torch")

from kernelatoms.engine import gpu  # noqa: E402
from kernelatoms.engine.gpu import DeviceArray  # noqa: E402
from kernelatoms.engine.gpu.arrays import linalg as exact  # noqa: E402
from kernelatoms.engine.gpu.arrays.conversion import on_tensors  # noqa: E402
from kernelatoms.engine.gpu.arrays.device_array import wrapped  # noqa: E402

DTYPES = [np.bool_, np.int32, np.int64, np.float32, np.float64]


def device(array):
    """Return a numpy array as an array of the machine of tensors."""
    return DeviceArray(torch.tensor(array))


def same(found, expected, rtol=0.0):
    """Check numbers, shape and type; scalars of numpy are arrays without sides."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, rtol)
        return
    assert isinstance(found, DeviceArray)
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(to_numpy(found), expected, rtol=rtol, atol=rtol)


def numbers(rng, shape, dtype):
    return (10 * rng.standard_normal(shape)).astype(dtype)


BINARY = [
    np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum, np.less,
    np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.power,
]  # fmt: skip
UNARY = [
    np.negative, np.absolute, np.square, np.sqrt, np.exp, np.tanh, np.sign, np.isfinite, np.isnan,
    np.isinf,
]  # fmt: skip


class TestUniversalFunctions:
    @pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
    @pytest.mark.parametrize("ours", DTYPES)
    @pytest.mark.parametrize("theirs", [*DTYPES, int, float])
    def test_types_and_numbers_of_two_operands(self, function, ours, theirs, rng):
        a = numbers(rng, (4, 3), ours)
        b = theirs(2) if theirs in (int, float) else np.abs(numbers(rng, 3, theirs))
        try:
            with np.errstate(all="ignore"):
                expected = function(a, b), function(b, a)
        except (TypeError, ValueError):  # bool less bool, negative powers of whole numbers
            return
        other = device(b) if isinstance(b, np.ndarray) else b
        rounding = 1e-6 if expected[0].dtype == np.float32 else 1e-14
        same((function(device(a), other), function(other, device(a))), expected, rounding)
        # What lives on the host is brought to the device.
        same((function(device(a), b), function(b, device(a))), expected, rounding)

    @pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_one_operand(self, function, dtype, rng):
        a = np.append(np.abs(numbers(rng, 5, dtype)), [0, np.inf, np.nan]).astype(dtype)
        with np.errstate(all="ignore"):
            same(function(device(a)), function(a), 1e-6 if dtype == np.float32 else 1e-14)

    def test_numpys_numbers_are_strong_and_pythons_weak(self):
        a = device(np.ones(2, np.float32))
        assert (a * 2.0).dtype == np.float32
        assert (a * np.float64(2)).dtype == np.float64
        assert (device(np.arange(3)) / 2).dtype == np.float64
        assert (device(np.arange(3)) * 2).dtype == np.int64

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_products(self, dtype, rng):
        A, B, stack = (numbers(rng, shape, dtype) for shape in ((4, 3), (3, 5), (2, 4, 3)))
        x = numbers(rng, 3, dtype)
        eps = 10 * np.finfo(dtype).eps
        same(device(A) @ device(B), A @ B, 100 * eps)
        same(device(stack) @ B, stack @ B, 100 * eps)
        same(np.vecdot(device(A), device(A)), np.vecdot(A, A), eps)
        same(np.vecdot(device(A), x, dtype=np.float64), np.vecdot(A, x, dtype=np.float64), 1e-12)
        same(np.matvec(device(stack), x), np.matvec(stack, x), 100 * eps)

    def test_in_place_and_where(self, rng):
        a, b = numbers(rng, (2, 3), np.float32), numbers(rng, 3, np.float64)
        found = other = device(a)
        other += 1.5
        other *= device(b)  # of a wider type: rounded to the array's own
        expected = a.copy()
        expected += np.float32(1.5)
        expected = (expected * b).astype(np.float32)
        assert found is other
        same(found, expected, 1e-6)
        zeros = device(np.zeros(3))
        same(np.divide(1, device(b), out=zeros, where=device(b > 0)), np.where(b > 0, 1 / b, 0))
        assert to_numpy(zeros).any() == (b > 0).any()

    @given(
        st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=5),
        st.integers(-1100, 1100),
    )
    def test_powers_of_two_change_no_digit(self, values, exponent):
        for dtype in (np.float32, np.float64):
            a = np.array(values, dtype)
            with np.errstate(all="ignore"):
                same(np.ldexp(device(a), exponent), np.ldexp(a, exponent))
                same(np.frexp(device(a)), np.frexp(a))

    def test_what_is_not_known_is_named(self):
        a = device(np.ones(3))
        with pytest.raises(TypeError, match=r"np\.arctan2 is not known"):
            np.arctan2(a, a)
        with pytest.raises(TypeError, match=r"np\.add\.reduce is not known"):
            np.add.reduce(a)
        with pytest.raises(TypeError, match=r"np\.median is not known"):
            np.median(a)
        with pytest.raises(TypeError, match="out must be an array on"):
            np.add(a, a, out=np.zeros(3))


class TestFunctions:
    CALLS: ClassVar = {
        "sum": lambda x: (np.sum(x), x.sum(axis=1), x.sum(axis=0, dtype=np.float64)),
        "mean": lambda x: (x.mean(axis=0), x.mean(axis=0, dtype=np.float64)),
        "var": lambda x: np.var(x, dtype=np.float64),
        "max": lambda x: (x.max(axis=1, keepdims=True), x.max(initial=100), np.max(x)),
        "min": lambda x: (x.min(axis=1), x.min(initial=-100), np.min(x, axis=(0, 1))),
        "min where": lambda x: x.min(initial=np.inf, where=x > 0),
        "empty": lambda x: (x[:0].max(initial=3), x[:0].max(axis=1, initial=0), x[:0].sum()),
        "any": lambda x: ((x > 0).any(axis=1), (x > 100).any(), np.any(x, axis=1, keepdims=True)),
        "all": lambda x: ((x > -100).all(axis=0), (x > 0).all()),
        "count": lambda x: (np.count_nonzero(x > 0), np.count_nonzero(x > 0, axis=1)),
        "argmax": lambda x: (x.argmax(axis=1), (x > 0).argmax(axis=0), x[0].argmin()),
        "cumsum": lambda x: (np.cumsum(x[0]), np.cumsum(x, axis=1)),
        "diff": lambda x: np.diff(x[0]),
        "where": lambda x: (np.where(x > 0, x, 0), np.where(x > 0, -1, x.astype(np.int32))),
        "nonzero": lambda x: (np.flatnonzero(x > 0), *np.nonzero(x > 0)),
        "sorted": lambda x: (np.sort(x, axis=1), np.argsort(x > 0, axis=1, kind="stable")),
        "along": lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1),
        "searched": lambda x: np.searchsorted(np.sort(x[0]), x[1], side="right"),
        "unique": lambda x: np.unique(np.sign(x)),
        "joined": lambda x: (np.concatenate([x, x[:1].astype(np.float64)]), np.stack([x, x], 1)),
        "repeat": lambda x: (np.repeat(x, np.arange(len(x)), axis=0), x[:, 0].repeat(2)),
        "roll": lambda x: np.roll(x, 2, axis=0),
        "pad": lambda x: (np.pad(x, (0, 2)), np.pad(x, ((1, 0), (0, 2)))),
        "diagonal": lambda x: (np.diagonal(x @ x.T), np.trace(x @ x.T), np.tril(x @ x.T, 1)),
        "broadcast": lambda x: np.broadcast_to(x[0], (3, x.shape[1])),
        "norm": lambda x: (np.linalg.norm(x, axis=1, keepdims=True), np.linalg.norm(x)),
        "vdot": lambda x: np.vdot(x, x),
        "einsum": lambda x: np.einsum("ij,ij->i", x, x, dtype=np.float64),
        "bincount": lambda x: np.bincount((x[0] > 0).astype(np.int64), minlength=4),
        "nan": lambda x: np.nan_to_num(np.where(x > 0, np.nan, x)),
        "nansum": lambda x: np.nansum(np.where(x > 0, np.nan, x)),
        "nanmin": lambda x: np.nanmin(np.where(x > 0, np.nan, x)),
        "nanmax": lambda x: np.nanmax(np.where(x > 0, np.nan, x), initial=-50),
        "like": lambda x: (np.zeros_like(x), np.ones_like(x, dtype=np.int32)),
        "ix": lambda x: x[np.ix_(x[:, 0] > 0, np.arange(2, like=x))],
    }

    @pytest.mark.parametrize("name", CALLS)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_they_are_numpys(self, name, dtype, rng):
        x = numbers(rng, (5, 4), dtype)
        with np.errstate(all="ignore"):
            same(self.CALLS[name](device(x)), self.CALLS[name](x), 20 * np.finfo(dtype).eps)

    def test_the_first_of_equal_ones_is_the_largest(self):
        x = device(np.array([[1.0, 3.0, 3.0, 0.0, 0.0]]))
        assert (int(x.argmax(axis=1)[0]), int(x.argmin(axis=1)[0])) == (1, 3)

    def test_new_arrays_are_made_like_others(self, rng):
        like = device(np.ones(2, np.float32))
        host = numbers(rng, (3, 2), np.float32)
        same(np.zeros(3, like=like), np.zeros(3))
        same(np.empty((2, 2), np.int32, like=like) * 0, np.zeros((2, 2), np.int32))
        same(np.full((2, 1), -1, np.int32, like=like), np.full((2, 1), -1, np.int32))
        same(np.ones((2, 1), np.float32, like=like), np.ones((2, 1), np.float32))
        same(np.arange(4, like=like), np.arange(4))
        same(np.eye(3, dtype=np.float32, like=like), np.eye(3, dtype=np.float32))
        same(np.asarray(host[:, ::-1], np.float64, like=like), host[:, ::-1].astype(np.float64))
        same(np.asarray([1.0, 2.0], like=like), np.array([1.0, 2.0]))
        assert np.ascontiguousarray(device(host).T, like=like).tensor.is_contiguous()

    def test_eigenvectors_and_solutions(self, rng):
        A = rng.standard_normal((6, 6))
        A = A @ A.T
        values, vectors = np.linalg.eigh(device(A))
        same(values, np.linalg.eigh(A)[0], 1e-10)
        same(vectors * values @ vectors.T, A, 1e-10)
        same(np.linalg.solve(device(A), device(A[:, :2])), np.linalg.solve(A, A[:, :2]), 1e-6)


class TestIndices:
    KEYS: ClassVar = {
        "number": 1,
        "numpy's number": np.int64(-1),
        "slice": slice(np.int64(1), None, 2),
        "backwards": slice(None, None, -1),
        "columns backwards": (slice(None), slice(None, None, -1)),
        "new axis": (slice(None), None),
        "ellipsis": (..., 0),
        "list": [2, 0],
        "nothing": [],
        "host array": np.array([3, -1, 0]),
        "host int32": np.array([[3, -1], [0, 1]], np.int32),
        "mask": np.array([True, False, True, False, True]),
        "pairs": (np.array([0, 1]), np.array([2, 3])),
        "mask and number": (np.array([True, False, True, False, True]), 1),
        "axis and array": (slice(None), np.array([1, 1, 0])),
    }

    @pytest.mark.parametrize("name", KEYS)
    def test_they_are_numpys(self, name, rng):
        x, key = numbers(rng, (5, 4), np.float32), self.KEYS[name]
        same(device(x)[key], x[key])
        keys = key if isinstance(key, tuple) else (key,)
        own = tuple(device(k) if isinstance(k, np.ndarray) else k for k in keys)
        same(device(x)[own], x[key])

    @pytest.mark.parametrize("name", [name for name in KEYS if "backwards" not in name])
    def test_writing(self, name, rng):
        x, key = numbers(rng, (5, 4), np.float32), self.KEYS[name]
        for value in (7, np.float64(2.5), x[key] + 1.0, x[key].astype(np.float64)):
            expected, found = x.copy(), device(x)
            expected[key] = value
            found[key] = device(value) if isinstance(value, np.ndarray) and value.ndim else value
            same(found, expected)

    def test_slices_are_views(self):
        x = device(np.zeros((3, 2)))
        x[1:][0] = 5.0
        x.T[0] += 1.0
        assert to_numpy(x).tolist() == [[1.0, 0.0], [6.0, 5.0], [1.0, 0.0]]

    def test_refused(self):
        x = device(np.zeros((3, 2)))
        with pytest.raises(TypeError, match="negative steps"):
            x[::-2]
        with pytest.raises(TypeError, match="negative steps"):
            x[::-1, 0]
        with pytest.raises(TypeError, match="negative steps"):
            x[::-1] = 0


class TestTheArrayItself:
    def test_what_it_says_of_itself(self, rng):
        x = numbers(rng, (3, 2), np.float32)
        found = device(x)
        for name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes"):
            assert getattr(found, name) == getattr(x, name)
        assert len(found) == 3
        assert [row.shape for row in found] == [(2,)] * 3
        same((found.T, found.mT), (x.T, x.mT))
        same(
            (found.reshape(2, 3), found.reshape(-1), found.ravel()),
            (x.reshape(2, 3), *[x.ravel()] * 2),
        )
        assert found.tolist() == x.tolist()

    def test_numbers_without_sides_are_numbers(self):
        x = device(np.array([1.5, -2.0]))
        assert float(x[0]) == 1.5
        assert int(x[1]) == -2
        assert bool(x[0] > 0)
        assert f"{x.max():.2f}" == "1.50"
        assert [3, 4, 5][device(np.array([1, 2]))[0]] == 4
        with pytest.raises(TypeError, match="len"):
            len(x[0])
        with pytest.raises(TypeError):
            hash(x)

    def test_nothing_goes_to_the_host_unasked(self):
        x = device(np.ones(2))
        for convert in (np.asarray, np.array, np.ascontiguousarray):
            with pytest.raises(TypeError, match="to_device"):
                convert(x)
        with pytest.raises(TypeError, match="to_device"):
            np.ones(3)[x > 0]
        assert type(to_numpy(x)) is np.ndarray

    def test_copies_and_types(self):
        x = device(np.ones(2))
        assert x.astype(np.float64, copy=False) is x
        for other in (x.astype(np.float64), x.copy(), copy.deepcopy(x)):
            other[0] = 5.0
            assert x.tolist() == [1.0, 1.0]
        assert x.astype(np.int32).dtype == np.int32

    def test_machines_are_found_by_arrays(self):
        assert machine(np.ones(2)) is cpu
        assert machine(device(np.ones(2))) is gpu
        values = (np.ones(2), device(np.ones(2)), [1.0])
        assert [is_array(value) for value in values] == [True, True, False]
        assert [is_device_array(value) for value in values] == [False, True, False]
        with pytest.raises(TypeError, match=r"no machine.*Tensor"):
            machine(torch.ones(2))


def test_functions_of_tensors_take_arrays_and_functions_of_arrays():
    seen = []

    @on_tensors
    def twice(values, ask, parts, scale=1):
        seen.extend(type(value) for value in (values, ask(0, values), *parts))
        return values * 2 * scale, [ask(1, values)], None

    def ask(number, values):
        assert isinstance(values, DeviceArray)
        return values + number

    x = device(np.ones(2))
    doubled, (asked,), nothing = twice(x, ask, [x, x], scale=3)
    assert seen == [torch.Tensor] * 4
    same((doubled, asked), (np.full(2, 6.0), np.full(2, 2.0)))
    assert nothing is None
    assert wrapped((torch.ones(1), 3))[1] == 3


def test_float32_products_are_not_made_in_tf32(monkeypatch):
    """The flag is CUDA's; whether we look at it can be told without a card."""
    flags = torch.backends.cuda.matmul
    before = flags.allow_tf32
    try:
        flags.allow_tf32 = False
        assert exact._multiplies_in_float32()
        flags.allow_tf32 = True
        assert not exact._multiplies_in_float32()
    finally:
        flags.allow_tf32 = before

    class OnCuda:
        is_cuda, dtype = True, torch.float32

        def __init__(self, tensor):
            self.tensor = tensor

        def double(self):
            return self.tensor.double()

    monkeypatch.setattr(exact, "_multiplies_in_float32", lambda: False)
    # 1 + 2^-12 has more digits than TF32, and its square more than float32.
    a = torch.full((1, 1), 1 + 2.0**-12)
    product = exact.matmul(OnCuda(a), OnCuda(a))
    assert product.dtype == torch.float32
    assert float(product) == np.float32((1 + 2.0**-12) ** 2)
