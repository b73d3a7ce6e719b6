"""Tables as other programs export them, through the real command."""

import json

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")


@pytest.fixture
def exported():
    """Noise, sorted by class, as an analyst's export has it: nothing in it can be learned."""
    rng = np.random.default_rng(3)
    n = 150
    frame = pandas.DataFrame(
        {
            "CustomerID": 17_000 + np.arange(n) * 3,
            "joined": pandas.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "city": rng.choice(["Bonn", "Graz"], n),
            "income": rng.choice(90_000, n, replace=False),
            "score": rng.normal(size=n),
            "churn": np.repeat(["low", "mid", "high"], n // 3),
        }
    )
    frame.loc[5, "income"] = np.nan
    return frame


def test_noise_stays_noise_beside_an_index_and_an_identifier(command, exported, tmp_path):
    exported.to_csv(tmp_path / "t.csv")
    fitted = command("fit", "t.csv", "--label", "churn", "--cv", "5", "--json")
    assert fitted.returncode == 0, fitted.stderr
    result = json.loads(fitted.stdout)
    assert result["columns"] == ["income", "score", "city=Graz"]
    assert result["left_out"] == {
        "column 1": "it numbers the rows", "CustomerID": "it numbers the rows",
        "joined": "it holds dates; dates=True learns from them",
    }  # fmt: skip
    assert result["fit"]["cross_validation"]["mean"] < 0.45
    kept = ("--keep", "column 1", "--keep", "CustomerID")
    sorted_by_class = command("fit", "t.csv", "--label", "churn", "--cv", "5", "--json", *kept)
    assert json.loads(sorted_by_class.stdout)["fit"]["cross_validation"]["mean"] > 0.8
    assert "left out: column 1, CustomerID (it numbers the rows)" in fitted.stderr
    assert "yes/no: city (1 for Graz, 0 for Bonn)" in fitted.stderr
    assert result["uses"] == {
        "churn": "label", "income": "number", "score": "number",
        "city": "yes/no: 1 for Graz, 0 for Bonn", "column 1": "left out: it numbers the rows",
        "CustomerID": "left out: it numbers the rows",
        "joined": "left out: it holds dates; dates=True learns from them",
    }  # fmt: skip
    assert "--keep 'column 1'" in fitted.stderr
    assert command("fit", "t.csv", "--label", "churn").returncode == 0
    shown = command("info", "model.skops")
    assert "column: CustomerID  left out: it numbers the rows" in shown.stdout
    assert "CustomerID: it numbers the rows" in command("info", "t.csv").stdout
    with_all = command("predict", "model.skops", "t.csv", "-o", "p.csv")
    assert with_all.returncode == 0, with_all.stderr
    assert list(pandas.read_csv(tmp_path / "p.csv")) == ["column 1", "CustomerID", "prediction"]
    exported.drop(columns=["CustomerID", "joined"]).to_csv(tmp_path / "u.csv", index=False)
    assert command("predict", "model.skops", "u.csv", "-o", "q.csv").returncode == 0
    both = [pandas.read_csv(tmp_path / name)["prediction"].tolist() for name in ("p.csv", "q.csv")]
    assert both[0] == both[1]
    for name in ("t.csv", "u.csv"):
        coded = command("encode", "model.skops", name, "-o", f"{name}.npy")
        assert coded.returncode == 0, coded.stderr
    codes = [np.load(tmp_path / f"{name}.npy") for name in ("t.csv", "u.csv")]
    np.testing.assert_array_equal(*codes)


def test_a_column_can_be_kept_by_name(command, exported, tmp_path):
    exported.to_csv(tmp_path / "t.csv")
    arguments = ("fit", "t.csv", "--label", "churn", "--json", "--keep")
    result = json.loads(command(*arguments, "CustomerID").stdout)
    assert result["columns"] == ["CustomerID", "income", "score", "city=Graz"]
    assert "CustomerID" not in result["left_out"]
    exported["empty"] = None
    exported.to_csv(tmp_path / "t.csv")
    for name, words in (("empty", "it is empty"), ("churn", "is the label"), ("b", "no column")):
        refused = command(*arguments, name)
        assert refused.returncode == 2
        assert "Error: --keep: " in refused.stderr
        assert words in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_sensor_matrix_without_names(command, tmp_path):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(80, 6))
    frame = pandas.DataFrame(matrix)
    frame.to_csv(tmp_path / "t.csv", header=False)  # a row number, then the sensors
    model = ("--model", "KSVD", "--set", "n_atoms=8", "--set", "n_nonzero_coefs=2")
    fitted = command("fit", "t.csv", *model, "--json")
    assert fitted.returncode == 0, fitted.stderr
    result = json.loads(fitted.stdout)
    assert result["left_out"] == {"0": "it numbers the rows"}
    assert result["data"]["features"] == 6
    frame.to_csv(tmp_path / "u.csv", header=False, index=False)
    for name in ("t.csv", "u.csv"):
        coded = command("encode", "model.skops", name, "-o", f"{name}.npy")
        assert coded.returncode == 0, coded.stderr
    np.testing.assert_array_equal(*(np.load(tmp_path / f"{n}.npy") for n in ("t.csv", "u.csv")))


def test_a_parquet_file_with_an_index(command, exported, tmp_path):
    frame = exported.drop(columns=["CustomerID", "joined"])
    frame["account_id"] = 2**60 + 1 + np.arange(len(frame))
    frame.sample(100, random_state=0).to_parquet(tmp_path / "t.parquet")
    fitted = command("fit", "t.parquet", "--label", "churn", "--json")
    assert fitted.returncode == 0, fitted.stderr
    left_out = json.loads(fitted.stdout)["left_out"]
    assert left_out["__index_level_0__"] == "it is the index of the file"
    frame.to_parquet(tmp_path / "u.parquet")  # a plain index is no column of the file
    predicted = command("predict", "model.skops", "u.parquet", "-o", "p.parquet")
    assert predicted.returncode == 0, predicted.stderr
    assert "Not used" not in predicted.stderr
    results = pandas.read_parquet(tmp_path / "p.parquet")
    assert results["account_id"].tolist() == frame["account_id"].tolist()  # to the last digit
