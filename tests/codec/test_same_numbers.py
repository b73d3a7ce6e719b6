"""Every run, every number of threads and every machine decodes the same numbers."""

import inspect
import os
import pickle
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest

from hard_matrices import PREDICTORS, draw_model
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.loops import (
    cells,
    columns,
    combinations,
    entropy,
    integers,
    range_coder,
    rows,
    slices,
    text_fields,
)
from kernelatoms.codec.models import matrix
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.matrix import decode_matrix, encode_matrix
from kernelatoms.codec.models.model_selection import with_history


def blocks(rng):
    """Return bytes, model and shape of one block a predictor."""
    found = []
    for predictor in PREDICTORS[:-1]:
        rows = rng.standard_normal((150, 6)).cumsum(axis=0) + 9
        if predictor == "symmetric":
            rows = np.tile(rows[:6] + rows[:6].T, (9, 1)) + np.repeat(rng.random(9), 6)[:, None]
        rows[7, 2:4] = rows[8:10, 2] = np.nan
        if predictor == "symmetric":
            rows[[2, 3], 7 % 6] = rows[7 % 6, [2, 3]] = np.nan
        bound = Bound(0.01)
        model = draw_model(rng, predictor, rows, bound, 6 if predictor == "symmetric" else 0)
        model = with_history(model, rows[:30])
        found.append((encode_matrix(rows, bound, model), model, len(rows)))
    return found


def digest(found):
    """Return a digest of what blocks decode to."""
    decoded = [decode_matrix(data, model, n, np.float64).tobytes() for data, model, n in found]
    return sha256(b"".join(decoded)).hexdigest()


def test_it_is_the_same_again_and_after_pickling(rng):
    found = blocks(rng)
    own = digest(found)
    assert digest(found) == own
    assert digest(pickle.loads(pickle.dumps(found))) == own
    stored = [(d, CodecModel.from_bytes(m.to_bytes()), n) for d, m, n in found]
    assert digest(stored) == own


def test_another_process_with_more_threads(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(matrix, "_WORTH_A_THREAD", 100)  # two parts, each on its thread
    found = blocks(rng)
    file = tmp_path / "blocks"
    file.write_bytes(pickle.dumps(found))
    code = (
        "import pickle, sys\n"
        "from hashlib import sha256\n"
        "from kernelatoms.codec.models import matrix\n"
        "matrix._WORTH_A_THREAD = 100\n"
        "found = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "decoded = [matrix.decode_matrix(*some, 'f8').tobytes() for some in found]\n"
        "print(sha256(b''.join(decoded)).hexdigest())"
    )
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "KERNELATOMS_NUM_THREADS": "3",
        "PYTHONHASHSEED": "3",
    }  # fmt: skip
    command = [sys.executable, "-c", code, str(file)]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == digest(found)


@pytest.mark.parametrize(
    "loops",
    [rows, combinations, columns, slices, cells, integers, entropy, range_coder, text_fields],
    ids=lambda m: m.__name__,
)
def test_loops_promise_no_other_order_of_sums(loops):
    compiled = [f for _, f in inspect.getmembers(loops) if hasattr(f, "targetoptions")]
    assert len(compiled) > 5
    assert not any(f.targetoptions.get("fastmath") for f in compiled)
    assert not any(f.targetoptions.get("parallel") for f in compiled)


def test_no_library_stands_between_bytes_and_numbers(rng, monkeypatch):
    """Products, solvers and powers of libraries differ in their last digits between machines."""
    found = blocks(rng)
    own = digest(found)

    def refuse(*args, **kwargs):
        raise AssertionError("the decoder must not call this")

    for name in ("matmul", "dot", "einsum", "inner", "vdot", "tensordot", "exp", "exp2", "log",
                 "log2", "power", "sum", "mean"):  # fmt: skip
        monkeypatch.setattr(np, name, refuse)
    for name in ("solve", "lstsq", "svd", "norm", "eigh", "cholesky", "inv"):
        monkeypatch.setattr(np.linalg, name, refuse)
    decoded = [decode_matrix(data, model, n, np.float64).tobytes() for data, model, n in found]
    monkeypatch.undo()
    assert sha256(b"".join(decoded)).hexdigest() == own


def test_encoding_twice_gives_the_same_bytes(rng):
    rows = rng.standard_normal((80, 6)).cumsum(axis=0)
    for predictor in ("lags", "interpolation", "columns", "pca", "ksvd", "kscdl"):
        model = draw_model(np.random.default_rng(0), predictor, rows, Bound(0.02))
        again = draw_model(np.random.default_rng(0), predictor, rows, Bound(0.02))
        assert model.digest == again.digest
        first = encode_matrix(rows, Bound(0.02), model)
        assert encode_matrix(rows, Bound(0.02), again) == first
