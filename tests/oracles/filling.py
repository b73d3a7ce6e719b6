"""Missing values from the nearest rows, one entry at a time."""

import numpy as np


def distance(x, y, scales):
    """Mean over the entries that both have of squared differences in units of the columns'."""
    terms = [
        ((a - b) / scale) ** 2
        for a, b, scale in zip(x, y, scales, strict=True)
        if not np.isnan(a) and not np.isnan(b) and scale > 0
    ]
    return sum(terms) / len(terms) if terms else None


def filled_from_nearest(train, rows, n_neighbors):
    """Return rows whose gaps hold means over the nearest training rows, or the medians."""
    columns = [[value for value in column if not np.isnan(value)] for column in train.T]
    medians = [np.median(column) if column else 0.0 for column in columns]
    scales = [np.std(column) if len(set(column)) > 1 else 0 for column in columns]
    result = rows.copy()
    for x, out in zip(rows, result, strict=True):
        far = [(distance(x, y, scales), i) for i, y in enumerate(train)]
        nearest = sorted(pair for pair in far if pair[0] is not None)[:n_neighbors]
        for j in range(len(x)):
            if np.isnan(x[j]):
                given = [train[i, j] for _, i in nearest if not np.isnan(train[i, j])]
                out[j] = sum(given) / len(given) if given else medians[j]
    return result
