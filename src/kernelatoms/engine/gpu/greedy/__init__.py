"""Greedy pursuits (OMP, OLS, non-negative or not) on tensors.

``omp`` has the functions; ``coders`` chooses what codes a block:

- in plain torch ``steps``, on ``sources`` of inner products, with ``nonnegative``;
- in Triton ``kernels`` and ``exact`` over a Gram matrix (``half_precision``), and ``many_atoms``
  with ``screens`` over atoms.
"""
