"""What the authors reported: Tables 1, 4 and 5; their figures print no numbers.

W. Liu, Z. Yu, L. Lu, Y. Wen, H. Li, Y. Zou, *KCRC-LCD: discriminative kernel collaborative
representation with locality constrained dictionary for visual categorization*, Pattern Recognition
48(10), 2015. Tables 2 and Figs. 6 and 7 are of data sets that are not at hand.
"""

from collections.abc import Mapping

SOURCE = "the paper's table"
NO_NUMBERS = "curves and pictures, no numbers"
NOTHING: Mapping[str, Mapping[float | None, float]] = {}

# "GD" codes over all training rows, "LCD" over a query's own neighbours among them.
SRC, CRC, KCRC = "SRC-GD", "CRC-GD", "KCRC-GD"
CRC_LCD, LCD = "CRC-LCD", "KCRC-LCD"
# Atoms learned from all training rows and their labels.
DKSVD, LCKSVD = "D-KSVD", "LC-KSVD"

# Table 1: ways to see kernel values.
IDENTITY, KPCA, RANDOM = "KCRC-Identity", "KCRC-KPCA", "KCRC-RP"
GRAPH, KFDA, SPACE = "KCRC-Graph", "KCRC-KFDA", "KCRC, feature space"
#: Readings of the text: columns of Psi' G at unit norm, and the kernel as it is printed.
UNIT, OF_LENGTH = "KCRC-Identity, unit columns", "KCRC-Identity, exp(-d / 2)"
#: The paper's mu, 0.001 n / 700, is at 0 of an axis of decades.
PAPERS_MU = 0.0
TABLE_1: Mapping[str, Mapping[float | None, float]] = {
    SRC: {None: 97.15},
    CRC: {PAPERS_MU: 97.67},
    IDENTITY: {PAPERS_MU: 97.23},
    KPCA: {PAPERS_MU: 97.07},
    RANDOM: {PAPERS_MU: 96.61},
    GRAPH: {PAPERS_MU: 97.35},
}


def of_80(method: str) -> str:
    """Return the name of a projection to 80 dimensions."""
    return f"{method}, 80 dimensions"


def as_printed(method: str) -> str:
    """Return the name of a method with every word of the text taken literally."""
    return f"{method}, as printed"


#: Table 4: milliseconds a query, asked one by one (Matlab, two cores of 3.4 GHz).
TABLE_4: Mapping[str, Mapping[str, Mapping[float | None, float]]] = {
    "mnist": {LCD: {1: 2.2618}, KCRC: {1: 3.4723}, CRC: {1: 2.5451}, SRC: {1: 338.69}},
    "yaleb": {LCD: {1: 90.434}, KCRC: {1: 367.31}, CRC: {1: 200.48}, SRC: {1: 587.31}},
}

# Table 5: distances that choose the neighbours and make the kernel.
L2, CORRELATION, TANGENT = "l2", "correlation", "tangent"
LBP, SHAPE = "LBP-chi2", "shape context"
UNIFIED_DIGITS, UNIFIED_FACES = "unified: tangent x l2", "unified: LBP-chi2 x l2"


def of_length(name: str) -> str:
    """Return the name of a distance in the kernel that the text prints."""
    return f"{name}, exp(-d / 2)"


def of_square(name: str) -> str:
    """Return the name of a distance in the usual kernel of a length."""
    return f"{name}, exp(-d^2 / 2)"


TABLE_5: Mapping[str, Mapping[str, float]] = {
    "usps": {L2: 95.49, CORRELATION: 95.57, TANGENT: 97.37, UNIFIED_DIGITS: 97.67},
    "yaleb": {L2: 96.93, CORRELATION: 97.01, LBP: 98.53, UNIFIED_FACES: 98.22},
    "mnist": {L2: 85.31, CORRELATION: 85.17, UNIFIED_DIGITS: 87.52},
}
