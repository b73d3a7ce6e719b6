"""The library's classifiers as their presets, scikit-learn's beside them, and small grids."""

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelatoms import PRESETS, Preset, make_preset

SVM, KNN, LOGISTIC, BOOSTING = "RBF-SVM", "k-NN", "logistic regression", "gradient boosting"

_LCKSVD = PRESETS["lcksvd"]
#: Presets that classify, and two classifiers that have no preset.
OURS: dict[str, Preset] = {
    **{name: preset for name, preset in PRESETS.items() if preset.needs_label},
    "dksvd": Preset(
        "", "DKSVDClassifier", _LCKSVD.scale, _LCKSVD.mapped, parameters=_LCKSVD.parameters
    ),
    "src": Preset("", "SRCClassifier", "standard"),
}
BASELINES: dict[str, Any] = {
    SVM: SVC(),
    KNN: KNeighborsClassifier(),
    LOGISTIC: LogisticRegression(max_iter=1000),
    BOOSTING: HistGradientBoostingClassifier(),
}
METHODS = (*OURS, *BASELINES)
# What the stored records were measured with, where defaults have changed since.
_AS_MEASURED: dict[str, dict[str, Any]] = {
    "lkdl": {"map__gamma": None},
    "kdl": {"learn__dictionary__gamma": None},
    "src": {"learn__gamma": 0.5},
}

Grid = Mapping[str, Sequence[Any]]

_DICTIONARY: Grid = {
    "learn__dictionary__n_atoms": [20, 200], "learn__dictionary__n_nonzero_coefs": [2, 5, 10],
}  # fmt: skip
_LABELS: Grid = {"learn__n_nonzero_coefs": [5, 20], "map__gamma": [0.5, 2.0]}
#: What is tried after the defaults, three folds of the training rows each.
GRIDS: dict[str, Grid] = {
    "kcrc": {"learn__gamma": ["scale", "spread"], "learn__n_neighbors": [None, 50]},
    "kcrc-images": {"learn__gamma": [0.5, 2.0], "learn__n_neighbors": [None, 50]},
    "lkdl": {**_DICTIONARY, "map__gamma": ["scale", "spread"]},
    "lkdl-images": {**_DICTIONARY, "map__degree": [2, 4]},
    "linear": _DICTIONARY,
    "linear-images": _DICTIONARY,
    "kdl": _DICTIONARY,
    "lcksvd": _LABELS,
    "dksvd": _LABELS,
    "fddl": {"learn__n_atoms_per_class": [10, 30]},
    "ksad": {"learn__n_neighbors": [1, 10]},
    "src": {"learn__kernel": ["linear", "rbf"], "learn__alpha": [0.01, 0.1]},
    SVM: {"learn__C": [1, 10, 100], "learn__gamma": ["scale", 0.01, 0.1]},
    KNN: {"learn__n_neighbors": [1, 5, 15]},
    LOGISTIC: {"learn__C": [0.1, 1, 10]},
    BOOSTING: {"learn__learning_rate": [0.03, 0.1, 0.3]},
}


def make_method(name: str, n_rows: int, seed: int, tuned: bool) -> Any:
    """Return a method that fills in, scales and learns; ``tuned``: after a search of its grid."""
    if name in OURS:
        model = make_preset(OURS[name], n_rows=n_rows, random_state=seed)
        model.set_params(**_AS_MEASURED.get(name, {}))
        # As for the others: methods are compared here, and not ways to fill in.
        model.set_params(fill=SimpleImputer(strategy="median", keep_empty_features=True))
    else:
        steps = [("fill", SimpleImputer(strategy="median")), ("scale", StandardScaler())]
        model = Pipeline([*steps, ("learn", BASELINES[name])])
        if "learn__random_state" in model.get_params():
            model.set_params(learn__random_state=seed)
    if not tuned:
        return model
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    return GridSearchCV(model, dict(GRIDS[name]), cv=folds, error_score="raise")
