"""Dictionary learners.

- ``base``: what all learners share; ``PassReporter``, scikit-learn's callbacks after each pass.
- ``linear``: ``MOD`` and ``KSVD``.
- ``kernel_atoms``: atoms in the feature space of a kernel, and coding over them.
- ``kernel``: ``KernelMOD`` and ``KernelKSVD``.
- ``ksad``: ``KSAD``, orthonormal atoms in a low-rank map of a kernel.
- ``kscdl``: ``KSCDL``, atoms that are rows, moved along the gradient of the kernel.
"""
