"""Nothing lost, nothing dropped: outputs that would destroy something, files from pipes."""

import gzip
import io
import json
import sys

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

from kernelatoms.cli.app import main

FLOWERS = (
    "Länge;Breite;Art\n"
    + "".join(f"{5 + i % 7 / 10:.1f};{3 + i % 5 / 10:.1f};Schön\n" for i in range(12)).replace(
        ".", ","
    )
    + "".join(f"{7 + i % 7 / 10:.1f};{1 + i % 5 / 10:.1f};Übel\n" for i in range(12)).replace(
        ".", ","
    )
)


class Stdin:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def run(here, capsys, monkeypatch):
    """Run a command in this process; returns its code, results and notes."""

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", Stdin(stdin))
        code = main([*map(str, arguments)])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


def fit_arguments(*more):
    return ["fit", *more, "--model", "linear", "--set", "n_atoms=3"]


@pytest.fixture
def model(here, run):
    (here / "t.csv").write_text("a,b,kind\n" + "".join(f"{i},{i % 3},{'xy'[i % 2]}\n"
                                for i in [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]))  # fmt: skip
    code, _, errors = run(*fit_arguments("t.csv", "--label", "kind"))
    assert code == 0, errors
    return here / "model.skops"


def test_fit_writes_model_files_only(here, run, model):
    was = (here / "t.csv").read_bytes()
    for target, words in (
        ("data.csv", "must end with .skops"),
        ("-", "takes tables only"),
        ("/dev/null", "is a device or a pipe"),
    ):
        code, out, errors = run(*fit_arguments("t.csv", "--label", "kind", "-o", target, "--force"))
        assert (code, out) == (2, "")
        assert words in errors
    (here / "table.skops").write_bytes(was)
    arguments = fit_arguments("t.csv", "--label", "kind", "-o", "table.skops")
    code, _, errors = run(*arguments)
    assert code == 2
    assert "holds text, not what .skops files hold; --force replaces it" in errors
    assert (here / "table.skops").read_bytes() == was
    assert run(*arguments, "--force")[0] == 0
    assert run(*arguments)[0] == 0  # a model over a model


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (["predict", "model.skops", "t.csv"], "p.csv"),
        (["encode", "model.skops", "t.csv"], "c.npz"),
        (["report", "model.skops"], "r.html"),
        (["datasets", "iris"], "i.csv"),
    ],
)
def test_results_go_over_their_own_kind_only(here, run, model, arguments, target):
    (here / target).write_bytes(b"%PDF-1.7 a thesis")
    code, _, errors = run(*arguments, "-o", target)
    assert code == 2
    assert "holds a PDF file" in errors
    assert (here / target).read_bytes() == b"%PDF-1.7 a thesis"
    assert run(*arguments, "-o", target, "--force")[0] == 0
    assert run(*arguments, "-o", target)[0] == 0
    (here / target).rename(here / "x.md")
    for wrong in ("x.md", "model.skops"):
        was = (here / wrong).read_bytes()
        assert run(*arguments, "-o", wrong, "--force")[0] == 2
        assert (here / wrong).read_bytes() == was


def test_demo_replaces_nothing_else(here, run):
    (here / "r.html").write_bytes(b"a,b\n")
    assert run("demo", "--quick", "-o", "r.html")[0] == 2


def test_predictions_through_pipes(here, run, model):
    table = (here / "t.csv").read_bytes()
    code, expected, _ = run("predict", "model.skops", "t.csv")
    assert code == 0
    for source in (table, gzip.compress(table)):
        code, out, errors = run("predict", "model.skops", "-", "-o", "-", stdin=source)
        assert (code, out) == (0, expected)
        assert "labelled rows are predicted right" in errors
    code, out, _ = run("encode", "model.skops", "-", "-o", "-", stdin=table)
    assert out.splitlines()[0] == "row,atom,coefficient"
    code, out, _ = run("datasets", "iris", "-o", "-")
    assert len(out.splitlines()) == 151
    code, out, _ = run("info", "-", stdin=table)
    assert "standard input" in out
    code, out, errors = run("explain", "model.skops", "-", "--row", "0", stdin=table)
    assert code == 0, errors
    assert run("report", "model.skops", "-", stdin=table)[0] == 0
    assert "standard input" in (here / "report.html").read_text()
    code, _, errors = run("predict", "model.skops", "-", stdin=b"")
    assert code == 2
    assert "standard input is empty" in errors


def test_fit_through_a_pipe_says_so(here, run, model):
    code, out, errors = run(
        *fit_arguments("-", "--label", "kind", "-o", "n.skops"),
        stdin=(here / "t.csv").read_bytes(),
    )
    assert code == 0, errors
    assert "on standard input:" in out


def test_an_export_of_a_german_spreadsheet(here, run):
    """cp1252, semicolons, decimal commas: named, then read; notes on standard error only."""
    (here / "blumen.csv").write_bytes(FLOWERS.encode("cp1252"))
    code, _, errors = run(*fit_arguments("blumen.csv", "--label", "Art"))
    assert code == 2
    assert "--encoding cp1252" in errors
    code, out, errors = run(
        "fit", "blumen.csv", "--label", "Art", "--encoding", "cp1252", "--set", "n_atoms=3"
    )
    assert code == 0, errors
    assert "2 features, 2 classes" in out
    assert "'Länge', 'Breite': decimal commas are read as points" in errors
    for extra in ([], ["--decimal", ","]):
        code, out, errors = run(
            "predict", "model.skops", "blumen.csv", "--encoding", "cp1252", *extra
        )
        assert code == 0, errors
        assert out.splitlines()[0] == "prediction"
        assert set(out.split()[1:]) == {"Schön", "Übel"}
        assert "100.0% of 24" in errors
    _, out, errors = run("info", "blumen.csv", "--encoding", "cp1252")
    assert "columns of numbers  2" in out
    assert "decimal commas" in errors
    _, out, errors = run("info", "blumen.csv", "--encoding", "cp1252", "--decimal", ".")
    assert "columns of numbers  0" in out


def test_a_file_without_names(here, run):
    """The first row is a row, whoever made the file; both ways to say otherwise."""
    rows = FLOWERS.replace(",", ".").splitlines()[1:]
    (here / "blumen.txt").write_text("\n".join(rows) + "\n")
    _, out, errors = run("info", "blumen.txt")
    assert "rows                24" in out
    assert "starts with a row like those below it" in errors
    _, out, errors = run("info", "blumen.txt", "--header")
    assert "rows                23" in out
    assert errors == ""
    _, out, errors = run("info", "blumen.txt", "--no-header")
    assert "rows                24" in out
    assert errors == ""


def test_a_packed_log_of_objects(here, run):
    lines = [
        json.dumps({"ms": 1.0 + i % 5 + 20 * (i % 2), "size": {"in": i % 7, "out": 3.5 - i % 2},
                    "ok": bool(i % 2)})
        for i in range(30)
    ]  # fmt: skip
    (here / "log.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    code, out, errors = run(*fit_arguments("log.jsonl.gz", "--label", "ok"))
    assert code == 0, errors
    assert "30 rows, 3 features, 2 classes" in out
    code, out, errors = run("predict", "model.skops", "-", stdin="\n".join(lines).encode())
    assert code == 0, errors
    assert len(out.splitlines()) == 31


def test_nullable_columns_of_pandas(here, run):
    n = 24
    table = pyarrow.table(
        {
            "n": pyarrow.array([None if i == 3 else i % 5 for i in range(n)], pyarrow.int64()),
            "x": [float(i % 2) + i / 100 for i in range(n)],
            "flag": pyarrow.array([None if i == 4 else bool(i % 3) for i in range(n)]),
            "kind": pyarrow.array(["p" if i % 2 else "q" for i in range(n)]).dictionary_encode(),
        }
    )
    pyarrow.parquet.write_table(table, here / "t.parquet")
    code, out, errors = run(*fit_arguments("t.parquet", "--label", "kind"))
    assert code == 0, errors
    assert "24 rows" in out
    code, out, errors = run("predict", "model.skops", "t.parquet", "-o", "p.parquet")
    assert code == 0, errors
    told = pyarrow.parquet.read_table(here / "p.parquet")
    assert told.num_rows == n


@pytest.mark.parametrize(
    "name", ["t.npy", "t.npz", "t.parquet", "t.feather", "t.csv.gz", "t.jsonl"]
)
def test_damaged_and_empty_files_get_words(here, run, model, name):
    """Cut anywhere, of no rows or no columns."""
    X = np.arange(12.0).reshape(4, 3)
    names = [*"abc"]
    table = pyarrow.table(dict(zip(names, X.T, strict=True)))

    def written(X, table):
        file = io.BytesIO()
        if name == "t.npy":
            np.save(file, X)
        elif name == "t.npz":
            np.savez(file, X=X)
        elif name == "t.parquet":
            pyarrow.parquet.write_table(table, file)
        elif name == "t.feather":
            pyarrow.feather.write_feather(table, file)
        else:
            text = [",".join(names)] + [",".join(map(str, row)) for row in X.tolist()]
            if name == "t.jsonl":
                text = [json.dumps(dict(zip(names, row, strict=False))) for row in X.tolist()]
            data = "\n".join(text).encode()
            return gzip.compress(data) if name.endswith("gz") else data
        return file.getvalue()

    whole = written(X, table)
    contents = [whole[:cut] for cut in (0, 1, 7, len(whole) // 2, len(whole) - 1)]
    contents += [written(X[:0], table.slice(0, 0)), written(X[:, :0], table.select([]))]
    for content in contents:
        (here / name).write_bytes(content)
        code, out, errors = run("info", name)
        if not (name == "t.jsonl" and code == 0):  # a cut between lines leaves lines
            assert (code, out) == (2, ""), content
            assert errors.startswith("Error: ")
