"""Studies, their records, and the figures made of them; small stand-ins for the data sets."""

import json
import threading

import numpy as np
import pytest

from kernelatoms.cli.app import main
from kernelatoms.files import one_writer
from kernelatoms.papers import FIGURES
from kernelatoms.papers.figure import Curves
from kernelatoms.papers.lkdl import reported
from kernelatoms.papers.lkdl.reported import BEST, CORESET, KMEANS, LINEAR, UNIFORM
from kernelatoms.papers.lkdl.usps import measure_map
from kernelatoms.papers.page import figure_table
from kernelatoms.papers.store import append_record, key_of, read_records
from kernelatoms.papers.study import Size, Study


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


def test_a_line_that_another_process_is_writing_is_not_torn(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelatoms.files.locking.PATIENCE", 60.0)
    path = tmp_path / "s.jsonl"
    records = [{"setting": {"x": i}, "seed": 0, "measures": {"a": 0.5}} for i in range(2)]
    line = json.dumps(records[0]).encode() + b"\n"
    with one_writer(path), path.open("ab", buffering=0) as file:
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
    assert holds("lkdl/fig1a", curve(BEST, best, shares), curve(KMEANS, kmeans, shares),
                 curve(UNIFORM, more, shares)) == [True, False]  # fmt: skip
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
    arguments = ["reproduce", "lkdl/fig2a", "--data-home", str(data_home), "-o", str(out)]
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
    assert "95.57" in page  # what the authors reported stands beside
    assert "Fig. 2b" not in page  # nothing was run for it


def test_list_and_mistakes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNELATOMS_DATA", raising=False)
    assert main(["reproduce", "--list"]) == 0
    assert capsys.readouterr().out.count("lkdl/") == 15
    assert main(["reproduce", "--list", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list(FIGURES)
    assert main(["reproduce", "lkdl/fig9"]) == 2
    assert "there is no figure 'lkdl/fig9'" in capsys.readouterr().err
    assert main(["reproduce", "lkdl", "--all"]) == 2
    assert list(tmp_path.iterdir()) == []
