"""The proof of branch-and-price: a tree of pairs together or apart, and an argument for every leaf.

With exact rational arithmetic, per leaf and its rules for admitted sets:

- bound:         no admitted set has c(S) - lambda(S) > P, so partitions are worth <= offset + sum lambda + K P;
- columns:       besides, every set that a partition worth more than U may contain is found again and is listed, and no
                 K of these sets partition the items with a value above U;
- infeasible:    no admitted set has -lambda(S) > P, yet sum lambda + K P < 0: there is no partition;
- contradiction: a tied group is kept apart within itself or too large, or no set is admitted at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from certimap.certificate import Certificate, CertificateError
from certimap.model.model import Model
from certimap.model.partition import OneDimensionalClusters
from certimap.verification.exact_cover import lightest_cover
from certimap.verification.one_dimensional import OneDimensionalPricing
from certimap.verification.partition_problem import PartitionProblem, restate_partition
from certimap.verification.proof import Proof
from certimap.verification.subsets import GroupRules, Weighted, find_heavier

MAX_COVER_STEPS = 2_000_000


class Pricing(Protocol):
    """What the check of a kind of partition needs; values are exact or rounded against the claim."""

    def check_price(self, multipliers: Sequence[Fraction], rules: GroupRules, price: Fraction) -> None: ...

    def columns_above(
        self, multipliers: Sequence[Fraction], rules: GroupRules, price: Fraction, threshold: Fraction
    ) -> Mapping[frozenset[int], Fraction]: ...


def check_partition(certificate: Certificate, model: Model) -> Proof:
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
    checker = _Leaves(problem)
    bound = max(checker.bound(leaves[node], tree, node) for node in sorted(expected))
    return Proof(bound, len(tree), len(leaves), 0)


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
    def __init__(self, problem: PartitionProblem) -> None:
        self._problem = problem
        self._pricing = _pricing(problem)

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
        self._pricing.check_price(multipliers, rules, price)
        if kind == "bound":
            return _up(self._problem.offset + total)
        if kind == "columns":
            listed = _columns(leaf, node)
            self._check_columns(rules, multipliers, price, self._problem.offset + total, claim, listed, node)
            return claim
        raise CertificateError(f"leaf {node} has an unknown argument {kind!r}")

    def _check_columns(
        self,
        rules: GroupRules,
        multipliers: Sequence[Fraction],
        price: Fraction,
        total: Fraction,
        claim: float,
        listed: set[frozenset[int]],
        node: int,
    ) -> None:
        """A partition worth more than the claim leaves less than `budget` of slack to its clusters together."""
        if not math.isfinite(claim):
            raise CertificateError(f"leaf {node} claims {claim!r}")
        budget = total - Fraction(claim)
        if budget <= 0:
            return
        reduced = self._pricing.columns_above(multipliers, rules, price, price - budget)
        if not listed.issuperset(reduced):
            raise CertificateError(f"leaf {node}: a column that a better partition may contain is not listed")
        slacks = {items: price - value for items, value in reduced.items()}
        empty = price if rules.low <= 0 else None
        lightest = lightest_cover(
            slacks, self._problem.n_items, self._problem.n_clusters, empty, budget, MAX_COVER_STEPS
        )
        if lightest is not None:
            raise CertificateError(f"leaf {node}: a partition of its columns is worth more than {claim!r}")

    def _check_infeasible(
        self, rules: GroupRules, multipliers: Sequence[Fraction], price: Fraction, total: Fraction, node: int
    ) -> None:
        scale = math.lcm(*(v.denominator for v in (*multipliers, price)))
        weights = [-int(sum((multipliers[i] for i in g), Fraction(0)) * scale) for g in rules.groups]
        if total >= 0 or find_heavier(Weighted(rules, weights), int(price * scale)) is not None:
            raise CertificateError(f"leaf {node}: its multipliers do not prove that no partition exists")


def _pricing(problem: PartitionProblem) -> Pricing:
    if isinstance(problem.factor, OneDimensionalClusters):
        return OneDimensionalPricing(problem.factor, problem.rewards)
    raise CertificateError(f"no check is known for partitions of kind {problem.factor.kind!r}")


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
