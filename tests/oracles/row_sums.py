"""The sum of many results along a tree of fixed shape."""

import numpy as np


def tree_sum(results, fan_in=16):
    """Add sixteen neighbours from left to right, then sixteen of these sums, and so on."""
    results = list(results)
    while len(results) > 1:
        groups = [results[i : i + fan_in] for i in range(0, len(results), fan_in)]
        results = []
        for group in groups:
            total = np.array(group[0], copy=True)
            for result in group[1:]:
                total = total + result
            results.append(total)
    return results[0]
