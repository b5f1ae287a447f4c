"""Exact bounds over matrices whose eigenvalues lie in an interval.

    max <M, X>  over  lo I <= X <= hi I   is at most   lo tr M + (hi - lo) tr P   for every P >= 0 with P >= M

(put X = lo I + Y with 0 <= Y <= (hi - lo) I: <M, Y> <= <P, Y> <= (hi - lo) tr P). The best P is the positive part of M;
its floating-point eigenvectors only suggest it, both conditions are then decided in rational arithmetic.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = list[list[Fraction]]


def largest_product(matrix: Floats, low: float, high: float) -> Fraction:
    """A certified upper bound of the maximum of <matrix, X> over the symmetric X with eigenvalues in [low, high]."""
    m = _exact(matrix)
    positive_part = _exact(_positive_part(matrix))
    shift = Fraction(float(np.abs(matrix).max(initial=0.0))) / 2**60
    zero = _exact(np.zeros_like(matrix))
    while not (
        is_positive_semidefinite(_combine(positive_part, zero, shift))
        and is_positive_semidefinite(_combine(positive_part, m, shift))
    ):
        shift *= 8
    order = len(m)
    trace_m = sum((m[i][i] for i in range(order)), Fraction(0))
    trace_p = sum((positive_part[i][i] for i in range(order)), Fraction(0)) + order * shift
    return Fraction(low) * trace_m + (Fraction(high) - Fraction(low)) * trace_p


def is_positive_semidefinite(matrix: Matrix) -> bool:
    """LDL' factorisation: no pivot is negative, and a zero pivot has a zero column."""
    a = [row[:] for row in matrix]
    order = len(a)
    for k in range(order):
        pivot = a[k][k]
        if pivot < 0 or (pivot == 0 and any(a[i][k] for i in range(k + 1, order))):
            return False
        if pivot == 0:
            continue
        for i in range(k + 1, order):
            ratio = a[i][k] / pivot
            for j in range(k + 1, order):
                a[i][j] -= ratio * a[k][j]
    return True


def symmetric(triangle: Floats, order: int) -> Floats:
    """The matrix M with <M, X> = triangle . (lower triangle of X): entries off the diagonal count twice in <M, X>."""
    matrix = np.zeros((order, order))
    matrix[np.tril_indices(order)] = 0.5 * triangle
    return np.asarray(matrix + matrix.T)


def _positive_part(matrix: Floats) -> Floats:
    eigenvalues, vectors = np.linalg.eigh(matrix)
    part = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    return np.asarray(0.5 * (part + part.T))


def _exact(matrix: Floats) -> Matrix:
    return [[Fraction(x) for x in row] for row in matrix.tolist()]


def _combine(p: Matrix, m: Matrix, shift: Fraction) -> Matrix:
    """p + shift I - m."""
    return [
        [x - y + (shift if i == j else 0) for j, (x, y) in enumerate(zip(a, b, strict=True))]
        for i, (a, b) in enumerate(zip(p, m, strict=True))
    ]
