"""Tables as the csv module and Python's own numbers read them, one cell at a time."""

import csv
import io
import re

import numpy as np

MISSING = {"", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "None"}
PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")


def naive_columns(text, delimiter):
    """Return the named columns of a CSV text whose cells are all plain numbers or missing."""
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    names, rows = [name.strip() for name in rows[0]], rows[1:]
    columns = {}
    for i, name in enumerate(names):
        cells = [row[i] for row in rows]
        if all(cell in MISSING or PLAIN.fullmatch(cell) for cell in cells):
            columns[name] = np.array([np.nan if c in MISSING else float(c) for c in cells])
    return columns
