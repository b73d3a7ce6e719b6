"""``kernelatoms decode`` and ``denoise``: signals there and back, from files to files."""

import json
import subprocess

import numpy as np
import pytest
import scipy.sparse
from PIL import Image
from sklearn.datasets import load_sample_image
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from kernelatoms import KSVD, decode, load_model, save_model
from kernelatoms.cli.app import main
from kernelatoms.files import read_table


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run ``kernelatoms ...`` in this process, in an empty folder: far quicker than in others."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return run


NAMES = ["alpha", "beta", "gamma", "delta"]


@pytest.fixture
def table(tmp_path):
    """Write a table of positive numbers with identifiers; return its rows."""
    rng = np.random.default_rng(0)
    rows = rng.normal(10, 1, (60, 2)) @ rng.normal(1, 1, (2, 4)) + rng.normal(50, 5, 4)
    lines = [",".join(["id", *NAMES])]
    lines += [f"r{i}," + ",".join(map(repr, row.tolist())) for i, row in enumerate(rows)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    return rows


def fit(command, *arguments):
    done = command("fit", "table.csv", "-o", "model.skops", *arguments)
    assert done.returncode == 0, done.stderr


def ok(done):
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("form", ["codes.npz", "codes.npy", "codes.csv", "codes.parquet"])
def test_rows_come_back_in_their_units_and_columns(command, tmp_path, table, form):
    fit(command, "--model", "KSVD", "--scale", "standard", "--set", "n_atoms=8", "--set",
        "n_nonzero_coefs=4")  # fmt: skip
    ok(command("encode", "model.skops", "table.csv", "-o", form))
    told = ok(command("decode", "model.skops", form, "-o", "rows.csv"))
    assert told.stdout == "60 rows of 4 columns: rows.csv\n"
    back = read_table(tmp_path / "rows.csv")
    assert back.columns == NAMES
    np.testing.assert_allclose(back.numbers, table, rtol=1e-6)


def test_rows_come_back_through_a_kernel_map(command, tmp_path, table):
    fit(command, "--model", "KernelLinearizer", "--scale", "standard", "--set", "gamma=0.05")
    ok(command("encode", "model.skops", "table.csv", "-o", "codes.npz"))
    ok(command("decode", "model.skops", "codes.npz", "-o", "rows.npy"))
    spread = np.std(table, axis=0).max()
    assert np.abs(np.load(tmp_path / "rows.npy") - table).max() < 0.1 * spread


@pytest.mark.parametrize("learner", ["KernelKSVD", "KSAD", "KSCDL", "MOD"])
def test_all_learners_after_a_scaler(command, tmp_path, table, learner):
    fit(command, "--model", learner, "--scale", "standard", "--set", "n_atoms=20")
    ok(command("encode", "model.skops", "table.csv", "-o", "codes.npz"))
    ok(command("decode", "model.skops", "codes.npz", "-o", "rows.npy", "--like", "table.csv"))
    back = np.load(tmp_path / "rows.npy")
    assert np.linalg.norm(back - table) < 0.5 * np.linalg.norm(table - table.mean(axis=0))


def test_unit_norm_is_said_and_undone_where_the_rows_are_at_hand(command, tmp_path, table):
    fit(command, "--model", "KSVD", "--scale", "unit", "--set", "n_atoms=8", "--set",
        "n_nonzero_coefs=4")  # fmt: skip
    ok(command("encode", "model.skops", "table.csv", "-o", "codes.npz"))
    told = ok(command("decode", "model.skops", "codes.npz", "-o", "rows.npy"))
    assert "come back at about unit norm; --like TABLE" in " ".join(told.stderr.split())
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    np.testing.assert_allclose(np.load(tmp_path / "rows.npy"), table / norms, rtol=1e-6)
    told = ok(command("decode", "model.skops", "codes.npz", "--like", "table.csv", "-o", "b.csv"))
    assert "unit norm" not in told.stderr
    back = read_table(tmp_path / "b.csv")
    np.testing.assert_allclose(back.numbers[:, -4:], table, rtol=1e-6)
    assert back.column("id")[7] == "r7"


def test_codes_of_class_dictionaries_come_back(command, tmp_path, table):
    lines = (tmp_path / "table.csv").read_text().splitlines()
    labelled = [lines[0] + ",kind", *(f"{x},{'ab'[i % 2]}" for i, x in enumerate(lines[1:]))]
    (tmp_path / "table.csv").write_text("\n".join(labelled))
    fit(command, "--label", "kind", "--model", "linear", "--scale", "standard")
    ok(command("encode", "model.skops", "table.csv", "-o", "codes.npz"))
    ok(command("decode", "model.skops", "codes.npz", "-o", "rows.npy"))
    model, _ = load_model(tmp_path / "model.skops")
    atoms = np.concatenate([d.components_ for d in model[-1].dictionaries_])
    expected = scipy.sparse.load_npz(tmp_path / "codes.npz") @ atoms
    expected = expected * model["scale"].scale_ + model["scale"].mean_
    np.testing.assert_allclose(np.load(tmp_path / "rows.npy"), expected)


def test_codes_that_are_none_are_refused(command, tmp_path, table):
    fit(command, "--model", "KSVD", "--set", "n_atoms=8")
    np.save(tmp_path / "wide.npy", np.ones((3, 9)))
    (tmp_path / "far.csv").write_text("row,atom,coefficient\n0,8,1.5\n")
    (tmp_path / "half.csv").write_text("row,atom,coefficient\n0.5,1,1.5\n")
    np.savez(tmp_path / "odd.npz", a=np.ones(3))
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    bad = scipy.sparse.csr_array(np.eye(3, 8))
    parts = {"data": bad.data, "indices": bad.indices + 7, "indptr": bad.indptr, "shape": (3, 8)}
    np.savez(tmp_path / "bad.npz", format=np.array(b"csr"), **parts)
    for file, words in {
        "wide.npy": "3x9 float64 numbers, and codes of this model have 8 columns",
        "far.csv": "names atom 8, and the model has 8, counted from 0",
        "half.csv": "rows and atoms must be whole numbers",
        "odd.npz": "no sparse matrix, nor an array X",
        "broken.npz": "broken.npz",
        "bad.npz": "does not hold codes",
        "none.npz": "no file",
        "table.txt": "codes are in .npz, .npy, .csv, .parquet files",
    }.items():
        done = command("decode", "model.skops", file, "-o", "rows.csv")
        assert done.returncode == 2, file
        assert words in " ".join(done.stderr.split()), done.stderr
        assert "Traceback" not in done.stderr
    done = command("decode", "model.skops", "wide.npy", "-o", "model.skops")
    assert done.returncode == 2
    assert not (tmp_path / "rows.csv").exists()


@pytest.fixture
def photo(tmp_path):
    """Write a noisy piece of a photograph; return it and the clean one."""
    clean = load_sample_image("china.jpg")[180:260, 290:390]
    noise = 20 * np.random.default_rng(0).standard_normal(clean.shape)
    noisy = np.clip(np.rint(clean + noise), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(tmp_path / "photo.png")
    return noisy, clean


def error(path, clean):
    return np.std(np.asarray(Image.open(path), float) - clean)


def test_a_photograph_loses_its_noise(command, tmp_path, photo):
    noisy, clean = photo
    told = ok(command("denoise", "photo.png", "-o", "clean.png"))
    assert "standard deviation is estimated as" in " ".join(told.stderr.split())
    assert told.stdout.startswith("100 x 80 pixels, noise of deviation ")
    assert error(tmp_path / "clean.png", clean) < 0.75 * np.std(noisy.astype(float) - clean)
    told = ok(command("denoise", "photo.png", "--sigma", "20", "-o", "other.jpg", "--json"))
    assert json.loads(told.stdout)["sigma"] == 20
    assert told.stderr == ""
    assert Image.open(tmp_path / "other.jpg").size == (100, 80)


def test_grey_deep_and_transparent_images_and_arrays(command, tmp_path, photo):
    noisy, _ = photo
    grey = noisy.mean(axis=2)
    Image.fromarray((grey * 200).astype(np.uint16)).save(tmp_path / "deep.png")
    ok(command("denoise", "deep.png", "--sigma", "3000", "-o", "deep2.png"))
    deep = np.asarray(Image.open(tmp_path / "deep2.png"))
    assert deep.dtype == np.uint16
    assert abs(deep.mean() - grey.mean() * 200) < 100
    alpha = np.arange(8000, dtype=np.uint8).reshape(80, 100)
    Image.fromarray(np.dstack([noisy, alpha])).save(tmp_path / "through.png")
    ok(command("denoise", "through.png", "--sigma", "20", "-o", "through2.png"))
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "through2.png"))[..., 3], alpha)
    np.save(tmp_path / "grey.npy", grey)
    ok(command("denoise", "grey.npy", "--sigma", "12", "-o", "grey2.npy"))
    found = np.load(tmp_path / "grey2.npy")
    assert found.shape == grey.shape
    assert 0 < np.std(found - grey) < 14
    done = command("denoise", "grey.npy", "-o", "grey.png")
    assert done.returncode == 2
    assert "write it to .npy" in done.stderr


def test_a_dictionary_of_patches_from_a_file(command, tmp_path, photo):
    patches = np.lib.stride_tricks.sliding_window_view(photo[1].mean(axis=2), (6, 6))
    patches = patches[::3, ::3].reshape(-1, 36)
    model = KSVD(60, n_nonzero_coefs=3, max_iter=3, random_state=0).fit(patches)
    save_model(model, tmp_path / "patches.skops")
    ok(command("denoise", "photo.png", "-m", "patches.skops", "--sigma", "20", "-o", "c.png"))
    assert error(tmp_path / "c.png", photo[1]) < 0.8 * np.std(photo[0].astype(float) - photo[1])


@pytest.fixture
def series(tmp_path):
    t = np.linspace(0, 4, 200)
    rng = np.random.default_rng(0)
    clean = 5 + np.sin(2 * np.pi * rng.uniform(1, 3, (30, 1)) * (t + rng.random((30, 1))))
    noisy = clean + 0.2 * rng.standard_normal(clean.shape)
    lines = ["name," + ",".join(f"t{i}" for i in range(200))]
    lines += [f"s{i}," + ",".join(map(str, row)) for i, row in enumerate(noisy)]
    (tmp_path / "series.csv").write_text("\n".join(lines))
    return noisy, clean


def test_series_lose_their_noise(command, tmp_path, series):
    noisy, clean = series
    told = ok(command("denoise", "series.csv", "-o", "clean.csv"))
    assert "estimated as 0." in " ".join(told.stderr.split())
    back = read_table(tmp_path / "clean.csv")
    assert back.columns[-200:] == [f"t{i}" for i in range(200)]
    assert np.std(back.numbers[:, -200:] - clean) < 0.5 * np.std(noisy - clean)
    np.save(tmp_path / "series.npy", noisy)
    ok(command("denoise", "series.npy", "--signals", "--sigma", "0.2", "--window", "50",
               "-o", "clean.npy"))  # fmt: skip
    assert np.std(np.load(tmp_path / "clean.npy") - clean) < 0.5 * np.std(noisy - clean)


def test_rows_by_a_model(command, tmp_path, table):
    fit(command, "--model", "KSVD", "--scale", "unit", "--set", "n_atoms=6", "--set",
        "n_nonzero_coefs=2")  # fmt: skip
    ok(command("denoise", "table.csv", "--model", "model.skops", "-o", "own.npy"))
    model, _ = load_model(tmp_path / "model.skops")
    expected = decode(model, model.transform(table)).rows
    expected *= np.linalg.norm(table, axis=1, keepdims=True)
    np.testing.assert_allclose(np.load(tmp_path / "own.npy"), expected)
    bound = 1.15 * 2.0 * np.sqrt(4)
    fit(command, "--model", "KSVD", "--scale", "standard", "--set", "n_atoms=6", "--set",
        "n_nonzero_coefs=2")  # fmt: skip
    ok(command("denoise", "table.csv", "--model", "model.skops", "--sigma", "2", "-o", "by.npy"))
    left = np.linalg.norm(np.load(tmp_path / "by.npy") - table, axis=1)
    assert left.max() <= bound * (1 + 1e-6)
    assert left.max() > 0.3 * bound


def test_what_cannot_be_denoised_is_said(command, tmp_path, table):
    (tmp_path / "no.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    np.save(tmp_path / "tiny.npy", np.ones((3, 50)))
    np.save(tmp_path / "line.npy", np.ones(50))
    fit(command, "--model", "KernelKSVD", "--set", "n_atoms=3")
    for arguments, words in {
        ("no.png", "-o", "a.png"): "no.png cannot be read as an image",
        ("none.png", "-o", "a.png"): "there is no file none.png",
        ("tiny.npy", "-o", "a.npy", "--sigma", "1"): "image of 3 x 50 pixels is smaller than",
        ("line.npy", "-o", "a.npy", "--sigma", "1"): "image must be an array of numbers",
        ("tiny.npy", "-o", "a.npy", "--sigma", "-1"): "--sigma must be 0 or more",
        ("tiny.npy", "-o", "a.npy", "--window", "5"): "--window is for rows",
        ("table.csv", "-o", "a.csv", "--sigma", "1", "-m", "model.skops"): "has no dictionary of",
        ("tiny.npy", "-o", "tiny.npy"): "which would be lost",
        ("tiny.npy", "-o", "a.docx"): "must end with one of",
    }.items():
        done = command("denoise", *arguments)
        assert done.returncode == 2, arguments
        assert words in " ".join(done.stderr.split()), done.stderr
        assert not (tmp_path / arguments[2]).exists() or arguments[2] == "tiny.npy"


def test_steps_without_an_inverse_are_named(rng):
    class Odd(Normalizer):
        pass

    X = rng.standard_normal((20, 4))
    model = make_pipeline(Odd(), KSVD(5, random_state=0)).fit(X)
    with pytest.raises(ValueError, match="step Odd has no inverse_transform"):
        decode(model, model.transform(X))
    with pytest.raises(ValueError, match="like has 3 rows, and there are 20 codes"):
        decode(model, model.transform(X), like=X[:3])
