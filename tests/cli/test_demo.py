"""The demo end to end, small; its corruptions, its exit codes."""

import contextlib
import io
import os
import re

import numpy as np
import pytest

from kernelatoms.cli import digits
from kernelatoms.cli.app import main


@pytest.fixture(scope="module")
def study():
    steps = []
    result = digits.run_study(digits.QUICK, lambda *step: steps.append(step))
    return result, steps


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory):
    """Run the demo once: its exit code, what it printed, the report."""
    path = tmp_path_factory.mktemp("demo") / "report.html"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(["demo", "--quick", "--output", str(path)])
    return code, printed.getvalue(), path


def test_demo_prints_a_table_and_writes_a_report(demo_run):
    code, printed, path = demo_run
    assert code == 0
    lines = printed.splitlines()
    assert "linear K-SVD and LKDL" in lines[0]
    assert [line for line in lines if line.endswith("...")] == [
        "warming up ...",
        "repetition 1 of 2 ...",
        "repetition 2 of 2 ...",
        "drawing the report ...",
    ]
    for model in ("linear K-SVD", "LKDL"):
        assert re.search(rf"│ {model} +(│ +\d+\.\d ± \d+\.\d ){{3}}│ +\d\.\d\d │ +\d+ │", printed)
    assert lines[-1].startswith("Report: ")
    assert path.name in printed.replace("\n", "")
    assert "\x1b" not in printed  # no terminal: no colours, no bars


def test_report_is_complete_and_self_contained(demo_run):
    text = demo_run[2].read_text(encoding="utf-8")
    assert len(text) < 2_000_000
    assert "://" not in text
    assert "<script" not in text
    titles = re.findall("<h2>(.*?)</h2>", text)
    assert titles[:2] == ["Accuracy and time", "Robustness"]
    for model in ("linear K-SVD", "LKDL"):  # the sections of both models' reports
        found = [title.removeprefix(f"{model}: ") for title in titles if title.startswith(model)]
        assert found[0] == "What was fitted"
        assert {"Atoms and codes", "Atoms one by one", "Accuracy", "Time"} < set(found)
    assert len(re.findall('<img src="data:image/', text)) > 10


def test_table_holds_what_was_measured(study):
    study, steps = study
    table = digits.results_table(study)
    assert table.header[:4] == ["model", "clean", "noise 0.3", "50% dropped"]
    for row, (name, measured) in zip(table.rows, study.measured.items(), strict=True):
        noise, dropped = np.array(measured.noise), np.array(measured.dropped)
        assert row[0] == name
        for cell, values in zip(row[1:4], (noise[:, 0], noise[:, 1], dropped[:, 1]), strict=True):
            error = values.std(ddof=1) / np.sqrt(len(values))
            assert cell == f"{100 * values.mean():.1f} ± {100 * error:.1f}"
        assert row[4] == f"{np.median(measured.fit_seconds):.2f}"
        assert 0 < float(row[5]) < 1e5
    assert [done for done, _, _ in steps] == list(range(6))
    assert {total for _, total, _ in steps} == {6}


def test_models_learn_digits(study):
    for measured in study[0].measured.values():
        noise, dropped = np.array(measured.noise), np.array(measured.dropped)
        assert noise.shape == dropped.shape == (2, 2)
        np.testing.assert_array_equal(noise[:, 0], dropped[:, 0])  # clean, both times
        assert (noise[:, 0] > 0.9).all()
        assert (noise[:, 1] < noise[:, 0]).all()


def test_the_report_is_about_the_first_repetition(study):
    study = study[0]
    rows = digits.unit_rows(study.test)
    for measured in study.measured.values():
        assert measured.model.score(rows, study.test_labels) == measured.noise[0][0]


@pytest.mark.slow
def test_numbers_follow_the_seed():
    settings = digits.Settings(
        n_digits=300, repetitions=2, n_atoms=8, max_iter=2,
        noise_levels=(0.0, 0.3), dropped_levels=(0.0, 0.5),
    )  # fmt: skip

    def scores(seed):
        chosen = digits.Settings(**{**vars(settings), "seed": seed})
        study = digits.run_study(chosen, lambda *step: None)
        return [m.noise + m.dropped for m in study.measured.values()]

    assert scores(1) == scores(1)
    assert scores(1) != scores(2)


def test_corruptions(rng):
    pixels = rng.random((500, 64)) + 0.5
    noise = digits.add_noise(pixels, 0.3, rng) - pixels
    assert noise.std() == pytest.approx(0.3, rel=0.02)
    assert abs(noise.mean()) < 0.01
    dropped = digits.drop_pixels(pixels, 0.25, rng)
    assert ((dropped == 0).sum(axis=1) == 16).all()
    kept = dropped != 0
    np.testing.assert_array_equal(dropped[kept], pixels[kept])
    assert (kept.mean(axis=0) > 0.6).all()  # any place may go
    assert (pixels > 0).all()  # the input is left alone


def test_rows_are_unit_and_single_precision():
    rows = digits.unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0]])


@pytest.mark.parametrize("bad", ["missing/report.html", "."])
def test_a_bad_output_is_refused_before_work(bad, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(digits, "run_study", lambda *_: pytest.fail("work has started"))
    assert main(["demo", "--output", bad]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_a_report_that_cannot_be_written_is_no_traceback(tmp_path, monkeypatch, capsys, study):
    path = tmp_path / "report.html"
    path.write_text("<html>old")
    monkeypatch.setattr(digits, "run_study", lambda *_: study[0])
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    assert main(["demo", "--output", str(path)]) == 1
    out, err = capsys.readouterr()
    assert err == "Error: disk full\n"
    assert "LKDL" in out
    assert "Report:" not in out
    assert path.read_text() == "<html>old"


def test_ctrl_c_ends_quietly(tmp_path, monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(digits, "run_study", stop)
    assert main(["demo", "--output", str(tmp_path / "report.html")]) == 130
    assert capsys.readouterr().err == "\nStopped before it was done.\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("seed", ["-1", "1.5", "x"])
def test_a_bad_seed_is_named(seed, capsys):
    assert main(["demo", "--seed", seed]) == 2
    assert "--seed" in capsys.readouterr().err
