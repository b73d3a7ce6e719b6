"""From a setting to a classifier; the same for every study.

A setting says ``code`` ("src" or "crc"), ``kernel``, and where they apply ``projection``,
``n_neighbors`` (the paper's K) and ``decades``: mu as a power of ten over the paper's, None for a
mu chosen by leaving training rows out. ``code`` "d-ksvd" and "lc-ksvd" learn ``n_learned`` atoms.
"""

from typing import Any

from kernelatoms import CRCClassifier, DKSVDClassifier, LCKSVDClassifier, SRCClassifier
from kernelatoms.papers.kcrc.reported import CRC, CRC_LCD, DKSVD, KCRC, LCD, LCKSVD, SRC
from kernelatoms.papers.study import Setting

#: beta of the paper's kernel exp(-beta d^2).
BETA = 0.5

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


def papers_mu(n_atoms: int) -> float:
    """Return the paper's mu for a dictionary of n atoms, or K of them (section 6.1)."""
    return 0.001 * n_atoms / 700


def make_classifier(setting: Setting, n_atoms: int, seed: int) -> Any:
    """Return the setting's classifier, for a dictionary of n atoms, or n rows to learn from."""
    if setting["code"] in _LEARNERS:
        return _LEARNERS[setting["code"]](
            setting["n_learned"], n_nonzero_coefs=setting["n_nonzero"], max_iter=20, tol=0,
            random_state=seed,
        )  # fmt: skip
    own = setting.get("n_neighbors")
    local = None if own is None or own >= n_atoms else own  # K = n is the global dictionary
    if setting["code"] == "src":
        return SRCClassifier(setting["kernel"], n_neighbors=local, gamma=BETA)
    decades = setting["decades"]
    mu = "search" if decades is None else papers_mu(own or n_atoms) * 10**decades
    return CRCClassifier(
        setting["kernel"], mu=mu, projection=setting.get("projection", "auto"),
        n_neighbors=local, gamma=BETA, random_state=seed,
    )  # fmt: skip


def percent_right(model: Any, X: Any, y: Any) -> float:
    """Return the accuracy in percent."""
    return 100 * float(model.score(X, y))
