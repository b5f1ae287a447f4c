"""Pricing proofs of Gaussian clusters, searched again by the verifier's own branch and bound.

The proof covers a family of sets that holds all admitted ones: limits on the number of items become limits on weight,
which say less where weights differ. Soft links between groups enter as a linear bound,

    r [both in S] <= r ([one in S] + [other in S])/2  for r > 0,  <= 0  for r < 0 and where the two must be apart.

One search does both checks: if some set were above the price, the one of largest reduced value would pass all rules and
be handed back; so none is, and then the rules hold for all sets above the threshold, which are handed back as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from certimap.model.partition import Partition
from certimap.verification.gaussian_boxes import recorded_boxes
from certimap.verification.gaussian_cloud import whiten
from certimap.verification.gaussian_search import Family, Search
from certimap.verification.gaussian_values import ClusterValues
from certimap.verification.pricing import PriceClaim, too_heavy
from certimap.verification.proof import Effort
from certimap.verification.replay import FoundSets, RepeatedPricing, Sampler, below, patience
from certimap.verification.subsets import GroupRules

WHOLE_WORK = 3e7  # solver's nodes times groups that are searched again in any case: some ten seconds
OVERHEAD = 20  # groups' worth of a node's own cost


class GaussianPricing(RepeatedPricing[ClusterValues]):
    """For a `gaussian_clusters` factor; `solver_nodes` are those of all leaves, which decides about sampling."""

    def __init__(
        self, factor: Partition, rewards: Sequence[tuple[int, int, float]], effort: Effort, solver_nodes: int
    ) -> None:
        values = ClusterValues(factor.arrays(), factor.n_clusters, rewards)
        self._lightest = sorted(values.weights)
        work = float(solver_nodes) * (len(factor.items) + OVERHEAD)
        super().__init__(values, Sampler(effort, WHOLE_WORK / max(1.0, work)))

    # ------------------------------------------------------------------------------------------------------- internal
    def _search(self, claim: PriceClaim, threshold: Fraction) -> set[frozenset[int]]:
        rules, n_groups = claim.rules, len(claim.rules.groups)
        low, high = self._weight_limits(rules)
        if low <= 0 and self._values.value(())[1] > claim.price:
            raise too_heavy()
        prices = self._prices(claim)
        cloud = whiten(self._values, rules.groups, prices, np.asarray(claim.record.get("rotation", 0.0), dtype=float))
        boxes, nodes = recorded_boxes(claim.record, cloud, low, high)
        target = below(threshold - cloud.level - cloud.error)
        slack = float(claim.price - threshold + 2 * cloud.error) * (1.0 + 1e-12)
        apart = np.zeros((n_groups, n_groups), dtype=bool)
        for a, b in rules.apart:
            apart[a, b] = apart[b, a] = True

        def reduced(groups: Sequence[int], members: Sequence[int]) -> Fraction:
            """What the search bounds: soft links enter through the prices."""
            value = self._values.value(members)[1] - self._values.reward(members)
            return value - sum((prices[g] for g in groups), Fraction(0))

        sets = FoundSets(claim, threshold, lambda members: self._values.value(members)[1], reduced)
        search = Search(cloud, Family(low, high, apart), target, slack, sets.add)
        chosen = self._sampler.draw(nodes)
        search.run(boxes.take(chosen), patience(nodes, chosen))
        self._sampler.count(nodes, chosen, search.nodes)
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
