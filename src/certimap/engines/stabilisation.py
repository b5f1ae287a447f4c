"""Box-step stabilisation of dual multipliers.

Column generation proposes wild multipliers as long as few columns are known. The box-step method keeps them within a
box around the best point so far: a better point becomes the new centre; a box whose border binds at its optimum is
moved there and widened; an optimum in the interior is one of the whole problem.
"""

from __future__ import annotations

import math

import numpy as np

from certimap.oracles.partition import Floats

WIDEN = 2.0
NARROW = 0.7
BORDER = 1e-6  # relative to the radius: closer than this, the border binds


class TrustBox:
    """centre - radius <= lambda <= centre + radius, per group."""

    def __init__(self, centre: Floats, radius: Floats) -> None:
        self.centre = centre
        self.radius = radius
        self._bound = math.inf

    @property
    def lower(self) -> Floats:
        return self.centre - self.radius

    @property
    def upper(self) -> Floats:
        return self.centre + self.radius

    def binds(self, point: Floats) -> bool:
        """Whether the point lies on the border of the box."""
        return bool((np.abs(point - self.centre) >= self.radius * (1.0 - BORDER)).any())

    def report(self, point: Floats, bound: float) -> None:
        """A better bound (estimates will do) moves the centre; a worse one narrows the box."""
        if bound < self._bound:
            self.centre, self._bound = point, bound
        else:
            self.radius = self.radius * NARROW

    def release(self, point: Floats) -> None:
        """The box is solved but its border binds: go on from the point, with more room."""
        self.centre = point
        self.radius = self.radius * WIDEN
