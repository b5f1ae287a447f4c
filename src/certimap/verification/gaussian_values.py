"""c(S) of Gaussian clusters from the factor's data: exact but for logarithms, which have 36 digits.

With v = nu0-D, n the weight of S, m = n+a0-1, nu = v+n, Nt = N+K(a0-1), y = x-m0, s = sum w y and

    M_S  = W0^-1 + sum w y y' - s s'/(b0+n),

c(S) = m log(m/Nt) + (D/2) log b0 + what the precisions of the covariance type make of M_S:

- full:       (D nu/2)(log nu - 1) - (nu/2) logdet M_S,  the maximum of (nu/2) logdet Lambda - tr(Lambda M_S)/2;
- diag:       the same with the diagonal of M_S in its place, as the other entries meet zeros of Lambda;
- spherical:  the same with (tr M_S/D) I;
- known:      (nu/2) logdet Lambda - tr(Lambda M_S)/2 with v = 1 and no W0^-1 in M_S: there is no Wishart factor, but
              the mean's prior has sqrt(det Lambda).

Every float is a whole number times a power of two. In the right powers of two (b0+n) M_S is a matrix of whole numbers,
and so is its determinant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any

from certimap.certificate import CertificateError
from certimap.verification.exact_matrices import LOG_ERROR, Matrix, adjugate, determinant, fractions, log_of


class Kind(IntEnum):
    """Covariance types, by the numbers in the factor's arrays; 1 is ``tied``, which is no sum over clusters."""

    FULL = 0
    DIAG = 2
    SPHERICAL = 3
    KNOWN = 4


class ClusterValues:
    """Encloses c(S), soft links (item, item, weight) included, for sets of items given by their positions.

    `covariance` is W0^-1 as far as precisions of the kind see it, or the known covariance.
    """

    def __init__(
        self, arrays: Mapping[str, Any], n_clusters: int, rewards: Sequence[tuple[int, int, float]] = ()
    ) -> None:
        """`arrays` as the factor declares them: what the model's fingerprint covers."""
        try:
            self.kind = Kind(int(arrays["covariance_type"]))
        except ValueError:
            raise CertificateError("no check is known for Gaussian clusters of this covariance type") from None
        (mean,) = fractions([arrays["mean"]])
        (self.weights,) = fractions([arrays["sample_weight"]])
        self.points = [[x - m for x, m in zip(row, mean, strict=True)] for row in fractions(arrays["data"])]
        self.dimension = len(mean)
        self.a0 = Fraction(float(arrays["weight_concentration"]))
        self.b0 = Fraction(float(arrays["mean_precision"]))
        self.total = sum(self.weights) + n_clusters * (self.a0 - 1)
        self.rewards = [(i, j, Fraction(r)) for i, j, r in rewards]
        given = fractions(arrays["covariance"])
        self.covariance = _restricted(given, self.kind)
        if self.kind is Kind.KNOWN:
            self.v = Fraction(1)
            self._precision = adjugate(self.covariance)  # times the determinant
            self._determinant = determinant(self.covariance)
            given = [[Fraction(0)] * self.dimension] * self.dimension
        else:
            self.v = Fraction(float(arrays["degrees_of_freedom"])) - self.dimension
        # Weights count in units of 2^-q, coordinates of 2^-p, second moments and W0^-1 of 2^-(q+2p).
        self._q = max(_bits(w) for w in (*self.weights, self.b0))
        self._p = max(0, *(_bits(y) for row in self.points for y in row))
        self._p = max(self._p, *(-((self._q - _bits(v)) // 2) for row in given for v in row))
        self._weight = [int(w * 2**self._q) for w in self.weights]
        self._point = [[int(y * 2**self._p) for y in row] for row in self.points]
        self._prior_weight = int(self.b0 * 2**self._q)
        self._prior = [[int(v * 2 ** (self._q + 2 * self._p)) for v in row] for row in given]

    def value(self, members: Iterable[int]) -> tuple[Fraction, Fraction]:
        """Numbers below and above c(S), some 30 digits apart."""
        chosen = sorted(members)
        n = sum((self.weights[i] for i in chosen), Fraction(0))
        m, nu, half = n + self.a0 - 1, self.v + n, Fraction(self.dimension, 2)
        value = half * _log(self.b0) + self.reward(chosen)
        if m > 0:
            value += m * _log(m / self.total)
        if nu > 0:
            value += self._precision_term(chosen, nu)
        radius = (half + m + (half + 1) * nu) * 2 * LOG_ERROR
        return value - radius, value + radius

    def reward(self, members: Iterable[int]) -> Fraction:
        """What the soft links within the set are worth."""
        inside = set(members)
        return sum((r for i, j, r in self.rewards if i in inside and j in inside), Fraction(0))

    def _precision_term(self, chosen: Sequence[int], nu: Fraction) -> Fraction:
        """Exact but for log nu and the logarithm of a determinant, which is exact itself."""
        scaled, unit = self._scatter(chosen)
        D, diagonal = self.dimension, [row[d] for d, row in enumerate(scaled)]
        if self.kind is Kind.KNOWN:
            pairs = zip(self._precision, scaled, strict=True)
            trace = sum((a * s for row, other in pairs for a, s in zip(row, other, strict=True)), Fraction(0))
            return -(nu * _log(self._determinant) + trace / (unit * self._determinant)) / 2
        if self.kind is Kind.FULL:
            log_det = log_of(Fraction(_determinant(scaled), unit**D))
        elif self.kind is Kind.DIAG:
            log_det = log_of(Fraction(math.prod(diagonal), unit**D))
        else:
            log_det = log_of(Fraction(sum(diagonal), D * unit) ** D)
        return nu / 2 * (D * (_log(nu) - 1) - log_det)

    def _scatter(self, chosen: Sequence[int]) -> tuple[list[list[int]], int]:
        """M_S as whole numbers and their common denominator."""
        D = self.dimension
        points = [self._point[i] for i in chosen]
        weighted = [[self._weight[i] * y for y in self._point[i]] for i in chosen]
        mass = self._prior_weight + sum(self._weight[i] for i in chosen)
        total = [sum(row[a] for row in weighted) for a in range(D)]
        scaled = [[0] * D for _ in range(D)]
        for a in range(D):
            for b in range(a + 1):
                second = self._prior[a][b] + sum(row[a] * point[b] for row, point in zip(weighted, points, strict=True))
                scaled[a][b] = scaled[b][a] = second * mass - total[a] * total[b]
        return scaled, mass << (self._q + 2 * self._p)


def _restricted(given: Matrix, kind: Kind) -> Matrix:
    """What the precisions see of a symmetric matrix, given by its lower triangle."""
    D = len(given)
    if kind in (Kind.FULL, Kind.KNOWN):
        return [[given[max(a, b)][min(a, b)] for b in range(D)] for a in range(D)]
    diagonal = [row[d] for d, row in enumerate(given)]
    if kind is Kind.SPHERICAL:
        diagonal = [sum(diagonal, Fraction(0)) / D] * D
    return [[diagonal[a] if a == b else Fraction(0) for b in range(D)] for a in range(D)]


@lru_cache(maxsize=4096)
def _log(x: Fraction) -> Fraction:
    """Sizes repeat from set to set."""
    return log_of(x)


def _determinant(matrix: list[list[int]]) -> int:
    """Of a positive definite matrix of whole numbers, by fraction-free elimination."""
    rows, last = [list(row) for row in matrix], 1
    for k in range(len(rows) - 1):
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // last
        last = rows[k][k]
    return rows[-1][-1]


def _bits(value: Fraction) -> int:
    """k such that value * 2^k is a whole number."""
    return value.denominator.bit_length() - 1
