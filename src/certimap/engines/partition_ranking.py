"""The best few partitions after a solve by branch-and-price, with a bound on all others.

With slack(S) = P - (c(S) - lambda(S)) >= 0 at a leaf of the tree, a partition worth more than V has clusters whose
slacks add up to less than  room = offset + sum lambda + K P - V,  so that at most one of them has half of that or more.
All columns of less than half the room are listed, a far shorter list than that of all within the room. Every such
partition then consists of disjoint listed columns, empty clusters, and one cluster that holds the rest, which is valued
in closed form. V goes further and further below the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from certimap.engines.branch_and_price import BranchAndPrice, with_rounding
from certimap.engines.partition_problem import labels_of
from certimap.engines.price_tree import LeafProof, PriceNode
from certimap.engines.set_partitioning import disjoint_columns
from certimap.oracles.partition import Ints, Masks

RANKED_COLUMNS = 4000
MOST_STEPS = 2_000_000
MOST_RESTS = 20_000  # a check values each of them in exact arithmetic
FIRST_DIFFERENCE = 0.1
LARGEST_DIFFERENCE = 1000.0  # what is a factor e^-1000 less probable is of no interest
FURTHER = 1.5
ROUNDING = 1e-12  # of a sum of slacks, relative to its terms


@dataclass(frozen=True)
class PartitionRanking:
    """Labels and values of the best partitions, the best first; no other partition is worth more than `others`."""

    labels: tuple[Ints, ...]
    values: tuple[float, ...]
    others: float

    def record(self) -> dict[str, Any]:
        """For the certificate."""
        return {"labels": np.array(self.labels), "values": np.array(self.values), "others": self.others}


def rank_partitions(engine: BranchAndPrice, count: int) -> PartitionRanking | None:
    """The `count` best partitions, or as many of the best as the limits allow; None if not even one is proved."""
    ledger, best = engine.ledger, engine.incumbent.value
    if ledger.upper_bound > max(ledger.cutoff, with_rounding(ledger.log_map)):
        return None
    leaves, difference = engine.tree.leaves(), FIRST_DIFFERENCE
    ranking: PartitionRanking | None = None
    while difference < LARGEST_DIFFERENCE and ledger.urgent_reason() is None:
        further = _above(engine, leaves, best - difference, count)
        if further is None:
            break
        ranking = further
        if len(ranking.labels) == count:
            break
        difference *= FURTHER
    return ranking


def _above(engine: BranchAndPrice, leaves: list[PriceNode], value: float, count: int) -> PartitionRanking | None:
    """The `count` best of all partitions worth more than `value`; None if they are too many to look at."""
    problem, found, margin = engine.problem, [], 0.0
    for leaf in leaves:
        if leaf.bound > -math.inf:
            margin = max(margin, _rounding_of(engine, leaf.proof, value))
            partitions = _partitions_of(engine, leaf, value - margin, count)
            if partitions is None:
                return None
            found += [problem.named(labels_of(masks)) for masks in partitions]
    valued = sorted(((engine.incumbent.offer(labels), labels) for labels in found), key=lambda pair: -pair[0])
    ranked = [pair for pair in valued if pair[0] > value][:count]
    if not ranked:
        return None
    others = ranked[-1][0] + margin if len(ranked) == count else value
    return PartitionRanking(tuple(labels for _, labels in ranked), tuple(v for v, _ in ranked), others)


def _rounding_of(engine: BranchAndPrice, proof: LeafProof, value: float) -> float:
    """What sums of slacks may differ by from the values of partitions."""
    terms = abs(value) + engine.problem.n_clusters * abs(proof.price)
    return ROUNDING * (1.0 + terms + (0.0 if proof.multipliers is None else float(np.abs(proof.multipliers).sum())))


def _partitions_of(engine: BranchAndPrice, leaf: PriceNode, value: float, count: int) -> list[Masks] | None:
    """The clusters of the `count` best partitions of a leaf among those worth more than `value`."""
    problem, proof = engine.problem, leaf.proof
    if proof.multipliers is None:
        return None
    multipliers, price, K = proof.multipliers, proof.price, problem.n_clusters
    room = engine.total(multipliers, price) + problem.offset - value
    if room <= 0.0:
        return []
    rules = problem.rules(leaf.together, leaf.apart)
    listed = engine.columns_above(price - 0.5 * room, proof, rules, RANKED_COLUMNS)
    if listed is None:
        return None
    slack = price - (engine.block.values(listed) - listed @ multipliers)
    empty = None if engine.empty_value is None else price - engine.empty_value
    chosen = disjoint_columns(listed, slack, K, empty, room, MOST_STEPS, MOST_RESTS)
    if not chosen:
        return None if chosen is None else []
    rests = np.array([~listed[list(columns)].any(axis=0) for columns in chosen])
    admitted = rules.admits(rests)
    spent = np.full(len(rests), math.inf)
    spent[admitted] = price - (engine.block.values(rests[admitted]) - rests[admitted] @ multipliers)
    for at, columns in enumerate(chosen):
        unused = K - 1 - len(columns)
        spent[at] += slack[list(columns)].sum() + (unused * empty if unused and empty is not None else 0.0)
    best = [at for at in np.argsort(spent, kind="stable")[:count].tolist() if spent[at] < room]
    return [np.concatenate([listed[list(chosen[at])], rests[at : at + 1]]) for at in best]
