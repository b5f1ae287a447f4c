"""Small matrices of fractions, and logarithms of fractions to 36 digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any

Vector = list[Fraction]
Matrix = list[Vector]

_DIGITS = Context(prec=45, Emax=MAX_EMAX, Emin=MIN_EMIN)
LOG_ERROR = Fraction(1, 10**36)  # of `log_of`: the logarithms of numbers below 2^50000 are below 4e4


def fractions(rows: Any) -> Matrix:
    """A matrix of floats as what it is."""
    return [[Fraction(float(v)) for v in row] for row in rows]


def floats(rows: Matrix) -> list[list[float]]:
    """Every entry correctly rounded."""
    return [[float(v) for v in row] for row in rows]


def identity(order: int) -> Matrix:
    return [[Fraction(int(a == b)) for b in range(order)] for a in range(order)]


def times(matrix: Matrix, vector: Sequence[Fraction]) -> Vector:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


def congruent(left: Matrix, middle: Matrix) -> Matrix:
    """left middle left', for a symmetric matrix in the middle."""
    half = [times(middle, row) for row in left]
    return [times(left, row) for row in half]


def distance(a: Matrix, b: Matrix) -> float:
    """Not below the Frobenius norm of a - b."""
    squares = sum(((x - y) ** 2 for u, v in zip(a, b, strict=True) for x, y in zip(u, v, strict=True)), Fraction(0))
    return math.sqrt(float(squares)) * (1.0 + 1e-12) + 1e-160


def determinant(matrix: Matrix) -> Fraction:
    """By elimination; 0 where a pivot is 0."""
    rows, result = [list(row) for row in matrix], Fraction(1)
    for k, pivot_row in enumerate(rows):
        swap = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if swap is None:
            return Fraction(0)
        if swap != k:
            pivot_row, rows[swap] = rows[swap], pivot_row
            result = -result
        result *= pivot_row[k]
        for i in range(k + 1, len(rows)):
            share = rows[i][k] / pivot_row[k]
            rows[i] = [x - share * y for x, y in zip(rows[i], pivot_row, strict=True)]
    return result


def adjugate(matrix: Matrix) -> Matrix:
    """det(A) A^-1 of a symmetric matrix: its cofactors."""
    D = len(matrix)
    rest = [[i for i in range(D) if i != a] for a in range(D)]
    return [
        [(-1) ** (a + b) * determinant([[matrix[i][j] for j in rest[b]] for i in rest[a]]) for b in range(D)]
        for a in range(D)
    ]


def log_of(x: Fraction) -> Fraction:
    """log x of a positive fraction, within LOG_ERROR."""
    log = _DIGITS.subtract(_DIGITS.ln(Decimal(x.numerator)), _DIGITS.ln(Decimal(x.denominator)))
    return Fraction(log)
