"""Pricing proofs of topics, searched again by the verifier's own branch and bound over token counts.

The proof covers the sets that respect the pairs apart and the number of documents; limits on the number of cells are
left out, so that it may hold more than the admitted sets. One search does both checks: if some set were above the
price, the one of largest reduced value would pass all rules and be handed back; so none is, and then the rules hold for
all sets above the threshold, which are handed back as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from certimap.certificate import CertificateError
from certimap.model.partition import Partition
from certimap.verification.pricing import PriceClaim
from certimap.verification.proof import Effort
from certimap.verification.replay import FoundSets, RepeatedPricing, Sampler, below, patience
from certimap.verification.topic_boxes import recorded_boxes, root_box
from certimap.verification.topic_instance import instance_of
from certimap.verification.topic_search import Search
from certimap.verification.topic_values import TopicValues

WHOLE_WORK = 3e6  # solver's nodes times cells that are searched again in any case: some ten seconds


class TopicPricing(RepeatedPricing[TopicValues]):
    """For a `topic_clusters` factor; `solver_nodes` are those of all leaves, which decides about sampling."""

    def __init__(
        self, factor: Partition, rewards: Sequence[tuple[int, int, float]], effort: Effort, solver_nodes: int
    ) -> None:
        if rewards:
            raise CertificateError("topics take no soft links between cells")
        values = TopicValues(factor.arrays())
        if len(factor.items) != len(values.count) + values.n_anchors:
            raise CertificateError("the topics have items that are neither cells nor anchors")
        super().__init__(values, Sampler(effort, WHOLE_WORK / max(1.0, float(solver_nodes) * len(factor.items))))

    def excess(self, labels: Sequence[int]) -> Fraction:
        return self._values.excess(labels)

    def _search(self, claim: PriceClaim, threshold: Fraction) -> set[frozenset[int]]:
        prices = [sum((claim.multipliers[i] for i in g), Fraction(0)) for g in claim.rules.groups]
        instance = instance_of(self._values, claim.rules, prices)
        root = root_box(instance)
        boxes, nodes = recorded_boxes(claim.record, instance, root)

        def reduced(groups: Sequence[int], members: Sequence[int]) -> Fraction:
            return self._values.value(members)[1] - sum((prices[g] for g in groups), Fraction(0))

        sets = FoundSets(claim, threshold, lambda members: self._values.value(members)[1], reduced)
        slack = float(claim.price - threshold) * (1.0 + 1e-12)
        search = Search(instance, below(threshold), slack, sets.add)
        search.prepare(root)
        boxes.weight[:], boxes.t[:] = root.weight, root.t
        chosen = self._sampler.draw(nodes)
        search.run(boxes.take(chosen), patience(nodes, chosen))
        self._sampler.count(nodes, chosen, search.nodes)
        return sets.listed
