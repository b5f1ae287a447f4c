"""Sums of univariate functions with offsets, bounded together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certimap._numeric.rounding import gamma
from certimap.oracles.cuts import Floats, Ints
from certimap.oracles.univariate import Curve, Pair


class CurveSum(Curve):
    """sum_j g_j(s + offset_j): functions of one argument, bounded together."""

    def __init__(self, offsets: Floats, curves: Sequence[Curve]) -> None:
        super().__init__(offsets)
        self.curves = tuple(curves)
        self.concave = all(c.concave for c in self.curves)
        if self.kinks().size:
            self.halvings = 54  # a maximum at a kink is met to first order only
        self.roundings = len(self.curves) + max(c.roundings for c in self.curves)

    def rows(self, index: Ints) -> Curve:
        return CurveSum(self.parameters[index], [c.rows(index) for c in self.curves])

    def _shifted(self, s: Floats) -> list[tuple[Curve, Floats]]:
        return [(c, s + self.parameters[:, j : j + 1]) for j, c in enumerate(self.curves)]

    def value(self, s: Floats) -> Floats:
        return _total([c.value(x) for c, x in self._shifted(s)])

    def slopes(self, s: Floats) -> Pair:
        parts = [c.slopes(x) for c, x in self._shifted(s)]
        return _total([left for left, _ in parts]), _total([right for _, right in parts])

    def curvature(self, left: Floats, right: Floats) -> Pair:
        parts = [
            c.curvature(low, high)
            for (c, low), (_, high) in zip(self._shifted(left), self._shifted(right), strict=True)
        ]
        room = 2.0 * gamma(self.roundings) * _total([np.abs(low) + np.abs(high) for low, high in parts])
        return _total([low for low, _ in parts]) - room, _total([high for _, high in parts]) + room

    def kinks(self) -> Floats:
        return np.concatenate([c.kinks() - self.parameters[:, j : j + 1] for j, c in enumerate(self.curves)], axis=1)

    def inflections(self) -> Floats:
        parts = [c.inflections() - self.parameters[:, j : j + 1] for j, c in enumerate(self.curves)]
        return np.concatenate(parts, axis=1)

    def magnitude(self, s: Floats, value: Floats) -> Floats:
        # s + offset and the kinks are rounded too, which moves g_j by its slope times that error.
        return _total(
            [
                c.magnitude(x, c.value(x)) + c.slope_magnitude(x, c.slopes(x)) * self._size(j, s)
                for j, (c, x) in enumerate(self._shifted(s))
            ]
        )

    def slope_magnitude(self, s: Floats, slopes: Pair) -> Floats:
        parts = []
        for j, (c, x) in enumerate(self._shifted(s)):
            low, high = c.curvature(x, x)
            bend = np.maximum(np.abs(low), np.abs(high))
            parts.append(c.slope_magnitude(x, c.slopes(x)) + bend * self._size(j, s))
        return _total(parts)

    def _size(self, j: int, s: Floats) -> Floats:
        return np.abs(s) + np.abs(self.parameters[:, j : j + 1])


def _total(parts: list[Floats]) -> Floats:
    return np.asarray(np.sum(parts, axis=0))
