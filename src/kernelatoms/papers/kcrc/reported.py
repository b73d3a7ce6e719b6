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

#: Table 4: milliseconds a query, asked one by one (Matlab, two cores of 3.4 GHz).
TABLE_4: Mapping[str, Mapping[str, Mapping[float | None, float]]] = {
    "mnist": {LCD: {1: 2.2618}, KCRC: {1: 3.4723}, CRC: {1: 2.5451}, SRC: {1: 338.69}},
    "yaleb": {LCD: {1: 90.434}, KCRC: {1: 367.31}, CRC: {1: 200.48}, SRC: {1: 587.31}},
}

# Table 5: distances that choose the neighbours and make the kernel.
L2, CORRELATION, TANGENT = "l2", "correlation", "tangent"
LBP, SHAPE = "LBP-chi2", "shape context"
UNIFIED_DIGITS, UNIFIED_FACES = "unified: tangent x l2", "unified: LBP-chi2 x l2"
TABLE_5: Mapping[str, Mapping[str, Mapping[float | None, float]]] = {
    "usps": {
        L2: {PAPERS_MU: 95.49}, CORRELATION: {PAPERS_MU: 95.57}, TANGENT: {PAPERS_MU: 97.37},
        UNIFIED_DIGITS: {PAPERS_MU: 97.67},
    },
    "yaleb": {
        L2: {PAPERS_MU: 96.93}, CORRELATION: {PAPERS_MU: 97.01}, LBP: {PAPERS_MU: 98.53},
        UNIFIED_FACES: {PAPERS_MU: 98.22},
    },
    "mnist": {
        L2: {PAPERS_MU: 85.31}, CORRELATION: {PAPERS_MU: 85.17},
        UNIFIED_DIGITS: {PAPERS_MU: 87.52},
    },
}  # fmt: skip
