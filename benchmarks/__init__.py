"""Side by side with the peers; never installed. `make bench` runs what needs no data.

- ``harness``: contenders in child processes, alternating; medians, ratios, peak memory.
- ``contenders``: us and the peers, one function each.
- ``run``: the speed tables of RESULTS.md (OMP, K-SVD, lasso, memory, start-up); ``l1``: those of l1
  coding under a kernel.
- ``paired``: the same calls of ours, an older checkout beside this one; ``any_tree`` holds those
  contenders that run in either.
- ``cores``: the same calls on 1, 2, 4, 8 and 16 threads, beside the memory's bandwidth.
- ``many_atoms``: time and memory over very many atoms, and the price of non-negative codes.
- ``eigen``: leading eigenpairs of kernel matrices, by us, scipy and scikit-learn.
- ``online``: dictionary learning from batches, the time to the same held-out objective.
- ``missing``: accuracy with missing values; ``observed``: learning from rows that miss some.
- ``lkdl_usps``, ``lkdl_mnist``: the accuracy and time of the LKDL paper's experiments; they need
  KERNELATOMS_DATA.
"""
