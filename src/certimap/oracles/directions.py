"""Terms that see their columns through one linear form s = a.x + offset: ranges, cuts in x, conjugates."""

from __future__ import annotations

import numpy as np

from certimap._numeric.rounding import gamma
from certimap.oracles.cuts import Floats, Ints
from certimap.oracles.envelope1d import Envelope1D


class Directions:
    """s_i = coefficients_i . x_i + offsets_i for the terms of a batch."""

    def __init__(self, coefficients: Floats, offsets: Floats) -> None:
        self.coefficients = coefficients
        self.offsets = offsets

    def arguments(self, x: Floats) -> Floats:
        return np.asarray((self.coefficients * x).sum(axis=1) + self.offsets)

    def span(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """The range of s over boxes (m, w), rounded outward."""
        ends = self.coefficients * lower, self.coefficients * upper
        width = self.coefficients.shape[1]
        slack = 2.0 * gamma(width + 3) * (np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=1) + abs(self.offsets))
        low = np.minimum(*ends).sum(axis=1) + self.offsets
        high = np.maximum(*ends).sum(axis=1) + self.offsets
        return low - slack, high + slack

    def in_columns(self, terms: Ints, slopes: Floats, h: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """The bound slopes * s + h as u.x + h', with h' raised by the rounding of u; |x| <= reach, row by row."""
        u = slopes[:, None] * self.coefficients[terms]
        shift = slopes * self.offsets[terms]
        scale = (np.abs(u) * reach).sum(axis=1) + np.abs(shift) + np.abs(h)
        return u, h + shift + 4.0 * gamma(4) * scale

    def conjugate(self, i: int, u: Floats, lower: Floats, upper: Floats, env: Envelope1D) -> tuple[float, Floats]:
        """An upper bound of max over the box of g(s) - u.x for term i, and a point that nearly attains it.

        The largest -u.x for given s is concave and piecewise linear in s: coordinates move in the order of their price
        kappa_j = u_j / a_j. On the segment where j moves,
            g(s) - u.x <= max over the segment of (g(s) - kappa_j s) + max over the box of (kappa_j a - u).x
        up to the offset, and equality holds in exact arithmetic. Rounded prices and segment ends keep it valid.
        """
        a, offset = self.coefficients[i], self.offsets[i]
        order = np.argsort(u / a, kind="stable")
        kappa = (u / a)[order]
        low, high = (part[0] for part in Directions(a[None, :], self.offsets[i : i + 1]).span(lower[None], upper[None]))
        stops = low + np.cumsum((np.abs(a) * (upper - lower))[order])
        stops[-1] = high
        stops = np.minimum(stops, high)
        starts = np.append(low, stops[:-1])
        h, s = env.on(starts, stops, np.full(len(order), i)).conjugate(kappa)
        reduced = kappa[:, None] * a - u
        linear = np.maximum(reduced * lower, reduced * upper).sum(axis=1)
        reach = np.maximum(np.abs(lower), np.abs(upper))
        scale = (np.abs(kappa[:, None] * a) + np.abs(u)) @ reach + np.abs(kappa * offset) + np.abs(h)
        bounds = h + kappa * offset + linear + 4.0 * gamma(len(order) + 4) * scale
        best = int(np.argmax(bounds))
        x = np.where(a > 0.0, lower, upper)
        moved = order[:best]
        x[moved] = np.where(a > 0.0, upper, lower)[moved]
        j = order[best]
        others = float(a @ x - a[j] * x[j]) + offset
        x[j] = np.clip((s[best] - others) / a[j], lower[j], upper[j])
        return float(bounds[best]), x


def best_of_linear(u: Floats, lower: Floats, upper: Floats) -> tuple[float, Floats]:
    """An upper bound of max over a box of -u.x, and its maximiser."""
    x = np.where(u > 0.0, lower, upper)
    terms = -u * x
    return float(terms.sum() + 2.0 * gamma(len(u) + 2) * np.abs(terms).sum()), x
