"""The proof of branch-and-price: a tree of pairs together or apart, and an argument for every leaf.

With exact rational arithmetic where c(S) allows it, and outward rounding where not, per leaf and its rules:

- bound:         no admitted set has c(S) - lambda(S) > P, so partitions are worth <= offset + sum lambda + K P;
- columns:       besides, every set that a partition worth more than U may contain is found again and is listed, and no
                 K of the listed sets partition the items with a value above U;
- infeasible:    no admitted set has -lambda(S) > P, yet sum lambda + K P < 0: there is no partition;
- contradiction: a tied group is kept apart within itself or too large, or no set is admitted at all.

Where the certificate ranks the best partitions, all leaves are searched once more for others: see `ranking`. Where it
claims that none with a few moved points is better, these are compared: see `neighbourhood`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from certimap.certificate import Certificate, CertificateError
from certimap.model.model import Model
from certimap.model.partition import OneDimensionalClusters
from certimap.verification.exact_cover import lightest_cover
from certimap.verification.gaussian_pricing import GaussianPricing
from certimap.verification.neighbourhood import check_neighbourhood
from certimap.verification.one_dimensional import OneDimensionalPricing
from certimap.verification.partition_problem import PartitionProblem, restate_partition
from certimap.verification.pricing import PriceClaim, PricingCheck
from certimap.verification.proof import ALLOWANCE, Effort, Proof, RankingProof, Replay
from certimap.verification.ranking import MAX_COVER_STEPS, check_ranking, empty_slack, slacks_of
from certimap.verification.replay import recorded_nodes
from certimap.verification.subsets import GroupRules, Weighted, find_heavier
from certimap.verification.topic_pricing import TopicPricing

RANKING, NEIGHBOURHOOD = "ranking", "neighbourhood"  # where the certificate's details claim one


def check_partition(certificate: Certificate, model: Model, effort: Effort) -> Proof:
    """Check coverage of the tree and every leaf's argument; the largest leaf bound is the proof's."""
    problem = restate_partition(model)
    try:
        tree = np.asarray(certificate.details["tree"], dtype=np.int64).reshape(-1, 4)
        leaves = {int(leaf["node"]): leaf for leaf in certificate.details["leaves"]}
        count = len(certificate.details["leaves"])
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"the branch-and-price proof is malformed: {error}") from None
    inner = _check_tree(tree, problem)
    expected = set(range(len(tree))) - inner
    if set(leaves) != expected or count != len(expected):
        raise CertificateError("the leaves of the proof do not cover the tree")
    pricing = _pricing(problem, leaves.values(), effort)
    checker = _Leaves(problem, pricing)
    bound = max(checker.bound(leaves[node], tree, node) for node in sorted(expected))
    ranking: RankingProof | None = None
    if RANKING in certificate.details:
        ranking = check_ranking(certificate.details[RANKING], model, problem, pricing, checker.priced)
    trusted: tuple[str, ...] = ()
    moves = 0
    if NEIGHBOURHOOD in certificate.details:
        record, labels = certificate.details[NEIGHBOURHOOD], _labels(certificate, model, problem)
        claimed, moves = check_neighbourhood(record, problem, pricing, labels, effort.full)
        trusted = _not_compared(claimed, moves)
    replay, value = pricing.replay, _value(certificate, model, problem, pricing)
    return Proof(bound, len(tree), len(leaves), 0, _rests_on(replay) + trusted, value, replay, ranking, moves)


def _check_tree(tree: np.ndarray, problem: PartitionProblem) -> set[int]:
    """Every split node has exactly two children, with one pair together and apart; returns the split nodes."""
    if len(tree) == 0 or tree[0, 0] != -1:
        raise CertificateError("the tree of the proof has no root")
    children: dict[int, list[tuple[int, int, int]]] = {}
    for node, (parent, i, j, side) in enumerate(tree.tolist()):
        if node == 0:
            continue
        if not (0 <= parent < node and 0 <= i < problem.n_items and 0 <= j < problem.n_items and i != j):
            raise CertificateError(f"node {node} of the proof is malformed")
        children.setdefault(parent, []).append((i, j, side))
    for node, pairs in children.items():
        if len(pairs) != 2 or pairs[0][:2] != pairs[1][:2] or {pairs[0][2], pairs[1][2]} != {0, 1}:
            raise CertificateError(f"node {node}: its children do not cover it")
    return set(children)


class _Leaves:
    def __init__(self, problem: PartitionProblem, pricing: PricingCheck) -> None:
        self._problem = problem
        self._pricing = pricing
        self.priced: list[tuple[PriceClaim, Fraction]] = []  # pricing claims met, with offset + sum lambda + K P

    def bound(self, leaf: Mapping[str, Any], tree: np.ndarray, node: int) -> float:
        """The bound that the leaf's argument proves."""
        together, apart = _path(tree, node)
        rules = self._problem.rules(together, apart)
        try:
            kind = leaf["kind"]
            if kind == "contradiction":
                _check_contradiction(rules, node)
                return -math.inf
            multipliers = [Fraction(float(v)) for v in leaf["multipliers"]]
            price, claim = Fraction(float(leaf["price"])), float(leaf["bound"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CertificateError(f"leaf {node} is malformed: {error}") from None
        if len(multipliers) != self._problem.n_items:
            raise CertificateError(f"leaf {node} has {len(multipliers)} multipliers")
        total = sum(multipliers, Fraction(0)) + self._problem.n_clusters * price
        if kind == "infeasible":
            self._check_infeasible(rules, multipliers, price, total, node)
            return -math.inf
        priced = PriceClaim(multipliers, rules, price, leaf.get("pricing", {}))
        total += self._problem.offset
        self.priced.append((priced, total))
        if kind == "bound":
            self._pricing.check_price(priced)
            return _up(total)
        if kind == "columns":
            return self._columns_bound(priced, total, claim, _columns(leaf, node), node)
        raise CertificateError(f"leaf {node} has an unknown argument {kind!r}")

    def _columns_bound(
        self, priced: PriceClaim, total: Fraction, claim: float, listed: set[frozenset[int]], node: int
    ) -> float:
        """Half the allowance above the claim: float64 puts no sharper line between sets that matter and others.

        A partition worth more than that leaves less than `budget` of slack to its clusters together.
        """
        if not math.isfinite(claim):
            raise CertificateError(f"leaf {node} claims {claim!r}")
        bound = Fraction(claim) + Fraction(0.5 * ALLOWANCE * max(1.0, abs(claim)))
        budget, price = total - bound, priced.price
        if budget <= 0:
            self._pricing.check_price(priced)
            return _up(bound)
        if not listed.issuperset(self._pricing.columns_above(priced, price - budget)):
            raise CertificateError(f"leaf {node}: a column that a better partition may contain is not listed")
        slacks, empty = slacks_of(self._pricing, priced, listed), empty_slack(self._pricing, priced)
        lightest = lightest_cover(
            slacks, self._problem.n_items, self._problem.n_clusters, empty, budget, MAX_COVER_STEPS
        )
        if lightest is not None:
            raise CertificateError(f"leaf {node}: a partition of its columns is worth more than {claim!r}")
        return _up(bound)

    def _check_infeasible(
        self, rules: GroupRules, multipliers: Sequence[Fraction], price: Fraction, total: Fraction, node: int
    ) -> None:
        scale = math.lcm(*(v.denominator for v in (*multipliers, price)))
        weights = [-int(sum((multipliers[i] for i in g), Fraction(0)) * scale) for g in rules.groups]
        if total >= 0 or find_heavier(Weighted(rules, weights), int(price * scale)) is not None:
            raise CertificateError(f"leaf {node}: its multipliers do not prove that no partition exists")


def _pricing(problem: PartitionProblem, leaves: Iterable[Mapping[str, Any]], effort: Effort) -> PricingCheck:
    factor = problem.factor
    if isinstance(factor, OneDimensionalClusters):
        return OneDimensionalPricing(factor, problem.rewards)
    searched: Mapping[str, type[GaussianPricing | TopicPricing]] = {
        "gaussian_clusters": GaussianPricing,
        "topic_clusters": TopicPricing,
    }
    if factor.kind not in searched:
        raise CertificateError(f"no check is known for partitions of kind {factor.kind!r}")
    nodes = sum(recorded_nodes(leaf["pricing"]) for leaf in leaves if leaf.get("pricing"))
    return searched[factor.kind](factor, problem.rewards, effort, nodes)


def _value(certificate: Certificate, model: Model, problem: PartitionProblem, pricing: PricingCheck) -> float | None:
    """The value of the certificate's point, rounded down; None without a point."""
    if certificate.assignment is None:
        return None
    labels = _labels(certificate, model, problem)
    clusters = (np.flatnonzero(labels == k).tolist() for k in range(problem.n_clusters))
    excess = pricing.excess(labels.tolist())
    return -_up(excess - sum((pricing.value(members)[0] for members in clusters), problem.offset))


def _labels(certificate: Certificate, model: Model, problem: PartitionProblem) -> np.ndarray:
    if certificate.assignment is None:
        raise CertificateError("a neighbourhood is claimed without a point")
    values = model.flatten(certificate.assignment)
    return np.array([int(values[z.name]) for z in problem.factor.items])


def _not_compared(claimed: int, compared: int) -> tuple[str, ...]:
    if compared == claimed:
        return ()
    return (
        f"neighbourhood: clusterings with up to {compared} moved points were compared; for more, up to {claimed}, the "
        "solver's search is believed",
    )


def _rests_on(replay: Replay | None) -> tuple[str, ...]:
    if replay is None or replay.whole:
        return ()
    left = replay.boxes - replay.replayed
    return (
        f"pricing: {left} of {replay.boxes} recorded boxes, {1.0 - replay.share:.2%} of the solver's nodes, were not "
        f"searched again (sample drawn with seed {replay.seed}); for these the solver's kernel is believed",
    )


def _check_contradiction(rules: GroupRules, node: int) -> None:
    if any(a == b for a, b in rules.apart) or max(rules.sizes) > rules.high:
        return
    if find_heavier(Weighted(rules, [0] * len(rules.groups)), -1) is not None:
        raise CertificateError(f"leaf {node}: its pairs do not contradict each other")


def _columns(leaf: Mapping[str, Any], node: int) -> set[frozenset[int]]:
    try:
        return {frozenset(np.flatnonzero(row).tolist()) for row in np.atleast_2d(leaf["columns"])}
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"leaf {node} is malformed: {error}") from None


def _path(tree: np.ndarray, node: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The pairs together and apart on the way from the root."""
    pairs: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    while node != 0:
        parent, i, j, side = tree[node].tolist()
        pairs[0 if side else 1].append((i, j))
        node = parent
    return pairs


def _up(value: Fraction) -> float:
    """The smallest float that is not below the fraction."""
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else math.nextafter(rounded, math.inf)
