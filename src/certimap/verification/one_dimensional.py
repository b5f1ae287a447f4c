"""Exact pricing of one-dimensional clusters, in whole numbers.

Every float is a fraction with a power of two below. With all data multiplied up to integers, 2v (c(S) - lambda(S)) is

    R(S) = max over m of sum_{g in S} W_g(m),   W_g(m) = -sum_{i in g} (y_i - m)^2 - 2v lambda_g,

and for every m within h of the mean of S:  R(S) <= sum_{g in S} [W_g(m) + n_g h^2]. Intervals of means are halved until
this integer problem shows what is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from certimap.certificate import CertificateError
from certimap.model.partition import OneDimensionalClusters
from certimap.verification.pricing import PriceClaim, PricingCheck, too_heavy
from certimap.verification.subsets import GroupRules, Weighted, find_heavier, sets_above

FINER = 80  # bits below the data's own resolution that interval ends may use
MAX_INTERVALS = 200_000


@dataclass(frozen=True)
class Scaled:
    """The pricing problem of one leaf in integers: y in units of 2^-bits, values (times 2v) in units of 2^(-2 bits)."""

    rules: GroupRules
    bits: int
    y: list[int]
    size: list[int]
    total: list[int]  # per group: sum of y
    square: list[int]  # per group: sum of y^2
    price: list[int]  # per group: 2v (lambda_g - rewards within the group)
    rewards: list[tuple[int, int, int]]

    def at(self, m: int, reach: int) -> Weighted:
        """W_g(m) + n_g reach^2."""
        weights = [
            n * (reach * reach - m * m) + 2 * m * s - q - p
            for n, s, q, p in zip(self.size, self.total, self.square, self.price, strict=True)
        ]
        return Weighted(self.rules, weights, self.rewards)

    def reduced(self, chosen: Sequence[bool]) -> int:
        """R(S), rounded up to the next integer."""
        members = [g for g, x in enumerate(chosen) if x]
        n = sum(self.size[g] for g in members)
        if n == 0:
            return 0
        total = sum(self.total[g] for g in members)
        scatter = sum(self.square[g] for g in members) * n - total * total
        value = -(scatter // n) - sum(self.price[g] for g in members)
        return value + sum(r for a, b, r in self.rewards if chosen[a] and chosen[b])


class OneDimensionalPricing(PricingCheck):
    """For a `clusters_1d` factor with soft links (item, item, weight)."""

    def __init__(self, factor: OneDimensionalClusters, rewards: Sequence[tuple[int, int, float]]) -> None:
        self._y = [Fraction(float(v)) for v in factor.y]
        self._double = 2 * Fraction(factor.variance)
        self._rewards = [(i, j, Fraction(r)) for i, j, r in rewards]

    def value(self, members: Collection[int]) -> tuple[Fraction, Fraction]:
        """c(S) itself."""
        points = [self._y[i] for i in members]
        total, count = sum(points, Fraction(0)), max(len(points), 1)
        scatter = sum((y * y for y in points), Fraction(0)) - total * total / count
        chosen = set(members)
        reward = sum((r for i, j, r in self._rewards if i in chosen and j in chosen), Fraction(0))
        value = reward - scatter / self._double
        return value, value

    def check_price(self, claim: PriceClaim) -> None:
        scaled, (limit,) = self._scale(claim.multipliers, claim.rules, [claim.price])
        stack = [(min(scaled.y), max(scaled.y))]
        seen = 0
        while stack:
            a, b = stack.pop()
            m = (a + b) // 2
            heavier = find_heavier(scaled.at(m, max(b - m, m - a)), limit)
            if heavier is None:
                continue
            seen += 1
            if scaled.reduced(heavier) > limit:
                raise too_heavy()
            if b - a <= 1 or seen > MAX_INTERVALS:
                raise CertificateError(
                    "the price of a leaf cannot be confirmed: it has no margin above the best cluster"
                )
            stack.extend([(a, m), (m, b)])

    def columns_above(self, claim: PriceClaim, threshold: Fraction) -> set[frozenset[int]]:
        self.check_price(claim)
        # The empty set would pass every threshold below 0 on every interval.
        nonempty = replace(claim.rules, low=max(claim.rules.low, 1))
        scaled, (top, limit) = self._scale(claim.multipliers, nonempty, [claim.price, threshold])
        resolution = max((top - limit) // 4, 1)
        found: set[frozenset[int]] = set()
        stack = [(min(scaled.y), max(scaled.y))]
        seen = 0
        while stack:
            a, b = stack.pop()
            m = (a + b) // 2
            reach = max(b - m, m - a)
            problem = scaled.at(m, reach)
            seen += 1
            if seen > MAX_INTERVALS:
                raise CertificateError("the list of columns of a leaf is too long to be checked")
            if find_heavier(problem, limit) is None:
                continue
            if sum(scaled.size) * reach * reach > resolution and b - a > 1:
                stack.extend([(a, m), (m, b)])
                continue
            for chosen in sets_above(problem, limit):
                if scaled.reduced(chosen) > limit:
                    found.add(frozenset(i for g, x in enumerate(chosen) if x for i in nonempty.groups[g]))
        return found

    def _scale(
        self, multipliers: Sequence[Fraction], rules: GroupRules, values: Sequence[Fraction]
    ) -> tuple[Scaled, list[int]]:
        """The integers of a leaf; `values` are rounded down, which makes every claim harder to confirm."""
        group = {i: g for g, members in enumerate(rules.groups) for i in members}
        price = [sum((multipliers[i] for i in members), Fraction(0)) for members in rules.groups]
        rewards: list[tuple[int, int, Fraction]] = []
        for i, j, r in self._rewards:
            if group[i] == group[j]:
                price[group[i]] -= r
            else:
                rewards.append((group[i], group[j], r * self._double))
        price = [p * self._double for p in price]
        plain = max(_bits(v) for v in self._y)
        bits = max(plain, *(-(-_bits(v) // 2) for v in [*price, *(r for _, _, r in rewards)]), 0) + FINER
        fine, unit = 1 << bits, 1 << (2 * bits)
        y = [int(v * fine) for v in self._y]
        scaled = Scaled(
            rules=rules,
            bits=bits,
            y=y,
            size=[len(members) for members in rules.groups],
            total=[sum(y[i] for i in members) for members in rules.groups],
            square=[sum(y[i] * y[i] for i in members) for members in rules.groups],
            price=[int(p * unit) for p in price],
            rewards=[(a, b, int(r * unit)) for a, b, r in rewards],
        )
        return scaled, [math.floor(v * self._double * unit) for v in values]


def _bits(value: Fraction) -> int:
    """k such that value * 2^k is a whole number."""
    return value.denominator.bit_length() - 1
