"""Tables larger than ``--memory``: the same answers as in memory, a part of the rows at a time."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse
from sklearn.datasets import load_digits

from kernelatoms import load_model
from kernelatoms.cli import fit_parts, parts
from kernelatoms.cli.app import main

SMALL = ["--memory", "100kB"]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process; (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def digits(tmp_path):
    X, y = load_digits(return_X_y=True)
    frame = pandas.DataFrame(X[:900], columns=[f"p{i}" for i in range(64)])
    frame.insert(0, "row", np.arange(900))
    frame["digit"] = y[:900]
    frame.to_csv(tmp_path / "digits.csv", index=False)
    frame.to_parquet(tmp_path / "digits.parquet")
    frame.to_feather(tmp_path / "digits.feather")
    np.save(tmp_path / "digits.npy", X[:900])
    return frame


@pytest.fixture
def people(tmp_path, rng):
    """Words, dates, identifiers, missing values and labels, quotes and line ends in fields."""
    n = 2000
    ok = rng.choice(["yes", "no"], n)
    height = rng.normal(size=n)
    frame = pandas.DataFrame({
        "customer_id": rng.permutation(10 * n)[:n],
        "town": rng.choice(["Bern", "Rome", "Oslo,\n\"N\""], n),
        "ok": ok, "when": pandas.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
        "age": rng.integers(18, 90, n).astype(float), "height": height,
        "class": np.where((height > 0) ^ (ok == "yes"), "good", "bad"),
    })  # fmt: skip
    frame.loc[::17, "age"] = np.nan
    frame.loc[5::31, "town"] = None
    frame.loc[::50, "class"] = None
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    return frame


def fit_lkdl(run, *arguments):
    code, _, err = run(
        "fit", *arguments, "--set", "n_atoms=10", "--set", "n_nonzero_coefs=3", "--set",
        "max_iter=3",
    )  # fmt: skip
    assert code == 0, err
    return err


def same_twice(run, tmp_path, arguments, suffix):
    """Run a command in memory and in parts; return both outputs, and what the second one said."""
    names = [tmp_path / f"{which}{suffix}" for which in ("whole", "parts")]
    said = []
    for name, more in zip(names, ([], SMALL), strict=True):
        code, _, err = run(*arguments, "-o", name, *more)
        assert code == 0, err
        said.append(err)
    assert "it is read in parts" not in said[0]
    assert "more than --memory 100,000 bytes: it is read in parts." in said[1]
    rest = [line for line in said[1].splitlines() if "read in parts" not in line]
    assert sorted(rest) == sorted(said[0].splitlines())
    return names


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_predictions_are_the_same_bits(run, digits, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(parts, "_MOST_ROWS", 192)  # blocks that end in the middle of parts
    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    asked = ["predict", "model.skops", f"digits.{kind}", "--scores"]
    for suffix in (".csv", ".npy"):
        whole, part = same_twice(run, tmp_path, asked, suffix)
        assert whole.read_bytes() == part.read_bytes()
    whole, part = map(pyarrow.parquet.read_table, same_twice(run, tmp_path, asked, ".parquet"))
    assert whole.equals(part)
    assert whole.column_names[:2] == ["row", "prediction"]
    whole, part = map(np.load, same_twice(run, tmp_path, asked, ".npz"))
    assert list(whole) == list(part)
    for name in whole:
        assert whole[name].dtype == part[name].dtype
        np.testing.assert_array_equal(whole[name], part[name])


@pytest.mark.parametrize(("model", "kind"), [("kcrc", "csv"), ("lkdl", "csv"), ("lkdl", "parquet")])
def test_words_dates_gaps_and_labels_as_in_memory(run, people, tmp_path, kind, model):
    if model == "kcrc":
        people[:600].to_csv(tmp_path / "people.csv", index=False)
        assert run("fit", "people.csv", "--label", "class", "--dates")[0] == 0
    else:
        fit_lkdl(run, "people.csv", "--label", "class", "--model", model, "--dates")
    asked = ["predict", "model.skops", f"people.{kind}", "--scores", "--label", "class"]
    whole, part = same_twice(run, tmp_path, asked, ".csv")
    assert whole.read_bytes() == part.read_bytes()
    assert whole.read_text().startswith("customer_id,prediction,")
    found = [json.loads(run(*asked, "-o", "p.csv", "--json", *more)[1]) for more in ([], SMALL)]
    assert found[0] == found[1]
    assert found[0]["labelled_rows"] == (588 if model == "kcrc" else 1960)


def test_predictions_go_to_the_terminal(run, digits):
    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    whole, part = (run("predict", "model.skops", "digits.csv", *more) for more in ([], SMALL))
    assert whole[:2] == part[:2]
    code, _, err = run("predict", "model.skops", "digits.csv", "--json", *SMALL)
    assert code == 2
    assert "needs --output" in err


@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
def test_codes_are_the_same_bits(run, digits, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(parts, "_MOST_ROWS", 192)
    fit_lkdl(run, "digits.npy", "--model", "KSVD", "--scale", "unit")
    if kind != "npy":
        fit_lkdl(run, "digits.csv", "--model", "KSVD", "--scale", "unit", "--drop", "digit")
    asked = ["encode", "model.skops", f"digits.{kind}"]
    for suffix in (".csv", ".npy"):
        whole, part = same_twice(run, tmp_path, asked, suffix)
        assert whole.read_bytes() == part.read_bytes()
    whole, part = map(pyarrow.parquet.read_table, same_twice(run, tmp_path, asked, ".parquet"))
    assert whole.equals(part)
    whole, part = map(scipy.sparse.load_npz, same_twice(run, tmp_path, asked, ".npz"))
    assert type(whole) is type(part)
    assert whole.shape == part.shape == (900, 10)
    for name in ("data", "indices", "indptr"):
        assert getattr(whole, name).dtype == getattr(part, name).dtype
        np.testing.assert_array_equal(getattr(whole, name), getattr(part, name))
    assert run("encode", "model.skops", f"digits.{kind}", "-o", "-", *SMALL)[1] == (
        (tmp_path / "whole.csv").read_text()
    )


def test_dense_codes_are_the_same_bits(run, digits, tmp_path):
    assert run("fit", "digits.npy", "--model", "KernelLinearizer")[0] == 0
    for suffix in (".npy", ".csv"):
        whole, part = same_twice(run, tmp_path, ["encode", "model.skops", "digits.npy"], suffix)
        assert whole.read_bytes() == part.read_bytes()
    whole, part = same_twice(run, tmp_path, ["encode", "model.skops", "digits.npy"], ".npz")
    np.testing.assert_array_equal(np.load(whole)["X"], np.load(part)["X"])


def test_several_files_are_one_table(run, digits, tmp_path):
    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    (tmp_path / "big").mkdir()
    for kind, write in (("csv", "to_csv"), ("parquet", "to_parquet")):
        for i in (2, 10, 1):  # sorted as people do
            some = digits.iloc[{1: slice(300), 2: slice(300, 500), 10: slice(500, None)}[i]]
            more = {"index": False} if kind == "csv" else {}
            getattr(some, write)(tmp_path / "big" / f"part-{i}.{kind}", **more)
    one = run("predict", "model.skops", "digits.csv")[1]
    for kind in ("csv", "parquet"):
        for more in ([], SMALL):
            code, out, err = run("predict", "model.skops", f"big/*.{kind}", *more)
            assert code == 0, err
            assert out == one
    first = load_model(tmp_path / "model.skops")[1].data["fingerprint"]
    fit_lkdl(run, "big/*.csv", "--label", "digit", "--model", "lkdl-images")
    assert load_model(tmp_path / "model.skops")[1].data["fingerprint"] == first
    code, _, err = run("predict", "model.skops", "nothing/*.csv")
    assert code == 2
    assert "no file matches nothing/*.csv" in err
    digits.drop(columns="p3").to_parquet(tmp_path / "big" / "part-11.parquet")
    for more in ([], SMALL):
        code, _, err = run("predict", "model.skops", "big/*.parquet", *more, "-o", "p.csv")
        assert code == 2
        assert "part-11.parquet has not" in err
        assert "'p3'" in err
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("model", ["lkdl-images", "linear-images"])
def test_fit_learns_from_all_rows_in_passes(run, tmp_path, monkeypatch, model):
    monkeypatch.setattr(fit_parts, "_TOGETHER", 300)
    X, y = load_digits(return_X_y=True)
    names = [f"p{i}" for i in range(64)]
    frame = pandas.DataFrame(X, columns=names).assign(digit=y)
    frame[:1400].to_parquet(tmp_path / "old.parquet")
    frame[1400:].to_parquet(tmp_path / "new.parquet")
    right = {}
    for more in ((), tuple(SMALL)):
        code, out, err = run(
            "fit", "old.parquet", "--label", "digit", "--model", model, "--set", "n_atoms=30",
            "--set", "max_iter=6", *more,
        )  # fmt: skip
        assert code == 0, err
        said = json.loads(run("predict", "model.skops", "new.parquet", "-o", "p.csv", "--json")[1])
        right[more] = said["accuracy"]
        record = load_model(tmp_path / "model.skops")[1]
        right[more, "data"] = record.data
    assert "1,400 rows, 64 features, 10 classes; read" in out
    assert "on a sample of 1,0" in err  # and some rows more: one of every class
    assert right[tuple(SMALL)] > right[()] - 0.02
    assert right[()] > 0.9
    assert right[(), "data"] == right[tuple(SMALL), "data"]  # fingerprint and marks of all rows


def test_fit_uses_columns_as_in_memory(run, people, tmp_path):
    records = []
    for more in ([], ["--memory", "300kB"]):
        fit_lkdl(run, "people.csv", "--label", "class", "--model", "lkdl", "--dates", *more)
        records.append(load_model(tmp_path / "model.skops")[1])
    whole, part = records
    assert whole.columns == part.columns
    assert whole.encoded.keys() == part.encoded.keys()
    for name in ("town", "ok"):
        assert whole.encoded[name] == part.encoded[name]
    assert whole.left_out == part.left_out
    assert whole.fit["classes"] == part.fit["classes"]
    for name in ("rows", "features", "missing"):
        assert whole.data[name] == part.data[name]


def test_rare_classes_words_and_row_numbers_are_found(run, tmp_path, rng):
    n = 6000
    colour = np.array(["red", "blue"], object)[rng.integers(0, 2, n)]
    colour[4321:4329] = "gold"
    y = np.array(["a", "b"], object)[(colour == "red").astype(int)]
    y[5000:5012] = "rare"
    frame = pandas.DataFrame({"x": rng.normal(size=n), "count": np.arange(n) + 7, "colour": colour})
    frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    err = fit_lkdl(run, "t.parquet", "--label", "y", "--model", "lkdl", *SMALL)
    record = load_model(tmp_path / "model.skops")[1]
    assert record.fit["classes"] == ["a", "b", "rare"]
    assert record.encoded["colour"]["values"] == ["blue", "gold", "red"]
    assert record.left_out == {"count": "it numbers the rows"}
    assert "Note: Columns are judged and parameters chosen on a sample of 1,0" in err
    fit_lkdl(
        run, "t.parquet", "--label", "y", "--model", "lkdl", "--keep", "count", *SMALL
    )  # fmt: skip
    assert "count" in load_model(tmp_path / "model.skops")[1].columns


def test_the_model_does_not_depend_on_the_memory(run, digits, tmp_path):
    found = []
    for memory in ("100kB", "400kB"):
        fit_lkdl(run, "digits.csv", "--label", "digit", "--memory", memory, "--scale", "none")
        found.append(load_model(tmp_path / "model.skops")[0])
    for one, other in zip(*(model[-1].dictionaries_ for model in found), strict=True):
        np.testing.assert_array_equal(one.components_, other.components_)


def test_tuning_and_folds_are_on_the_sample(run, digits):
    code, out, err = run(
        "fit", "digits.parquet", "--label", "digit", "--model", "linear-images", "--cv", "2",
        "--tune", "--set", "max_iter=2", *SMALL,
    )  # fmt: skip
    assert code == 0, err
    assert "Scores on rows not learned from, 3 folds of" in out
    assert "2 folds" in out


@pytest.mark.parametrize("model", ["kcrc", "kdl", "lcksvd", "SRCClassifier", "KernelKSVD"])
def test_models_that_need_all_rows_are_refused_by_name(run, digits, tmp_path, model):
    code, _, err = run("fit", "digits.csv", "--label", "digit", "--model", model, *SMALL)
    assert code == 2
    assert f"--model: {model} learns from all rows at once" in err
    assert "lkdl" in err
    assert "--memory" in err
    assert not (tmp_path / "model.skops").exists()


def test_the_default_model_learns_in_parts(run, digits, tmp_path):
    code, _, err = run("fit", "digits.csv", "--label", "digit", "--set", "max_iter=2", *SMALL)
    assert code == 0, err
    assert "The model is lkdl, the default for tables that are read in parts" in err


def test_reports_are_about_a_sample(run, digits, tmp_path, monkeypatch):
    import kernelatoms.files.tables.large as large

    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    monkeypatch.setattr(large, "sample_rows", lambda table: 150)
    code, out, err = run("report", "model.skops", "digits.csv", "--json", *SMALL)
    assert code == 0, err
    assert "The report is about a random sample of 150 of 900 rows." in err
    assert json.loads(out)["rows"] == 150
    assert json.loads(out)["rows_in_file"] == 900
    page = (tmp_path / "report.html").read_text()
    assert "about a random sample of 150 rows of the file" in page


def test_what_cannot_be_read_in_parts_is_refused(run, digits, tmp_path):
    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    digits.to_json(tmp_path / "d.jsonl", orient="records", lines=True)
    digits.to_csv(tmp_path / "d.csv.gz", index=False)
    for name, what in (("d.jsonl", "Write it as .parquet"), ("d.csv.gz", "Unpack it")):
        code, _, err = run("predict", "model.skops", name, "--memory", "10kB")
        assert code == 2
        assert f"{name} does not fit in the memory that it may take" in err
        assert "--memory 16GiB" in err
        assert what in err


@pytest.mark.parametrize("size", ["0", "12parsecs", "-5MB", "1.5"])
def test_memory_is_a_size(run, digits, size):
    code, _, err = run("fit", "digits.csv", "--label", "digit", f"--memory={size}")
    assert code == 2
    assert "--memory" in err
    assert "a size such as 20GiB" in err


def broken(path, row, column, value):
    frame = pandas.read_csv(path, dtype=str, keep_default_na=False)
    frame.loc[row, column] = value
    frame.to_csv(path, index=False)


@pytest.mark.parametrize(
    ("value", "said"),
    [("many", "holds numbers and words: 'many' in row 777 (line 779)"),
     ("inf", "column 'p4' is infinite in row 777"), ("3,5", "'3,5' in row 777")],
)  # fmt: skip
def test_a_bad_value_in_a_later_part_is_named(run, digits, tmp_path, value, said):
    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    before = (tmp_path / "model.skops").read_bytes()
    broken(tmp_path / "digits.csv", 777, "p4", value)
    for command in (["predict", "model.skops", "digits.csv", "-o", "p.csv"],
                    ["fit", "digits.csv", "--label", "digit", "--model", "lkdl"]):  # fmt: skip
        code, _, err = run(*command, *SMALL)
        assert code == 2, err
        assert said in err
    assert not (tmp_path / "p.csv").exists()
    assert (tmp_path / "model.skops").read_bytes() == before
    assert not list(tmp_path.glob(".*.tmp"))


def test_missing_columns_are_named(run, digits, tmp_path):
    code, _, err = run("fit", "digits.parquet", "--label", "dgit", *SMALL)
    assert code == 2
    assert "--label: digits.parquet has no column 'dgit'" in err.replace("'digits.parquet'", "x")
    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    digits.drop(columns="p7").to_parquet(tmp_path / "digits.parquet")
    code, _, err = run("predict", "model.skops", "digits.parquet", *SMALL)
    assert code == 2
    assert "lacks 'p7', which the model was fitted on" in err


@pytest.mark.parametrize("wish", ["drop", "keep", "groups"])
def test_wishes_for_columns_that_are_not_there_end_before_all_rows_are_read(
    run, digits, monkeypatch, wish
):
    import kernelatoms.files.tables.survey as survey

    monkeypatch.setattr(survey, "survey", None)
    more = ["--cv", "2"] if wish == "groups" else []
    code, _, err = run(
        "fit", "digits.parquet", "--label", "digit", f"--{wish}", "nothing", *more, *SMALL
    )
    assert code == 2
    assert "nothing'" in err


def test_a_row_without_a_group_is_numbered_as_in_the_file(run, people):
    people = people[people["class"].notna()].reset_index(drop=True)
    people["group"] = people["ok"].where(people.index < 1500, None)
    people.to_csv("groups.csv", index=False)
    asked = ["fit", "groups.csv", "--label", "class", "--cv", "2", "--groups", "group"]
    code, _, err = run(*asked, "--memory", "400kB")
    assert code == 2
    assert "names no group" in err
    number = int(err.split("--groups group: row ")[1].split(" ")[0].replace(",", ""))
    assert 1500 <= number < 1520  # one of the first in the sample of 1,000


def test_a_file_is_never_written_over_itself(run, digits, tmp_path):
    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    before = (tmp_path / "digits.csv").read_bytes()
    for name in ("digits.csv", "digit?.csv"):
        code, _, err = run("predict", "model.skops", name, "-o", "digits.csv", *SMALL)
        assert code == 2
        assert "which would be lost" in err
    assert (tmp_path / "digits.csv").read_bytes() == before


def test_decimal_commas_are_asked_for(run, tmp_path, rng):
    values = zip(rng.normal(size=9000) + 5, "ab" * 4500, strict=True)
    rows = [f"{x:.2f};{y}".replace(".", ",") for x, y in values]
    (tmp_path / "t.csv").write_text("\n".join(["x;y", *rows]) + "\n")
    code, _, err = run("fit", "t.csv", "--label", "y", *SMALL)
    assert code == 2
    assert "give --decimal , or --decimal ." in err
    fit_lkdl(run, "t.csv", "--label", "y", "--model", "linear", "--decimal", ",", *SMALL)
    asked = ["predict", "model.skops", "t.csv", "--decimal", ",", "-o"]
    assert run(*asked, "a.csv")[0] == run(*asked, "b.csv", *SMALL)[0] == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_changes_between_passes_is_refused(
    run, digits, tmp_path, monkeypatch, kind, gone
):
    learn, path = fit_parts._fit_last, tmp_path / f"digits.{kind}"

    def change(*arguments):
        path.unlink()
        if not gone:
            write = {"parquet": digits[:500].to_parquet, "csv": digits[:500].to_csv}[kind]
            write(path)
        return learn(*arguments)

    monkeypatch.setattr(fit_parts, "_fit_last", change)
    code, _, err = run("fit", path.name, "--label", "digit", "--model", "linear", *SMALL)
    assert code == 2
    assert f"{path.name} {'is gone' if gone else 'has changed since'}" in err
    assert not (tmp_path / "model.skops").exists()


def test_a_full_disk_leaves_what_was_there(run, digits, tmp_path, monkeypatch):
    import kernelatoms.files.result_parts as result_parts

    fit_lkdl(run, "digits.csv", "--label", "digit", "--model", "lkdl-images")
    monkeypatch.setattr(parts, "_MOST_ROWS", 192)
    write, calls = result_parts.write_csv, []

    def full(*arguments, **more):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(*arguments, **more)

    monkeypatch.setattr(result_parts, "write_csv", full)
    (tmp_path / "p.csv").write_text("what was there")
    code, _, err = run("predict", "model.skops", "digits.csv", "-o", "p.csv", *SMALL)
    assert code == 1
    assert "Error: No space left on device" in err
    assert (tmp_path / "p.csv").read_text() == "what was there"
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_checkpoint_of_rows_in_parts_is_gone_on_from(run, digits, tmp_path, monkeypatch):
    from kernelatoms.files.tables.large_rows import LargeRows

    asked = ["fit", "digits.csv", "--label", "digit", "--model", "linear-images", "--set",
             "n_atoms=10", "--set", "max_iter=6", *SMALL]  # fmt: skip
    assert run(*asked, "-o", "straight.skops")[0] == 0
    reads = load_model(tmp_path / "straight.skops")[1].fit["reads"]
    read, calls = LargeRows._read, []

    def stop(self, block_rows):
        calls.append(1)
        if len(calls) == reads - 3:
            raise KeyboardInterrupt
        return read(self, block_rows)

    with monkeypatch.context() as patched:
        patched.setattr(LargeRows, "_read", stop)
        assert run(*asked, "--checkpoint", "run.ckpt")[0] == 130
    assert not (tmp_path / "model.skops").exists()
    code, _, err = run(*asked, "--checkpoint", "run.ckpt")
    assert code == 0, err
    assert "Note: run.ckpt: " in err
    models = [load_model(tmp_path / f"{name}.skops") for name in ("straight", "model")]
    assert models[1][1].fit["reads"] < reads
    for one, other in zip(*(model[-1].dictionaries_ for model, _ in models), strict=True):
        np.testing.assert_array_equal(one.components_, other.components_)


CHILD = """
import resource, sys
from kernelatoms.cli.app import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


@pytest.mark.slow
def test_peak_memory_does_not_grow_with_the_file(run, tmp_path, rng):
    """Of 50 MB and 150 MB of numbers, with 30 MB to use."""
    np.save(tmp_path / "few.npy", rng.normal(size=(1000, 32)))
    fit_lkdl(run, "few.npy", "--model", "MOD")
    peaks = []
    for n_groups in (4, 12):
        path = tmp_path / f"{n_groups}.parquet"
        schema = pyarrow.schema([(f"{i}", pyarrow.float64()) for i in range(32)])
        with pyarrow.parquet.ParquetWriter(path, schema) as writer:
            for _ in range(n_groups):
                columns = list(rng.normal(size=(32, 50_000)))
                writer.write_table(pyarrow.table(columns, schema=schema))
        child = subprocess.run(
            [sys.executable, "-c", CHILD, "encode", str(tmp_path / "model.skops"), str(path),
             "-o", str(tmp_path / "codes.npz"), "--memory", "30MB"],
            capture_output=True, text=True,
        )  # fmt: skip
        assert child.returncode == 0, child.stderr
        assert "it is read in parts" in child.stderr
        peaks.append(int(child.stdout.split()[-1]) * (1 if sys.platform == "darwin" else 1024))
        path.unlink()
    assert peaks[1] < peaks[0] + 50e6  # read as a whole, 300 MB more
