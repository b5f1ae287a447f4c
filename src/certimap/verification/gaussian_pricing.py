"""Pricing proofs of Gaussian clusters, searched again by the verifier's own branch and bound.

The proof covers a family of sets that holds all admitted ones: limits on the number of items become limits on weight,
which say less where weights differ. Soft links between groups enter as a linear bound,

    r [both in S] <= r ([one in S] + [other in S])/2  for r > 0,  <= 0  for r < 0 and where the two must be apart.

One search does both checks: if some set were above the price, the one of largest reduced value would pass all rules and
be handed back; so none is, and then the rules hold for all sets above the threshold, which are handed back as well.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError
from certimap.model.partition import Partition
from certimap.verification.gaussian_boxes import recorded_boxes
from certimap.verification.gaussian_cloud import whiten
from certimap.verification.gaussian_search import Family, Search
from certimap.verification.gaussian_values import ClusterValues
from certimap.verification.pricing import PriceClaim, PricingCheck, too_heavy
from certimap.verification.proof import Effort, Replay
from certimap.verification.subsets import GroupRules

WHOLE_WORK = 3e7  # solver's nodes times groups that are searched again in any case: some ten seconds
OVERHEAD = 20  # groups' worth of a node's own cost
PATIENCE = 50  # times the solver's nodes that a replay may take, and
LEAST_PATIENCE = 200_000

_UNCONFIRMED = "the price of a leaf cannot be confirmed"


def recorded_nodes(record: Mapping[str, object]) -> int:
    """The solver's nodes, as the certificate states them."""
    try:
        return int(np.asarray(record["nodes"], dtype=np.int64).sum())
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"the pricing of a leaf is malformed: {error}") from None


class GaussianPricing(PricingCheck):
    """For a `gaussian_clusters` factor; `solver_nodes` are those of all leaves, which decides about sampling."""

    def __init__(
        self, factor: Partition, rewards: Sequence[tuple[int, int, float]], effort: Effort, solver_nodes: int
    ) -> None:
        self._values = ClusterValues(factor.arrays(), factor.n_clusters, rewards)
        self._lightest = sorted(self._values.weights)
        self._rng = np.random.default_rng(effort.seed)
        work = float(solver_nodes) * (len(factor.items) + OVERHEAD)
        self._share = 1.0 if effort.full else min(1.0, WHOLE_WORK / max(1.0, work))
        self._replay = Replay(0, 0, 0, 0, 0, effort.seed)

    @property
    def replay(self) -> Replay:
        return self._replay

    def value(self, members: Collection[int]) -> tuple[Fraction, Fraction]:
        return self._values.value(members)

    def check_price(self, claim: PriceClaim) -> None:
        self._search(claim, claim.price)

    def columns_above(self, claim: PriceClaim, threshold: Fraction) -> set[frozenset[int]]:
        return self._search(claim, min(threshold, claim.price))

    # ------------------------------------------------------------------------------------------------------- internal
    def _search(self, claim: PriceClaim, threshold: Fraction) -> set[frozenset[int]]:
        rules, n_groups = claim.rules, len(claim.rules.groups)
        low, high = self._weight_limits(rules)
        if low <= 0 and self._values.value(())[1] > claim.price:
            raise too_heavy()
        prices = self._prices(claim)
        cloud = whiten(self._values, rules.groups, prices, np.asarray(claim.record.get("rotation", 0.0), dtype=float))
        boxes, nodes = recorded_boxes(claim.record, cloud, low, high)
        target = _below(threshold - cloud.level - cloud.error)
        slack = float(claim.price - threshold + 2 * cloud.error) * (1.0 + 1e-12)
        apart = np.zeros((n_groups, n_groups), dtype=bool)
        for a, b in rules.apart:
            apart[a, b] = apart[b, a] = True
        sets = _Found(self._values, claim, prices, threshold)
        search = Search(cloud, Family(low, high, apart), target, slack, sets.add)
        chosen = self._sample(nodes)
        limit = max(LEAST_PATIENCE, PATIENCE * int(nodes[chosen].sum()))
        search.run(boxes.take(chosen), limit)
        self._count(nodes, chosen, search.nodes)
        return sets.listed

    def _weight_limits(self, rules: GroupRules) -> tuple[float, float]:
        """What the limits on the number of items imply for the weight of a set, rounded outwards."""
        low, high = sum(self._lightest[: rules.low]), sum(self._lightest[::-1][: rules.high])
        room = 0.0 if all(w == 1 for w in self._lightest) else 1e-10
        return float(low) * (1.0 - room), float(high) * (1.0 + room)

    def _prices(self, claim: PriceClaim) -> list[Fraction]:
        """Of the groups, soft links included."""
        prices = [sum((claim.multipliers[i] for i in g), Fraction(0)) for g in claim.rules.groups]
        group = {i: g for g, members in enumerate(claim.rules.groups) for i in members}
        apart = set(claim.rules.apart)
        for i, j, r in self._values.rewards:
            a, b = sorted((group[i], group[j]))
            if a == b:
                prices[a] -= r
            elif r > 0 and (a, b) not in apart:
                prices[a] -= r / 2
                prices[b] -= r / 2
        return prices

    def _sample(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """All boxes, or boxes drawn uniformly until they hold this check's share of the solver's nodes."""
        if self._share >= 1.0 or len(nodes) <= 1:
            return np.arange(len(nodes))
        order = self._rng.permutation(len(nodes))
        held = np.cumsum(nodes[order])
        return np.sort(order[: 1 + int(np.searchsorted(held, self._share * held[-1]))])

    def _count(self, nodes: NDArray[np.int64], chosen: NDArray[np.int64], visited: int) -> None:
        done = self._replay
        self._replay = replace(
            done,
            boxes=done.boxes + len(nodes),
            replayed=done.replayed + len(chosen),
            nodes=done.nodes + int(nodes.sum()),
            replayed_nodes=done.replayed_nodes + int(nodes[chosen].sum()),
            visited=done.visited + visited,
        )


class _Found:
    """Sets that a search hands back: none may refute the price, the admitted ones above the threshold are listed."""

    def __init__(
        self, values: ClusterValues, claim: PriceClaim, prices: Sequence[Fraction], threshold: Fraction
    ) -> None:
        self._values, self._claim, self._prices, self._threshold = values, claim, prices, threshold
        self._seen: set[bytes] = set()
        self.listed: set[frozenset[int]] = set()

    def add(self, chosen: NDArray[np.bool_]) -> None:
        key = np.packbits(chosen).tobytes()
        if key in self._seen:
            return
        self._seen.add(key)
        rules: GroupRules = self._claim.rules
        groups = np.flatnonzero(chosen).tolist()
        members = [i for g in groups for i in rules.groups[g]]
        value = self._values.value(members)[1]
        reduced = value - sum((self._claim.multipliers[i] for i in members), Fraction(0))
        admitted = rules.admit(chosen.tolist())
        if admitted and reduced > self._claim.price:
            raise too_heavy()
        bound = value - self._values.reward(members) - sum((self._prices[g] for g in groups), Fraction(0))
        if bound > self._claim.price:
            raise CertificateError(f"{_UNCONFIRMED}: it bounds the admitted sets only, not the family of its proof")
        if admitted and reduced > self._threshold:
            self.listed.add(frozenset(members))


def _below(value: Fraction) -> float:
    """A float that is not above the fraction."""
    rounded = float(value)
    return rounded if Fraction(rounded) <= value else math.nextafter(rounded, -math.inf)
