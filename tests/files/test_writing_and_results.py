"""Files that are whole or not there at all; predictions and codes in every form."""

import io
import os
import time

import numpy as np
import pyarrow.parquet
import pytest
import scipy.sparse

from kernelatoms.files.results import write_codes, write_columns
from kernelatoms.files.writing import check_result_target, check_target, write_whole


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_targets_are_checked_first(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_target(tmp_path)
    with pytest.raises(NotADirectoryError, match="does not exist"):
        check_target(tmp_path / "no" / "file")
    with pytest.raises(ValueError, match=r"must end with \.csv"):
        check_result_target(tmp_path / "p.txt", (".csv",))
    assert os.listdir(tmp_path) == []


COLUMNS = {
    "id": np.array([7.0, 8.0]),
    "word": np.array(["a, b", None], dtype=object),
    "score": np.array([0.1, np.nan], np.float32),
    "prediction": np.array(["x", 'y"']),
}


def test_columns_as_csv():
    text = io.StringIO()
    write_columns(text, COLUMNS)
    assert text.getvalue() == 'id,word,score,prediction\n7,"a, b",0.1,x\n8,,,"y"""\n'


def test_columns_as_parquet_and_arrays(tmp_path):
    write_columns(tmp_path / "p.parquet", COLUMNS)
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert table["prediction"] == ["x", 'y"']
    assert table["word"] == ["a, b", None]
    write_columns(tmp_path / "p.npy", COLUMNS)
    assert np.load(tmp_path / "p.npy").tolist() == ["x", 'y"']
    write_columns(tmp_path / "p.npz", COLUMNS)
    with np.load(tmp_path / "p.npz") as archive:
        assert archive["word"].tolist() == ["a, b", ""]


def test_parquet_has_whole_identifiers_and_no_number_is_too_long(tmp_path):
    columns = {
        "id": np.array([7.0, np.nan, 10.0**15]),
        "long": np.array([10**20 + 1, None, 3], dtype=object),
        "mixed": np.array([10**20 + 1, None, 1.5], dtype=object),
        "score": np.array([0.5, np.nan, 2.0]),
        "single": np.array([0.1, np.nan, 2.0], np.float32),
        "truth": np.array([True, None, False], dtype=object),
    }
    write_columns(tmp_path / "p.parquet", columns)
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet")
    held = table.to_pydict()
    assert held["id"] == [7, None, 10**15]
    assert held["long"] == [str(10**20 + 1), None, "3"]
    assert held["mixed"] == [str(10**20 + 1), None, "1.5"]
    assert held["score"] == [0.5, None, 2.0]
    assert held["truth"] == [True, None, False]
    assert str(table.schema.field("single").type) == "float"
    text = io.StringIO()
    write_columns(text, columns)
    assert text.getvalue().splitlines()[1:] == [
        f"7,{10**20 + 1},{10**20 + 1},0.5,0.1,True",
        ",,,,,",
        f"{10**15},3,1.5,2.0,2.0,False",
    ]


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet"])
def test_codes_in_every_form(tmp_path, rng, suffix):
    codes = scipy.sparse.random_array((6, 5), density=0.3, rng=rng).tocsr()
    path = tmp_path / f"c{suffix}"
    write_codes(path, codes)
    if suffix == ".npz":
        back = scipy.sparse.load_npz(path).toarray()
    elif suffix == ".npy":
        back = np.load(path)
    else:
        if suffix == ".csv":
            row, atom, value = np.loadtxt(path, delimiter=",", skiprows=1).T
        else:
            columns = pyarrow.parquet.read_table(path).to_pydict()
            row, atom, value = columns["row"], columns["atom"], columns["coefficient"]
        places = (np.asarray(row, int), np.asarray(atom, int))
        back = scipy.sparse.coo_array((value, places), shape=(6, 5)).toarray()
    np.testing.assert_allclose(back, codes.toarray(), rtol=1e-15)


def test_what_killed_processes_left_goes_when_it_is_old(tmp_path):
    """Young ones may belong to a process that is writing the same file now."""
    target = tmp_path / "codes[1].npz"
    old, young = (tmp_path / f".codes[1].npz.{name * 8}.tmp" for name in "ab")
    other = tmp_path / ".codes1.npz.cccccccc.tmp"
    for file in (old, young, other):
        file.write_bytes(b"half a fi")
    for file in (old, other):
        os.utime(file, (time.time() - 3700,) * 2)
    os.utime(young, (time.time() - 3500,) * 2)
    write_whole(target, b"whole")
    assert set(os.listdir(tmp_path)) == {target.name, young.name, other.name}
