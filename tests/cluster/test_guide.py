"""The scripts of the guide page on clusters run as they stand there."""

import subprocess
import sys
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas
import pytest
from sklearn.datasets import load_digits

from kernelatoms import KSVD, ClassDictionaryClassifier, make_lkdl

pytestmark = pytest.mark.cluster
GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def test_a_cluster_of_this_machine(tmp_path):
    script = tmp_path / "cluster_local.py"
    script.write_text((GUIDE / "cluster_local.py").read_text())
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    score, codes = done.stdout.split(maxsplit=1)
    assert 0.3 < float(score) < 0.5
    assert "shape=(400000, 128)" in codes


@pytest.mark.filterwarnings("ignore:Chunks of X")
def test_parquet_files_by_fsspec(tmp_path, client):
    X, y = load_digits(return_X_y=True)
    frame = pandas.DataFrame(X, columns=[f"p{i}" for i in range(64)]).assign(label=y)
    for number, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"rows-{number}.parquet")
    rows = dd.read_parquet(f"file://{tmp_path}/*.parquet")
    X, y = rows.drop(columns="label"), rows["label"]
    learner = ClassDictionaryClassifier(KSVD(n_atoms=30, n_nonzero_coefs=5), random_state=0)
    model = make_lkdl(learner, "rbf", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    right = np.mean(model.predict(X).compute() == frame["label"].to_numpy())
    assert right == model.score(X, y)
