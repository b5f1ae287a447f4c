"""Gated ridges z g(s) with z binary and s = a.x + offset in a range [a, b].

For z in {0, 1} the largest value of z g(s) - us s is c(us) = max g(s) - us s where z = 1 and
h0(us) = max(-us a, -us b) where z = 0. With u_z = c - h0 the cut  z g(s) <= us s + u_z z + h0  touches both. At a
fractional z the best slope us is that of the concave envelope of g at
    s1 = the maximiser of g, clipped to what (s - (1 - z) s0) / z can be for s0 in [a, b]:
the point of the line z = 1 from which, mixed with some s0 on the line z = 0, the point (z, s) is made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certimap._numeric.rounding import gamma
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.model.factors import Gated
from certimap.oracles.cuts import Box, Cuts, Floats, Ints
from certimap.oracles.directions import Directions, best_of_linear
from certimap.oracles.envelope1d import Envelope1D
from certimap.oracles.protocol import Oracle, register
from certimap.oracles.ridge import shares
from certimap.oracles.univariate import KINDS


@register("gated")
class GatedOracle(Oracle):
    """z g(a.x + offset), one kind of g per batch; the first scope column is z."""

    global_cuts = False

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        first = batch.factors[0]
        assert isinstance(first, Gated)
        self.directions = Directions(batch.data["coefficients"], batch.data["offset"])
        curve = KINDS[first.function.kind](batch.data["parameters"])
        self.envelope = Envelope1D(curve, *self._span(Box(graph.lower, graph.upper)))
        self.exact_at_integers = curve.concave

    def value(self, y: Floats) -> Floats:
        """z g(s), interpolated in z."""
        x = y[self.scope]
        return x[:, 0] * self.envelope.value(self._clipped_arguments(x))

    def upper(self, box: Box) -> Floats:
        off, on = self._gates(box)
        top = self.envelope.on(*self._span(box)).conjugate(np.zeros(len(self.batch)))[0]
        return np.maximum(np.where(off, 0.0, -np.inf), np.where(on, top, -np.inf))

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        lower, upper = (part[1:] for part in box.part(self.scope[i]))
        off, on = (bool(gate[i]) for gate in self._gates(box))
        found = []
        if off:
            h, x = best_of_linear(u[1:], lower, upper)
            found.append((h, np.append(0.0, x)))
        if on:
            h, x = self.directions.conjugate(i, u[1:], lower, upper, self.envelope)
            found.append((h - u[0] + 2.0 * gamma(2) * (abs(h) + abs(u[0])), np.append(1.0, x)))
        return max(found, key=lambda pair: pair[0])

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        x = y[self.scope]
        z = np.clip(x[:, 0], *box.part(self.scope[:, 0]))
        interval = self.envelope.on(*self._span(box))
        a, b = interval.a, interval.b
        s = np.clip(self.directions.arguments(x[:, 1:]), a, b)
        share = np.maximum(z, 1e-12)
        low = np.clip(b + (s - b) / share, a, b)
        high = np.clip(a + (s - a) / share, a, b)
        _, top = interval.conjugate(np.zeros(len(s)))
        start = np.clip(top, low, np.maximum(high, low))
        slopes = np.where(start == top, 0.0, interval.support(start))
        u, h = self._cuts(np.arange(len(s)), slopes, box)
        terms = np.flatnonzero(t > np.einsum("ij,ij->i", u, x) + h + tolerance)
        return Cuts.of(terms, u[terms], h[terms], local=self._local(box)[terms])

    def proposals(self, box: Box) -> Cuts:
        """z g(s) <= z max g, and the cuts whose slopes in s are those at both ends of the range."""
        interval = self.envelope.on(*self._span(box))
        terms = np.arange(len(self.batch))
        parts = []
        for slopes in (np.zeros(len(terms)), interval.support(interval.a), interval.support(interval.b)):
            u, h = self._cuts(terms, slopes, box)
            parts.append(Cuts.of(terms, u, h, local=self._local(box)))
        return Cuts.join(parts, self.scope.shape[1])

    def branch_scores(self, y: Floats, gap: Floats) -> Floats:
        """The gap for the gate, and shared out by their effect on s for the other columns."""
        moved = shares(self.directions.coefficients, self.scope[:, 1:], self.graph)
        return np.column_stack([np.ones(len(gap)), moved]) * np.maximum(gap, 0.0)[:, None]

    def _span(self, box: Box) -> tuple[Floats, Floats]:
        return self.directions.span(*box.part(self.scope[:, 1:]))

    def _clipped_arguments(self, x: Floats) -> Floats:
        return np.clip(self.directions.arguments(x[:, 1:]), self.envelope.low, self.envelope.high)

    def _gates(self, box: Box) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether z may be 0 and whether it may be 1 in the box."""
        lower, upper = box.part(self.scope[:, 0])
        return lower < 0.5, upper > 0.5

    def _local(self, box: Box) -> NDArray[np.bool_]:
        """The cuts use the range of s only, so they hold everywhere when it is the root's."""
        a, b = self._span(box)
        return (a > self.envelope.low) | (b < self.envelope.high)

    def _cuts(self, terms: Ints, slopes: Floats, box: Box) -> tuple[Floats, Floats]:
        lower, upper = (part[terms] for part in box.part(self.scope[:, 1:]))
        reach = np.maximum(np.abs(lower), np.abs(upper))
        a, b = (part[terms] for part in self._span(box))
        on, _ = self.envelope.on(a, b, terms).conjugate(slopes)
        u, on = self.directions.in_columns(terms, slopes, on, reach)
        # Without the gate's value: 0 <= u.x + off on the whole box.
        ends = u * lower, u * upper
        off = -np.minimum(*ends).sum(axis=1)
        off = off + 2.0 * gamma(u.shape[1] + 2) * np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=1)
        gate = on - off
        slack = 2.0 * gamma(2) * (np.abs(on) + np.abs(off))  # the rounding of on - off
        return np.column_stack([gate, u]), off + slack
