"""What the oracles of finite factors (tables, Potts) share: one-hot points, allowed states, blame.

Their domains are products of one-hot groups. An envelope over a box equals the envelope over the whole domain at every
point of the box, because states outside have zero marginals; so these families make global cuts only and their
conjugates ignore the box.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.oracles.cuts import Box, Cuts, Floats
from certimap.oracles.protocol import Oracle

WHOLE = 1e-6  # a group this close to a unit vector has the unit vector's value
DUST = 1e-9  # but cuts are separated where y is, up to rounding


class FiniteOracle(Oracle):
    """Terms over one-hot groups of the given sizes, in the order of the scope columns."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        self.sizes = tuple(len(v.states) for v in batch.factors[0].variables())
        self.starts = np.cumsum([0, *self.sizes])

    @abstractmethod
    def conjugates(self, u: Floats) -> Floats:
        """(m,) certified upper bounds of max over the domain of theta_i(x) - u_i.x, one row of u for every term."""

    def proposals(self, box: Box) -> Cuts:
        """The constant bound of every term over its whole domain."""
        m, w = self.scope.shape
        u = np.zeros((m, w))
        return Cuts.of(np.arange(m), u, self.conjugates(u))

    def branch_scores(self, y: Floats, gap: Floats) -> Floats:
        """The gap of a term, shared among its fractional columns in proportion to their distance from 0 and 1."""
        return blame(y[self.scope], gap)

    def marginals(self, y: Floats, snap: float = DUST) -> Floats:
        """(m, w) points of the product of simplices next to y[scope]; groups within `snap` of whole are made whole."""
        return to_simplices(y[self.scope], self.starts, snap)


def blame(y: Floats, gap: Floats) -> Floats:
    """(m, w) shares of the gaps (m,), in proportion to min(y, 1 - y)."""
    fraction = np.clip(np.minimum(y, 1.0 - y), 0.0, None)
    total = fraction.sum(axis=1, keepdims=True)
    share = np.divide(fraction, total, out=np.zeros_like(fraction), where=total > 0.0)
    return np.asarray(np.maximum(gap, 0.0)[:, None] * share)


def to_simplices(y: Floats, starts: NDArray[np.int64], snap: float) -> Floats:
    """Each group of columns clipped and rescaled to sum to one, or set to the unit vector it nearly is."""
    x = np.maximum(y, 0.0)
    rows = np.arange(len(x))
    for first, last in pairwise(starts):
        part = x[:, first:last]
        total = part.sum(axis=1)
        part /= np.where(total > 0.0, total, 1.0)[:, None]
        part[total <= 0.0] = 1.0 / (last - first)
        top = part.argmax(axis=1)
        whole = part[rows, top] > 1.0 - snap
        part[whole] = 0.0
        part[rows[whole], top[whole]] = 1.0
    return x


def allowed_states(box: Box, columns: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(m, w) which states the box leaves open: upper bound 1, and no other state of the group forced to 1."""
    lower, upper = box.part(columns)
    allowed = upper > 0.5
    forced = lower > 0.5
    for first, last in pairwise(starts):
        part = forced[:, first:last]
        allowed[:, first:last] &= part | ~part.any(axis=1, keepdims=True)
    return allowed


def centred(u: Floats, starts: NDArray[np.int64]) -> Floats:
    """Each one-hot group shifted so that its median entry is 0: small coefficients, many zeros; h absorbs the shift."""
    parts = [u[:, first:last] for first, last in pairwise(starts)]
    return np.concatenate([part - np.sort(part, axis=1)[:, [part.shape[1] // 2]] for part in parts], axis=1)
