"""Dictionary updates on tensors: K-SVD, sums of codes, block coordinate descent on atoms.

``updates`` has the functions, in plain torch; ``kernels`` has what Triton does in their place.
"""
