"""Data sets in their authors' layout: small files of it, and messages about wrong ones."""

import gc

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from kernelatoms.datasets import DatasetNotFoundError
from reproduction.authors_data import AUTHORS_DATASETS, load_authors

LCKSVD = {
    "yaleb_lcksvd504": "randomfaces4extendedyaleb.mat",
    "ar_lcksvd540": "randomfaces4ar.mat",
    "scene15": "spatialpyramidfeatures4scene15.mat",
    "caltech101": "spatialpyramidfeatures4caltech101.mat",
}


@pytest.fixture(autouse=True)
def isolated(monkeypatch):
    monkeypatch.delenv("KERNELATOMS_DATA", raising=False)


def marks(labels, n_classes):
    """Return labels 1, 2, ... as columns with a single 1."""
    return np.eye(n_classes)[:, np.asarray(labels) - 1]


def files(folder, rng):
    """Write a small file of every layout."""
    for file in LCKSVD.values():
        scipy.io.savemat(
            folder / file,
            {"featureMat": rng.random((7, 6)), "labelMat": marks([1, 2, 3, 3, 2, 1], 3)},
        )
    scipy.io.savemat(
        folder / "featurevectors.mat",
        {
            "training_feats": rng.random((7, 4)), "H_train": marks([1, 2, 3, 1], 3),
            "testing_feats": rng.random((7, 2)), "H_test": marks([3, 2], 3),
        },
    )  # fmt: skip
    np.savez(folder / "harvard226.npz", X=rng.random((4, 5, 5)))
    scipy.io.savemat(folder / "tensor.mat", {"tensor": rng.random((5, 3, 4))})
    (folder / "airquality.csv").write_text(
        "station_id,time,PM25_Concentration,PM10_Concentration\n"
        "b,2014-05-01 02:00:00,20,1\na,2014-05-01 01:00:00,7.5,1\na,2014-05-01 03:00:00,NULL,1\n"
    )
    np.savez(
        folder / "rgbd_objects.npz", X=rng.random((6, 8), np.float32),
        y=np.array([1, 1, 2, 2, 1, 2]), instance=np.array([1, 2, 1, 2, 1, 2]),
        test_instance=np.array([[1, 2], [2, 1]]),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "file"), LCKSVD.items())
@pytest.mark.parametrize("sparse", [False, True])
def test_features_and_labels_of_lcksvd(name, file, sparse, tmp_path, rng):
    features, y = rng.random((7, 6)), np.array([2, 1, 3, 3, 2, 1])
    labels = scipy.sparse.csc_array(marks(y, 3)) if sparse else marks(y, 3)
    scipy.io.savemat(tmp_path / file, {"featureMat": features, "labelMat": labels})
    data = load_authors(name, tmp_path)
    np.testing.assert_array_equal(data.X, features.T)
    assert data.X.flags.c_contiguous
    np.testing.assert_array_equal(data.y, y)
    assert data.y.dtype == np.int64
    assert (data.image_shape, data.source) == (None, str(tmp_path / file))
    assert "K-SVD" in data.DESCR


def test_the_division_of_lcksvd(tmp_path, rng):
    train, test = rng.random((7, 4)), rng.random((7, 2))
    scipy.io.savemat(
        tmp_path / "featurevectors.mat",
        {
            "training_feats": train, "H_train": marks([1, 2, 3, 1], 3),
            "testing_feats": test, "H_test": marks([3, 2], 3),
        },
    )  # fmt: skip
    data = load_authors("yaleb_lcksvdsplit", tmp_path)
    np.testing.assert_array_equal(data.X_train, train.T)
    np.testing.assert_array_equal(data.X_test, test.T)
    assert (data.y_train.tolist(), data.y_test.tolist()) == ([1, 2, 3, 1], [3, 2])


def test_speeds_have_windows_first(tmp_path, rng):
    speeds = rng.random((5, 3, 4))
    scipy.io.savemat(tmp_path / "tensor.mat", {"tensor": speeds})
    X = load_authors("traffic_214x61", tmp_path).X
    assert (X.shape, X.dtype) == ((4, 5, 3), np.float32)
    assert X[1, 2, 0] == np.float32(speeds[2, 0, 1])


def test_a_table_of_stations_becomes_hours_by_stations(tmp_path, rng):
    files(tmp_path, rng)
    data = load_authors("pm25_urbanair", tmp_path)
    assert data.station.tolist() == ["a", "b"]
    assert data.hour.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(data.X, [[7.5, np.nan], [np.nan, 20], [np.nan, np.nan]])


def test_slices_and_objects(tmp_path, rng):
    files(tmp_path, rng)
    assert load_authors("harvard", tmp_path).X.shape == (4, 5, 5)
    data = load_authors("rgbd", tmp_path)
    assert data.X.shape == (6, 8)
    assert data.test_instance.tolist() == [[1, 2], [2, 1]]


def test_the_table_is_consistent():
    names = [dataset.name for dataset in AUTHORS_DATASETS]
    assert len(set(names)) == len(names) == 9
    for dataset in AUTHORS_DATASETS:
        named = {a for spec in dataset.arrays.values() for a in spec.axes if isinstance(a, str)}
        assert named == set(dataset.sizes)
        assert dataset.citation


@pytest.mark.parametrize("dataset", AUTHORS_DATASETS, ids=lambda dataset: dataset.name)
def test_a_missing_file_is_named_with_its_layout(dataset, tmp_path):
    with pytest.raises(DatasetNotFoundError) as caught:
        load_authors(dataset.name, tmp_path)
    message = str(caught.value)
    for word in (dataset.file, *dataset.arrays, str(dataset.published_shape(next(iter(
        dataset.arrays))))):  # fmt: skip
        assert word in message


def refused(tmp_path, name, pattern):
    with pytest.raises(ValueError, match=pattern) as caught:
        load_authors(name, tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "must hold" in str(caught.value)


def test_what_is_wrong_with_a_mat_file_is_said(tmp_path, rng):
    path = tmp_path / "spatialpyramidfeatures4scene15.mat"
    good = {"featureMat": rng.random((7, 4)), "labelMat": marks([1, 2, 3, 1], 3)}

    def written(**changes):
        scipy.io.savemat(path, {**good, **changes})

    written(labelMat=np.ones((3, 4)))
    refused(tmp_path, "scene15", r"labelMat must have a single 1 .*column 0")
    written(labelMat=2 * good["labelMat"])
    refused(tmp_path, "scene15", r"labelMat must have a single 1")
    written(labelMat=good["labelMat"][:, :3])
    refused(tmp_path, "scene15", r"labelMat has shape \(3, 3\), expected \(class, n = 4\)")
    written(featureMat="words")
    refused(tmp_path, "scene15", r"featureMat has dtype .*expected number")
    scipy.io.savemat(path, {"featureMat": good["featureMat"]})
    refused(tmp_path, "scene15", r"lacks the arrays \['labelMat'\]")
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(200))
    refused(tmp_path, "scene15", r"version 7\.3 \(HDF5\)")
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(100))
    refused(tmp_path, "scene15", r"version 7\.3 \(HDF5\)")
    for content in (b"", b"404 not found", bytes(500)):
        path.write_bytes(content)
        refused(tmp_path, "scene15", r"cannot be read as a \.mat file")
    written()
    path.write_bytes(path.read_bytes()[:200])
    refused(tmp_path, "scene15", r"cannot be read as a \.mat file")


def test_what_is_wrong_with_a_table_is_said(tmp_path):
    path = tmp_path / "airquality.csv"
    head = "station_id,time,PM25_Concentration\n"
    for content, pattern in (
        ("", r"lacks the arrays \['station_id', 'time', 'PM25_Concentration'\]"),
        ("station_id,time\n1,2\n", r"lacks the arrays \['PM25_Concentration'\]"),
        (head, r"station_id has shape \(0,\)"),
        (head + "a,2014-05-01 00:00:00\n", r"line 2 has 2 fields, the header 3"),
        (head + "a,2014-05-01 00:00:00,much\n", r"could not convert"),
        (head + "a,yesterday,3\n", r"time must be dates such as"),
        (head + "a,,3\n", r"time must be dates such as .*got ''"),
        (head + "a,now,3\n", r"time must be dates such as .*got 'now'"),
        (head + "a" * 140_000 + ",2014-05-01 00:00:00,3\n", r"cannot be read as a \.csv file"),
    ):
        path.write_text(content)
        refused(tmp_path, "pm25_urbanair", pattern)


def test_spaces_around_fields_are_no_part_of_them(tmp_path):
    lines = [
        "station_id, time, PM25_Concentration",
        " a, 2014-05-01 00:00:00, NULL",
        "a,2014-05-01 01:00:00,7",
    ]
    (tmp_path / "airquality.csv").write_text("\n".join(lines))
    data = load_authors("pm25_urbanair", tmp_path)
    assert data.station.tolist() == ["a"]
    np.testing.assert_array_equal(data.X, [[np.nan], [7]])


def test_sizes_beyond_all_memory_name_the_file(tmp_path, rng):
    path = tmp_path / "spatialpyramidfeatures4scene15.mat"
    label = scipy.sparse.csc_array(([1.0], ([0], [0])), shape=(2**31 - 2, 2**20))
    scipy.io.savemat(path, {"featureMat": rng.random((7, 4)), "labelMat": label})
    with pytest.raises(MemoryError, match=r"scene15\.mat claims arrays .*\n  featureMat"):
        load_authors("scene15", tmp_path)


@pytest.mark.filterwarnings("error")
def test_files_are_closed(tmp_path, rng):
    path = tmp_path / "spatialpyramidfeatures4scene15.mat"
    scipy.io.savemat(path, {"featureMat": rng.random((7, 4)), "labelMat": marks([1, 2, 3, 1], 3)})
    load_authors("scene15", tmp_path)
    gc.collect()


def test_what_is_wrong_with_objects_is_said(tmp_path, rng):
    good = {
        "X": rng.random((4, 3)), "y": np.array([1, 1, 2, 2]), "instance": np.array([1, 2, 1, 2]),
        "test_instance": np.array([[1, 2]]),
    }  # fmt: skip
    for changes, pattern in (
        ({"test_instance": np.array([[1, 3]])}, r"instance 3 of category 2 out in trial 0"),
        ({"y": np.array([1, 1, 3, 3])}, r"all of the categories 1 to 2"),
        ({"y": np.array([1.0, 1, 2, 2])}, r"y has dtype float64, expected int64"),
    ):
        np.savez(tmp_path / "rgbd_objects.npz", **{**good, **changes})
        refused(tmp_path, "rgbd", pattern)
