"""Greedy pursuits (OMP, OLS, non-negative or not) on tensors.

``omp`` has the functions, ``blocks`` their blocks of signals; ``coders`` chooses what codes a
block: ``steps`` in plain torch (``nonnegative`` where coefficients must be, ``sources`` for inner
products on request, ``atom_rows`` for rows of a Gram matrix), or a Triton kernel (``kernels``,
``exact``, ``screens``, ``many_atoms``).
"""
