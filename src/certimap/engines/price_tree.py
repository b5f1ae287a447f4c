"""The tree of branch-and-price: nodes are rules (pairs of items together or apart), leaves are proved bounds."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from certimap.oracles.partition import Floats, Masks

Pair = tuple[int, int]


class LeafKind(Enum):
    """The argument that bounds a leaf; its value is the name in the certificate."""

    BOUND = "bound"  # offset + sum lambda + K P
    COLUMNS = "columns"  # no partition of the listed columns is better, and no other column can be in a better one
    INFEASIBLE = "infeasible"  # sum lambda + K max(-lambda(S)) < 0: the items cannot be partitioned
    CONTRADICTION = "contradiction"  # an item that no admissible set contains


@dataclass(frozen=True)
class LeafProof:
    """Multipliers with the certified P(lambda), and the columns that a COLUMNS argument lists."""

    kind: LeafKind
    bound: float
    multipliers: Floats | None = None
    price: float = math.inf
    columns: Masks | None = None
    pricing: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class PriceNode:
    """An open or closed node: the pairs on its path and the best proof so far (a child inherits its parent's)."""

    index: int
    depth: int
    together: tuple[Pair, ...]
    apart: tuple[Pair, ...]
    proof: LeafProof

    @property
    def bound(self) -> float:
        return self.proof.bound

    def improve(self, proof: LeafProof) -> None:
        if proof.bound < self.bound:
            self.proof = proof


class PriceTree:
    """Open nodes in best-first order, closed leaves, and the record of every split."""

    def __init__(self) -> None:
        self.records: list[tuple[int, int, int, int]] = [(-1, -1, -1, -1)]  # parent, item, item, 1 together 0 apart
        self.closed: list[PriceNode] = []
        self._closed_bound = -math.inf
        self._heap: list[tuple[float, int, PriceNode]] = []
        self.push(PriceNode(0, 0, (), (), LeafProof(LeafKind.BOUND, math.inf)))

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, node: PriceNode) -> None:
        heapq.heappush(self._heap, (-node.bound, node.index, node))

    def pop(self) -> PriceNode:
        return heapq.heappop(self._heap)[2]

    def close(self, node: PriceNode) -> None:
        self.closed.append(node)
        self._closed_bound = max(self._closed_bound, node.bound)

    def split(self, node: PriceNode, pair: Pair) -> None:
        """Ryan-Foster branching: every partition has the two items together or apart."""
        for together in (True, False):
            self.records.append((node.index, *pair, int(together)))
            self.push(
                PriceNode(
                    len(self.records) - 1,
                    node.depth + 1,
                    (*node.together, pair) if together else node.together,
                    node.apart if together else (*node.apart, pair),
                    node.proof,
                )
            )

    def bound(self) -> float:
        """The largest bound of any leaf, open or closed."""
        return max(self._closed_bound, -self._heap[0][0] if self._heap else -math.inf)

    def leaves(self) -> list[PriceNode]:
        """Closed leaves, then the open nodes in the order of their creation."""
        return [*self.closed, *(node for _, _, node in sorted(self._heap, key=lambda entry: entry[1]))]

    def details(self) -> dict[str, Any] | None:
        """The proof for the certificate; None if some leaf has no proof yet."""
        leaves = self.leaves()
        if any(leaf.bound == math.inf for leaf in leaves):
            return None
        return {"tree": np.array(self.records, dtype=np.int64), "leaves": [_leaf(leaf) for leaf in leaves]}


def _leaf(node: PriceNode) -> dict[str, Any]:
    proof = node.proof
    record: dict[str, Any] = {"node": node.index, "kind": proof.kind.value, "bound": proof.bound}
    if proof.multipliers is not None:
        record |= {"multipliers": proof.multipliers, "price": proof.price, "pricing": proof.pricing}
    if proof.columns is not None:
        record |= {"columns": proof.columns.astype(np.int64)}
    return record
