"""Factors known through the user's oracle: bounds over boxes, refined by branching. Their validity is the user's."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.model.errors import ModelError
from certimap.model.factors import BlackBox
from certimap.oracles.cuts import Box, Cuts, Floats, Ints
from certimap.oracles.directions import best_of_linear
from certimap.oracles.protocol import Oracle, register


@register("black_box")
class BlackBoxOracle(Oracle):
    """theta_i(x) <= the oracle's bound over the box: constant local cuts.

    A method `conjugate(u, lower, upper)` of the user's oracle, where it has one, bounds theta(x) - u.x more tightly
    than the difference of the two bounds.
    """

    exact_at_integers = False
    global_cuts = False

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        self._factors = cast(tuple[BlackBox, ...], batch.factors)

    def value(self, y: Floats) -> Floats:
        return np.array([f.value(y[columns]) for f, columns in zip(self._factors, self.scope, strict=True)])

    def upper(self, box: Box) -> Floats:
        return np.array(
            [self._bound(f, *box.part(columns)) for f, columns in zip(self._factors, self.scope, strict=True)]
        )

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        lower, upper = box.part(self.scope[i])
        h, x = best_of_linear(u, lower, upper)
        own = getattr(self._factors[i].oracle, "conjugate", None)
        if callable(own):
            return _checked(self._factors[i], "conjugate", float(own(u, lower.copy(), upper.copy()))), x
        top = self._bound(self._factors[i], lower, upper)
        return (top if top == -math.inf else math.nextafter(h + top, math.inf)), x

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        bounds = self.upper(box)
        return self._constants(np.flatnonzero(t > bounds + tolerance), bounds)

    def proposals(self, box: Box) -> Cuts:
        return self._constants(np.arange(len(self.batch)), self.upper(box))

    def branch_scores(self, y: Floats, gap: Floats) -> Floats:
        """The gap, shared out by the widths of the columns."""
        width = (self.graph.upper - self.graph.lower)[self.scope]
        total = np.maximum(width.sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(width / total * np.maximum(gap, 0.0)[:, None])

    def _constants(self, terms: Ints, bounds: Floats) -> Cuts:
        """theta_i <= bound, or 0 <= -1 where the oracle says that the box holds no point of the domain."""
        width = self.scope.shape[1]
        finite = bounds[terms] > -math.inf
        some, none = terms[finite], terms[~finite]
        excluded = Cuts.of(none, np.zeros((len(none), width)), -np.ones(len(none)), local=True, feasibility=True)
        return Cuts.join([Cuts.of(some, np.zeros((len(some), width)), bounds[some], local=True), excluded], width)

    @staticmethod
    def _bound(factor: BlackBox, lower: Floats, upper: Floats) -> float:
        return _checked(factor, "upper", float(factor.oracle.upper(lower.copy(), upper.copy())))


def _checked(factor: BlackBox, method: str, bound: float) -> float:
    if math.isnan(bound) or bound == math.inf:
        raise ModelError(f"{factor.label()}: the oracle's {method!r} must return a number below inf, got {bound}")
    return bound
