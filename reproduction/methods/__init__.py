"""Which method? All classifiers of the library and four of scikit-learn's on tables and images.

- ``data``: tables that scikit-learn has, tables drawn by the program, images; splits, corruption.
- ``classifiers``: the presets, the baselines, and the small grids.
- ``cells``: one fit and prediction in a process of its own, within time and memory.
- ``study``: the runs; ``claims``: what has to hold; ``figures``: the tables.
"""

from reproduction.methods.figures import FIGURES

__all__ = ["FIGURES"]
