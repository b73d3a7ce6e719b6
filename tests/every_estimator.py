"""Every public estimator, as the registry has it: as it is, and in ways that lead to other code."""

from kernelatoms import KSVD, MOD, KernelKSVD, KernelLinearizer
from kernelatoms.estimators.registry import ESTIMATORS as ENTRIES
from kernelatoms.estimators.registry import load

LEARNS = {"n_atoms": 6, "max_iter": 2, "random_state": 0}

# Ways with estimators among the parameters, which the registry cannot hold.
_MORE = {
    "KernelMOD": [{"coordinates": KernelLinearizer(n_landmarks=9)}],
    "ClassDictionaryClassifier": [
        {"dictionary": MOD(3, max_iter=2)},
        {"dictionary": KernelKSVD(3, max_iter=2)},
    ],
}


def make(name, **parameters):
    """Return an estimator by name; ``dictionary__`` parameters are of K-SVD."""
    estimator = load(name)
    nested = any(key.startswith("dictionary__") for key in parameters)
    given = {} if name != "SparseCoder" else {"dictionary": parameters.pop("dictionary", None)}
    given |= {"dictionary": KSVD()} if nested else {}
    return estimator(**given).set_params(**parameters)


#: What scikit-learn checks; ``SparseCoder`` needs atoms of the rows' width.
ESTIMATORS = [
    make(name, **parameters)
    for name, entry in ENTRIES.items()
    if name != "SparseCoder"
    for parameters in entry.checked
]

#: What is not at its default, of every estimator, and values that lead to other code.
WAYS = [
    (make(name, **entry.small), [{}, *entry.ways, *_MORE.get(name, [])])
    for name, entry in ENTRIES.items()
]
