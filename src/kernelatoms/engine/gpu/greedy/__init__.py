"""Greedy pursuits (OMP, OLS, non-negative or not) on tensors.

``omp`` has the functions; ``coders`` chooses what codes a block: ``steps`` in plain torch, or a
Triton kernel (``kernels``, ``exact``, ``screens``, ``many_atoms``).
"""
