"""The runs: every method on every data set, clean, corrupted, and after a small grid."""

from reproduction.methods.cells import measure
from reproduction.methods.classifiers import BOOSTING, METHODS
from reproduction.methods.data import BUNDLED, CLEAN, CONDITIONS, DATA, IMAGES
from reproduction.study import Setting, Size, Study

_FACES = ("ORL", "Yale B", "AR")
# Places on the axis: a hundred for each condition, the data sets in them.
_STEP = 100


def place_of(data: str, condition: str) -> int:
    """Return the place of a data set under a condition."""
    return _STEP * CONDITIONS.index(condition) + DATA.index(data)


def _settings(data: tuple[str, ...], conditions: tuple[str, ...]) -> list[Setting]:
    return [
        {"method": method, "x": place_of(name, condition), "data": name, "condition": condition}
        for condition in conditions
        for name in data
        for method in METHODS
        if not _left_out(method, name, condition)
    ]


def _left_out(method: str, data: str, condition: str) -> bool:
    """Tell what is not run: it would take longer than all the rest together."""
    if data in IMAGES and condition not in (CLEAN, "noise"):
        return True
    return method == BOOSTING and data in _FACES  # one tree per class in every round


STUDY = Study(
    "methods/study",
    "scikit-learn's tables; USPS, MNIST, ORL, Yale B, AR where at hand",
    quick=Size(_settings(tuple(BUNDLED)[:2], (CLEAN,)), 1, "1 min"),
    full=Size(_settings(DATA, CONDITIONS), 3, "30 min"),
    measure=measure,
)
