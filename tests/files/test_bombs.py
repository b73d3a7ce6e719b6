"""Small files that would become large: refused before they do, with both sizes."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import feather, ipc, parquet

from bombs import BOMBS, repeated, write_all
from forged_models import members_of, write
from kernelatoms import KSVD, limits, save_model
from kernelatoms.files import ModelFileError, TableError, load_model, read_table
from kernelatoms.files.results import read_codes
from kernelatoms.files.tables import table
from kernelatoms.files.tables.arrow_tables import _within
from kernelatoms.files.tables.typed_sizes import column_cost, parquet_sizes, unpacked_size
from kernelatoms.limits import Budget, TooLargeError

# What reading may take beyond what a process holds once all is imported: address space, as threads
# of Arrow's reserve some, and memory in fact.
CHILD = """
import resource, sys
import pyarrow.feather, pyarrow.ipc, pyarrow.json, pyarrow.parquet, skops.io
from bombs import BOMBS
from kernelatoms.files import load_model, read_table
from kernelatoms.files.tables import arrays, csv_tables, json_tables
from pathlib import Path
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (3 << 30),) * 2)
for file in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_SELF)
    most = BOMBS[Path(file).name][1] if Path(file).name in BOMBS else None
    try:
        (load_model if file.endswith(".skops") else read_table)(file, max_size=most and most << 20)
        words = "was read"
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(after.ru_maxrss - before.ru_maxrss, after.ru_utime - before.ru_utime, words)
"""


def play(files):
    """Read files in a process with little memory; return MiB, seconds and words of each."""
    folder = str(Path(__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {folder!r})\n" + CHILD
    done = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert len(lines) == len(files), done.stderr
    return [(int(kib) / 1024, float(seconds), words) for kib, seconds, words in lines]


@pytest.fixture(scope="module")
def bombs(model, tmp_path_factory):
    """All bombs, as name: (bytes of the file, MiB, seconds, words)."""
    folder = tmp_path_factory.mktemp("bombs")
    write_all(folder)
    wide = b"[" + b"[]," * ((16 << 20) // 3 - 2) + b"[]]"
    members = members_of(model)
    write(folder / "wide.skops", members | {"schema.json": wide})
    with zipfile.ZipFile(folder / "header.skops", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("kernelatoms.json", wide)
    of_members(folder / "one.skops", ["a"] * 49_000)
    of_members(folder / "many.skops", map(str, range(60_000)))
    files = sorted(folder.iterdir())
    found = zip(files, play(files), strict=True)
    return {file.name: (file.stat().st_size, *outcome) for file, outcome in found}


@pytest.mark.parametrize("name", BOMBS)
def test_tables_are_refused_before_they_grow(name, bombs):
    size, mebibytes, seconds, words = bombs[name]
    assert size < 4 << 20
    assert words.startswith("TableError")
    assert f"its {size:,} bytes would become" in words
    assert "or more, and" in words
    assert "by max_size" in words
    assert mebibytes < 96
    assert seconds < 5


@pytest.mark.parametrize(
    ("name", "expected"),
    [("wide.skops", "lists 11,18"), ("header.skops", "lists 11,18"),
     ("one.skops", "two of its members are called 'a'"),
     ("many.skops", "60,001 members, more than 50,000")],
)  # fmt: skip
def test_models_are_refused_before_they_grow(name, expected, bombs):
    size, mebibytes, seconds, words = bombs[name]
    assert size < (25_000 if expected.startswith("lists") else 4 << 20)
    assert words.startswith("ModelFileError")
    assert expected in words
    assert mebibytes < 96
    assert seconds < 5


# Honest tables, in all forms

N = 900
LISTS = pyarrow.array([[f"word{j}" * 9 for j in range(i % 4)] for i in range(N)])
TABLE = pyarrow.table(
    {"f": np.random.default_rng(0).normal(size=N), "i": np.arange(N) % 7,
     "b": [True, False] * (N // 2),
     "s": [f"word{i % 50}" * 20 for i in range(N)], "u": [f"only {i}" for i in range(N)],
     "e": [None if i % 3 else "x" * 1000 for i in range(N)], "l": LISTS,
     "c": pyarrow.array([f"kind {i % 7}" for i in range(N)]).dictionary_encode(),
     "d": pyarrow.array(range(N), pyarrow.timestamp("s")), "n": pyarrow.nulls(N),
     "a.b": pyarrow.array([b"abcd"] * N, pyarrow.binary(4)),
     "t": [{"a": i, "b": f"t{i % 5}" * 30} for i in range(N)]}
)  # fmt: skip
PREFIXES = {"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}}


@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "zstd"}, PREFIXES, {"store_schema": False}, {"data_page_version": "2.0"},
     {"row_group_size": 200}, {"data_page_size": 500, "write_page_checksum": True},
     {"use_dictionary": False}],
    ids=str,
)  # fmt: skip
def test_parquet_files_are_the_same_however_carefully_they_are_read(options):
    data = io.BytesIO()
    parquet.write_table(TABLE, data, **options)
    with parquet.ParquetFile(data) as file:
        sizes = parquet_sizes(file, lambda at, n: data.getvalue()[at : at + n], data.tell())
        known = file.read()
        declared = sum(
            file.metadata.row_group(i).column(j).total_uncompressed_size
            for i in range(file.num_row_groups) for j in range(file.metadata.num_columns)
        )  # fmt: skip
        cost = sum(map(column_cost, known.columns))
        # Declared are the headers, too; at most a few hundred bytes a page.
        fixed = 8 * N * file.metadata.num_columns
        assert declared - 500 * N < sizes.n_bytes - fixed
        repeats = sizes.by_number.total() + sizes.by_prefix.total()
        assert (repeats == 0) == ("use_dictionary" in options and len(options) == 1)
        assert sizes.n_bytes + repeats > known.nbytes / 2
        for allowed in (max(cost, sizes.n_bytes), sizes.n_bytes + repeats):
            read = _within(Budget(data.tell(), allowed), data, file, sizes)
            assert read.schema == known.schema
            assert read.equals(known)
        with pytest.raises(TooLargeError):
            _within(Budget(data.tell(), sizes.n_bytes - 1), data, file, sizes)


def test_a_column_of_prefixes_alone(tmp_path):
    options = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
    parquet.write_table(TABLE.select(["u"]), tmp_path / "t.parquet", **options)
    read = read_table(tmp_path / "t.parquet", max_size=100_000)
    assert read.column("u").tolist() == TABLE["u"].to_pylist()


def ipc_bytes(table, kind, compression):
    data = io.BytesIO()
    options = ipc.IpcWriteOptions(compression=compression)
    make = ipc.new_file if kind == "file" else ipc.new_stream
    with make(data, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=400)
    return data.getvalue()


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_arrow_files_become_what_their_headers_say(kind, compression, tmp_path):
    """The same whether they are compressed or not, and no less than Arrow holds."""

    def size_of(data):
        return unpacked_size(lambda at, n: data[at : at + n], len(data))

    plain, packed = (ipc_bytes(TABLE, kind, how) for how in (None, compression))
    assert len(packed) < len(plain)
    assert size_of(packed) == size_of(plain)
    assert 0.9 * TABLE.nbytes < size_of(plain) < len(plain)
    path = tmp_path / "t.arrow"
    path.write_bytes(packed)
    cost = sum(map(column_cost, TABLE.columns))
    allowed = max(cost, size_of(packed))
    table = read_table(path, max_size=allowed)
    np.testing.assert_array_equal(table.column("f"), TABLE["f"].to_numpy())
    with pytest.raises(TableError, match="or more, and"):
        read_table(path, max_size=allowed - 1)


def test_what_columns_cost():
    text = pyarrow.array(["a", None, "abc"])
    assert column_cost(text) == 3 * 64 + 4
    assert column_cost(pyarrow.chunked_array([text, text])) == 2 * column_cost(text)
    assert column_cost(text.dictionary_encode()) == column_cost(text)
    assert column_cost(repeated(5, "abc")) == 5 * (64 + 3)
    assert column_cost(pyarrow.array([1, 2])) == 16
    assert column_cost(pyarrow.array([["a"], ["bc", "d"]])) == 2 * 64 + 3 * 64 + 4
    assert column_cost(pyarrow.array([{"a": 1}, {"a": 2}])) == 2 * 64 + 16
    assert column_cost(pyarrow.array([[("a", 1)]], pyarrow.map_("string", "int64"))) == 64 + 65 + 8


def test_damaged_headers_are_words(tmp_path, rng):
    data = ipc_bytes(TABLE.select(["f", "s"]), "file", "zstd")
    for _ in range(60):
        broken = bytearray(data)
        for place in rng.integers(max(0, len(data) - 900), len(data), size=3):
            broken[place] = rng.integers(256)
        (tmp_path / "t.feather").write_bytes(broken)
        try:
            read_table(tmp_path / "t.feather", max_size=1 << 24)
        except TableError:
            continue


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_unpacking_stops_at_once(suffix, tmp_path, monkeypatch):
    unpacked = []

    class Endless(io.BytesIO):
        def read(self, size=-1):
            unpacked.append(size)
            return b"1\n" * (1 << 10)

    monkeypatch.setitem(table._OPENERS, suffix, lambda file: Endless())
    (tmp_path / f"t.csv{suffix}").write_bytes(b"packed")
    with pytest.raises(TableError, match="its 6 bytes would become 6,144 bytes or more"):
        read_table(tmp_path / f"t.csv{suffix}", max_size=5000)
    assert len(unpacked) == 3
    assert min(unpacked) > 0


def test_codes_and_archives_have_a_budget_too(tmp_path):
    np.savez_compressed(tmp_path / "c.npz", X=np.zeros((1000, 8)))
    assert read_codes(tmp_path / "c.npz", 8, max_size=1 << 17).shape == (1000, 8)
    with pytest.raises(TableError, match="would become"):
        read_codes(tmp_path / "c.npz", 8, max_size=1 << 10)


def test_plain_files_are_not_asked(tmp_path):
    """What is not compressed costs what it is, whatever a default says."""
    np.save(tmp_path / "a.npy", np.ones((100, 3)))
    feather.write_feather(TABLE.select(["f"]), tmp_path / "t.feather", compression="uncompressed")
    for name in ("a.npy", "t.feather"):
        assert len(read_table(tmp_path / name)) in (100, N)


# Models


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rows = np.random.default_rng(0).normal(size=(40, 4))
    return save_model(KSVD(4, max_iter=1).fit(rows), tmp_path_factory.mktemp("m") / "m.skops")


def of_members(path, names):
    """Write an archive of members without content, which all begin at one place."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("0.npy", b"")
        for name in names:
            info = zipfile.ZipInfo(name)
            info.header_offset = info.CRC = 0
            file.filelist.append(info)
    path.write_bytes(data.getvalue())
    return path


def test_texts_of_honest_models_have_room():
    """Each object of a description takes ten values at most; see ``archive``."""
    assert limits.MODEL_VALUES >= 10 * limits.MODEL_NODES


def test_a_model_may_become_what_the_user_allows(model):
    with pytest.raises(ModelFileError, match=r"would become .* and 10 bytes are allowed"):
        load_model(model, max_size=10)
    assert load_model(model, max_size=1 << 20)[0].components_.shape == (4, 4)
