"""Parity factors: feasibility cuts from the facets of the parity polytope, separated exactly in linear time.

A 0/1 point has the required parity if and only if, for every set S of items whose size has the other parity,

    sum_{j in S} (1 - x_j) + sum_{j not in S} x_j >= 1,

and these inequalities with 0 <= x <= 1 describe the convex hull (Jeroslow). The left side is least for S = {x_j > 1/2};
if that set has the wrong size, moving the item nearest to 1/2 mends it at the least price.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certimap._numeric.rounding import raised
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.oracles.cuts import Box, Cuts, Floats
from certimap.oracles.discrete import blame
from certimap.oracles.protocol import Oracle, register

FEASIBLE = 1e-6  # violation of an inequality that is the master's rounding


@register("parity")
class ParityOracle(Oracle):
    """0 where the number of ones is odd (or even), -inf elsewhere."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        self.odd: NDArray[np.bool_] = np.asarray(batch.data["odd"], dtype=bool)

    def value(self, y: Floats) -> Floats:
        """0 in the parity polytope, -inf outside; at whole points the factor's value."""
        x = y[self.scope]
        return np.where(self._shortfall(x, self._nearest_set(x)) > FEASIBLE, -np.inf, 0.0)

    def upper(self, box: Box) -> Floats:
        """0, or -inf where the box leaves a single point and that has the wrong parity."""
        lower, upper = box.part(self.scope)
        ones = lower > 0.5
        settled = (ones | (upper < 0.5)).all(axis=1)
        return np.where(settled & (ones.sum(axis=1) % 2 != self.odd), -np.inf, 0.0)

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        """max of -u.x over all points of the right parity: every sign to its advantage, the cheapest one flipped."""
        x = (u < 0.0).astype(float)
        if x.sum() % 2 != self.odd[i]:
            cheapest = int(np.argmin(np.abs(u)))
            x[cheapest] = 1.0 - x[cheapest]
        h = raised(np.array(-(u @ x)), np.abs(u).sum(), len(u))
        return float(h), x

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        """The most violated inequality of every term outside its polytope, and t <= 0."""
        x = y[self.scope]
        members = self._nearest_set(x)
        term = np.flatnonzero(self._shortfall(x, members) > FEASIBLE)
        chosen = members[term]
        outside = Cuts.of(term, np.where(chosen, -1.0, 1.0), chosen.sum(axis=1) - 1.0, feasibility=True)
        above = np.flatnonzero(t > tolerance)
        width = self.scope.shape[1]
        return Cuts.join([Cuts.of(above, np.zeros((len(above), width)), np.zeros(len(above))), outside], width)

    def proposals(self, box: Box) -> Cuts:
        m, w = self.scope.shape
        return Cuts.of(np.arange(m), np.zeros((m, w)), np.zeros(m))

    def branch_scores(self, y: Floats, gap: Floats) -> Floats:
        """The gap of a term, shared among its fractional columns."""
        return blame(y[self.scope], gap)

    def _nearest_set(self, x: Floats) -> NDArray[np.bool_]:
        """(m, n) the set S of the most violated inequality at x."""
        members = x > 0.5
        wrong = np.flatnonzero(members.sum(axis=1) % 2 == self.odd)
        flipped = np.abs(x[wrong] - 0.5).argmin(axis=1)
        members[wrong, flipped] ^= True
        return members

    def _shortfall(self, x: Floats, members: NDArray[np.bool_]) -> Floats:
        return np.asarray(1.0 - np.where(members, 1.0 - x, x).sum(axis=1))
