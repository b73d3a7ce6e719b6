"""Greedy pursuits (OMP, OLS, non-negative or not) on tensors.

- ``omp``: the functions. ``blocks``: signals in blocks that fit into memory.
- ``coders``: the choice of what codes a block, Triton kernels or plain torch.
- Triton: ``kernels``, with a Gram matrix; ``many_atoms``, without, by ``screens``; ``exact``, the
  few signals that those leave in doubt.
- Plain torch: ``steps``, non-negative ones in ``nonnegative``; ``sources`` of inner products, among
  them ``atom_rows``, the atoms themselves.
"""
