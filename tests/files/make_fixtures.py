"""Write the model file of the present format that the tests keep, and what it predicts.

    python tests/files/make_fixtures.py

Only a new format, or a renamed type before the first release, needs another file.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelatoms import (
    KSVD,
    ClassDictionaryClassifier,
    KernelLinearizer,
    NearestImputer,
    RowNormalizer,
    save_model,
)
from kernelatoms.files import read_table, training_set
from kernelatoms.files.models.model_file import FORMAT_VERSION

FIXTURES = Path(__file__).parent / "fixtures"


def write_table(path, rng, n=60):
    """Write numbers, a category, two values, dates and a label."""
    a, b = rng.normal(size=(2, n)) * [[1.0], [2.0]]
    colours, members = rng.choice(["red", "green", "blue"], n), rng.choice(["yes", "no"], n)
    days, kinds = rng.integers(1, 29, n), np.where(a * b > 0, "x", "y")
    lines = ["a,b,colour,member,since,kind"] + [
        f"{a[i]},{b[i]},{colours[i]},{members[i]},{days[i]:02}.03.2024,{kinds[i]}" for i in range(n)
    ]
    path.write_text("\n".join(lines) + "\n")


def main():
    table = FIXTURES / "table.csv"
    write_table(table, np.random.default_rng(0))
    chosen = training_set(read_table(table), "kind", dates=True)
    table.unlink()
    model = make_pipeline(
        NearestImputer(),
        StandardScaler(),
        RowNormalizer(offset=1.0),
        KernelLinearizer("rbf", n_landmarks=20, random_state=0),
        ClassDictionaryClassifier(KSVD(6, n_nonzero_coefs=2), random_state=0),
    ).fit(chosen.X, chosen.y)
    save_model(model, FIXTURES / f"model-{FORMAT_VERSION}.skops", chosen.record(name="fixture"))
    X = chosen.X[:10]
    expected = {
        "X": X.tolist(), "scores": model.decision_function(X).tolist(), "columns": chosen.columns,
    }  # fmt: skip
    (FIXTURES / f"model-{FORMAT_VERSION}.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
