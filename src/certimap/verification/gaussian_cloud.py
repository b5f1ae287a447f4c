"""The pricing problem of one leaf in whitened coordinates, as floats that stand for exact numbers.

Let y = T (x - middle), T W0^-1 T' nearly I. What c(S) takes of M_S is log|M_S| in one of three senses, and
tr(Lambda M_S) where Lambda is known:

- full, any T:                               logdet M        = logdet(T M T')        - 2 log|det T|;
- diag, diagonal T:                          sum log M_dd    = sum log (T M T')_dd   - 2 log|det T|;
- spherical, T a rotation times a scalar:    D log(tr M / D) = D log(tr(T M T') / D) - 2 log|det T|;
- known, W0^-1 being its inverse:            tr(Lambda M)    = tr(T M T').

The floats of a `Cloud` define a problem of their own, with W0 = I (or Lambda = I) and values c~(S), and

    |c(S) - lambda(S) - (c~(S) - lambda~(S)) - level|  <=  error   for every nonempty set S,

where level = v log|det T| and lambda~ takes in n log|det T|. The error adds measured differences; for logarithms:

- M >= (1-e) I, e = |T W0^-1 T' - I|, so that replacing W0 and the scatters of groups by matrices that are g away in sum
  changes log|M_S| by at most D g/(1-e);
- spherical: T is a rotation times a scalar but for e, which moves tr(T M T') and det T by as much again each;
- M_S = Z'Z with rows sqrt(w) (y - mu)', so that points moved by dy, sum w |dy|^2 = h^2, change it by at most 2 D h;
  so do relative changes of weights, as every leverage w (y-mu)' M^-1 (y-mu) is at most 1;
- what n, nu and Nt differ by counts with the derivatives of c(S).

For the trace, tr M = |Z|^2 <= q, all second moments about `middle`: e changes it by at most q e/(1-e), h by 2 h sqrt(q)
+ h^2, scatters by what they miss; and log|det T|, which counts v+n times, misses (log det Lambda)/2 by D e/(2 (1-e)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError
from certimap.verification.exact_matrices import (
    Matrix,
    Vector,
    congruent,
    determinant,
    distance,
    floats,
    fractions,
    identity,
    log_of,
    times,
)
from certimap.verification.gaussian_values import ClusterValues, Kind
from certimap.verification.intervals import UNIT

Floats = NDArray[np.float64]

_ROOM = 1.0 + 1e-6  # for the roundings of the error bound itself


@dataclass(frozen=True, eq=False)
class Cloud:
    """Groups of points: weight, mean y and columns of a square root of the scatter; the prior's point is `origin`.

    Where only the diagonal of the scatter counts, column 0 holds its square roots.
    """

    kind: Kind
    y: Floats  # (I, D)
    weight: Floats  # (I,)
    columns: Floats  # (D, I, D): column k of every group
    price: Floats  # (I,)
    origin: Floats  # (D,)
    a0: float
    b0: float
    v: float
    total: float  # Nt
    level: Fraction
    error: Fraction

    @property
    def dimension(self) -> int:
        return int(self.y.shape[1])

    @property
    def integral(self) -> bool:
        """Whether all sizes are whole numbers."""
        return bool((self.weight == np.round(self.weight)).all())


def whiten(
    values: ClusterValues, groups: Sequence[Sequence[int]], prices: Sequence[Fraction], rotation: Floats
) -> Cloud:
    """The cloud of these groups at these prices; `rotation` turns the axes along which boxes are cut."""
    turn, e = _transform(values, rotation)
    weights = [sum((values.weights[i] for i in g), Fraction(0)) for g in groups]
    means = [_mean(values, g, w) for g, w in zip(groups, weights, strict=True)]
    middle = [Fraction(float(np.mean([float(m[d]) for m in means]))) for d in range(values.dimension)]
    columns, missed = _columns(values, groups, means, turn)
    log_det = log_of(abs(determinant(turn)))
    cloud = Cloud(
        kind=values.kind,
        y=np.array(floats([times(turn, _minus(m, middle)) for m in means])),
        weight=np.array([float(w) for w in weights]),
        columns=columns,
        price=np.array([float(p - w * log_det) for p, w in zip(prices, weights, strict=True)]),
        origin=np.array([float(v) for v in times(turn, _minus([Fraction(0)] * len(middle), middle))]),
        a0=float(values.a0),
        b0=float(values.b0),
        v=float(values.v),
        total=float(values.total),
        level=values.v * log_det,
        error=Fraction(0),
    )
    return _with_error(cloud, values, weights, e, missed)


def _transform(values: ClusterValues, rotation: Floats) -> tuple[Matrix, float]:
    """T, and how far T W0^-1 T' is from I."""
    D = values.dimension
    if values.kind is Kind.DIAG and not np.array_equal(rotation, np.eye(D)):
        raise CertificateError("the rotation of a leaf turns the features, whose variances are apart")
    try:
        chol = np.linalg.cholesky(np.array(floats(values.covariance)))
        T = np.asarray(rotation, dtype=float).reshape(D, D) @ np.linalg.inv(chol)
        turn = fractions(T)
    except (ValueError, OverflowError, np.linalg.LinAlgError) as error:
        raise CertificateError(f"the rotation of a leaf is malformed: {error}") from None
    e = distance(congruent(turn, values.covariance), identity(D))
    if not e < 0.5:
        raise CertificateError("the rotation of a leaf is not orthogonal")
    return turn, e


def _mean(values: ClusterValues, members: Sequence[int], weight: Fraction) -> Vector:
    if len(members) == 1:
        return values.points[members[0]]
    return [
        sum((values.weights[i] * values.points[i][d] for i in members), Fraction(0)) / weight
        for d in range(values.dimension)
    ]


def _columns(
    values: ClusterValues, groups: Sequence[Sequence[int]], means: Sequence[Vector], turn: Matrix
) -> tuple[Floats, float]:
    """Square roots of the scatters, and by how much their squares miss them in sum."""
    D, missed = values.dimension, 0.0
    columns = np.zeros((D, len(groups), D))
    for g, members in enumerate(groups):
        if len(members) == 1:
            continue
        deviations = [(values.weights[i], _minus(values.points[i], means[g])) for i in members]
        scatter = [[sum((w * d[a] * d[b] for w, d in deviations), Fraction(0)) for b in range(D)] for a in range(D)]
        scatter = congruent(turn, scatter)
        if values.kind is Kind.FULL:
            eigenvalues, axes = np.linalg.eigh(np.array(floats(scatter)))
            columns[:, g, :] = (axes * np.sqrt(np.maximum(eigenvalues, 0.0))).T
            missed += distance(scatter, congruent(fractions(columns[:, g, :].T), identity(D)))
        else:
            columns[0, g] = [math.sqrt(row[d]) for d, row in enumerate(scatter)]
            (roots,) = fractions([columns[0, g]])
            missed += float(sum((abs(row[d] - roots[d] ** 2) for d, row in enumerate(scatter)), Fraction(0)))
    return columns, missed


def _with_error(cloud: Cloud, values: ClusterValues, weights: Sequence[Fraction], e: float, missed: float) -> Cloud:
    D, W = cloud.dimension, float(cloud.weight.sum())
    # Correctly rounded coordinates differ by at most UNIT of themselves, weights likewise.
    square = float(cloud.weight @ (cloud.y**2).sum(axis=1)) + cloud.b0 * float(cloud.origin @ cloud.origin)
    second = square + float((cloud.columns**2).sum())
    inexact = [abs(Fraction(float(w)) - w) for w in weights]
    moved = UNIT * math.sqrt(square) + 1e-150
    if cloud.kind is Kind.KNOWN:
        moved += UNIT * math.sqrt(second)
        error = 0.5 * (cloud.v + W) * D * e / (1.0 - e)
        error += 0.5 * (second * e / (1.0 - e) + 2.0 * moved * math.sqrt(second) + moved**2 + missed)
    else:
        moved += UNIT * math.sqrt(sum(d > 0 for d in inexact))
        turned = 3.0 * e if cloud.kind is Kind.SPHERICAL else e
        error = 0.5 * (cloud.v + W) * D * ((turned + missed) / (1.0 - e) + 2.0 * moved)
    counted = float(sum(inexact, Fraction(0)) + abs(Fraction(cloud.v) - values.v))
    least = float(cloud.weight.min())
    nu = max(abs(math.log(cloud.v + least)), abs(math.log(cloud.v + W)))
    largest = 1.0 + second
    slope = abs(math.log((least + cloud.a0 - 1.0) / cloud.total)) + 1.0 + 0.5 * D * (nu + math.log(largest))
    error += counted * (slope + 1.0)
    error += float(abs(Fraction(cloud.total) - values.total)) / cloud.total * (W + cloud.a0)
    error += UNIT * float(np.abs(cloud.price).sum()) + 1e-30 * (1.0 + cloud.v + W)
    return Cloud(**{**vars(cloud), "error": Fraction(_ROOM * error)})


def _minus(a: Sequence[Fraction], b: Sequence[Fraction]) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]
