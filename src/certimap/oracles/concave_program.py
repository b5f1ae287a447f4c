"""The convex program max f(x) - u.x over a box, compiled by CVXPY once per factor and solved for many u and boxes."""

from __future__ import annotations

import warnings

import numpy as np

from certimap.model.concave import Concave
from certimap.oracles.cuts import Floats


class ConcaveProgram:
    """Finds good points only: nothing rests on the solver's accuracy."""

    def __init__(self, factor: Concave) -> None:
        import cvxpy as cp  # whoever made the factor has it

        size = len(factor.atoms)
        self._x = cp.Variable(size)
        self._u, self._lower, self._upper = (cp.Parameter(size) for _ in range(3))
        links = [
            cp.reshape(variable, (variable.size,), order="F") == self._x[positions.ravel(order="F")]
            for variable, positions in factor.arguments
        ]
        box = [self._x >= self._lower, self._x <= self._upper]
        self._problem = cp.Problem(cp.Maximize(factor.expression - self._u @ self._x), [*links, *box])
        self._failure = cp.error.SolverError

    def maximiser(self, u: Floats, lower: Floats, upper: Floats) -> Floats | None:
        """A point of the box near the maximum, None if the solver fails."""
        self._u.value, self._lower.value, self._upper.value = u, lower, upper
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about accuracy, which is not relied on
                self._problem.solve()
        except self._failure:
            return None
        found = self._x.value
        return None if found is None or not np.isfinite(found).all() else np.clip(found, lower, upper)
