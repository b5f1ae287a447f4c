"""Exact linear algebra: definiteness decided in rationals, and bounds over matrices of bounded eigenvalues."""

from fractions import Fraction

import numpy as np
import pytest

from certimap.verification.spectral import is_positive_semidefinite, largest_product, symmetric


def rational(rows: list[list[int]]) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in rows]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 1], [1, 1]], True),
        ([[0, 0], [0, 1]], True),
        ([[0, 1], [1, 5]], False),
        ([[1, 2], [2, 1]], False),
        ([[-1]], False),
        ([[2, -1, 0], [-1, 2, -1], [0, -1, 2]], True),
        ([[1, 1, 1], [1, 1, 1], [1, 1, 0]], False),
    ],
)
def test_definiteness(rows: list[list[int]], expected: bool) -> None:
    assert is_positive_semidefinite(rational(rows)) is expected


def test_definiteness_sees_what_float64_does_not() -> None:
    barely = rational([[1, 1], [1, 1]])
    barely[1][1] -= Fraction(1, 10**40)
    assert not is_positive_semidefinite(barely)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_bound_is_the_sum_over_eigenvalues(order: int) -> None:
    rng = np.random.default_rng(order)
    for _ in range(10):
        half = rng.normal(size=(order, order))
        matrix = half + half.T
        eigenvalues = np.linalg.eigvalsh(matrix)
        best = float(np.maximum(0.3 * eigenvalues, 2.0 * eigenvalues).sum())
        bound = float(largest_product(matrix, 0.3, 2.0))
        assert best - 1e-13 <= bound <= best + 1e-10
    assert largest_product(np.zeros((order, order)), 0.3, 2.0) == 0


def test_triangles_stand_for_symmetric_matrices() -> None:
    rng = np.random.default_rng(0)
    u, x = rng.normal(size=6), rng.normal(size=6)
    m, full = symmetric(u, 3), symmetric(x, 3)
    full = full + full - np.diag(np.diag(full))  # off the diagonal an entry of x stands in both places
    full[np.diag_indices(3)] = x[[0, 2, 5]]
    assert float((m * full).sum()) == pytest.approx(float(u @ x))
