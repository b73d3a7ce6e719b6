"""From a setting to a classifier; the same for every study.

A setting says ``code`` ("src" or "crc"), ``kernel``, and where they apply ``projection``,
``n_neighbors`` (the paper's K) and ``decades``: mu as a power of ten over the paper's, None for a
mu chosen by leaving training rows out. A kernel by the name of a distance has a ``power``,
``unit_columns`` scales columns of Psi' G, ``n_components`` is the dimension of a projection.
``code`` "d-ksvd" and "lc-ksvd" learn ``n_learned`` atoms.
"""

from typing import Any

from kernelatoms import CRCClassifier, DKSVDClassifier, LCKSVDClassifier, SRCClassifier
from kernelatoms.coding import PROJECTIONS
from kernelatoms.similarity import DISTANCES
from reproduction.kcrc.reported import CRC, CRC_LCD, DKSVD, KCRC, LCD, LCKSVD, SRC
from reproduction.study import Setting

#: beta of the paper's kernel.
BETA = 0.5
#: What the paper has in all experiments: beta, and mu for 700 atoms (section 6.1).
PARAMETERS: dict[str, Any] = {"beta": BETA, "mu_of_700": 0.001}

#: What the names of methods mean, K aside.
METHODS: dict[str, dict[str, Any]] = {
    SRC: {"code": "src", "kernel": "linear"},
    CRC: {"code": "crc", "kernel": "linear"},
    KCRC: {"code": "crc", "kernel": "rbf"},
    CRC_LCD: {"code": "crc", "kernel": "linear"},
    LCD: {"code": "crc", "kernel": "rbf"},
    DKSVD: {"code": "d-ksvd", "n_nonzero": 30},
    LCKSVD: {"code": "lc-ksvd", "n_nonzero": 30},
}

_LEARNERS = {"d-ksvd": DKSVDClassifier, "lc-ksvd": LCKSVDClassifier}


def chosen(method: str) -> str:
    """Return the name of a method with its mu chosen by the program."""
    return f"{method}, mu chosen"


def papers_mu(n_atoms: int, of_700: float = PARAMETERS["mu_of_700"]) -> float:
    """Return the paper's mu for a dictionary of n atoms, or K of them."""
    return of_700 * n_atoms / 700


def make_classifier(setting: Setting, n_atoms: int, seed: int) -> Any:
    """Return the setting's classifier, for a dictionary of n atoms, or n rows to learn from."""
    if setting["code"] in _LEARNERS:
        return _LEARNERS[setting["code"]](
            setting["n_learned"], n_nonzero_coefs=setting["n_nonzero"], max_iter=20, tol=0,
            random_state=seed,
        )  # fmt: skip
    setting = {**PARAMETERS, **setting}
    own = setting.get("n_neighbors")
    local = None if own is None or own >= n_atoms else own  # K = n is the global dictionary
    kernel = setting["kernel"]
    gamma = setting["beta"] if isinstance(kernel, str) else None  # a kernel has its own
    if setting["code"] == "src":
        return SRCClassifier(kernel, n_neighbors=local, gamma=gamma)
    decades = setting["decades"]
    mu = "search"
    if decades is not None:
        mu = papers_mu(own or n_atoms, setting["mu_of_700"]) * 10**decades
    return CRCClassifier(
        kernel, mu=mu, projection=_projection_of(setting), n_neighbors=local, gamma=gamma,
        normalize_columns=setting.get("unit_columns", False), random_state=seed,
        kernel_params={"power": setting["power"]} if kernel in DISTANCES else None,
    )  # fmt: skip


def _projection_of(setting: Setting) -> Any:
    """Return the setting's projection, with the dimension that it asks for."""
    given = setting.get("projection", "auto")
    if "n_components" not in setting:
        return given
    kind: Any = PROJECTIONS[given]
    return kind(n_components=setting["n_components"])


def percent_right(model: Any, X: Any, y: Any) -> float:
    """Return the accuracy in percent."""
    return 100 * float(model.score(X, y))
