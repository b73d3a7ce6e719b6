"""l1 coding on tensors.

``lasso`` has the functions. ``rounds`` alternates ``screening`` (gradients over all atoms) and
``solvers`` (small problems, in plain torch or by ``kernels`` in Triton, as ``kernels_for`` in
``solvers`` chooses) until codes are certified.
"""
