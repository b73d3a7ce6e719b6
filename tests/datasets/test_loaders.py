"""Small files made from the table, stubbed downloads; no network, no real data."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from sklearn.utils import Bunch

from kernelatoms import datasets
from kernelatoms.datasets import DatasetNotFoundError, files, list_datasets
from kernelatoms.datasets.registry import BY_NAME

NAMES = [dataset.name for dataset in list_datasets()]
DOWNLOADABLE = ["usps", "mnist", "orl"]


def load(name, **kwargs):
    family, _, size = name.partition("_")
    if size:
        kwargs["size"] = size
    return getattr(datasets, f"load_{family}")(**kwargs)


def small_arrays(name):
    """The arrays of a set with every named axis cut to a few rows, no two names alike."""
    dataset = BY_NAME[name]
    lengths = {axis: 2 + i for i, axis in enumerate(dataset.sizes)}
    rng = np.random.default_rng(0)
    return {
        key: rng.integers(0, 100, [lengths.get(axis, axis) for axis in spec.axes]).astype(
            "float64" if spec.dtype == "number" else spec.dtype
        )
        for key, spec in dataset.arrays.items()
    }


def write(folder, name, arrays=None):
    folder.mkdir(exist_ok=True)
    path = folder / BY_NAME[name].file
    np.savez_compressed(path, **(small_arrays(name) if arrays is None else arrays))
    return path


@pytest.fixture(autouse=True)
def isolated(monkeypatch):
    """No folder from outside, and a test that reaches for the network fails at once."""
    monkeypatch.delenv("KERNELATOMS_DATA", raising=False)

    def no_network(name):
        raise AssertionError(f"the test went to the network through {name}")

    monkeypatch.setattr(files, "sklearn_fetcher", no_network)


@pytest.mark.parametrize("name", NAMES)
def test_values_come_back_unchanged_with_images_as_rows(tmp_path, name):
    path, expected, dataset = write(tmp_path, name), small_arrays(name), BY_NAME[name]
    data = load(name, data_home=tmp_path)
    for key, array in expected.items():
        is_image = dataset.image_shape is not None and key.startswith("X")
        np.testing.assert_array_equal(
            data[key], array.reshape(len(array), -1) if is_image else array
        )
        if array.ndim == 1 and array.dtype.kind in "iu":
            assert data[key].dtype == np.int64
        else:
            assert data[key].dtype == array.dtype
    assert data.image_shape == dataset.image_shape
    assert data.source == str(path)
    assert dataset.description in data.DESCR
    assert dataset.citation in data.DESCR
    assert data.terms == dataset.terms


def test_an_image_is_a_row_reshaped(tmp_path):
    write(tmp_path, "ar")
    data = load("ar", data_home=tmp_path)
    np.testing.assert_array_equal(
        data.X_test[1].reshape(data.image_shape), small_arrays("ar")["X_test"][1]
    )


def test_label_differences_do_not_wrap_around(tmp_path):
    write(tmp_path, "orl", {**small_arrays("orl"), "y": np.array([3, 5], dtype=np.uint8)})
    y = load("orl", data_home=tmp_path).y
    assert y[0] - y[1] == -2


def test_environment_variable_names_the_folder(tmp_path, monkeypatch):
    path = write(tmp_path, "pm25")
    monkeypatch.setenv("KERNELATOMS_DATA", str(tmp_path))
    assert load("pm25").source == str(path)


def test_data_home_beats_the_environment_variable(tmp_path, monkeypatch):
    write(tmp_path / "environment", "pm25")
    path = write(tmp_path / "argument", "pm25")
    monkeypatch.setenv("KERNELATOMS_DATA", str(tmp_path / "environment"))
    assert load("pm25", data_home=str(tmp_path / "argument")).source == str(path)
    with pytest.raises(DatasetNotFoundError):
        load("pm25", data_home=tmp_path)


def test_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    path = write(tmp_path / "data", "pm25")
    assert load("pm25", data_home="~/data").source == str(path)


@pytest.mark.parametrize("name", NAMES)
def test_missing_file_message_says_what_to_put_where(tmp_path, name):
    kwargs = {"download_if_missing": False} if name in DOWNLOADABLE else {}
    with pytest.raises(FileNotFoundError) as caught:
        load(name, data_home=tmp_path, **kwargs)
    message, dataset = str(caught.value), BY_NAME[name]
    for part in (dataset.file, f"{tmp_path} (from data_home)", "export KERNELATOMS_DATA="):
        assert part in message
    for key, spec in dataset.arrays.items():
        assert f"{key}: {dataset.published_shape(key)} {spec.dtype}" in message
    assert ("download_if_missing=True" in message) == (name in DOWNLOADABLE)


@pytest.mark.parametrize("value", [None, ""])
def test_missing_file_message_without_any_folder(monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("KERNELATOMS_DATA", value)
    with pytest.raises(DatasetNotFoundError, match="no folder was searched"):
        load("ar")


def test_missing_folder_is_named_as_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELATOMS_DATA", str(tmp_path / "typo"))
    with pytest.raises(DatasetNotFoundError, match=r"typo.*KERNELATOMS_DATA; there is no such"):
        load("ar")


@pytest.mark.parametrize(("value", "error"), [(3, TypeError), ("", ValueError)])
def test_data_home_must_be_a_path(value, error):
    with pytest.raises(error, match="data_home must be the path of a folder"):
        load("ar", data_home=value)


def test_unknown_yaleb_size_names_the_known_ones():
    with pytest.raises(ValueError, match=r"size must be one of.*'randomface504'.*got '192x168'"):
        datasets.load_yaleb(size="192x168")


@pytest.mark.parametrize("damage", ["half", "empty", "text", "npy", "bytes flipped"])
def test_damaged_files_are_named(tmp_path, damage):
    path = write(tmp_path, "usps")
    content = bytearray(path.read_bytes())
    if damage == "half":
        content = content[: len(content) // 2]
    elif damage == "bytes flipped":
        content[200:300] = bytes(b ^ 0xFF for b in content[200:300])
    elif damage == "npy":
        np.save(tmp_path / "one.npy", np.zeros(3))
        content = bytearray((tmp_path / "one.npy").read_bytes())
    else:
        content = bytearray(b"" if damage == "empty" else b"404 not found")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read as an \.npz file") as caught:
        load("usps", data_home=tmp_path)
    assert str(path) in str(caught.value)
    assert "X_test: (2007, 16, 16) float32" in str(caught.value)


def test_pickled_arrays_are_refused(tmp_path):
    write(tmp_path, "orl", {**small_arrays("orl"), "y": np.array([{}, None], dtype=object)})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load("orl", data_home=tmp_path)


def test_missing_key_is_named_with_those_present(tmp_path):
    arrays = small_arrays("pm25")
    del arrays["eval_mask"]
    path = write(tmp_path, "pm25", arrays)
    with pytest.raises(
        ValueError, match=r"lacks the arrays \['eval_mask'\]; it holds.*'latlon'"
    ) as e:
        load("pm25", data_home=tmp_path)
    assert str(path) in str(e.value)


@pytest.mark.parametrize(
    ("name", "key", "wrong", "message"),
    [
        ("usps", "X_train", np.zeros((2, 16, 16)), "X_train has dtype float64, expected float32"),
        ("orl", "y", np.array(["a", "b"]), "y has dtype <U1, expected uint8"),
        ("pm25", "station", np.zeros(3), "station has dtype float64, expected str"),
        ("orl", "X", np.zeros((2, 64, 64), "u1"), r"shape \(2, 64, 64\), expected \(n, 112, 92\)"),
        ("orl", "X", np.zeros((2, 10304), "u1"), r"shape \(2, 10304\), expected \(n, 112, 92\)"),
        ("orl", "X", np.zeros((0, 112, 92), "u1"), r"shape \(0, 112, 92\).*none of them 0"),
        ("orl", "y", np.zeros(5, "u1"), r"y has shape \(5,\), expected \(n = 2\)"),
        ("planetlab", "X", np.zeros((2, 3, 4), "f4"), r"\(2, 3, 4\), expected \(slice, node, node"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, name, key, wrong, message):
    path = write(tmp_path, name, {**small_arrays(name), key: wrong})
    kwargs = {"download_if_missing": False} if name in DOWNLOADABLE else {}
    with pytest.raises(ValueError, match=message) as caught:
        load(name, data_home=tmp_path, **kwargs)
    assert str(path) in str(caught.value)


def stub_fetcher(monkeypatch, result):
    """Put a fetcher in place that returns or raises `result`; returns the list of its calls."""
    calls = []

    def fetcher(*args, **kwargs):
        calls.append((args, kwargs))
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(files, "sklearn_fetcher", lambda name: fetcher)
    return calls


def openml_usps():
    """What OpenML sends: labels '1' to '10' as text, the row number in the first value."""
    train = np.repeat(np.arange(1, 11), files.USPS_TRAIN_COUNTS)
    labels = np.concatenate([train, np.full(2007, 10)]).astype(str).astype(object)
    values = np.zeros((9298, 256))
    values[:, 0] = np.arange(9298) / 9298
    return Bunch(data=values, target=labels)


def test_usps_download_maps_labels_and_splits(tmp_path, monkeypatch):
    calls = stub_fetcher(monkeypatch, openml_usps())
    data = datasets.load_usps(data_home=tmp_path)
    assert data.X_train.shape == (7291, 256)
    assert data.X_test.shape == (2007, 256)
    assert data.X_test.dtype == np.float32
    assert data.X_test[0, 0] == np.float32(7291 / 9298)
    assert np.bincount(data.y_train).tolist() == list(files.USPS_TRAIN_COUNTS)
    assert data.y_test.tolist() == [9] * 2007
    assert data.image_shape == (16, 16)
    assert "USPS, version 2" in data.source
    ((args, kwargs),) = calls
    assert args == ("USPS",)
    assert kwargs["version"] == 2
    assert kwargs["data_home"] == str(tmp_path)


@pytest.mark.parametrize("change", ["other order", "fewer rows"])
def test_usps_download_of_something_else_is_refused(monkeypatch, change):
    fetched = openml_usps()
    if change == "other order":
        fetched.target = fetched.target[::-1]
    else:
        fetched.data = fetched.data[1:]
    stub_fetcher(monkeypatch, fetched)
    with pytest.raises(DatasetNotFoundError, match=r"failed: ValueError: .*OpenML's USPS"):
        datasets.load_usps()


def test_mnist_download_splits_in_order(monkeypatch):
    values = np.zeros((70000, 784), dtype=np.uint8)
    values[60000, 783] = 255
    labels = (np.arange(70000) % 10).astype(str).astype(object)
    calls = stub_fetcher(monkeypatch, Bunch(data=values, target=labels))
    data = datasets.load_mnist()
    assert data.X_train.shape == (60000, 784)
    assert data.X_train.max() == 0
    assert data.X_test.shape == (10000, 784)
    assert data.X_test[0, 783] == 255
    assert data.X_test.dtype == np.uint8
    assert data.y_train[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert data.y_test.dtype == np.int64
    ((args, kwargs),) = calls
    assert args == ("mnist_784",)
    assert kwargs["version"] == 1
    assert kwargs["data_home"] is None


def test_orl_download_says_that_it_is_another_size(monkeypatch):
    images = np.random.default_rng(0).random((400, 64, 64), dtype=np.float32)
    stub_fetcher(monkeypatch, Bunch(images=images, target=np.arange(400) // 10))
    data = datasets.load_orl()
    np.testing.assert_array_equal(data.X, images.reshape(400, 4096))
    assert data.image_shape == (64, 64)
    assert np.unique(data.y).tolist() == list(range(1, 41))
    assert "not the original 112x92" in data.source


@pytest.mark.parametrize("name", DOWNLOADABLE)
def test_offline_error_says_why_and_is_chained(tmp_path, monkeypatch, name):
    reason = URLError("no route to host")
    stub_fetcher(monkeypatch, reason)
    with pytest.raises(DatasetNotFoundError, match=r"failed: URLError: .*no route") as caught:
        load(name, data_home=tmp_path)
    assert caught.value.__cause__ is reason
    assert BY_NAME[name].file in str(caught.value)


def test_environment_folder_is_no_download_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELATOMS_DATA", str(tmp_path))
    calls = stub_fetcher(monkeypatch, openml_usps())
    datasets.load_usps()
    assert calls[0][1]["data_home"] is None


def test_file_beats_download(tmp_path, monkeypatch):
    path = write(tmp_path, "usps")
    calls = stub_fetcher(monkeypatch, openml_usps())
    assert datasets.load_usps(data_home=tmp_path).source == str(path)
    assert calls == []


def test_sklearn_fetcher_finds_the_real_functions():
    # The fixture has replaced the name in the module, not the function of a fresh import.
    fresh = importlib.util.module_from_spec(files.__spec__)
    files.__spec__.loader.exec_module(fresh)
    for name in ("fetch_openml", "fetch_olivetti_faces"):
        assert fresh.sklearn_fetcher(name).__name__ == name


def test_the_table_is_consistent():
    assert len(set(NAMES)) == len(NAMES) == 10
    assert {name for name in NAMES if BY_NAME[name].online} == set(files.FETCHERS)
    for dataset in list_datasets():
        named = {a for spec in dataset.arrays.values() for a in spec.axes if isinstance(a, str)}
        assert named == set(dataset.sizes)
        assert dataset.citation
        assert hasattr(datasets, f"load_{dataset.name.partition('_')[0]}")


def test_importing_is_cheap():
    # Only this room: what the package around it imports is tested elsewhere.
    code = """
import sys, types
package = types.ModuleType("kernelatoms")
package.__path__ = [sys.argv[1]]
sys.modules["kernelatoms"] = package
import kernelatoms.datasets
print(sorted({"sklearn", "scipy", "pandas", "matplotlib", "numba"} & set(sys.modules)))
"""
    folder = Path(datasets.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
