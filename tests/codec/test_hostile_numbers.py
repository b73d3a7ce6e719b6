"""Bytes and models of unknown origin end in ``CodecError`` or in rows, and in nothing else."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import zstandard

from hard_matrices import MATRICES, PREDICTORS, draw_model
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.limits import CodecError
from kernelatoms.codec.loops.entropy import encode_small
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.dictionaries import dictionary_model
from kernelatoms.codec.models.matrix import decode_matrix, encode_matrix
from kernelatoms.codec.models.model_selection import with_history
from kernelatoms.codec.models.quantised import LEAST_CODE, MOST_CODE
from kernelatoms.codec.packing import Cursor, number

N_MUTATIONS = 250


def valid_blocks(rng):
    """Yield bytes of every predictor with their model, number of rows and type."""
    for predictor in PREDICTORS:
        for kind in ("NaN", "decimals", "infinite"):
            m = 4
            rows = MATRICES[kind](rng, 24, m).astype(rng.choice([np.float32, np.float64]))
            if predictor == "symmetric":
                slices = rows.reshape(-1, m, m)
                slices[:] = np.where(np.tri(m, dtype=bool), slices.transpose(0, 2, 1), slices)
            bound = Bound(0.01) if kind != "decimals" else Bound()
            model = draw_model(rng, predictor, rows, bound, m if predictor == "symmetric" else 0)
            if rng.random() < 0.5:
                model = with_history(model, np.nan_to_num(rows))
            yield encode_matrix(rows, bound, model), model, len(rows), rows.dtype


def mutated(rng, data):
    """Return bytes with some of them changed, cut out, put in or written over."""
    found = bytearray(data)
    for _ in range(1 + rng.integers(3)):
        at = int(rng.integers(len(found) + 1)) if rng.random() < 0.6 else int(rng.integers(14))
        at = min(at, len(found))
        size = int(rng.integers(1, 5))
        kind = rng.integers(5)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            found[at : at + size] = rng.bytes(size)
        elif kind == 2:
            del found[at : at + size]
        elif kind == 3:
            found[at:at] = rng.bytes(size)
        else:
            found[at : at + size] = bytes([[0, 1, 127, 128, 255][rng.integers(5)]]) * size
    return bytes(found)


def try_to_decode(data, model, n_rows, dtype):
    """Return whether it decodes; anything but ``CodecError`` is raised."""
    try:
        rows = decode_matrix(data, model, n_rows, dtype)
    except CodecError:
        return False
    assert rows.shape == (n_rows, model.n_columns)
    assert rows.dtype == dtype
    return True


@pytest.mark.filterwarnings("error")
def test_mutated_bytes(rng):
    refused = 0
    for data, model, n_rows, dtype in valid_blocks(rng):
        assert try_to_decode(data, model, n_rows, dtype)
        for _ in range(N_MUTATIONS // 2):
            refused += not try_to_decode(mutated(rng, data), model, n_rows, dtype)
    assert refused > N_MUTATIONS


@pytest.mark.filterwarnings("error")
def test_every_prefix_is_refused(rng):
    for data, model, n_rows, dtype in valid_blocks(rng):
        for length in range(len(data)):
            assert not try_to_decode(data[:length], model, n_rows, dtype)
        assert model.predictor == "exact" or not try_to_decode(data + b"\0", model, n_rows, dtype)


def test_other_numbers_of_rows(rng):
    for data, model, n_rows, dtype in valid_blocks(rng):
        for other in (-1, 0, 1, n_rows - 1, n_rows + 1, 4 * n_rows):
            try_to_decode(data, model, other, dtype)
        other = np.dtype(np.float32 if dtype == np.float64 else np.float64)
        try_to_decode(data, model, n_rows, other)


def test_a_block_of_another_model(rng):
    blocks = list(valid_blocks(rng))
    for data, _, n_rows, dtype in blocks:
        for _, model, _, _ in blocks:
            try_to_decode(data, model, n_rows, dtype)


ABSURD = [
    -1, 0, True, 2.0, 0.5, -(10**18), 10**9, 10**18, 10**30, "1", None, [], [1], {}, float("inf"),
    float("nan"), 1e300, [10**18], [True], [1.0], [0], [-1], [1] * 17, ["1"], [[1]],
]  # fmt: skip


@pytest.mark.filterwarnings("error")
def test_absurd_settings(rng):
    for data, model, n_rows, dtype in valid_blocks(rng):
        for name in (*model.settings, "lag", "lags", "n_atoms"):
            for value in ABSURD:
                hostile = replace(model, settings={**model.settings, name: value})
                if try_to_decode(data, hostile, n_rows, dtype):
                    # What is not looked at may say anything; else it is a setting like others.
                    assert name not in model.settings or type(value) in (int, list, float)
            if name in model.settings:
                rest = {key: value for key, value in model.settings.items() if key != name}
                assert not try_to_decode(data, replace(model, settings=rest), n_rows, dtype)


@pytest.mark.parametrize("name", ["n_columns", "slice_rows", "symmetric", "predictor", "settings"])
def test_absurd_layouts(name, rng):
    for data, model, n_rows, dtype in valid_blocks(rng):
        for value in [*ABSURD, 3, 5, False, "lags", "columns", "pca", "kscdl", "exact", ""]:
            if name == "n_columns" and value == 10**9:
                continue  # sizes are compared with those of files before
            hostile = replace(model, **{name: value})
            try:
                decode_matrix(data, hostile, n_rows, dtype)
            except CodecError:
                continue
            assert type(value) in (int, bool, str, dict)


@pytest.mark.filterwarnings("error")
def test_absurd_histories_and_atoms(rng):
    whole = np.ones((8, 4))
    histories = [
        whole[:, :3], whole[0], whole[None], whole * np.nan, whole * np.inf, whole.astype(int),
        whole[:7], np.empty((0, 4)), np.float64(3), whole * 1e300, whole * 5e-324,
    ]  # fmt: skip
    atoms = [np.zeros(0, np.uint8), np.zeros(3), rng.integers(0, 256, 99).astype(np.uint8),
             np.uint8(3), np.zeros((2, 2), np.uint8), np.zeros(10**6, np.uint8)]  # fmt: skip
    for data, model, n_rows, dtype in valid_blocks(rng):
        for name, arrays in (("history", histories), ("atoms", atoms)):
            for array in arrays:
                hostile = replace(model, arrays={**model.arrays, name: np.asarray(array)})
                try_to_decode(data, hostile, n_rows, dtype)
        if "atoms" in model.arrays:
            assert not try_to_decode(data, replace(model, arrays={}), n_rows, dtype)


@pytest.mark.parametrize("code", [LEAST_CODE - 1, MOST_CODE + 1])
def test_steps_that_are_never_taken(code, rng):
    n_tried = 0
    for data, model, n_rows, dtype in valid_blocks(rng):
        if model.predictor == "exact":
            continue
        cursor = Cursor(data[4:], "a block")
        streams = [cursor.take(length) for length in [cursor.number() for _ in range(6)]]
        steps = np.zeros(n_rows, np.int32)
        steps[-1] = code
        streams[2] = encode_small(steps).tobytes()
        forged = data[:4] + b"".join(number(len(stream)) for stream in streams) + b"".join(streams)
        with pytest.raises(CodecError, match="steps that are never taken"):
            decode_matrix(forged, model, n_rows, dtype)
        n_tried += 1
    assert n_tried > 3


@pytest.mark.parametrize("atom", [np.nan, np.inf, 1e12])
def test_atoms_that_do_not_fit_their_steps(atom):
    mean, atoms = np.zeros(4), np.full((2, 4), 0.5)
    assert dictionary_model("pca", mean, atoms, 0.1).settings["n_atoms"] == 2
    atoms[1, 2] = atom
    with pytest.raises(ValueError, match="do not fit their steps"):
        dictionary_model("pca", mean, atoms, 0.1)


def test_models_too_large_for_their_bytes():
    """Sizes that a few bytes may claim, and that would take all memory or days."""
    few = bytes([1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0])
    wide = CodecModel("columns", 1 << 21, settings={"lags": [1] * 8, "parents": 16})
    atoms = {"atoms": np.zeros(1000, np.uint8)}
    many = CodecModel("ksvd", 2000, settings={"n_atoms": 8000, "atom_code": 0, "mean_code": 0},
                      arrays=atoms)  # fmt: skip
    over = CodecModel("pca", 4, settings={"n_atoms": 17, "atom_code": 0, "mean_code": 0},
                      arrays=atoms)  # fmt: skip
    for model in (wide, many, over):
        assert not try_to_decode(few, model, 2, np.dtype(np.float64))
        with pytest.raises(CodecError):
            encode_matrix(np.zeros((2, model.n_columns)), Bound(0.1), model)


def test_models_as_bytes(rng):
    for _, model, _, _ in valid_blocks(rng):
        again = CodecModel.from_bytes(model.to_bytes())
        assert again.digest == model.digest == pickle.loads(pickle.dumps(model)).digest
        assert again.settings == model.settings
        assert sorted(again.arrays) == sorted(model.arrays)
        for name, array in again.arrays.items():
            np.testing.assert_array_equal(array, model.arrays[name])
        assert replace(model, n_columns=5).digest != model.digest


def packed(head, values=b""):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return zstandard.compress(len(text).to_bytes(4, "little") + text + values)


def test_models_that_are_none():
    head = {
        "predictor": "lags", "n_columns": 3, "slice_rows": 0, "symmetric": False,
        "settings": {"lag": 1, "past": 1}, "arrays": [],
    }  # fmt: skip
    assert CodecModel.from_bytes(packed(head)).settings == head["settings"]
    hostile = [
        b"", b"x", packed(b""), packed(b"3"), packed(b"[]"), packed(b'"x"'), packed(b"null"),
        packed(b"{"), packed(b"[" * 100_000), packed(b"\xff"), packed({}), packed(head, b"x"),
        packed({**head, "more": 1}), packed(json.dumps(head).encode().replace(b"1", b"NaN")),
        zstandard.compress(b"\xff\xff\xff\xff{}"), zstandard.compress(b"12"),
        zstandard.ZstdCompressor(write_content_size=False).compress(b"1234"),
        zstandard.compress(bytes(1 << 29)),
    ]  # fmt: skip
    for arrays in (
        None, 3, "x", {}, [3], [[]], [["a"]], [["a", "<f8", [1]]], [["a", "<f8", 1]],
        [["a", "<f8", [1.0]]], [["a", "<f8", [-1]]], [["a", "<f8", [2**40]]],
        [["a", "<f8", [2**30] * 40]], [["a", "<O", [1]]], [["a", "|O", [0]]], [["a", 3, [0]]],
        [[["a"], "<f8", [0]]], [["a", "<f8", ["1"]]], [["a", "<f8", [0] * 70]],
    ):  # fmt: skip
        hostile.append(packed({**head, "arrays": arrays}))
    for data in hostile:
        with pytest.raises(CodecError):
            CodecModel.from_bytes(data)
    empty = CodecModel.from_bytes(packed({**head, "arrays": [["a", "<f8", [0, 3]]]}))
    assert empty.arrays["a"].shape == (0, 3)


def test_mutated_models(rng):
    for data, model, n_rows, dtype in valid_blocks(rng):
        body = zstandard.decompress(model.to_bytes())
        for _ in range(40):
            try:
                hostile = CodecModel.from_bytes(zstandard.compress(mutated(rng, body)))
                rows = decode_matrix(data, hostile, n_rows, dtype)
            except CodecError:
                continue
            assert rows.shape == (n_rows, hostile.n_columns)
