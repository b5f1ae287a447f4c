"""Concave factors known by value and gradient: outer approximation.

A concave f lies below each of its tangents, f(x) <= f(x0) + g.(x - x0). Every cut is one tangent and carries its point
x0 as the witness. The tangent is as exact as the gradient in double precision; a relative margin covers that error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.optimize import linprog

from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.model.concave import Concave
from certimap.model.errors import ModelError
from certimap.oracles.concave_program import ConcaveProgram
from certimap.oracles.cuts import Box, Cuts, Floats
from certimap.oracles.protocol import Oracle, register

MARGIN = 1e-9  # relative error granted to the gradients of compound expressions in double precision
RETREATS = (0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.6, 1.0)  # shares of the way to an inner point
HALVINGS = 30  # of the distance to the edge of the domain
STEPS = 30
CLOSE = 1e-7  # relative gap between value and bound at which the maximisation stops


@dataclass(frozen=True)
class _Tangent:
    """f(x) <= slope.x + height on the whole domain, margin included; f(point) = value."""

    point: Floats
    value: float
    slope: Floats
    height: float

    def at(self, x: Floats) -> float:
        return float(self.slope @ x) + self.height


@register("concave")
class ConcaveOracle(Oracle):
    """Tangents of concave factors."""

    box_bounds = False  # a verifier needs the tangents

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        self._factors = cast(tuple[Concave, ...], batch.factors)
        self._root = Box(graph.lower, graph.upper)
        self._programs: dict[int, ConcaveProgram] = {}

    def value(self, y: Floats) -> Floats:
        return np.array([f.value(y[columns]) for f, columns in zip(self._factors, self.scope, strict=True)])

    def upper(self, box: Box) -> Floats:
        zero = np.zeros(self.scope.shape[1])
        return np.array([self._maximise(i, zero, box)[0] for i in range(len(self.batch))])

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        return self._maximise(i, u, self._root)

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        found = []
        for i, columns in enumerate(self.scope):
            x = y[columns]
            if t[i] <= self._factors[i].value(x) + tolerance:
                continue
            tangent = self._steep_tangent(i, x, box, float(t[i]) - tolerance)
            if tangent.at(x) < t[i] - tolerance:
                found.append((i, tangent))
        return self._cuts(found)

    def proposals(self, box: Box) -> Cuts:
        """The tangents at the centre of the box."""
        return self._cuts([(i, self._tangent(i, c, c)) for i in range(len(self.batch)) for c in [self._centre(i, box)]])

    def _cuts(self, tangents: list[tuple[int, _Tangent]]) -> Cuts:
        if not tangents:
            return Cuts.none(self.scope.shape[1])
        return Cuts.of(
            np.array([i for i, _ in tangents]),
            np.array([tangent.slope for _, tangent in tangents]),
            np.array([tangent.height for _, tangent in tangents]),
            witness=np.array([tangent.point for _, tangent in tangents]),
        )

    def _steep_tangent(self, i: int, x: Floats, box: Box, target: float) -> _Tangent:
        """The tangent at x; outside the domain, one so near to its edge that it is below `target` at x, if there is."""
        tangent = self._tangent(i, x, self._centre(i, box))
        beyond = x
        for _ in range(HALVINGS):
            if tangent.at(x) < target or np.array_equal(tangent.point, x):
                break
            middle = 0.5 * (tangent.point + beyond)
            nearer = self._tangent_at(i, middle)
            if nearer is None:
                beyond = middle
            else:
                tangent = nearer
        return tangent

    def _tangent(self, i: int, x: Floats, inner: Floats) -> _Tangent:
        """The tangent at x or, where value or gradient is not finite, at the nearest of some points towards `inner`."""
        for anchor in self._anchors(i, inner):
            for share in RETREATS:
                if (tangent := self._tangent_at(i, x + share * (anchor - x))) is not None:
                    return tangent
        raise ModelError(f"{self._factors[i].label()}: no point with a finite value and gradient was found")

    def _anchors(self, i: int, inner: Floats) -> Iterator[Floats]:
        """Points likely to be inside the domain; the last resort costs a convex program."""
        yield inner
        yield self._centre(i, self._root)
        if (solution := self._solution(i, np.zeros(len(inner)), self._root)) is not None:
            yield solution

    def _tangent_at(self, i: int, point: Floats) -> _Tangent | None:
        value = self._factors[i].value(point)
        slope = self._factors[i].gradient(point) if np.isfinite(value) else None
        if slope is None:
            return None
        lower, upper = self._root.part(self.scope[i])
        reach = np.maximum(np.abs(lower), np.abs(upper))
        margin = MARGIN * (1.0 + abs(value) + float(np.abs(slope) @ reach))
        return _Tangent(point, value, slope, value - float(slope @ point) + margin)

    def _solution(self, i: int, u: Floats, box: Box) -> Floats | None:
        """A point near the maximum of f(x) - u.x over the box, by the convex program."""
        if i not in self._programs:
            self._programs[i] = ConcaveProgram(self._factors[i])
        return self._programs[i].maximiser(u, *box.part(self.scope[i]))

    def _centre(self, i: int, box: Box) -> Floats:
        lower, upper = box.part(self.scope[i])
        return 0.5 * (lower + upper)

    def _maximise(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        """An upper bound of max over the box of f(x) - u.x and a point that nearly attains it.

        Cutting planes from the solution of the convex program. Multipliers w >= 0 with sum one make of the tangents
        one that is valid too, and its largest value on the box is a bound; those of the linear program are the best.
        """
        lower, upper = box.part(self.scope[i])
        inner = self._centre(i, box)
        start = self._solution(i, u, box)
        tangents = [self._tangent(i, inner if start is None else start, inner)]
        bound, value, best = np.inf, -np.inf, inner
        for _ in range(STEPS):
            last = tangents[-1]
            if (found := last.value - float(u @ last.point)) > value and _inside(last.point, lower, upper):
                value, best = found, last.point
            weights, x = _highest(tangents, u, lower, upper)
            bound = min(bound, _combined(weights, tangents, u, lower, upper))
            if bound - value <= CLOSE * (1.0 + abs(bound)):
                break
            tangents.append(self._tangent(i, x, best))
        return bound, best


def _highest(tangents: list[_Tangent], u: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The point of the box where the lowest of the tangents, less u.x, is highest, and its multipliers."""
    solution = linprog(
        np.append(np.zeros(len(u)), -1.0),
        A_ub=np.array([np.append(u - tangent.slope, 1.0) for tangent in tangents]),
        b_ub=np.array([tangent.height for tangent in tangents]),
        bounds=[*zip(lower, upper, strict=True), (None, None)],
        method="highs",
    )
    last = np.zeros(len(tangents))
    last[-1] = 1.0
    if solution.x is None:
        return last, tangents[-1].point
    weights = np.maximum(-np.asarray(solution.ineqlin.marginals), 0.0)
    total = float(weights.sum())  # one, up to the solver's tolerance
    return (weights / total if total > 0.5 else last), np.clip(solution.x[:-1], lower, upper)


def _combined(weights: Floats, tangents: list[_Tangent], u: Floats, lower: Floats, upper: Floats) -> float:
    """The largest value over the box of the weighted tangent; the tangents' own margins dwarf its rounding errors."""
    slope = weights @ np.array([tangent.slope - u for tangent in tangents])
    height = float(weights @ np.array([tangent.height for tangent in tangents]))
    return height + float(np.maximum(slope * lower, slope * upper).sum())


def _inside(x: Floats, lower: Floats, upper: Floats) -> bool:
    return bool((x >= lower).all() and (x <= upper).all())
