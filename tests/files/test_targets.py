"""What may be written over what; permissions of what is replaced."""

import io
import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

from kernelatoms.files.writing import check_result_target, check_target, kind_of, write_whole


def zipped(*names):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return data.getvalue()


def numpy_bytes():
    data = io.BytesIO()
    np.save(data, np.eye(2))
    return data.getvalue()


MODEL, ARRAYS, SHEET = zipped("1.npy", "schema.json"), zipped("X.npy"), zipped("xl/workbook.xml")
PAGE = b"\xef\xbb\xbf\n<!DOCTYPE html><title>x</title>"

# What is there, and the endings of results that may replace it.
THERE = {
    "a,b\n1,2\n": (b"a,b\n1,2\n", {".csv", ".svg"}),
    "text in UTF-16": ("a;b".encode("utf-16"), {".csv", ".svg"}),
    "a model": (MODEL, {".skops"}),
    "arrays": (ARRAYS, {".npz"}),
    "a cut archive": (MODEL[:40], {".skops", ".npz"}),
    "a spreadsheet": (SHEET, set()),
    "a page": (PAGE, {".html"}),
    "an array": (numpy_bytes(), {".npy"}),
    "a parquet file": (b"PAR1....", {".parquet"}),
    "an image": (b"\x89PNG\r\n", {".png"}),
    "noise": (b"\x00\x01\x02", set()),
    "nothing": (b"", {".csv", ".skops", ".npz", ".html", ".npy", ".parquet", ".png", ".svg"}),
}
ENDINGS = sorted(THERE["nothing"][1])


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("there", THERE)
def test_only_its_own_kind_is_written_over(tmp_path, there, ending):
    content, may = THERE[there]
    path = tmp_path / f"result{ending}"
    path.write_bytes(content)
    if ending in may:
        check_result_target(path, [ending])
    else:
        with pytest.raises(ValueError, match=r"exists and holds .*force=True replaces it"):
            check_result_target(path, [ending])
        check_result_target(path, [ending], force=True)
    assert path.read_bytes() == content


def test_kinds_in_words(tmp_path):
    for content, words in ((MODEL, "a model"), (SHEET, "another archive"), (PAGE, "an HTML page")):
        (tmp_path / "x").write_bytes(content)
        assert kind_of(tmp_path / "x") == words
    assert kind_of(tmp_path / "not there") == ""


@pytest.mark.parametrize("force", [False, True])
def test_never_over_devices_pipes_and_folders(tmp_path, force):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to("/dev/null")
    (tmp_path / "folder.csv").mkdir()
    for path in ("/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", tmp_path / "pipe.csv",
                 tmp_path / "link.csv"):  # fmt: skip
        with pytest.raises(PermissionError, match=r"is a device or a pipe.* - for standard output"):
            check_result_target(Path(path), [".csv"], force=force)
        with pytest.raises(PermissionError):
            write_whole(path, b"x")
    with pytest.raises(IsADirectoryError):
        check_result_target(tmp_path / "folder.csv", [".csv"], force=force)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe.csv").st_mode)


def test_standard_output_takes_tables_only():
    check_result_target(Path("-"), [".csv", ".npz"])
    with pytest.raises(ValueError, match=r"takes tables only; name a file that ends with \.skops"):
        check_result_target(Path("-"), [".skops"])


def test_a_read_only_file_is_replaced_by_force_only(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="is read-only; force=True"):
        check_result_target(path, [".csv"])
    check_result_target(path, [".csv"], force=True)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "t.csv"
    path.write_text("old")
    path.chmod(mode)
    owner = path.stat().st_uid, path.stat().st_gid
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert (path.stat().st_uid, path.stat().st_gid) == owner


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give")
def test_a_replaced_file_keeps_its_owner_where_that_is_allowed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    os.chown(path, 12345, 23456)
    path.chmod(0o640)
    write_whole(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_follows_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "t.csv", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t.csv").stat().st_mode) == 0o666 & ~mask


def test_what_is_written_is_never_more_open_than_the_file_that_it_replaces(tmp_path):
    from kernelatoms.files.writing import replacing

    path = tmp_path / "secret.csv"
    path.write_text("old")
    path.chmod(0o600)
    with replacing(path) as file:
        file.write(b"new")
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert check_target(path) == path
