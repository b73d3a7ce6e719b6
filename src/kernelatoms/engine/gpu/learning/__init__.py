"""Dictionary updates on tensors: K-SVD, sums of codes, block coordinate descent on atoms."""
