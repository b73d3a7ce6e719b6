"""Studies, their records, and the figures made of them; small stand-ins for the data sets."""

import io
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from kernelatoms.report import Table
from reproduction import circumstances
from reproduction.__main__ import main
from reproduction.check import differences, repeat, to_repeat
from reproduction.figure import Curves, PaperFigure
from reproduction.figures import FIGURES
from reproduction.lkdl import reported
from reproduction.lkdl.reported import BEST, CORESET, KMEANS, LINEAR, UNIFORM
from reproduction.lkdl.usps import measure_map
from reproduction.page import circumstances_in_words, figure_table, paper_page
from reproduction.store import append_record, key_of, read_records
from reproduction.study import Extent, Size, Study
from reproduction.terminal import print_table


def test_records_are_kept_and_a_torn_line_is_dropped(tmp_path):
    path = tmp_path / "deep" / "s.jsonl"
    assert read_records(path) == []
    first = {"setting": {"x": 1}, "seed": 0, "measures": {"a": 0.5}}
    append_record(path, first)
    with path.open("ab") as file:
        file.write(b'{"setting": {"x": 2}, "se')
    assert read_records(path) == [first]
    second = {**first, "seed": 1}
    append_record(path, second)
    assert read_records(path) == [first, second]
    path.write_text('{"what": 1}\n')
    with pytest.raises(ValueError, match=r"line 1 of .* is no record"):
        read_records(path)


def test_a_line_that_another_process_is_writing_is_not_torn(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "s.jsonl"
    records = [{"setting": {"x": i}, "seed": 0, "measures": {"a": 0.5}} for i in range(2)]
    line = json.dumps(records[0]).encode() + b"\n"
    with path.open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(line[:20])
        other = threading.Thread(target=append_record, args=(path, records[1]))
        other.start()
        other.join(0.2)
        file.write(line[20:])
    other.join()
    assert read_records(path) == records
    assert [file.name for file in tmp_path.iterdir()] == ["s.jsonl"]


def test_settings_are_equal_whatever_their_order():
    assert key_of({"a": 1, "b": None}) == key_of({"b": None, "a": 1})
    assert key_of({"a": 1}) != key_of({"a": 2})


def make_study(calls):
    settings = [{"method": m, "x": x} for m in ("one", "two") for x in (1, 2)]

    def measure(setting, seed, data_home):
        calls.append((setting["method"], setting["x"], seed))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return {"value": 10 * setting["x"] + seed}

    return Study("paper/study", "none", Size(settings[:1], 1, ""), Size(settings, 2, ""), measure)


def test_a_stopped_study_goes_on_where_it_was(tmp_path):
    calls = []
    study = make_study(calls)
    with pytest.raises(KeyboardInterrupt):
        list(study.run(tmp_path, study.full))
    assert len(read_records(study.path(tmp_path))) == 2
    steps = list(study.run(tmp_path, study.full))
    assert [(done, total) for done, total, _, _ in steps] == [(i, 6) for i in range(6)]
    assert calls[3:] == [
        ("two", 1, 0), ("two", 2, 0), ("one", 1, 1), ("one", 2, 1), ("two", 1, 1), ("two", 2, 1),
    ]  # fmt: skip
    assert list(study.run(tmp_path, study.full)) == []
    records = read_records(study.path(tmp_path))
    assert {"version", "commit", "time", "machine", "threads", "load", "seconds"} <= set(records[0])
    # The quick size is a part of the full one: nothing is run again.
    assert study.missing(tmp_path, study.quick) == []


def test_seeds_are_counted_or_named(tmp_path):
    study = make_study([None] * 3)
    list(study.run(tmp_path, replace(study.full, seeds=range(5, 7))))
    assert {record["seed"] for record in read_records(study.path(tmp_path))} == {5, 6}
    assert len(study.missing(tmp_path, study.full)) == 8
    assert study.missing(tmp_path, replace(study.full, seeds=[6])) == []
    assert [seed for _, seed in replace(study.quick, seeds=2).runs] == [0, 1]


def test_parameters_in_common_reach_the_run_and_stay_out_of_the_record(tmp_path):
    def measure(setting, seed, data_home):
        return {"value": setting["x"] * setting["scale"] + setting["shift"]}

    settings = [{"method": "m", "x": x, "shift": s} for x in (1, 2) for s in (0, 1)]
    study = Study("p/s", "none", Size([], 1), Size(settings, 1), measure, {"scale": 10})
    assert study.can_change() == ["scale", "shift"]
    list(study.run(tmp_path, study.full))
    stored = read_records(study.path(tmp_path))
    assert [record["measures"]["value"] for record in stored] == [10, 11, 20, 21]
    assert all("scale" not in record["setting"] for record in stored)
    # What is changed is part of the record's key: nothing measured before is taken for it.
    changed = Extent(full=True, changes={"scale": 3, "shift": 5, "other": 1}).of(study)
    assert [dict(s) for s in changed.settings] == [
        {"method": "m", "x": x, "shift": 5, "scale": 3} for x in (1, 2)
    ]
    assert len(study.missing(tmp_path, changed)) == 2
    list(study.run(tmp_path, changed))
    assert [r["measures"]["value"] for r in read_records(study.path(tmp_path))[4:]] == [8, 11]


def test_records_name_the_commit_or_none(monkeypatch, tmp_path):
    commit = circumstances.commit.__wrapped__
    monkeypatch.setattr(circumstances, "__file__", str(tmp_path / "reproduction/this.py"))
    (tmp_path / "src/package").mkdir(parents=True)
    (tmp_path / "reproduction").mkdir()
    assert commit() is None  # no version control
    code = tmp_path / "src/package/code.py"
    code.write_text("one = 1")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    name = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert name.startswith(commit())
    (tmp_path / "notes.txt").write_text("beside the package")
    assert name.startswith(commit())
    code.write_text("one = 2")
    assert commit().endswith("-changed")
    monkeypatch.setenv("PATH", "")
    assert commit() is None  # no git


def make_figure(study):
    return PaperFigure(
        "paper/fig", "Fig. 1", "", "", study, lambda measures: measures["value"], {},
        lambda curves: [], "x", "value", absent=lambda: {"three": "not installed"},
    )  # fmt: skip


def test_a_figure_says_what_has_no_record(tmp_path):
    study = make_study([None] * 3)
    figure = make_figure(study)
    size = replace(study.full, seeds=3)
    list(study.run(tmp_path, Size([{"method": "one", "x": 1}], [0, 2])))
    assert figure.without_records(tmp_path, size) == (
        "Incomplete: 10 of 12 runs have no record: one at 2 (all seeds); one at 1 (seed 1); "
        "two at 1, 2 (all seeds)."
    )
    more = figure.without_records(tmp_path, Size([{"method": "one", "x": 1}], 6))
    assert more.endswith("one at 1 (seeds 1, 3, 4, 5).")
    more = figure.without_records(tmp_path, Size([{"method": "one", "x": 1}], range(2, 6)))
    assert more.endswith("one at 1 (seeds 3 to 5).")
    settings = [*size.settings, {"method": "three", "x": 1}]
    page = paper_page("Paper", [figure], tmp_path, Extent(full=True, seeds=range(3)))
    assert "10 of 12 runs have no record" in page["sections"][0].text
    list(study.run(tmp_path, size))
    assert figure.without_records(tmp_path, replace(size, settings=settings)) == ""
    page = paper_page("Paper", [figure], tmp_path, Extent(full=True, seeds=range(3)))
    assert "no record" not in page["sections"][0].text
    page = paper_page("Paper", [figure], tmp_path / "empty", Extent(full=True))
    assert page["sections"][0].text == "Not run: paper/fig."


def test_a_page_tells_the_circumstances_of_its_own_runs(tmp_path):
    study = make_study([None] * 3)
    figure = make_figure(study)
    old = {"version": "0.0", "date": "2020-01-01", "machine": "abacus", "threads": 3}
    for seed in (0, 9):
        record = {"setting": study.full.settings[0], "seed": seed, "measures": {"value": 1.0}}
        append_record(study.path(tmp_path), {**record, **old})
    words = circumstances_in_words(figure, tmp_path, study.full)
    assert words == "Run on abacus, 3 threads, kernelatoms 0.0 (commit not recorded), 2020-01-01."
    append_record(study.path(tmp_path), {**record, "seed": 1})  # of another hand
    words = circumstances_in_words(figure, tmp_path, replace(study.full, seeds=[1]))
    assert words.startswith("Run on an unknown machine, unknown threads, kernelatoms of unknown")
    list(study.run(tmp_path, study.full))
    words = circumstances_in_words(figure, tmp_path, study.full)
    assert str(circumstances.commit()) in words or circumstances.commit() is None
    assert "abacus" in words
    assert "abacus" not in circumstances_in_words(figure, tmp_path, replace(study.full, seeds=[1]))


def test_stored_runs_are_made_again_and_compared(tmp_path):
    study = make_study([None] * 3)
    assert to_repeat(study, tmp_path, Extent()) == []
    list(study.run(tmp_path, replace(study.full, seeds=range(3, 5))))
    records = to_repeat(study, tmp_path, Extent(full=True))
    assert [record["seed"] for record in records] == [3] * 4
    assert len(to_repeat(study, tmp_path, Extent())) == 1
    assert to_repeat(study, tmp_path, Extent(seeds=[4]))[0]["seed"] == 4
    assert all(not run.differences for run in repeat(study, records, None))
    records[1]["measures"] |= {"value": 99.0, "seconds": 1.0, "gone": "a"}
    found = list(repeat(study, records, None))
    assert [bool(run.differences) for run in found] == [False, True, False, False]
    assert (
        found[1].in_words()
        == "one at 2, seed 3: value 99.0 stored, 23 now, gone a stored, None now"
    )


@pytest.mark.parametrize(
    ("stored", "now", "same"),
    [
        (1.0, 1.0 + 1e-8, True), (1.0, 1.0 + 1e-5, False), (0.0, 0.0, True), (0.0, 1e-9, False),
        (float("nan"), float("nan"), True), (float("nan"), 1.0, False), (1.0, float("nan"), False),
        ("a", "a", True), ("a", "b", False), (None, 1.0, False), (1.0, "a", False),
    ],
)  # fmt: skip
def test_numbers_repeat_up_to_the_order_of_sums(stored, now, same):
    assert (differences({"n": stored}, {"n": now}) == {}) == same


def test_quick_settings_are_part_of_the_full_ones():
    for figure in FIGURES.values():
        full = {key_of(setting) for setting in figure.study.full.settings}
        quick = {key_of(setting) for setting in figure.study.quick.settings}
        assert quick <= full
        assert len(full) == len(figure.study.full.settings)


def test_curves_and_table():
    figure = FIGURES["lkdl/fig2a"]
    curves = Curves({(LINEAR, 0.0): [90.0, 92.0], (CORESET, 0.0): [93.0]})
    assert curves.mean(LINEAR, 0.0) == 91
    assert curves.seeds_in_words() == "1 to 2 seeds (the run is not complete)"
    table = figure_table(figure, curves)
    assert table.header[1:] == [
        LINEAR, CORESET, "reported: linear K-SVD", "reported: kernel K-SVD",
        "reported: LKDL, coreset",
    ]  # fmt: skip
    assert table.rows == [["0", "91.00 ± 1.00", "93.00", "95.57", "96.03", "96.02"]]
    assert "1 to 2 seeds" in table.caption


def curve(method, values, places):
    return {(method, x): [v, v] for x, v in zip(places, values, strict=True)}


def holds(name, *curves):
    values = {}
    for part in curves:
        values |= part
    return [claim.holds for claim in FIGURES[name].claims(Curves(values))]


def test_claims_can_fail():
    noise = reported.NOISE
    linear = [reported.FIG_2A[LINEAR][x] for x in noise]
    ours = [reported.FIG_2A[CORESET][x] for x in noise]
    assert holds("lkdl/fig2a", curve(LINEAR, linear, noise), curve(CORESET, ours, noise)) == [
        True, True,
    ]  # fmt: skip
    worse = [*ours[:5], linear[5] - 1, *ours[6:]]
    assert holds("lkdl/fig2a", curve(LINEAR, linear, noise), curve(CORESET, worse, noise)) == [
        False, False,
    ]  # fmt: skip
    sizes = reported.N_TRAIN
    near = [reported.FIG_3A[CORESET][n] - 0.29 for n in sizes]
    far = [reported.FIG_3A[LINEAR][n] - 0.31 for n in sizes]
    assert holds("lkdl/fig3a", curve(LINEAR, far, sizes), curve(CORESET, near, sizes)) == [
        False, True,
    ]  # fmt: skip
    shares = reported.SHARES
    best, kmeans, uniform = ([reported.FIG_1A[m][x] for x in shares] for m in
                             (BEST, KMEANS, UNIFORM))  # fmt: skip
    more = [1.01 * value for value in uniform]
    # The last claim is the text's "98.5%", which the authors' own numbers miss.
    assert holds("lkdl/fig1a", curve(BEST, best, shares), curve(KMEANS, kmeans, shares),
                 curve(UNIFORM, more, shares)) == [True, False, False]  # fmt: skip
    assert holds("lkdl/fig1b", {(LINEAR, None): [95.3]}, {(KMEANS, 0.05): [95.5]}) == [True, False]
    assert holds("lkdl/fig3b", curve(CORESET, [1.0, 40.0], (10_000, 60_000))) == [False, True]


@pytest.fixture
def data_home(tmp_path, rng):
    """USPS in small: ten blurred prototypes with noise, in the files' form."""
    folder = tmp_path / "data"
    folder.mkdir()
    prototypes = rng.random((10, 16, 16)) > 0.7

    def draw(n):
        y = np.arange(n) % 10
        pixels = prototypes[y] + 0.2 * rng.standard_normal((n, 16, 16))
        return np.clip(2 * pixels - 1, -1, 1).astype(np.float32), y.astype(np.uint8)

    (X_train, y_train), (X_test, y_test) = draw(200), draw(100)
    np.savez(folder / "usps.npz", X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test)
    return folder


def test_the_map_is_measured_against_the_best(data_home):
    from kernelatoms.datasets import load_usps

    setting = {"method": KMEANS, "x": 0.1, "degree": 2, "n_rows": 100}
    measured = measure_map(setting, 0, str(data_home))
    pixels = (load_usps(data_home=data_home).X_train + 1) / 2
    rows = pixels[np.random.default_rng(0).permutation(200)[:100]].astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    K = (rows @ rows.T) ** 2
    values = np.linalg.svd(K, compute_uv=False)
    best = np.sqrt((values[10:] ** 2).sum() / (values**2).sum())
    assert measured["ratio"] == pytest.approx(measured["error"] / best, rel=1e-6)
    assert measured["ratio"] > 1


@pytest.mark.filterwarnings("ignore:n_atoms")
def test_the_command_runs_resumes_and_writes_a_page(data_home, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["lkdl/fig2a", "--data-home", str(data_home), "-o", str(out)]
    assert main([*arguments, "--seeds", "1"]) == 0
    printed, errors = capsys.readouterr()
    assert "6 runs to do, 0 there already" in errors
    assert "1 seed." in printed
    assert main([*arguments, "--seeds", "2", "--json"]) == 0
    printed, errors = capsys.readouterr()
    assert "6 runs to do, 6 there already" in errors
    result = json.loads(printed)["figures"][0]
    assert {entry["seeds"] for entry in result["values"]} == {2}
    lines = (out / "lkdl" / "usps-noise.jsonl").read_text().splitlines()
    assert len(lines) == 12
    by_hand = [json.loads(line) for line in lines]
    mean = np.mean([r["measures"]["accuracy"] for r in by_hand if r["setting"]["x"] == 0.6
                    and r["setting"]["method"] == LINEAR])  # fmt: skip
    shown = next(v for v in result["values"] if v["method"] == LINEAR and v["x"] == 0.6)
    assert shown["mean"] == pytest.approx(mean)
    page = (out / "lkdl.html").read_text()
    assert "2 seeds" in page
    assert "Not run: lkdl/fig1a" in page
    assert "95.57" in page  # what the authors reported stands beside
    assert "Fig. 2b" not in page  # nothing was run for it


@pytest.mark.filterwarnings("ignore:n_atoms")
def test_the_command_takes_changes_and_seeds_and_checks(data_home, tmp_path, capsys):
    out = tmp_path / "out"
    base = ["lkdl/fig2a", "--data", str(data_home), "-o", str(out)]
    changes = ["--set", "n_atoms=4", "--set", "n_nonzero=2", "--seeds", "3-3"]
    assert main([*base, *changes]) == 0
    records = read_records(out / "lkdl" / "usps-noise.jsonl")
    assert {(r["setting"]["n_atoms"], r["setting"]["n_nonzero"], r["seed"]) for r in records} == {
        (4, 2, 3)
    }
    assert "--set n_atoms=4 --set n_nonzero=2" in (out / "lkdl.html").read_text()
    capsys.readouterr()
    assert main([*base, *changes, "--check"]) == 0
    assert "lkdl/usps-noise: 6 of 6 runs repeat." in capsys.readouterr().out
    records[2]["measures"]["accuracy"] += 1
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (out / "lkdl" / "usps-noise.jsonl").write_text(lines)
    assert main([*base, *changes, "--check", "--json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)
    assert result["runs"] == 6
    assert len(result["differ"]) == 1
    assert main([*base, "--check"]) == 2  # nothing was run with the paper's own parameters
    assert "there are no records" in capsys.readouterr().err


def test_studies_without_data_are_left_out_unless_asked_for_by_name(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNELATOMS_DATA", raising=False)
    few = ["--seeds", "1", "--set", "passes=1", "--set", "n_points=40"]
    assert main(["kcrc/fig2", "kdl/fig4b", *few]) == 0
    printed, errors = capsys.readouterr()
    assert "kcrc/one-face is left out: " in errors
    assert "Fig. 4" in printed
    assert main(["kcrc/fig2"]) == 2
    record = {"setting": FIGURES["kcrc/fig2-residuals"].study.quick.settings[0], "seed": 0}
    append_record(tmp_path / "reproduced/kcrc/one-face.jsonl", {**record, "measures": {}})
    capsys.readouterr()
    assert main(["kcrc/fig2", "kdl/fig4b", *few, "--check"]) == 0
    printed, errors = capsys.readouterr()
    assert "kcrc/one-face is left out: " in errors
    assert "one-face" not in printed  # not "0 of 0 runs repeat"


def test_list_and_mistakes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNELATOMS_DATA", raising=False)
    assert main(["--list"]) == 0
    listed = sum(name.startswith("lkdl/") for name in FIGURES)
    assert capsys.readouterr().out.count("lkdl/") == listed
    assert main(["--list", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list(FIGURES)
    assert main(["lkdl/fig9"]) == 2
    assert "there is no figure 'lkdl/fig9'" in capsys.readouterr().err
    assert main(["lkdl", "--all"]) == 2
    capsys.readouterr()
    for seeds in ("0", "-3", "5-3", "two", "1-", "1.5"):
        assert main(["lkdl/fig1a", f"--seeds={seeds}"]) == 2
        assert "--seeds takes how many (5) or the first and the last (0-19)" in " ".join(
            capsys.readouterr().err.split()
        )
    assert main(["lkdl/fig1a", "--set", "nonsense=3"]) == 2
    assert "--set nonsense: none of the chosen figures has it; there are degree" in " ".join(
        capsys.readouterr().err.split()
    )
    assert main(["lkdl/fig1a", "--set", "degree"]) == 2
    assert "--set takes name=value" in capsys.readouterr().err
    assert main(["lkdl/fig1a", "--list"]) == 0
    assert "--set degree, n_rows" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_the_command_as_a_process(tmp_path):
    """Mistakes end without a traceback, and what is not asked for is not imported."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *sys.path])
    command = [sys.executable, "-m", "reproduction"]
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": path}, "text": True}
    done = subprocess.run([*command, "lkdl/fig9"], capture_output=True, **options)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: there is no figure 'lkdl/fig9'")
    assert "Traceback" not in done.stderr
    code = (
        "import sys; import reproduction.command;"
        "print({'numpy', 'sklearn', 'numba', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, **options)
    assert done.stdout.strip() == "set()"


def test_help_has_examples(capsys):
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert "python -m reproduction --list" in printed
    assert "--check" in printed


def test_nothing_but_pages_is_replaced(tmp_path, capsys, data_home):
    (tmp_path / "file").write_text("a file")
    few = ["lkdl/fig2a", "--seeds", "1", "--data", str(data_home), "--set", "n_atoms=2"]
    assert main([*few, "-o", str(tmp_path / "file")]) == 2
    assert "no folder" in capsys.readouterr().err
    out = tmp_path / "out"
    out.mkdir()
    (out / "lkdl.html").write_text("a,b\n")
    assert main([*few, "-o", str(out)]) == 2
    assert "holds no page; --force replaces it" in capsys.readouterr().err
    assert (out / "lkdl.html").read_text() == "a,b\n"
    assert [path.name for path in out.iterdir()] == ["lkdl.html"]  # nothing was run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Study, "run", lambda *of: iter(()))
        assert main([*few, "-o", str(out), "--force"]) == 0
        assert main([*few, "-o", str(out)]) == 0
    assert (out / "lkdl.html").read_text().startswith("<!DOCTYPE html>")


def test_ctrl_c_ends_with_130(monkeypatch, capsys, tmp_path):
    def interrupted(*of):
        raise KeyboardInterrupt

    monkeypatch.setattr(Study, "run", interrupted)
    assert main(["kdl/fig4b", "-o", str(tmp_path)]) == 130
    assert capsys.readouterr().err.endswith("\nStopped before it was done.\n")


def test_wide_tables_are_printed_in_parts():
    file = io.StringIO()
    table = Table(["x", "first [b]", "second", "third"], [["1", "22", "333", "4" * 20]], "caption")
    print_table(Console(file=file, width=30), table)
    printed = file.getvalue()
    assert max(map(len, printed.splitlines())) <= 30
    assert printed.count("x") == 2
    assert all(text in printed for text in ("first", "[b]", "333", "4" * 20, "caption"))
