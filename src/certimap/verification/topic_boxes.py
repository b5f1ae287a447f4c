"""Boxes of token counts, and the cuts that a certificate makes.

A box holds the sets S with low_f <= n_f <= high_f for every factor that contain the groups of status IN and none of
status OUT. A recorded cut divides a box in the tokens of a factor (at most the cut, or more) or in a group (out, or
in), so that the two sides cover it whatever the cut is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError
from certimap.verification.topic_instance import Floats, Instance, Ints

FREE, IN, OUT = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Boxes:
    """`low`, `high` of shape (factors, boxes), `status` (groups, boxes); `weight` (arcs, boxes) and `t` (boxes) are
    multipliers to begin with, and take no part in what a box holds."""

    low: Ints
    high: Ints
    status: NDArray[np.int8]
    weight: Floats
    t: Floats

    def __len__(self) -> int:
        return len(self.t)

    def take(self, which: Any) -> Boxes:
        """Some of the boxes, by a mask, positions or a slice."""
        return Boxes(
            self.low[:, which], self.high[:, which], self.status[:, which], self.weight[:, which], self.t[which]
        )

    @staticmethod
    def joined(parts: Sequence[Boxes]) -> Boxes:
        return Boxes(
            np.concatenate([p.low for p in parts], axis=1),
            np.concatenate([p.high for p in parts], axis=1),
            np.concatenate([p.status for p in parts], axis=1),
            np.concatenate([p.weight for p in parts], axis=1),
            np.concatenate([p.t for p in parts]),
        )

    @property
    def free(self) -> Ints:
        """Groups that are free, per box."""
        return np.asarray((self.status == FREE).sum(axis=0))


def root_box(instance: Instance) -> Boxes:
    """The box of all sets, with multipliers that share out what a word gains by all of its tokens."""
    table, start = instance.table, instance.table_start
    highest = instance.highest
    rise = (table[start[1:] - 1] - table[start[:-1]]) / np.maximum(highest, 1)
    weight = np.where(instance.factor < instance.n_documents, 0.0, -instance.tokens * rise[instance.factor])
    t = 1.0 + np.log(max(1.0, 0.3 * len(instance.normaliser) + instance.mass))
    return Boxes(
        np.zeros((instance.n_factors, 1), dtype=np.int64),
        highest[:, None].copy(),
        np.full((instance.n_groups, 1), FREE, dtype=np.int8),
        weight[:, None],
        np.array([t]),
    )


def recorded_boxes(record: Mapping[str, Any], instance: Instance, root: Boxes) -> tuple[Boxes, Ints]:
    """The boxes between all recorded cuts, and how many nodes the solver searched in each; they cover the root."""
    try:
        parent, side, split, cut, nodes = (
            np.asarray(record[key], dtype=np.int64) for key in ("parent", "side", "split", "cut", "nodes")
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CertificateError(f"the pricing of a leaf is malformed: {error}") from None
    count, factors = len(parent), instance.n_factors
    if {a.shape for a in (parent, side, split, cut, nodes)} != {(count,)} or count == 0 or nodes.min() < 0:
        raise CertificateError("the pricing of a leaf is malformed: its arrays do not fit together")
    sides: list[list[int]] = [[] for _ in range(count)]
    for k in range(count):
        if (parent[k] == -1) != (k == 0) or not (-1 <= parent[k] < k) or split[k] >= factors + instance.n_groups:
            raise CertificateError(f"entry {k} of a recorded pricing tree is malformed")
        if k > 0:
            sides[parent[k]].append(int(side[k]))
    inner = split >= 0
    if any(sorted(s) != [0, 1] if inner[k] else s for k, s in enumerate(sides)):
        raise CertificateError("a recorded pricing tree does not cover its boxes")
    low, high = np.tile(root.low, (1, count)), np.tile(root.high, (1, count))
    status = np.tile(root.status, (1, count))
    possible = np.ones(count, dtype=bool)
    for k in range(1, count):
        p = parent[k]
        low[:, k], high[:, k], status[:, k], possible[k] = low[:, p], high[:, p], status[:, p], possible[p]
        f, g = split[p], split[p] - factors
        if g >= 0:
            possible[k] &= status[g, k] == FREE or status[g, k] == (IN if side[k] else OUT)
            status[g, k] = IN if side[k] else OUT
        elif side[k] == 0:
            high[f, k] = min(high[f, k], cut[p])
        else:
            low[f, k] = max(low[f, k], cut[p] + 1)
    leaves = ~inner & possible & (low <= high).all(axis=0)
    boxes = Boxes(
        low[:, leaves],
        high[:, leaves],
        status[:, leaves],
        np.tile(root.weight, (1, int(leaves.sum()))),
        np.tile(root.t, int(leaves.sum())),
    )
    return boxes, nodes[leaves]
