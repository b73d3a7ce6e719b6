"""Figures: arrays in, ``matplotlib.figure.Figure`` out; no pyplot, no global state.

Figures are about five inches wide, so that text stays readable on a phone; wide pages put two of
them side by side.

- ``style``: what all share: the class ``Figure``, width, colours, axes, labels.
- ``images``: atoms, signals and coded signals as images, of up to four channels.
- ``rows``: atoms and rows that are not images: curves, and bars with the features' names.
- ``sheet``: small pictures in a grid, each with its numbers.
- ``classes``: confusion matrices, the classes' parts in a code; ``code_energies``: on which
  classes' atoms codes have their weight.
- ``distributions``: objectives, spectra, histograms, residuals; one curve per class.
- ``scores``: convergence, robustness, scores over sizes; ``calibration``: reliability diagrams.
"""
