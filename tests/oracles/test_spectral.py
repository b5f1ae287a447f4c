"""Eigenvalue intervals: support function, eigenvector cuts, and a loop of cuts that ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import certimap.oracles  # noqa: F401  # registers the families
from certimap import Model
from certimap.graph.compile import compile_model
from certimap.oracles.protocol import Box, Cuts, Oracle, oracles_for


def single(order: int, lower: float, upper: float) -> tuple[Oracle, Box]:
    m = Model()
    m.positive_definite("X", order, lower, upper)
    graph = compile_model(m)
    (oracle,) = oracles_for(graph)
    return oracle, Box(graph.lower, graph.upper)


def coordinates(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.tril_indices(len(matrix))]


def member(rng: np.random.Generator, order: int, lower: float, upper: float) -> np.ndarray:
    q, _ = np.linalg.qr(rng.normal(size=(order, order)))
    eigenvalues = rng.choice([lower, upper, 0.5 * (lower + upper)], size=order)
    matrix = (q * eigenvalues) @ q.T
    return 0.5 * (matrix + matrix.T)


@pytest.mark.parametrize(("order", "lower", "upper"), [(2, 0.5, 3.0), (3, 0.01, 100.0), (5, 1.0, 1.5)])
def test_cuts_exclude_the_point_and_nothing_else(order: int, lower: float, upper: float) -> None:
    rng = np.random.default_rng(order)
    oracle, root = single(order, lower, upper)
    inside = np.array([coordinates(member(rng, order, lower, upper)) for _ in range(200)])
    for _ in range(20):
        y = rng.uniform(root.lower, root.upper)
        cuts = oracle.separate(y, np.zeros(1), root, 1e-7)
        if oracle.value(y)[0] == 0.0:
            assert not len(cuts)
            continue
        assert cuts.feasibility.all()
        assert not cuts.local.any()
        assert (cuts.u @ y + cuts.h < 0.0).all()
        assert (inside @ cuts.u.T + cuts.h >= 0.0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_support_function_is_attained(seed: int) -> None:
    rng = np.random.default_rng(seed)
    oracle, root = single(3, 0.2, 4.0)
    inside = np.array([coordinates(member(rng, 3, 0.2, 4.0)) for _ in range(300)])
    u = rng.normal(size=6)
    h, best = oracle.conjugate(0, u, root)
    assert (-(inside @ u) <= h).all()
    assert -(best @ u) == pytest.approx(h, abs=1e-10)
    assert oracle.value(best)[0] == 0.0


def test_points_within_the_domains_tolerance_are_accepted() -> None:
    oracle, root = single(2, 0.5, 2.0)
    y = coordinates(np.diag([0.5 - 1.5e-9, 2.0 + 1.5e-9]))
    assert oracle.value(y)[0] == 0.0
    assert not len(oracle.separate(y, np.zeros(1), root, 1e-7))


@pytest.mark.parametrize(("lower", "upper"), [(0.5, 3.0), (0.01, 300.0)])
def test_cutting_planes_end_at_an_accepted_point(lower: float, upper: float) -> None:
    rng = np.random.default_rng(3)
    oracle, root = single(2, lower, upper)
    c = rng.normal(size=3)
    cuts: list[Cuts] = []
    for _ in range(100):
        rows = Cuts.join(cuts, 3)
        solution = linprog(
            -c,
            A_ub=-rows.u if len(rows) else None,
            b_ub=rows.h if len(rows) else None,
            bounds=list(zip(root.lower, root.upper, strict=True)),
            method="highs",
        )
        new = oracle.separate(solution.x, np.zeros(1), root, 1e-7)
        if not len(new):
            break
        cuts.append(new)
    assert oracle.value(solution.x)[0] == 0.0
    h, _ = oracle.conjugate(0, -c, root)
    assert float(c @ solution.x) == pytest.approx(h, rel=1e-6)
