"""The kernels by name: scikit-learn's names, parameters and defaults, one class each.

``kernel="poly", degree=4, gamma=1, coef0=0`` is the (x'y)^4 of the LKDL paper. The table
``KERNELS`` is the only list of them.
"""

from kernelatoms.similarity.decaying import (
    AdditiveChi2Kernel,
    Chi2Kernel,
    LaplacianKernel,
    RBFKernel,
)
from kernelatoms.similarity.inner import (
    CosineKernel,
    LinearKernel,
    NamedKernel,
    PolynomialKernel,
    SigmoidKernel,
)

KERNELS: dict[str, type[NamedKernel]] = {
    "additive_chi2": AdditiveChi2Kernel,
    "chi2": Chi2Kernel,
    "cosine": CosineKernel,
    "laplacian": LaplacianKernel,
    "linear": LinearKernel,
    "poly": PolynomialKernel,
    "polynomial": PolynomialKernel,
    "rbf": RBFKernel,
    "sigmoid": SigmoidKernel,
}


def names_of_kernels(knows: str) -> tuple[str, ...]:
    """Return the names of the kernels for which a property, ``"has_gradient"`` say, is true."""
    return tuple(name for name, kind in KERNELS.items() if getattr(kind(), knows))
