"""What needs real data or minutes: the LKDL paper's digits, and memory at a million rows."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer
from kernelatoms.datasets import load_usps

needs_data = pytest.mark.skipif(
    not os.environ.get("KERNELATOMS_DATA"), reason="KERNELATOMS_DATA names no folder"
)


@pytest.fixture(scope="module")
def usps():
    data = load_usps(download_if_missing=False)
    train, test = (normalize((X + 1) / 2).astype(np.float32) for X in (data.X_train, data.X_test))
    return train, data.y_train, test, data.y_test


def mean_accuracy(usps, *first_steps):
    train, y_train, test, y_test = usps
    scores = []
    for seed in range(3):
        learner = ClassDictionaryClassifier(
            KSVD(300, n_nonzero_coefs=5, max_iter=5, tol=0), random_state=seed
        )
        steps = [step.set_params(random_state=seed) for step in first_steps]
        scores.append(make_pipeline(*steps, learner).fit(train, y_train).score(test, y_test))
    return np.mean(scores)


@pytest.mark.slow
@needs_data
def test_usps_reaches_the_papers_neighbourhood(usps):
    """Ten seeds, with errors, are in benchmarks/RESULTS.md; here a margin for three."""
    assert mean_accuracy(usps) > 0.951
    poly = KernelLinearizer(
        "poly", degree=2, gamma=1, coef0=0, n_landmarks=0.2, n_components=256, sampling="kmeans"
    )
    assert mean_accuracy(usps, poly) > 0.953


@pytest.mark.slow
def test_a_million_rows_need_one_gib_beside_input_and_output():
    code = """
import resource
import numpy as np
from kernelatoms import sparse_encode
rng = np.random.default_rng(0)
D = rng.standard_normal((1024, 256), dtype=np.float32)
sparse_encode(D[:10], D, n_nonzero_coefs=10)
X = rng.standard_normal((1_000_000, 256), dtype=np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
codes = sparse_encode(X, D, n_nonzero_coefs=10)
output = codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) / 2**20 - output / 2**30)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.0
