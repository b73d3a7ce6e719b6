"""NumPy files of unknown origin: what they promise is compared with what they hold."""

import io
import tracemalloc
import zipfile

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pyarrow import parquet

from kernelatoms.files import TableError, read_table
from kernelatoms.files.tables.arrays import read_npy, read_npz

KINDS = st.sampled_from(["f8", ">f4", "i2", "u1", "?", "c16", "U3", "S2", "M8[s]", "f2"])


@given(hnp.arrays(KINDS.map(np.dtype), hnp.array_shapes(min_dims=0, min_side=0)), st.booleans())
def test_what_numpy_writes_is_read_as_numpy_reads_it(tmp_path_factory, array, columns_first):
    array = np.asfortranarray(array) if columns_first else array
    folder = tmp_path_factory.mktemp("arrays")
    np.save(folder / "a.npy", array)
    np.savez_compressed(folder / "a.npz", X=array, y=np.empty(0))
    for read in (read_npy(folder / "a.npy"), read_npz(folder / "a.npz")["X"]):
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, np.load(folder / "a.npy"))


def npy(shape, body, descr="<f8"):
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        data, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return data.getvalue() + body


LIES = {
    "more than there is": npy((2**40, 8), bytes(64)),
    "less than there is": npy((2, 2), bytes(64)),
    "negative": npy((-2, -4), bytes(64)),
    "no shape": npy((2**62, 2**62, 0), b""),
    "cut header": npy((8,), bytes(64))[:40],
    "an open bracket": npy((8,), bytes(64)).replace(b"(8,)", b"(8, "),
    "nested brackets": npy((8,), bytes(64)).replace(b"(8,)", b"((((")[:128],
    "a version of its own": b"\x93NUMPY\x09\x00" + bytes(100),
    "no text": b"\x93NUMPY\x01\x00\x10\x00" + b"\xff" * 16,
}


@pytest.mark.parametrize("name", LIES)
def test_arrays_that_lie_are_refused_without_their_memory(name, tmp_path):
    (tmp_path / "t.npy").write_bytes(LIES[name])
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", LIES[name])
    tracemalloc.start()
    for file in ("t.npy", "t.npz"):
        with pytest.raises(TableError, match="cannot be read as a NumPy file"):
            read_table(tmp_path / file)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(("shape", "words"), [((0, 3), "no rows"), ((3, 0), "no columns")])
def test_arrays_of_nothing(shape, words, tmp_path):
    np.save(tmp_path / "t.npy", np.empty(shape))
    with pytest.raises(TableError, match=words):
        read_table(tmp_path / "t.npy")


def test_lists_in_a_column_are_words(tmp_path):
    parquet.write_table(
        pyarrow.table({"a": [1.0, 2.0], "b": [[1, 2], [3, 4]]}), tmp_path / "t.parquet"
    )
    table = read_table(tmp_path / "t.parquet")
    assert table.columns == ["a"]
    assert table.words["b"].shape == (2,)
    assert table.words["b"][1] == [3, 4]


def test_text_that_is_no_text_is_refused(tmp_path):
    parts = [pyarrow.py_buffer(b) for b in (np.array([0, 2], np.int32).tobytes(), b"\xff\xfe")]
    column = pyarrow.Array.from_buffers(pyarrow.string(), 1, [None, *parts])
    parquet.write_table(pyarrow.table({"a": column}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="cannot be read as a Parquet file"):
        read_table(tmp_path / "t.parquet")
