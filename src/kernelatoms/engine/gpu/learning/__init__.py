"""Dictionary updates on tensors.

- ``ksvd``: the K-SVD sweep over atoms; ``ksvd_kernels``: the same in Triton.
- ``atoms``: sums of codes, and block coordinate descent on atoms; ``atoms_kernels``: in Triton.
"""
