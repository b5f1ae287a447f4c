"""Exact set partitioning over a list of columns, by depth-first search with the dual's slacks as bound.

With slack(S) = P - (c(S) - lambda(S)) >= 0, a partition into K clusters falls short of the bound
sum_i lambda_i + K P by exactly the sum of its clusters' slacks: the best partition has the smallest sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certimap.oracles.partition import Floats, Ints, Masks


@dataclass(frozen=True)
class Cover:
    """The best partition within the budget: positions of its nonempty columns (None if there is none)."""

    columns: Ints | None
    slack: float
    complete: bool  # whether the search ended before its limit, so that nothing better exists


def best_cover(
    masks: Masks, slack: Floats, n_clusters: int, empty_slack: float | None, budget: float, max_steps: int
) -> Cover:
    """Disjoint columns that cover all items, K of them with empty ones counted at `empty_slack` (None: not allowed)."""
    return _Search(masks, slack, n_clusters, empty_slack, budget, max_steps).run()


class _Search:
    def __init__(
        self, masks: Masks, slack: Floats, n_clusters: int, empty_slack: float | None, budget: float, max_steps: int
    ) -> None:
        self.slack = slack.tolist()
        self.bits = [int.from_bytes(np.packbits(m).tobytes(), "big") for m in masks]
        n_items = masks.shape[1]
        width = 8 * ((n_items + 7) // 8)
        self.everything = sum(1 << (width - 1 - i) for i in range(n_items))
        # Items that few columns cover come first: they leave little choice.
        rare = np.argsort(masks.sum(axis=0), kind="stable")
        self.order = [(1 << (width - 1 - int(i)), np.flatnonzero(masks[:, i]).tolist()) for i in rare]
        for _, columns in self.order:
            columns.sort(key=self.slack.__getitem__)
        self.n_clusters = n_clusters
        self.empty_slack = empty_slack
        self.least = min([*self.slack, math.inf if empty_slack is None else empty_slack])
        self.best = budget
        self.found: list[int] | None = None
        self.steps, self.max_steps = 0, max_steps

    def run(self) -> Cover:
        self._extend(0, 0, 0.0, [])
        found = None if self.found is None else np.array(self.found, dtype=np.int64)
        return Cover(found, self.best, self.steps <= self.max_steps)

    def _extend(self, covered: int, place: int, spent: float, chosen: list[int]) -> None:
        self.steps += 1
        if self.steps > self.max_steps:
            return
        left = self.n_clusters - len(chosen)
        if covered == self.everything:
            rest = 0.0 if left == 0 else math.inf if self.empty_slack is None else left * self.empty_slack
            if spent + rest < self.best:
                self.best, self.found = spent + rest, list(chosen)
            return
        if left == 0:
            return
        while covered & self.order[place][0]:
            place += 1
        for c in self.order[place][1]:
            if spent + self.slack[c] + (left - 1) * self.least >= self.best:
                break
            if not covered & self.bits[c]:
                self._extend(covered | self.bits[c], place + 1, spent + self.slack[c], [*chosen, c])


def disjoint_columns(
    masks: Masks,
    slack: Floats,
    n_clusters: int,
    empty_slack: float | None,
    budget: float,
    max_steps: int,
    max_found: int,
) -> list[tuple[int, ...]] | None:
    """Sets of up to K-1 disjoint columns that make a partition of total slack below the budget with what they leave.

    The columns are all those of slack below half the budget, empty clusters count at `empty_slack` (None: not allowed).
    Either what is left over is one of the columns, then it is taken to be the last in their order, so that no
    partition comes twice; or it has at least half the budget, and the others less. None if there are too many.
    """
    width = 8 * ((masks.shape[1] + 7) // 8)
    everything = ((1 << masks.shape[1]) - 1) << (width - masks.shape[1])
    order = np.argsort(slack, kind="stable")
    slacks = slack[order].tolist()
    bits = [int.from_bytes(np.packbits(masks[c]).tobytes(), "big") for c in order]
    place = {columns: at for at, columns in enumerate(bits)}
    found: list[tuple[int, ...]] = []
    stack: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]
    steps = 0
    while stack:
        covered, spent, chosen = stack.pop()
        unused, first = n_clusters - 1 - len(chosen), chosen[-1] + 1 if chosen else 0
        idle = 0.0 if not unused else math.inf if empty_slack is None else unused * empty_slack
        last = place.get(everything & ~covered)
        if spent + idle < 0.5 * budget if last is None else last >= first and spent + idle + slacks[last] < budget:
            found.append(tuple(int(order[at]) for at in chosen))
        for at in range(first, len(slacks) if unused else first):
            steps += 1
            if spent + slacks[at] >= 0.5 * budget and spent + 2.0 * slacks[at] >= budget:
                break
            if not covered & bits[at] and bits[at] | covered != everything:
                stack.append((covered | bits[at], spent + slacks[at], (*chosen, at)))
        if steps > max_steps or len(found) > max_found:
            return None
    return found
