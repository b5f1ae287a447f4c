"""Certified conjugates and concave envelopes of univariate functions on intervals.

The range of every function is cut once (`pieces`) into stretches on which g is
  concave up to an excess L (g'' <= L): for a slope d of g at any s0 and any s,
           g(s) - u s <= g(s0) - u s0 + (d - u)(s - s0) + L (s - s0)^2 / 2,
           so an inexact maximiser s0 costs tightness, never validity;
  convex up to a deficit L (g'' >= -L):  g(s) - u s <= larger end value + L width^2 / 8.
L is zero but next to inflections, where it is below rounding level.
"""

from __future__ import annotations

import numpy as np

from certimap._numeric.rounding import gamma
from certimap.oracles.cuts import Floats, Ints
from certimap.oracles.pieces import Pieces, cut_by_curvature
from certimap.oracles.univariate import UNDERFLOW, Curve, Pair

CHORDS = 24  # chord steps towards a bitangent; they converge quadratically
TIGHT = 1e-12  # relative distance to the envelope at which a supporting line is taken as found
SAME = 1e-7  # points this close, relative to the interval, are the same up to a second-order effect


class Envelope1D:
    """The functions of a curve on their whole ranges [low_i, high_i]."""

    def __init__(self, curve: Curve, low: Floats, high: Floats) -> None:
        self.curve = curve
        self.low = low
        self.high = high
        self._pieces = cut_by_curvature(curve, low, high)

    def value(self, s: Floats) -> Floats:
        return _flat(self.curve.value(s[:, None]))

    def on(self, a: Floats, b: Floats, terms: Ints | None = None) -> OnIntervals:
        """The functions (or those at the positions `terms`) restricted to intervals [a, b] within their ranges."""
        curve, pieces, low, high = self.curve, self._pieces, self.low, self.high
        if terms is not None:
            curve, pieces, low, high = curve.rows(terms), pieces.rows(terms), low[terms], high[terms]
        a = np.clip(a, low, high)
        return OnIntervals(curve, pieces, a, np.maximum(np.clip(b, low, high), a))


class OnIntervals:
    """Functions restricted to intervals: conjugates and supporting lines there."""

    def __init__(self, curve: Curve, pieces: Pieces, a: Floats, b: Floats) -> None:
        self.curve = curve
        self.pieces = pieces
        self.a = a
        self.b = b
        self._stops = np.clip(pieces.ends, a[:, None], b[:, None])
        self._width = np.diff(self._stops, axis=1)
        if not curve.concave:
            self._at_stops = curve.evaluate(self._stops)

    def rows(self, index: Ints) -> OnIntervals:
        return OnIntervals(self.curve.rows(index), self.pieces.rows(index), self.a[index], self.b[index])

    def value(self, s: Floats) -> Floats:
        return _flat(self.curve.value(s[:, None]))

    def conjugate(self, u: Floats) -> Pair:
        """Upper bounds of max over [a, b] of g(s) - u s, and points that nearly attain them."""
        slope = u[:, None]
        bound, best = self._on_concave(slope)
        if self.curve.concave:
            return _flat(bound), _flat(best)
        other, end = self._on_convex(slope)
        bound = np.where(self.pieces.concave, bound, other)
        best = np.where(self.pieces.concave, best, end)
        piece = np.argmax(bound, axis=1)[:, None]
        return _flat(np.take_along_axis(bound, piece, 1)), _flat(np.take_along_axis(best, piece, 1))

    def support(self, s: Floats) -> Floats:
        """Slopes u of lines that touch the concave envelope at s: they minimise u s + conjugate(u)."""
        before, after = self.curve.slopes(s[:, None])
        u = _flat(np.clip(0.0, after, np.maximum(before, after)))
        if self.curve.concave:
            return u
        line = u * s + self.conjugate(u)[0]
        level = self.value(s)
        loose = np.flatnonzero(line > level + TIGHT * (1.0 + np.abs(level)))
        if len(loose):
            u[loose] = self.rows(loose)._chords(s[loose], u[loose], line[loose])
        return u

    def _chords(self, s: Floats, u: Floats, line: Floats) -> Floats:
        """Improve slopes u of lines that pass `line` at s, where the envelope is a chord over a convex stretch.

        The chord through a point on each side of s is moved to the point farthest above it until none is above.
        """
        best = u.copy()
        open_, part = np.arange(len(s)), self
        left, right = self.a, self.b
        at_left, at_right = self.value(left), self.value(right)
        for _ in range(CHORDS):
            width = right - left
            chord = np.divide(at_right - at_left, width, out=best[open_], where=width > 0.0)
            h, x = part.conjugate(chord)
            height = chord * s + h
            better = height < line
            best[open_[better]] = chord[better]
            line = np.minimum(height, line)
            floor = at_left + chord * (s - left)
            # A chord whose farthest point is one of its ends is a bitangent, whatever margins `line` contains.
            moved = np.minimum(np.abs(x - left), np.abs(x - right)) > SAME * (part.b - part.a)
            go = np.flatnonzero((line > floor + TIGHT * (1.0 + np.abs(floor))) & moved & (x != s))
            if not len(go):
                break
            at_x = part.value(x)
            left, at_left = np.where(x < s, x, left)[go], np.where(x < s, at_x, at_left)[go]
            right, at_right = np.where(x > s, x, right)[go], np.where(x > s, at_x, at_right)[go]
            s, line, open_ = s[go], line[go], open_[go]
            part = part.rows(go) if len(go) < len(width) else part
        return best

    def _on_concave(self, u: Floats) -> Pair:
        s, low, high = self.curve.stationary(u, self._stops[:, :-1], self._stops[:, 1:])
        before, after, slope_error = self.curve.evaluate_slopes(s)
        residual = np.clip(u, after, np.maximum(before, after)) - u
        gain = np.maximum(np.maximum(residual * (high - s), residual * (low - s)), 0.0)
        slack = (slope_error + 4.0 * gamma(1) * np.abs(u)) * self._width
        value, error = self.curve.evaluate(s)
        return _line(value, error, u * s) + gain + slack + 0.5 * self.pieces.loss * self._width**2, s

    def _on_convex(self, u: Floats) -> Pair:
        value, error = self._at_stops
        ends = _line(value, error, u * self._stops)
        left, right = ends[:, :-1], ends[:, 1:]
        bound = np.maximum(left, right) + 0.125 * self.pieces.loss * self._width**2
        return bound, np.where(left >= right, self._stops[:, :-1], self._stops[:, 1:])


def _line(value: Floats, error: Floats, product: Floats) -> Floats:
    """value - product, rounded up."""
    return value - product + error + 4.0 * gamma(4) * (np.abs(value) + np.abs(product)) + UNDERFLOW


def _flat(column: Floats) -> Floats:
    return column.reshape(-1)
