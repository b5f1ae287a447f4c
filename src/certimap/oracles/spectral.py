"""Matrix variables with eigenvalues in an interval: cuts from the eigenvectors that violate it.

The support function of the set lo I <= X <= hi I is known: with the eigenvalues mu of U,
    max over the set of -<U, X> = sum_i max(-lo mu_i, -hi mu_i).
So every symmetric U gives the valid cut 0 <= <U, X> + h, and U = v v' or -v v' cuts off an X whose eigenvector v has an
eigenvalue outside.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from certimap._numeric.rounding import UNIT
from certimap.graph.blocks import Spectral
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.oracles.cuts import Box, Cuts, Floats
from certimap.oracles.protocol import Oracle, register

# A cut is scaled so that a linear solver's feasibility tolerance of 1e-7 on it keeps the eigenvalue within the 1e-9
# (relative to hi) that the domain accepts: then the loop of cuts ends.
SCALE = 128.0


@register("spectral")
class SpectralOracle(Oracle):
    """0 where lo I <= X <= hi I, -inf elsewhere; the scope is the lower triangle of X, row by row."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        self._factors = cast(tuple[Spectral, ...], batch.factors)
        self._limits = batch.data["eigenvalues"]
        self._order = self._factors[0].domain.order
        self._triangle = np.tril_indices(self._order)
        self._on_diagonal = self._triangle[0] == self._triangle[1]

    def value(self, y: Floats) -> Floats:
        return np.array([f.value(y[columns]) for f, columns in zip(self._factors, self.scope, strict=True)])

    def upper(self, box: Box) -> Floats:
        return np.zeros(len(self.batch))

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        lo, hi = self._limits[i]
        eigenvalues, vectors = np.linalg.eigh(self._matrix(u[None, :], halved=True)[0])
        best = (vectors * np.where(eigenvalues > 0.0, lo, hi)) @ vectors.T
        return float(self._support(u[None, :], np.array([i]))[0]), best[self._triangle]

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        """Feasibility cuts for every eigenvalue outside its interval, and theta <= 0 where t is above it."""
        eigenvalues, vectors = np.linalg.eigh(self._matrix(y[self.scope], halved=False))
        parts = []
        slack = 1e-9 * np.maximum(1.0, self._limits[:, 1])  # what PositiveDefinite.contains accepts
        for side, beyond in (
            (1.0, eigenvalues < (self._limits[:, 0] - slack)[:, None]),
            (-1.0, eigenvalues > (self._limits[:, 1] + slack)[:, None]),
        ):
            terms, which = np.nonzero(beyond)
            v = vectors[terms, :, which]
            scale = 2.0 ** np.floor(np.log2(SCALE / np.maximum(1.0, self._limits[terms, 1])))
            outer = (side * scale)[:, None, None] * v[:, :, None] * v[:, None, :]
            u = outer[:, *self._triangle] * np.where(self._on_diagonal, 1.0, 2.0)
            parts.append(Cuts.of(terms, u, self._support(u, terms), feasibility=True))
        high = np.flatnonzero(t > tolerance)
        parts.append(Cuts.of(high, np.zeros((len(high), self.scope.shape[1])), np.zeros(len(high))))
        return Cuts.join(parts, self.scope.shape[1])

    def _matrix(self, lower_triangle: Floats, *, halved: bool) -> Floats:
        """Symmetric matrices from rows of coordinates; `halved` for multipliers, which count both triangles at once."""
        values = lower_triangle * np.where(self._on_diagonal, 1.0, 0.5) if halved else lower_triangle
        matrix = np.zeros((len(values), self._order, self._order))
        rows, columns = self._triangle
        matrix[:, rows, columns] = values
        matrix[:, columns, rows] = values
        return matrix

    def _support(self, u: Floats, terms: np.ndarray) -> Floats:
        """max over the set of -u.x, rounded up by what the eigensolver may err: a small multiple of order |U| unit."""
        matrix = self._matrix(u, halved=True)
        eigenvalues = np.linalg.eigvalsh(matrix)
        lo, hi = self._limits[terms, :1], self._limits[terms, 1:]
        norm = np.sqrt((matrix**2).sum(axis=(1, 2)))
        margin = 16.0 * self._order**2 * UNIT * norm * hi[:, 0]
        return np.asarray(np.maximum(-lo * eigenvalues, -hi * eigenvalues).sum(axis=1) + margin)
