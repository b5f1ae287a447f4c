"""Oracles of tables: pairs by transportation problems, everything else by one small linear program per term.

The scope of a table is one one-hot group per variable; its concave envelope at y is max sum_e p_e theta_e over
distributions p of joint states with marginals y. It agrees with the table at every whole y.
"""

from __future__ import annotations

import numpy as np

from certimap._numeric.rounding import raised
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.oracles.cuts import Box, Cuts, Floats, Ints
from certimap.oracles.discrete import WHOLE, FiniteOracle, allowed_states, centred
from certimap.oracles.joint_tables import JointTables
from certimap.oracles.protocol import Oracle, register
from certimap.oracles.transport import FEASIBILITY, NO_CUT, OPTIMALITY, conjugate_pairs, separate_pairs


@register("table")
def table_oracle(batch: FactorBatch, graph: FactorGraph) -> Oracle:
    """Dense tables: the pairwise oracle where it applies."""
    return PairTables(batch, graph) if batch.data["log_values"].ndim == 3 else JointTables(batch, graph)


@register("sparse_table")
def sparse_table_oracle(batch: FactorBatch, graph: FactorGraph) -> Oracle:
    """Tables given by their finite states."""
    return JointTables(batch, graph)


class PairTables(FiniteOracle):
    """Tables over two variables, all of one shape, -inf allowed."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        self.theta: Floats = np.ascontiguousarray(batch.data["log_values"])
        finite = np.isfinite(self.theta)
        self._excluded = ~finite
        self._finite_part = np.where(finite, self.theta, 0.0)
        self._magnitude = np.abs(self._finite_part).max(axis=(1, 2))

    def value(self, y: Floats) -> Floats:
        """Mean under the product distribution: the entry where y is whole, -inf where it touches an excluded one."""
        a, b = self._split(self.marginals(y, WHOLE))
        mean = np.einsum("ei,eij,ej->e", a, self._finite_part, b, optimize=True)
        lost = np.einsum("ei,eij,ej->e", a, self._excluded, b, optimize=True)
        return np.where(lost > 0.0, -np.inf, mean)

    def upper(self, box: Box) -> Floats:
        """The largest entry that the box allows."""
        a, b = self._split(allowed_states(box, self.scope, self.starts))
        open_entries = a[:, :, None] & b[:, None, :]
        return np.asarray(np.where(open_entries, self.theta, -np.inf).max(axis=(1, 2)))

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        """Over the whole domain; see `FiniteOracle`."""
        a, b = u[: self.sizes[0]], u[self.sizes[0] :]
        row, column = np.unravel_index(np.argmax(self.theta[i] - a[:, None] - b[None, :]), self.sizes)
        x = np.zeros(len(u))
        x[row] = x[self.sizes[0] + column] = 1.0
        best = float(self.theta[i, row, column] - a[row] - b[column])
        return float(raised(np.array(best), self._magnitude[i] + np.abs(a).max() + np.abs(b).max(), 2)), x

    def conjugates(self, u: Floats) -> Floats:
        h = np.empty(len(u))
        conjugate_pairs(self.theta, u, h)
        return self._with_margin(h, u, self._magnitude)

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        """Optimal duals of the transportation problem at y, or Hall's condition where y is outside the hull."""
        x = self.marginals(y)
        u = np.empty_like(x)
        kinds = np.empty(len(x), dtype=np.int8)
        separate_pairs(self.theta, x, t, tolerance, u, kinds)
        term = np.flatnonzero(kinds != NO_CUT)
        u, kinds = u[term], kinds[term]
        optimality = np.flatnonzero(kinds == OPTIMALITY)
        u[optimality] = centred(u[optimality], self.starts)
        feasibility = np.flatnonzero(kinds == FEASIBILITY)
        h = np.empty(len(term))
        h[optimality] = self._conjugates_of(term[optimality], u[optimality])
        h[feasibility] = self._hall(term[feasibility], u[feasibility])
        excess = t[term] - np.einsum("ew,ew->e", u, y[self.scope[term]]) - h
        kept = np.flatnonzero(np.where(kinds == FEASIBILITY, h == 0.0, excess > tolerance))
        flags = np.zeros(len(kept), dtype=bool)
        return Cuts(term[kept], u[kept], h[kept], flags, kinds[kept] == FEASIBILITY)

    def _conjugates_of(self, terms: Ints, u: Floats) -> Floats:
        h = np.empty(len(u))
        conjugate_pairs(self.theta[terms], u, h)
        return self._with_margin(h, u, self._magnitude[terms])

    def _hall(self, terms: Ints, u: Floats) -> Floats:
        """The largest -u over the finite entries; 0 by Hall's condition. In integers, so without margin."""
        indicator = np.where(self._excluded[terms], -np.inf, 0.0)
        h = np.empty(len(u))
        conjugate_pairs(indicator, u, h)
        return h

    def _with_margin(self, h: Floats, u: Floats, magnitude: Floats) -> Floats:
        """Two subtractions of numbers no larger than this scale."""
        a, b = self._split(np.abs(u))
        return np.asarray(raised(h, magnitude + a.max(axis=1) + b.max(axis=1), 2))

    def _split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x[:, : self.sizes[0]], x[:, self.sizes[0] :]
