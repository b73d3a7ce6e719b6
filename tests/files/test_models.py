"""Model files: what comes back, and which files are not opened."""

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.callback import ProgressBar
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forged_models import archive_of
from kernelatoms import KSVD, MOD, Checkpoint, ClassDictionaryClassifier, KernelLinearizer
from kernelatoms.files.models import model_file
from kernelatoms.files.models.model_file import (
    FORMAT_VERSION,
    ModelFileError,
    inspect_model,
    load_model,
    read_record,
    save_model,
)
from kernelatoms.files.models.record import ModelRecord

FIXTURES = Path(__file__).parent / "fixtures"


def make_data(rng, n=80):
    X = rng.normal(size=(n, 6))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


def make_classifier():
    return make_pipeline(
        SimpleImputer(strategy="median"),
        StandardScaler(),
        KernelLinearizer("rbf", random_state=0),
        ClassDictionaryClassifier(KSVD(8, n_nonzero_coefs=2), random_state=0),
    )


def test_callbacks_of_fit_are_no_part_of_a_file(rng, tmp_path):
    X, y = make_data(rng)
    checkpoint = Checkpoint(tmp_path / "run.ckpt")
    pipeline = make_classifier()
    pipeline[-1].set_callbacks(checkpoint)
    pipeline.fit(X, y)
    for model in (pipeline, KSVD(4).set_callbacks(ProgressBar()).fit(X)):
        save_model(model, tmp_path / "model.skops")
        again = load_model(tmp_path / "model.skops")[0]
        last, was = (one[-1] if model is pipeline else one for one in (again, model))
        assert not hasattr(last, "_skl_callbacks")
        assert was._skl_callbacks


@pytest.mark.parametrize(
    "model",
    [
        make_classifier(),
        KSVD(8, n_nonzero_coefs=2, random_state=0),
        MOD(8, n_nonzero_coefs=2, random_state=0),
        KernelLinearizer("poly", sampling="kmeans", n_landmarks=20, random_state=0),
    ],
    ids=["pipeline", "KSVD", "MOD", "KernelLinearizer"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_models_come_back_as_they_were(model, dtype, rng, tmp_path):
    X, y = make_data(rng)
    X = X.astype(dtype)
    model.fit(X, y)
    record = ModelRecord(name="it", columns=list("abcdef"), image_shape=(2, 3), fit={"seconds": 1})
    again, read = load_model(save_model(model, tmp_path / "m.skops", record))
    assert read == record
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    else:
        codes, expected = again.transform(X), model.transform(X)
        assert np.abs(codes - expected).max() == 0
    if hasattr(model, "partial_fit"):
        np.testing.assert_array_equal(
            again.partial_fit(X).components_, model.partial_fit(X).components_
        )


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
def test_files_of_every_format_predict(version):
    """A file of every format, written once, with what it predicted then."""
    model, record = load_model(FIXTURES / f"model-{version}.skops")
    expected = json.loads((FIXTURES / f"model-{version}.json").read_text())
    scores = model.decision_function(np.array(expected["X"]))
    np.testing.assert_allclose(scores, expected["scores"], atol=1e-6)
    assert record.columns == expected["columns"]
    assert record.made_with["kernelatoms"] == "0.1.0"


@pytest.mark.parametrize(
    "other",
    [
        {"OPENBLAS_CORETYPE": "Haswell"},
        pytest.param({"NUMBA_CPU_NAME": "generic"}, marks=pytest.mark.slow),  # compiles everything
    ],
)
@pytest.mark.slow
def test_another_processor_predicts_the_same(other, rng, tmp_path):
    X, y = make_data(rng, 200)
    model = make_classifier().fit(X, y)
    save_model(model, tmp_path / "m.skops")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np; from kernelatoms import load_model; folder = sys.argv[1];"
        "model, _ = load_model(folder + '/m.skops'); X = np.load(folder + '/X.npy');"
        "np.save(folder + '/s.npy', model.decision_function(X))"
    )
    if "NUMBA_CPU_NAME" in other:
        other = {**other, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment = {**os.environ, **other}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=True)
    there = np.load(tmp_path / "s.npy")
    np.testing.assert_allclose(there, model.decision_function(X), rtol=1e-6, atol=1e-6)


def test_what_is_not_fitted_or_not_plain_is_not_written(rng, tmp_path):
    with pytest.raises(NotFittedError):
        save_model(KSVD(), tmp_path / "m.skops")
    X, _ = make_data(rng)
    odd = KernelLinearizer(lambda A, B: A @ B.T).fit(X)
    with pytest.raises(TypeError, match="model"):
        save_model(odd, tmp_path / "m.skops")
    assert os.listdir(tmp_path) == []
    with pytest.raises(NotADirectoryError, match="does not exist"):
        save_model(KSVD(4).fit(X), tmp_path / "nowhere" / "m.skops")


def test_foreign_types_are_refused_by_name(tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(archive_of({"run": os.system, "also": subprocess.Popen}))
    with pytest.raises(ModelFileError, match=r"posix.system|nt.system") as caught:
        load_model(path)
    assert "subprocess.Popen" in str(caught.value)
    assert "was not opened" in str(caught.value)


def test_trusted_types_are_built_and_no_others(tmp_path, rng, monkeypatch):
    (tmp_path / "trusted_kernels.py").write_text(
        "def own(X, Y):\n    return X @ Y.T\n\n\ndef other(X, Y):\n    return X @ Y.T\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import trusted_kernels

    X, _ = make_data(rng)
    path = save_model(KernelLinearizer(trusted_kernels.own).fit(X), tmp_path / "m.skops")
    assert inspect_model(path)[2] == ["trusted_kernels.own"]
    for trusted in ((), ["trusted_kernels.other"], ["own"], ["trusted_kernels"]):
        with pytest.raises(
            ModelFileError,
            match=r"holds the type 'trusted_kernels.own'.*trusted=\['trusted_kernels.own'\]",
        ):
            load_model(path, trusted=trusted)
    model, _ = load_model(path, trusted=["trusted_kernels.own", "some.other"])
    assert model.kernel is trusted_kernels.own
    with pytest.raises(TypeError, match="trusted must be a list of names"):
        load_model(path, trusted="trusted_kernels.own")
    monkeypatch.delattr(trusted_kernels, "own")
    with pytest.raises(ModelFileError, match=r"needs 'trusted_kernels\.own'.*cannot be imported"):
        load_model(path, trusted=["trusted_kernels.own"])


def test_types_that_cannot_be_found_again_are_not_written(rng, tmp_path, monkeypatch):
    X, _ = make_data(rng)

    def local(A, B):
        return A @ B.T

    own = lambda A, B: A @ B.T  # noqa: E731
    of_the_script = lambda A, B: A @ B.T  # noqa: E731
    of_the_script.__module__, of_the_script.__qualname__ = "__main__", "of_the_script"
    of_the_script.__name__ = "of_the_script"
    monkeypatch.setattr(sys.modules["__main__"], "of_the_script", of_the_script, raising=False)
    for kernel in (local, own, of_the_script):
        model = KernelLinearizer(kernel).fit(X)
        with pytest.raises(TypeError, match="the model holds the type"):
            save_model(model, tmp_path / "m.skops")
    # A type of the library's own that the list forgot: only the library can mend that.
    forgetful = {name for name in model_file.ALLOWED_TYPES if "KernelLinearizer" not in name}
    monkeypatch.setattr(model_file, "ALLOWED_TYPES", frozenset(forgetful))
    with pytest.raises(TypeError, match=r"the model holds the type .*KernelLinearizer"):
        save_model(KernelLinearizer("rbf").fit(X), tmp_path / "m.skops")
    assert os.listdir(tmp_path) == []


def test_newer_formats_are_refused(tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(archive_of({}, FORMAT_VERSION + 1))
    with pytest.raises(ModelFileError, match=r"format 2; this kernelatoms .* reads up to 1"):
        load_model(path)
    path.write_bytes(archive_of({}, "two"))
    with pytest.raises(ModelFileError, match="format 'two'"):
        read_record(path)


def test_what_is_no_model_file(tmp_path, rng):
    path = tmp_path / "m.skops"
    for content in (b"", b"a,b\n1,2\n", pickle.dumps({"a": 1}), b"PK\x03\x04cut"):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="no kernelatoms model file, or a damaged one"):
            load_model(path)
    path.write_bytes(skops.io.dumps({}))
    with pytest.raises(ModelFileError, match=r"lacks kernelatoms\.json"):
        load_model(path)
    for bad in ("[]", "{}", '{"format_version": 1}', '{"format_version": 1, "record": 3}', "{"):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("kernelatoms.json", bad)
        with pytest.raises(ModelFileError):
            load_model(path)
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        load_model(tmp_path / "nothing")


def test_every_cut_file_is_refused(tmp_path, rng):
    X, _ = make_data(rng)
    path = save_model(KSVD(4, random_state=0).fit(X), tmp_path / "m.skops")
    whole = path.read_bytes()
    for length in np.linspace(1, len(whole) - 1, 25).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            load_model(path)


def test_damaged_bytes_never_show_a_strange_error(tmp_path, rng):
    X, _ = make_data(rng)
    path = save_model(KSVD(4, random_state=0).fit(X), tmp_path / "m.skops")
    whole = path.read_bytes()
    for _ in range(60):
        broken = bytearray(whole)
        for place in rng.integers(0, len(whole), 20):
            broken[place] = rng.integers(256)
        path.write_bytes(bytes(broken))
        try:
            load_model(path)
        except ModelFileError:
            continue


@pytest.mark.parametrize("ask", [lambda path: save_model(KSVD(2).fit(np.eye(3)), path), load_model])
def test_without_skops_the_extra_is_named(ask, tmp_path, monkeypatch):
    path = save_model(KSVD(2).fit(np.eye(3)), tmp_path / "m.skops")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"_model needs skops.*kernelatoms\[cli\]"):
        ask(path)
