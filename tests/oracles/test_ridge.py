"""Ridges: tangents, local envelopes, blocks along one direction."""

from __future__ import annotations

import numpy as np
import pytest

import certimap.oracles  # noqa: F401  # registers the families
from certimap import Block, Model, gaussian, laplace, logistic, polynomial, ridge, student_t
from certimap.graph.compile import compile_model
from certimap.oracles.protocol import Box, Oracle, oracles_for


def single(model: Model) -> tuple[Oracle, Box]:
    graph = compile_model(model)
    (oracle,) = oracles_for(graph)
    return oracle, Box(graph.lower, graph.upper)


def test_concave_ridges_give_global_tangents_from_any_box() -> None:
    m = Model()
    x = m.real("x", -5.0, 5.0, shape=2)
    m.add(ridge(x[0] - 2.0 * x[1] + 1.0, gaussian(0.5, 2.0)))
    oracle, root = single(m)
    assert oracle.global_cuts
    assert oracle.exact_at_integers
    box = Box(np.array([0.0, 0.0]), np.array([1.0, 1.0]))
    y = np.array([0.25, 0.75])
    cuts = oracle.separate(y, np.array([3.0]), box, 1e-9)
    assert not cuts.local.any()
    assert cuts.u[0] @ y + cuts.h[0] == pytest.approx(oracle.value(y)[0], abs=1e-10)
    far = np.array([-5.0, 5.0])
    assert cuts.u[0] @ far + cuts.h[0] >= oracle.value(far)[0]
    assert root.lower[0] == -5.0


def test_cuts_on_a_convex_ridge_are_chords_of_the_box() -> None:
    m = Model()
    x = m.real("x", -2.0, 2.0)
    m.add(ridge(x, polynomial([0.0, 0.0, 1.0])))
    oracle, root = single(m)
    assert not oracle.global_cuts
    assert not oracle.exact_at_integers
    cuts = oracle.separate(np.array([0.5]), np.array([9.0]), root, 1e-9)
    assert not cuts.local.any()  # a cut made on the root box holds everywhere
    assert cuts.u[0, 0] * 0.5 + cuts.h[0] == pytest.approx(4.0)
    cuts = oracle.separate(np.array([0.5]), np.array([9.0]), Box(np.array([0.0]), np.array([1.0])), 1e-9)
    assert cuts.local.all()
    assert cuts.u[0, 0] == pytest.approx(1.0)
    assert cuts.u[0, 0] * 0.5 + cuts.h[0] == pytest.approx(0.5)


def test_a_local_maximiser_would_cut_off_the_optimum() -> None:
    # The double well of the design: the cut at the right peak has to stay above the left one and conversely.
    m = Model()
    x = m.real("x", -2.0, 2.0)
    m.add(ridge(x, polynomial([-1.0, 0.3, 2.0, 0.0, -1.0])))
    oracle, root = single(m)
    best = max(oracle.value(np.array([s]))[0] for s in np.linspace(-2, 2, 4001))
    for s in (-1.0, 0.9, 1.04):
        cuts = oracle.separate(np.array([s]), np.array([5.0]), root, 1e-9)
        heights = [cuts.u[0, 0] * p + cuts.h[0] for p in np.linspace(-2, 2, 4001)]
        assert max(heights) >= best
    assert oracle.upper(root)[0] == pytest.approx(best, abs=1e-6)


def test_a_block_of_opposite_curvatures_is_bounded_exactly() -> None:
    # x^2 - 2 x^2 on [-1, 1]: term by term the bound is 1, together it is 0.
    separate, together = Model(), Model()
    for model in (separate, together):
        x = model.real("x", -1.0, 1.0)
        factors = [ridge(x, polynomial([0.0, 0.0, 1.0])), ridge(x, polynomial([0.0, 0.0, -2.0]))]
        model.add(*factors) if model is separate else model.add(Block(factors))
    graph = compile_model(separate)
    (oracle,) = oracles_for(graph)
    box = Box(graph.lower, graph.upper)
    assert oracle.upper(box).sum() == pytest.approx(1.0)
    joined, box = single(together)
    assert joined.batch.kind == "ridge_sum"
    assert joined.upper(box)[0] == pytest.approx(0.0, abs=1e-12)


def test_proposals_touch_the_ends_and_bound_the_top() -> None:
    m = Model()
    x = m.real("x", -3.0, 4.0)
    m.add(ridge(2.0 * x + 1.0, logistic(-1)))
    oracle, root = single(m)
    cuts = oracle.proposals(root)
    for s in (-3.0, 4.0):
        lowest = (cuts.u[:, 0] * s + cuts.h).min()
        assert lowest == pytest.approx(oracle.value(np.array([s]))[0], abs=1e-9)
    assert cuts.h[0] == pytest.approx(oracle.upper(root)[0])


@pytest.mark.parametrize("seed", range(5))
def test_conjugates_of_oblique_multipliers_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = Model()
    x = m.real("x", -1.0, 2.0, shape=3)
    a = rng.normal(size=3)
    m.add(ridge(a[0] * x[0] + a[1] * x[1] + a[2] * x[2], student_t(0.3, 0.2)))
    oracle, root = single(m)
    mesh = np.stack(np.meshgrid(*[np.linspace(-1.0, 2.0, 41)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    location, scale, nu = 0.3, 0.2, 3.0
    theta = -0.5 * (nu + 1.0) * np.log1p(((mesh @ a - location) / scale) ** 2 / nu)
    for _ in range(5):
        u = rng.normal(size=3)
        h, best = oracle.conjugate(0, u, root)
        assert (theta - mesh @ u <= h).all()
        assert oracle.value(best)[0] - u @ best == pytest.approx(h, abs=1e-9)


def test_branch_scores_follow_what_moves_the_argument() -> None:
    m = Model()
    x = m.real("x", 0.0, 1.0, shape=2)
    m.add(ridge(3.0 * x[0] + x[1], laplace(0.0)))
    oracle, _ = single(m)
    np.testing.assert_allclose(oracle.branch_scores(np.zeros(2), np.array([2.0])), [[1.5, 0.5]])
