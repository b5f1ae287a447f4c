"""Ridges g(a.x + offset) and sums of ridges along one direction.

The concave envelope over a box is the one-dimensional envelope of g on the range of s = a.x + offset. Concave g: every
tangent is a global cut, tight where it touches. Other g: cuts hold on the range they were made for and get tight as
the box shrinks.
"""

from __future__ import annotations

import numpy as np

from certimap.graph.blocks import RidgeSum
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.model.factors import Ridge
from certimap.oracles.curve_sum import CurveSum
from certimap.oracles.cuts import Box, Cuts, Floats, Ints
from certimap.oracles.directions import Directions
from certimap.oracles.envelope1d import Envelope1D
from certimap.oracles.protocol import Oracle, register
from certimap.oracles.univariate import KINDS, Curve


class _Ridges(Oracle):
    """Terms theta_i(x) = g_i(a_i.x + offset_i)."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph, curve: Curve, offsets: Floats) -> None:
        super().__init__(batch, graph)
        self.directions = Directions(batch.data["coefficients"], offsets)
        self._root = Box(graph.lower, graph.upper)
        self.envelope = Envelope1D(curve, *self._span(self._root))
        self.exact_at_integers = self.global_cuts = curve.concave

    def value(self, y: Floats) -> Floats:
        return self.envelope.value(self.directions.arguments(y[self.scope]))

    def upper(self, box: Box) -> Floats:
        return self.envelope.on(*self._span(box)).conjugate(np.zeros(len(self.batch)))[0]

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        return self.directions.conjugate(i, u, *self._domain(box).part(self.scope[i]), self.envelope)

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        x = y[self.scope]
        a, b = self._span(self._domain(box))
        s = np.clip(self.directions.arguments(x), a, b)
        terms = np.flatnonzero(t > self.envelope.value(s) + tolerance)
        if not len(terms):
            return Cuts.none(self.scope.shape[1])
        slopes = self.envelope.on(a[terms], b[terms], terms).support(s[terms])
        u, h, local = self._cuts(terms, slopes, box)
        violated = t[terms] > np.einsum("ij,ij->i", u, x[terms]) + h + tolerance
        return Cuts.of(terms[violated], u[violated], h[violated], local=local[violated])

    def proposals(self, box: Box) -> Cuts:
        """The constant bound and the supporting lines at both ends of the range."""
        interval = self.envelope.on(*self._span(self._domain(box)))
        terms = np.arange(len(self.batch))
        parts = []
        for slopes in (np.zeros(len(terms)), interval.support(interval.a), interval.support(interval.b)):
            u, h, local = self._cuts(terms, slopes, box)
            parts.append(Cuts.of(terms, u, h, local=local))
        return Cuts.join(parts, self.scope.shape[1])

    def branch_scores(self, y: Floats, gap: Floats) -> Floats:
        """The gap, shared out by how much each column moves s over its whole range."""
        return shares(self.directions.coefficients, self.scope, self.graph) * np.maximum(gap, 0.0)[:, None]

    def _domain(self, box: Box) -> Box:
        return self._root if self.global_cuts else box

    def _span(self, box: Box) -> tuple[Floats, Floats]:
        return self.directions.span(*box.part(self.scope))

    def _cuts(self, terms: Ints, slopes: Floats, box: Box) -> tuple[Floats, Floats, np.ndarray]:
        """Cuts with these slopes in s; those whose range is the root's hold everywhere."""
        lower, upper = (part[terms] for part in self._domain(box).part(self.scope))
        a, b = (part[terms] for part in self._span(self._domain(box)))
        h, _ = self.envelope.on(a, b, terms).conjugate(slopes)
        reach = np.maximum(np.abs(lower), np.abs(upper))
        u, h = self.directions.in_columns(terms, slopes, h, reach)
        return u, h, (a > self.envelope.low[terms]) | (b < self.envelope.high[terms])


@register("ridge")
class RidgeOracle(_Ridges):
    """g(a.x + offset), one kind of g per batch."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        first = batch.factors[0]
        assert isinstance(first, Ridge)
        curve = KINDS[first.function.kind](batch.data["parameters"])
        super().__init__(batch, graph, curve, batch.data["offset"])


@register("ridge_sum")
class RidgeSumOracle(_Ridges):
    """sum_j g_j(a.x + offset_j), the same kinds g_j in every term of a batch."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        terms = [f.functions for f in batch.factors if isinstance(f, RidgeSum)]
        curves = [
            KINDS[g.kind](np.array([functions[j][1].parameters for functions in terms]))
            for j, (_, g) in enumerate(terms[0])
        ]
        curve = CurveSum(batch.data["offsets"], curves)
        super().__init__(batch, graph, curve, np.zeros(len(batch)))


def shares(coefficients: Floats, scope: Ints, graph: FactorGraph) -> Floats:
    """|a_j| times the width of column j in the root box, scaled to sum to one."""
    spread = np.abs(coefficients) * (graph.upper - graph.lower)[scope]
    return np.asarray(spread / np.maximum(spread.sum(axis=1, keepdims=True), 1e-300))
