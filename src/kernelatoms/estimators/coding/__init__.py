"""Codes of rows over atoms that are given or learned.

- ``dictionary_coder``: what has atoms and codes rows over them.
- ``encode``: ``sparse_encode`` and ``lasso_path``, one function for all pursuits.
- ``arguments``: the coding problem that their arguments make.
- ``sparse_coder``: ``SparseCoder``, the same as a transformer.
- ``residual_norms``: ``residual_norms``, what codes leave of signals.
- ``stored_codes``: ``store_codes``, rows as the nonzeros of their codes (A.7 of the FKSC paper).
- ``decode``: ``decode``, rows from the codes of whole models.
- ``denoising``: ``denoise_image`` and ``denoise_rows``.
- ``noise``: ``estimate_sigma``, and images as planes of numbers.
"""
