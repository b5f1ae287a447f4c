"""Exact set partitioning over a list of sets, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
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


def partitions_below(
    slacks: Mapping[frozenset[int], Fraction],
    n_items: int,
    n_clusters: int,
    empty: Fraction | None,
    budget: Fraction,
    slack_of: Callable[[frozenset[int]], Fraction | None],
    max_steps: int,
) -> Iterator[frozenset[frozenset[int]]]:
    """All partitions into up to `n_clusters` sets with a total slack below the budget, given all sets below half of it.

    At most one set of such a partition is not given: the rest that disjoint given ones leave, whose slack `slack_of`
    tells (None: not admitted). `empty` is the slack of an empty cluster (None: there may be none).
    """
    ordered = sorted(slacks, key=lambda items: slacks[items])
    values = [slacks[items] for items in ordered]
    bits = [sum(1 << i for i in items) for items in ordered]
    place = {columns: at for at, columns in enumerate(bits)}
    everything = (1 << n_items) - 1
    stack: list[tuple[int, Fraction, tuple[int, ...]]] = [(0, Fraction(0), ())]
    steps = 0
    while stack:
        covered, spent, chosen = stack.pop()
        unused, first = n_clusters - 1 - len(chosen), chosen[-1] + 1 if chosen else 0
        if not unused or empty is not None:
            total, rest = spent + (unused * empty if unused and empty is not None else 0), everything & ~covered
            last = place.get(rest)
            left: Fraction | None = None
            if last is not None:
                # Named only as the last one of its partition, which would else come once for each of its sets.
                left = values[last] if last >= first else None
            elif 2 * total < budget:
                left = slack_of(frozenset(i for i in range(n_items) if rest >> i & 1))
            if left is not None and total + left < budget:
                remaining = frozenset(i for i in range(n_items) if rest >> i & 1)
                yield frozenset([*(ordered[at] for at in chosen), remaining])
        for at in range(first, len(values) if unused else first):
            steps += 1
            if steps > max_steps:
                raise CertificateError("the search for partitions is too long to be checked")
            if 2 * (spent + values[at]) >= budget and spent + 2 * values[at] >= budget:
                break
            if not covered & bits[at] and covered | bits[at] != everything:
                stack.append((covered | bits[at], spent + values[at], (*chosen, at)))
