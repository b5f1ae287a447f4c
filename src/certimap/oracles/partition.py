"""What a block of exchangeable clusters offers branch-and-price.

A column is a cluster: a set S of items, written as a row of N booleans. With multipliers lambda_i and

    P(lambda) >= max over the admissible S of c(S) - sum_{i in S} lambda_i,

every admissible partition into K clusters is worth at most  sum_i lambda_i + K P(lambda). Whether a set is admissible
is up to `ColumnRules`; the empty set is where clusters may be empty. Only `certified_bound` and `enumerate_columns`
carry proofs: the rest may return anything.

A block is one file with one subclass and one registration line, `@register_block("kind of the Partition factor")`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from certimap.model.partition import Partition

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Masks = NDArray[np.bool_]  # (columns, N)


@dataclass(frozen=True)
class ColumnRules:
    """Which sets may be a cluster: whole groups of tied items, no pair of groups that is apart, and sizes in range.

    `group` numbers the group of every item by first occurrence; `apart` holds pairs of groups, smaller one first.
    """

    group: Ints
    apart: Ints
    min_size: int
    max_size: int

    @staticmethod
    def of(
        n_items: int,
        together: Iterable[tuple[int, int]],
        apart: Iterable[tuple[int, int]],
        min_size: int,
        max_size: int,
    ) -> ColumnRules:
        """Rules from pairs of items; the pairs in `together` are closed transitively."""
        ties = np.array(list(together), dtype=np.int64).reshape(-1, 2)
        graph = sparse.coo_array((np.ones(len(ties)), (ties[:, 0], ties[:, 1])), shape=(n_items, n_items))
        component = connected_components(graph, directed=False)[1]
        _, first, inverse = np.unique(component, return_index=True, return_inverse=True)
        group = np.argsort(np.argsort(first))[inverse].astype(np.int64)
        links = np.array(list(apart), dtype=np.int64).reshape(-1, 2)
        pairs = np.unique(np.sort(group[links], axis=1), axis=0) if len(links) else links
        return ColumnRules(group, pairs, min_size, max_size)

    @property
    def n_groups(self) -> int:
        return int(self.group.max()) + 1

    @cached_property
    def sizes(self) -> Ints:
        """Number of items of every group."""
        return np.bincount(self.group).astype(np.int64)

    @cached_property
    def representative(self) -> Ints:
        """The first item of every group."""
        return np.unique(self.group, return_index=True)[1].astype(np.int64)

    @property
    def contradictory(self) -> bool:
        """Whether some item fits into no admissible set."""
        return bool((self.apart[:, 0] == self.apart[:, 1]).any() or self.sizes.max() > self.max_size)

    def admits(self, masks: Masks) -> NDArray[np.bool_]:
        """Which of the columns are admissible."""
        whole = (masks == masks[:, self.representative[self.group]]).all(axis=1)
        by_group = masks[:, self.representative]
        clash = (by_group[:, self.apart[:, 0]] & by_group[:, self.apart[:, 1]]).any(axis=1)
        count = masks.sum(axis=1)
        return np.asarray(whole & ~clash & (count >= self.min_size) & (count <= self.max_size))

    def kept_whole(self, labels: Ints) -> bool:
        """Whether the items of every group have one label."""
        return bool((labels == labels[self.representative[self.group]]).all())

    def summed(self, per_item: Floats) -> Floats:
        """Sums over the items of every group."""
        return np.asarray(np.bincount(self.group, weights=per_item), dtype=float)


@dataclass(frozen=True)
class PairRewards:
    """Soft links: `weights[p]` is added to a cluster that holds both items of `pairs[p]`."""

    pairs: Ints
    weights: Floats

    def within(self, mask: NDArray[np.bool_]) -> float:
        return float(self.weights @ (mask[self.pairs[:, 0]] & mask[self.pairs[:, 1]]))


@dataclass(frozen=True)
class Effort:
    """How much work a pricing may do before it returns the bound it has; limits that are None do not bind."""

    nodes: int | None = None
    seconds: float | None = None
    progress: Callable[[float, int], bool] | None = None  # told the bound and the nodes so far; True asks to stop

    def after(self, nodes: int, seconds: float) -> Effort:
        """What is left after so much work; progress goes on counting from there."""
        tell = self.progress
        return Effort(
            None if self.nodes is None else max(0, self.nodes - nodes),
            None if self.seconds is None else max(0.0, self.seconds - seconds),
            None if tell is None else lambda bound, count: tell(bound, nodes + count),
        )


@dataclass(frozen=True)
class Pricing:
    """P(lambda): no admissible set has a value c(S) - lambda(S) above `bound`; `columns` are the best ones met."""

    bound: float
    columns: Masks
    nodes: int
    proof: Mapping[str, Any] = field(
        default_factory=dict
    )  # what the block's verifier needs beyond lambda and the bound


class PartitionBlock(ABC):
    """Clusters of one Partition factor, with the soft links between its items."""

    takes_rewards: ClassVar[bool] = False
    pricing_nodes: ClassVar[int | None] = 1_000_000  # after so many, branching helps more than pricing on; None: never
    margin_pays: bool = False  # whether proofs are far shorter at dual points of large margin

    def __init__(self, factor: Partition, rewards: PairRewards) -> None:
        self.factor = factor
        self.rewards = rewards
        self.n_threads = 1  # that proofs may use
        self.device: Callable[[], Any] | None = None  # finds an accelerator that proofs may use
        self.guide: Ints | None = None  # the best labels known: a block may steer its work by them, never prove by them

    def value(self, mask: NDArray[np.bool_]) -> float:
        """c(S), the rewards of its soft links included."""
        return self.factor.cluster_value(np.flatnonzero(mask)) + self.rewards.within(mask)

    def values(self, masks: Masks) -> Floats:
        """c(S) of several columns."""
        return np.array([self.value(mask) for mask in masks], dtype=float)

    @abstractmethod
    def starts(self, rules: ColumnRules, rng: np.random.Generator, count: int) -> list[Ints]:
        """Labels to start a local search from; they need not respect any rule."""

    def improve(self, labels: Ints, rules: ColumnRules, rng: np.random.Generator) -> Ints | None:
        """Admissible labels that the block's own local search reaches from these; None if it has none to offer."""
        return None

    @abstractmethod
    def heuristic_columns(
        self, multipliers: Floats, rules: ColumnRules, rng: np.random.Generator, near: Masks
    ) -> Masks:
        """Admissible columns of large value c(S) - lambda(S), found quickly; `near` are columns to search around."""

    @abstractmethod
    def certified_bound(
        self, multipliers: Floats, rules: ColumnRules, target: float, tolerance: float, effort: Effort
    ) -> Pricing:
        """Bound the pricing problem from above, whatever the effort allows.

        Done when the bound is at most `target`, or within `tolerance` of a column that is returned.
        """

    def enumerate_columns(
        self, multipliers: Floats, rules: ColumnRules, price: float, threshold: float, limit: int, effort: Effort
    ) -> Masks | None:
        """All admissible nonempty columns with c(S) - lambda(S) > threshold; None if there may be more than `limit`.

        `price` is a proved bound of c(S) - lambda(S).
        """
        return None

    def relaxed_pair(self, rules: ColumnRules) -> tuple[int, int] | None:
        """Two items whose soft link `certified_bound` overestimates until they are tied or kept apart, if any."""
        return None


BlockClass = Callable[[Partition, PairRewards], PartitionBlock]
_REGISTRY: dict[str, type[PartitionBlock]] = {}


def register_block(kind: str) -> Callable[[type[PartitionBlock]], type[PartitionBlock]]:
    """Class decorator: the block of all partition factors of this kind."""

    def remember(block: type[PartitionBlock]) -> type[PartitionBlock]:
        _REGISTRY[kind] = block
        return block

    return remember


def block_class(kind: str) -> type[PartitionBlock]:
    """The registered block of a kind of partition."""
    if kind not in _REGISTRY:
        raise KeyError(f"no block is registered for partitions of kind {kind}")
    return _REGISTRY[kind]
