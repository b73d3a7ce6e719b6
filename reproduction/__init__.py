"""The experiments of five papers, run again: what was reported, how we run it, what we get.

``python -m reproduction --list`` lists the figures. This folder is a client of kernelatoms: it
imports public names only, and is no part of the installed package.

- ``__main__``, ``command``: the command line; ``terminal``: messages, progress bars and tables.
- ``figures``: the table ``FIGURES`` of all figures.
- ``study``: a grid of settings and seeds, each measured once: the runs behind figures.
- ``store``: one JSON line per (setting, seed), so that a stopped study continues where it stopped.
- ``circumstances``: what a record says about its run: commit, machine, threads, time.
- ``check``: repeats stored runs and lists the differences.
- ``figure``: what a paper showed of a study: reported numbers, our curves, claims to check.
- ``page``: figures as tables, plots and one HTML page; ``drawing``, ``dots``: the plots.
- ``corruption``: noise and missing pixels, the same for every method.
- ``authors_data``: data sets in the layout of their authors; ``authors_readers``: reads the files.
- ``codec/``: our codec beside SZ3, ZFP, PCA and SVD, and the FKSC paper's file in real bytes.
- ``fksc/``: *A novel kernel sparse coding method with a two-stage acceleration strategy*.
- ``kcrc/``: Liu, Yu, Lu, Wen, Li and Zou, *KCRC-LCD*, 2015.
- ``kdl/``: Nguyen, Patel, Nasrabadi and Chellappa, *Kernel dictionary learning*, 2012.
- ``ksad/``: Chhabra, Wallace and Hopgood, *Improved image discrimination using fast non-linear
  orthogonal dictionary learning* (K-SAD).
- ``lkdl/``: Golts and Elad, *Linearized kernel dictionary learning*, 2016.
- ``methods/``: which method? All classifiers, and scikit-learn's, on tables and images.
"""
