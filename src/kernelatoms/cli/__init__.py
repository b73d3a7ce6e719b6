"""What the command line runs: parse, call the public API, show.

- ``demo``: arguments, progress and the final table of ``make demo``.
- ``digits``: the demo's study: learn, corrupt, classify, measure.
- ``digits_page``: the study's table and report.
"""
