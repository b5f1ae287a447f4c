"""The tightest cut at a point for families without a closed form.

The concave envelope of theta at y is  min over u of f(u) = u.y + h(u),  h(u) = max over x of theta(x) - u.x.
Every conjugate returns a maximiser x_k, hence a supporting plane of the convex function f:
    f(u) >= theta_k + u.(y - x_k),   theta_k = h(u_k) + u_k.x_k.
Minimising the largest plane over a bounded set of u gives the next u (Kelley's cutting-plane method). Each u tried is
a valid cut, so stopping early costs tightness, never validity.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from scipy.optimize import linprog

from certimap.oracles.cuts import Box, Cuts, Floats

MAX_STEPS = 60
REACH = 1e4  # bound on |u| relative to the size of the values: keeps the planes' minimum finite


class _Conjugates(Protocol):
    global_cuts: bool

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]: ...


def envelope_cut(oracle: _Conjugates, i: int, y: Floats, t: float, box: Box, tolerance: float) -> Cuts | None:
    """The tightest cut found on term i at scope values y, or None if none is violated by more than the tolerance."""
    u = np.zeros(len(y))
    best_u, best_h, best = u, math.inf, math.inf
    planes: list[tuple[Floats, float]] = []  # f(u) >= constant + u.slope
    for _ in range(MAX_STEPS):
        h, x = oracle.conjugate(i, u, box)
        value = float(u @ y) + h
        if value < best:
            best_u, best_h, best = u, h, value
        planes.append((y - x, h + float(u @ x)))
        reach = REACH * (1.0 + max(abs(constant) for _, constant in planes))
        step = _lowest(planes, reach)
        # No cut at y goes below `floor`, up to the error of the maximisers.
        if step is None or (floor := step[1]) > min(best, t) - 0.1 * tolerance:
            break
        u = step[0]
        if best < t - tolerance and best - floor <= 0.1 * (t - best):
            break  # violated, and hardly any tighter cut exists
    if best >= t - tolerance:
        return None
    return Cuts.of(np.array([i]), best_u[None, :], np.array([best_h]), local=not oracle.global_cuts)


def _lowest(planes: list[tuple[Floats, float]], reach: float) -> tuple[Floats, float] | None:
    """The minimiser over |u| <= reach of the largest plane, and the minimum."""
    width = len(planes[0][0])
    rows = np.array([np.append(slope, -1.0) for slope, _ in planes])
    limits = np.array([-constant for _, constant in planes])
    objective = np.append(np.zeros(width), 1.0)
    bounds = [(-reach, reach)] * width + [(None, None)]
    solution = linprog(objective, A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
    if solution.x is None or solution.fun is None:
        return None
    return solution.x[:width], float(solution.fun)
