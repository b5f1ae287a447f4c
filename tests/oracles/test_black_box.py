"""Black boxes: the user's bounds are passed on, and refused where they are no numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import certimap.oracles  # noqa: F401  # registers the families
from certimap import Model, ModelError, black_box
from certimap.graph.compile import compile_model
from certimap.oracles.protocol import Box, Oracle, oracles_for


class Parabola:
    """-x^2, bounded by its value at the point of the interval nearest to 0."""

    def value(self, x: np.ndarray) -> float:
        return -(float(x[0]) ** 2)

    def upper(self, lower: np.ndarray, upper: np.ndarray) -> float:
        return -(float(np.clip(0.0, lower[0], upper[0])) ** 2)


class Constant:
    def __init__(self, bound: float) -> None:
        self.bound = bound

    def value(self, x: np.ndarray) -> float:
        return 0.0

    def upper(self, lower: np.ndarray, upper: np.ndarray) -> float:
        return self.bound


def single(user: object) -> tuple[Oracle, Box]:
    m = Model()
    m.add(black_box(m.real("x", -1.0, 2.0), user))  # type: ignore[arg-type]
    graph = compile_model(m)
    (oracle,) = oracles_for(graph)
    return oracle, Box(graph.lower, graph.upper)


def test_cuts_are_the_users_bounds_and_local() -> None:
    oracle, root = single(Parabola())
    assert oracle.upper(root)[0] == 0.0
    box = Box(np.array([1.0]), np.array([2.0]))
    cuts = oracle.separate(np.array([1.5]), np.array([0.0]), box, 1e-9)
    assert (cuts.u == 0.0).all()
    assert cuts.h[0] == -1.0
    assert cuts.local.all()
    assert not len(oracle.separate(np.array([1.5]), np.array([-1.0]), box, 1e-9))


def test_conjugates_add_the_linear_part() -> None:
    oracle, root = single(Parabola())
    h, x = oracle.conjugate(0, np.array([0.5]), root)
    assert h == pytest.approx(0.5)
    assert x[0] == -1.0


@pytest.mark.parametrize("bound", [math.nan, math.inf])
def test_a_bound_that_is_no_number_is_the_models_fault(bound: float) -> None:
    oracle, root = single(Constant(bound))
    with pytest.raises(ModelError, match="'upper' must return a number below inf"):
        oracle.upper(root)


def test_an_excluded_box_gives_a_feasibility_cut() -> None:
    oracle, root = single(Constant(-math.inf))
    for cuts in (oracle.proposals(root), oracle.separate(np.zeros(1), np.zeros(1), root, 1e-9)):
        assert cuts.feasibility.all()
        assert cuts.local.all()
        assert (cuts.h < 0.0).all()
    assert oracle.conjugate(0, np.ones(1), root)[0] == -math.inf
