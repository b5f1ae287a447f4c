"""The claim that certain partitions are the best ones: no other is worth more than a stated number.

With a budget B of slack, what offset + sum lambda + K P exceeds that number by, the clusters of a better partition have
slacks P - (c(S) - lambda(S)) that add up to less than B, and all but one have less than B/2. Every leaf of the proof is
searched again for the sets of less than B/2, and all partitions of slack below B that disjoint ones of them make with
the rest have to be ranked. Values are exact up to their logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from certimap.certificate import CertificateError
from certimap.model.model import Model
from certimap.verification.exact_cover import partitions_below
from certimap.verification.partition_problem import PartitionProblem
from certimap.verification.pricing import PriceClaim, PricingCheck, too_heavy
from certimap.verification.proof import ALLOWANCE, RankingProof

MAX_COVER_STEPS = 2_000_000
Parts = frozenset[frozenset[int]]


def slacks_of(
    pricing: PricingCheck, priced: PriceClaim, sets: Iterable[frozenset[int]]
) -> dict[frozenset[int], Fraction]:
    """P - (c(S) - lambda(S)), rounded down, of the nonempty sets."""
    slacks = {items: priced.price - pricing.reduced(items, priced) for items in sets if items}
    if min(slacks.values(), default=Fraction(0)) < 0:
        raise too_heavy()
    return slacks


def empty_slack(pricing: PricingCheck, priced: PriceClaim) -> Fraction | None:
    """Of an empty cluster; None where the sizes forbid it."""
    return None if priced.rules.low > 0 else priced.price - pricing.value(())[1]


def check_ranking(
    record: Mapping[str, Any],
    model: Model,
    problem: PartitionProblem,
    pricing: PricingCheck,
    leaves: Iterable[tuple[PriceClaim, Fraction]],
) -> RankingProof:
    """Check the ranked partitions and their values, and that every leaf holds no other; leaves with their totals."""
    try:
        labels = np.asarray(record["labels"], dtype=np.int64).reshape(-1, problem.n_items)
        values = [float(v) for v in record["values"]]
        others = float(record["others"])
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"the ranking is malformed: {error}") from None
    if len(values) != len(labels) or not math.isfinite(others):
        raise CertificateError("the ranking is malformed: it needs a value for every partition and a bound on others")
    ranked = [_parts(row, model, problem) for row in labels]
    if len(set(ranked)) < len(ranked):
        raise CertificateError("the ranking names a partition twice")
    derived = [
        float(sum((pricing.value(part)[0] for part in _padded(parts, problem)), problem.offset)) for parts in ranked
    ]
    for value, claimed in zip(derived, values, strict=True):
        if not abs(value - claimed) <= ALLOWANCE * max(1.0, abs(value)):
            raise CertificateError(f"a ranked partition has value {value!r}, claimed is {claimed!r}")
    if any(later > earlier for earlier, later in pairwise(values)):
        raise CertificateError("the ranking is not in the order of its values")
    bound = Fraction(others) + Fraction(0.5 * ALLOWANCE * max(1.0, abs(others)))
    known = set(ranked)
    for priced, total in leaves:
        budget = total - bound
        if budget <= 0:
            pricing.check_price(priced)
            continue
        for parts in _partitions(problem, pricing, priced, budget):
            if parts not in known:
                raise CertificateError(f"a partition that is not ranked is worth more than {others!r}")
    return RankingProof(tuple(derived), float(bound))


def _partitions(
    problem: PartitionProblem, pricing: PricingCheck, priced: PriceClaim, budget: Fraction
) -> Iterator[Parts]:
    """All admitted partitions with a total slack below the budget."""
    rules = priced.rules

    def slack(items: frozenset[int]) -> Fraction | None:
        if not rules.admit([group[0] in items for group in rules.groups]):
            return None
        return priced.price - pricing.reduced(items, priced)

    slacks = slacks_of(pricing, priced, pricing.columns_above(priced, priced.price - budget / 2))
    empty = empty_slack(pricing, priced)
    return partitions_below(slacks, problem.n_items, problem.n_clusters, empty, budget, slack, MAX_COVER_STEPS)


def _parts(row: np.ndarray, model: Model, problem: PartitionProblem) -> Parts:
    if row.min() < 0 or row.max() >= problem.n_clusters:
        raise CertificateError(f"a ranked partition has labels outside 0..{problem.n_clusters - 1}")
    values = {z.name: int(k) for z, k in zip(problem.factor.items, row.tolist(), strict=True)}
    violated = model.violated(model.pack(values))
    if violated:
        raise CertificateError(f"a ranked partition violates {', '.join(violated[:5])}")
    return frozenset(frozenset(np.flatnonzero(row == k).tolist()) for k in np.unique(row))


def _padded(parts: Parts, problem: PartitionProblem) -> list[frozenset[int]]:
    """With the empty clusters."""
    return [*parts, *[frozenset[int]()] * (problem.n_clusters - len(parts))]
