"""What the authors reported: curves and pictures, no numbers.

The text's settings. Fig. 4: 30 atoms, T0 = 3, polynomial kernel of degree 2, at most 80 passes,
1500 points a class, the second circle twice as wide. Fig. 5: USPS, T0 = 5, degree 4, at most 80
passes, 200 test samples a class; "300 samples for training" and "500 atoms" are taken for
swapped, since 300 samples have no 500 atoms. Kernel PCA has 500 components.

Not stated, and chosen here: pixels in [0, 1], 0 where missing, rows of unit norm; c = 0 in the
kernel (x'y + c)^d on the digits and c = 1 in the plane, where (x'y)^2 has three dimensions and
three atoms represent everything.
"""

from collections.abc import Mapping

SOURCE = "curves and pictures, no numbers"
REPORTED: Mapping[str, Mapping[float | None, float]] = {}

LINEAR, MOD, KERNEL = "linear K-SVD", "kernel MOD", "kernel K-SVD"
JOINT, CLASSWISE = "kernel PCA and linear SVM", "kernel PCA, class-wise"
PCA = "kernel PCA"
LINEAR_1 = "linear K-SVD, 1 nonzero"

NOISE = tuple(round(0.2 * i, 1) for i in range(11))
MISSING = tuple(round(0.1 * i, 1) for i in range(10))
