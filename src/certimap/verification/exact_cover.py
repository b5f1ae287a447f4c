"""Exact set partitioning over a short list of sets, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from certimap.certificate import CertificateError


def lightest_cover(
    slacks: Mapping[frozenset[int], Fraction],
    n_items: int,
    n_clusters: int,
    empty: Fraction | None,
    budget: Fraction,
    max_steps: int,
) -> Fraction | None:
    """Total slack of some `n_clusters` disjoint sets that cover all items with less than the budget; None if none do.

    `empty` is the slack of an empty cluster (None: there may be none). `CertificateError` if the search takes too long.
    """
    fractions = [*slacks.values(), budget, *([] if empty is None else [empty])]
    scale = math.lcm(*(f.denominator for f in fractions))
    limit = int(budget * scale)
    spare = None if empty is None else int(empty * scale)
    weighted = sorted((int(s * scale), sum(1 << i for i in items)) for items, s in slacks.items())
    holders = [[(s, bits) for s, bits in weighted if bits >> i & 1] for i in range(n_items)]
    everything = (1 << n_items) - 1
    least = min([*(s for s, _ in weighted[:1]), *([] if spare is None else [spare])], default=0)
    stack = [(0, 0, n_clusters)]
    steps = 0
    while stack:
        covered, spent, left = stack.pop()
        steps += 1
        if steps > max_steps:
            raise CertificateError("the search over a leaf's columns is too long to be checked")
        if covered == everything:
            rest = 0 if left == 0 else None if spare is None else left * spare
            if rest is not None and spent + rest < limit:
                return Fraction(spent + rest, scale)
            continue
        if left == 0:
            continue
        options = min((holders[i] for i in range(n_items) if not covered >> i & 1), key=len)
        for slack, bits in options:
            if spent + slack + (left - 1) * least >= limit:
                break
            if not covered & bits:
                stack.append((covered | bits, spent + slack, left - 1))
    return None
