"""Table 2's PlanetLab at other times: whether the slice before is always as good.

The paper trains on slices 1-3 and tests on slice 4. Here every later slice is tested too, after the
three before it, at one of the paper's ratios.
"""

from reproduction.fksc.coders import CHANGE, Task
from reproduction.fksc.compression import BEFORE, EXACT, NEAREST, PCA, code, errors
from reproduction.fksc.reported import RATIOS, SIGMA
from reproduction.study import DataHome, Setting, Size, Study

_CODERS = {EXACT: "exact", PCA: "pca", NEAREST: "nearest", BEFORE: "before"}
#: The slices to test, all that have three before them; the paper's is the first.
SLICES = tuple(range(4, 19))


def measure_slice(setting: Setting, seed: int, data_home: DataHome) -> dict[str, float]:
    """Return the errors of slice x."""
    named = {**setting, "data": f"planetlab {setting['x']}", "scale": "unit"}
    task = Task.of(named, seed, data_home)
    return errors(task.columns.test, code(task, setting["coder"]).rows)


def _settings(slices: tuple[int, ...]) -> list[Setting]:
    return [{"method": m, "coder": c, "x": k} for k in slices for m, c in _CODERS.items()]


LATER = Study(
    name="fksc/slices",
    dataset="planetlab",
    quick=Size(_settings(SLICES[:1]), 1, "20 s"),
    full=Size(_settings(SLICES), 3, "1 min"),
    measure=measure_slice,
    parameters={
        "sigma": SIGMA["planetlab"], "penalty": 0.1, "passes": 20, "change_tol": CHANGE,
        "ratio": RATIOS["planetlab"][1],
    },
)  # fmt: skip
