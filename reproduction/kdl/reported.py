"""What the authors reported: curves and pictures, no numbers.

The text's settings. Fig. 4: 30 atoms, T0 = 3, polynomial kernel of degree 2, at most 80 passes,
1500 points per class, the second circle twice as wide. Fig. 5: USPS, T0 = 5, degree 4, at most 80
passes, 300 training and 200 test samples per class, 500 atoms. More atoms than samples represent
every sample by itself, so that the two numbers are most likely swapped: both readings are run.
Kernel PCA has 500 components.

Fig. 3: one exact singular vector per atom and pass. Its start sets "T0 random elements of each
column in X" to 1, and then codes over A, which has not been set: we read A for X, so that every
atom starts as the sum of T0 random samples.

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
#: The update and the start of Fig. 3; the second figure's atoms and samples as the text has them.
KERNEL_PRINTED = "kernel K-SVD as printed, 500 atoms from 300 samples"
KERNEL_SWAPPED = "kernel K-SVD as printed, 300 atoms from 500 samples"
LINEAR_PRINTED = "linear K-SVD as printed, 500 atoms from 300 samples"
KERNEL_PUBLISHED = "kernel K-SVD as printed"

NOISE = tuple(round(0.2 * i, 1) for i in range(11))
MISSING = tuple(round(0.1 * i, 1) for i in range(10))
