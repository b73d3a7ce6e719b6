"""Side by side with the peers; never installed. `make bench` runs what needs no data.

- ``harness``: contenders in child processes, alternating; medians, ratios, peak memory.
- ``contenders``: us and the peers, one function each.
- ``run``: the speed tables of RESULTS.md (OMP, K-SVD, memory, start-up).
- ``lkdl_usps``, ``lkdl_mnist``: the accuracy and time of the LKDL paper's experiments; they need
  KERNELATOMS_DATA.
"""
