"""The claim that no clustering with at most r moved items is better, compared one by one in exact arithmetic.

An item is a point, or the points that constraints tie to it; items with a known label do not move. Values are exact but
for their logarithms. Where r moves give too many clusterings, those of as many moves as can be compared are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from certimap.certificate import CertificateError
from certimap.verification.partition_problem import PartitionProblem
from certimap.verification.pricing import PricingCheck
from certimap.verification.proof import ALLOWANCE
from certimap.verification.subsets import GroupRules

COMPARED, COMPARED_IN_FULL = 2_000, 500_000  # clusterings, some milliseconds each
Move = tuple[int, int]  # group, cluster


def check_neighbourhood(
    record: Mapping[str, Any], problem: PartitionProblem, pricing: PricingCheck, labels: np.ndarray, full: bool
) -> tuple[int, int]:
    """The number of moves that was claimed, and up to which all clusterings were compared."""
    try:
        moves, margin = int(record["moves"]), float(record["margin"])
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"the neighbourhood is malformed: {error}") from None
    if moves < 1 or not 0.0 <= margin < math.inf:
        raise CertificateError(f"the neighbourhood is malformed: {moves} moves, margin {margin!r}")
    around = _Neighbourhood(problem, pricing, labels)
    checked = 0
    limit = COMPARED_IN_FULL if full else COMPARED
    for count in range(1, moves + 1):
        limit -= around.size(count)
        if limit < 0:
            break
        if around.best_gain(count) > Fraction(margin) + Fraction(ALLOWANCE * max(1.0, abs(float(around.value)))):
            raise CertificateError(f"a clustering with {count} moved points is better by more than {margin!r}")
        checked = count
    return moves, checked


class _Neighbourhood:
    def __init__(self, problem: PartitionProblem, pricing: PricingCheck, labels: np.ndarray) -> None:
        self._pricing, self._clusters = pricing, problem.n_clusters
        self._rules: GroupRules = problem.rules((), ())
        self._home = [int(labels[group[0]]) for group in self._rules.groups]
        self._sets = [frozenset(np.flatnonzero(labels == k).tolist()) for k in range(problem.n_clusters)]
        self._movable = [g for g, group in enumerate(self._rules.groups) if not problem.labelled.intersection(group)]
        self._values: dict[frozenset[int], tuple[Fraction, Fraction]] = {}
        self.value = sum((self._value(items)[0] for items in self._sets), problem.offset)

    def size(self, count: int) -> int:
        """How many clusterings have so many moved groups."""
        return math.comb(len(self._movable), count) * int((self._clusters - 1) ** count)

    def best_gain(self, count: int) -> Fraction:
        """Not below what the best admitted clustering with so many moved groups is worth more."""
        best = Fraction(-1)
        for moves in self._moves(count):
            changed: dict[int, set[int]] = {}
            for g, k in moves:
                items = self._rules.groups[g]
                changed.setdefault(self._home[g], set(self._sets[self._home[g]])).difference_update(items)
                changed.setdefault(k, set(self._sets[k])).update(items)
            if all(self._admitted(items) for items in changed.values()):
                gain = sum(
                    (self._value(frozenset(s))[1] - self._value(self._sets[k])[0] for k, s in changed.items()),
                    Fraction(0),
                )
                best = max(best, gain)
        return best

    def _moves(self, count: int) -> Iterator[tuple[Move, ...]]:
        for groups in combinations(self._movable, count):
            elsewhere = ([k for k in range(self._clusters) if k != self._home[g]] for g in groups)
            for clusters in product(*elsewhere):
                yield tuple(zip(groups, clusters, strict=True))

    def _admitted(self, items: set[int]) -> bool:
        return self._rules.admit([group[0] in items for group in self._rules.groups])

    def _value(self, items: frozenset[int]) -> tuple[Fraction, Fraction]:
        if items not in self._values:
            self._values[items] = self._pricing.value(items)
        return self._values[items]
