"""Ryan-Foster branching: which two items to keep together in one child and apart in the other."""

from __future__ import annotations

import numpy as np

from certimap.oracles.partition import ColumnRules, Floats, Masks

WHOLE = 1e-4  # shares this close to 0 or 1 count as decided


def choose_pair(rules: ColumnRules, masks: Masks, shares: Floats) -> tuple[int, int] | None:
    """The pair of items whose share of common columns is nearest to one half; None if no pair is left to decide."""
    kept = shares > WHOLE
    by_group = masks[kept][:, rules.representative].astype(float)
    common = (by_group * shares[kept][:, None]).T @ by_group
    undecided = np.triu(np.ones_like(common, dtype=bool), 1)
    undecided[rules.apart[:, 0], rules.apart[:, 1]] = False
    if not undecided.any():
        return None
    distance = np.where(undecided, np.abs(common - 0.5), np.inf)
    g, h = np.unravel_index(int(distance.argmin()), distance.shape)
    return int(rules.representative[g]), int(rules.representative[h])
