"""Reading a factor graph as a partition problem: the one Partition factor, and the rules that its constraints set.

Clusters are exchangeable, so only what treats them alike can be read: links between items, the same size limits for
every cluster, soft links. Items fixed to clusters are links as well: items of one label are tied, items of different
labels kept apart, and the clusters of a solution renamed afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from certimap.graph.graph import FactorGraph
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, Constraint, Variable
from certimap.model.factors import Potts
from certimap.model.partition import Partition
from certimap.oracles.partition import ColumnRules, Ints, PairRewards, PartitionBlock, block_class

Pair = tuple[int, int]

_ALLOWED = "branch-and-price takes must_link, cannot_link and fix of items, and equal size limits for all clusters"


@dataclass(frozen=True)
class PartitionProblem:
    """maximise  offset + sum_k c(S_k)  over admissible partitions of the items into K clusters."""

    graph: FactorGraph
    block: PartitionBlock
    n_items: int
    n_clusters: int
    together: tuple[Pair, ...]
    apart: tuple[Pair, ...]
    min_size: int
    max_size: int
    fixed: Mapping[int, int]  # item -> cluster
    offset: float

    def rules(self, together: tuple[Pair, ...] = (), apart: tuple[Pair, ...] = ()) -> ColumnRules:
        """The rules of the model, with more pairs of items tied or kept apart."""
        return ColumnRules.of(self.n_items, self.together + together, self.apart + apart, self.min_size, self.max_size)

    def named(self, labels: Ints) -> Ints:
        """Labels of the same clusters, named so that fixed items are where they belong."""
        name = dict(zip((int(labels[i]) for i in self.fixed), self.fixed.values(), strict=True))
        spare = iter(sorted(set(range(self.n_clusters)) - set(name.values())))
        for k in range(self.n_clusters):
            if k not in name:
                name[k] = next(spare)
        return np.array([name[int(k)] for k in labels], dtype=np.int64)

    def assignment(self, labels: Ints) -> dict[str, Any]:
        """The point of the model with these clusters, under their proper names."""
        named = self.named(labels).tolist()
        values = {z.name: k for z, k in zip(self.block.factor.items, named, strict=True)}
        return self.graph.model.pack(values)


def is_partition_graph(graph: FactorGraph) -> bool:
    """Whether the graph has a Partition factor, which only branch-and-price can handle."""
    return any(isinstance(f, Partition) for f in graph.factors)


def read_problem(graph: FactorGraph) -> PartitionProblem:
    """The partition problem of a graph; a ModelError names what does not fit."""
    factor = _only_partition(graph)
    position = {z: i for i, z in enumerate(factor.items)}
    strangers = [v.name for v in graph.model.variables.values() if v not in position]
    if strangers:
        raise ModelError(f"branch-and-price: variable {strangers[0]} is not an item of {factor.label()}")
    if graph.model.linear.terms:
        atom = next(iter(graph.model.linear.terms))
        raise ModelError(f"branch-and-price: the linear term on {atom} tells the clusters apart; they must be alike")
    if graph.auxiliary:
        soft = next(iter(graph.auxiliary.values()))
        raise ModelError(f"branch-and-price: soft {soft.name} is not a soft link between two items")
    reader = _Rules(position, factor.n_clusters)
    for name, constraint in graph.model.constraints.items():
        reader.read(name, constraint)
    low, high = reader.size_limits()
    block = block_class(factor.kind)
    rewards = _rewards([f for f in graph.factors if isinstance(f, Potts)], position)
    if len(rewards.weights) and not block.takes_rewards:
        raise ModelError(f"branch-and-price: {factor.label()} takes no soft links")
    return PartitionProblem(
        graph=graph,
        block=block(factor, rewards),
        n_items=len(factor.items),
        n_clusters=factor.n_clusters,
        together=tuple(reader.together),
        apart=tuple(reader.apart),
        min_size=low,
        max_size=high,
        fixed=reader.fixed,
        offset=graph.offset,
    )


def _only_partition(graph: FactorGraph) -> Partition:
    partitions = [f for f in graph.factors if isinstance(f, Partition)]
    if len(partitions) != 1:
        raise ModelError(f"branch-and-price needs exactly one partition factor, the model has {len(partitions)}")
    for f in graph.factors:
        if not isinstance(f, Partition | Potts):
            raise ModelError(f"branch-and-price: factor {f.label()} stands beside the partition; only soft links may")
    return partitions[0]


def _rewards(links: list[Potts], position: Mapping[Variable, int]) -> PairRewards:
    pairs = [(position[f.scope[0]], position[f.scope[1]]) for f in links]
    return PairRewards(np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array([f.weight for f in links], dtype=float))


class _Rules:
    """Collects pairs, labels and size limits from constraints."""

    def __init__(self, position: Mapping[Variable, int], n_clusters: int) -> None:
        self._position = position
        self._low = [0] * n_clusters
        self._high = [len(position)] * n_clusters
        self._last_size = ""
        self._links: dict[bool, list[Pair]] = {True: [], False: []}
        self.fixed: dict[int, int] = {}

    def read(self, name: str, constraint: Constraint) -> None:
        for a, b, sign in constraint.links:
            self._links[sign > 0].append((self._position[a], self._position[b]))
        if constraint.links:
            return
        for row in constraint.rows:
            atoms = [a for a, _ in row.terms]
            if any(c != 1.0 or not a.is_indicator for a, c in row.terms):
                raise ModelError(f"{name}: {_ALLOWED}")
            if len(atoms) == 1 and row.lower == row.upper == 1.0:
                self._fix(atoms[0])
            else:
                self._limit(name, atoms, row.lower, row.upper)

    @property
    def together(self) -> list[Pair]:
        labelled = combinations(self.fixed.items(), 2)
        return [*self._links[True], *((i, j) for (i, k), (j, m) in labelled if k == m)]

    @property
    def apart(self) -> list[Pair]:
        labelled = combinations(self.fixed.items(), 2)
        return [*self._links[False], *((i, j) for (i, k), (j, m) in labelled if k != m)]

    def size_limits(self) -> Pair:
        if len({*zip(self._low, self._high, strict=True)}) > 1:
            raise ModelError(f"{self._last_size}: size limits must be the same for all clusters; {_ALLOWED}")
        return self._low[0], self._high[0]

    def _fix(self, atom: Atom) -> None:
        item, cluster = self._position[atom.variable], int(atom.key or 0)
        if self.fixed.setdefault(item, cluster) != cluster:
            # Two labels for one item: kept as a pair that contradicts itself, so that the solve reports infeasibility.
            self._links[False].append((item, item))

    def _limit(self, name: str, atoms: list[Atom], lower: float, upper: float) -> None:
        clusters = {a.key for a in atoms}
        if len(clusters) != 1 or len({a.variable for a in atoms}) != len(self._position):
            raise ModelError(f"{name}: it counts some of the items only; {_ALLOWED}")
        k = int(clusters.pop() or 0)
        self._low[k] = max(self._low[k], math.ceil(lower)) if lower > -math.inf else self._low[k]
        self._high[k] = min(self._high[k], math.floor(upper)) if upper < math.inf else self._high[k]
        self._last_size = name


def labels_of(masks: np.ndarray) -> Ints:
    """Labels from the clusters of a partition, one row each."""
    return np.asarray(masks.argmax(axis=0), dtype=np.int64)
