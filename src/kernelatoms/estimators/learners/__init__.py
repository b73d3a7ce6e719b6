"""Dictionary learners.

- ``base``: what all learners share.
- ``linear``: ``MOD`` and ``KSVD``.
- ``kernel_dictionary``: what has atoms in the feature space of a kernel.
- ``kernel``: ``KernelMOD`` and ``KernelKSVD``.
- ``ksad``: ``KSAD``, orthonormal atoms in a low-rank map of a kernel.
- ``kscdl``: ``KSCDL``, atoms that are rows, moved along the gradient of the kernel.
- ``watching``: callbacks of scikit-learn follow the passes.
"""
