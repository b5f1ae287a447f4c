"""CVXPY expressions as factors: what is refused, values and gradients, tangents and their witnesses."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import certimap.oracles  # noqa: F401  # registers the families
from certimap import Model, ModelError
from certimap.graph.compile import compile_model
from certimap.model.concave import Concave, concave
from certimap.oracles.protocol import Box, Oracle, oracles_for

cp = pytest.importorskip("cvxpy")


def single(model: Model) -> tuple[Oracle, Box]:
    graph = compile_model(model)
    (oracle,) = [o for o in oracles_for(graph) if o.batch.kind == "concave"]
    return oracle, Box(graph.lower, graph.upper)


def entropy() -> tuple[Model, Concave]:
    m = Model()
    p = m.simplex("p", 3)
    q = cp.Variable(3)
    factor = concave(cp.sum(cp.entr(q)) - cp.sum_squares(q - np.array([0.2, 0.3, 0.5])), {q: p})
    m.add(factor)
    return m, factor


# -------------------------------------------------------------------------------------------------------------- model
def test_what_is_refused() -> None:
    m = Model()
    x, b, p = m.real("x", -1.0, 1.0, shape=2), m.binary("b"), m.simplex("p", 3)
    v, w = cp.Variable(2, name="v"), cp.Variable(name="w")
    positive = cp.Variable(2, nonneg=True, name="s")
    parameter = cp.Parameter(name="rate")
    cases: list[tuple[Any, dict[Any, Any], str]] = [
        (cp.sum_squares(v), {v: x}, "not concave by CVXPY's rules"),
        (-cp.square(v), {v: x}, "must be one real number"),
        (3.0, {}, "expected a CVXPY expression"),
        (-cp.sum_squares(v) - w, {v: x}, "w is not mapped"),
        (-cp.sum_squares(v), {v: x, w: b}, "does not occur in the expression"),
        (-cp.sum_squares(v), {v: p}, "has shape"),
        (-cp.sum_squares(v), {v: 3.0}, "expected a variable"),
        (-cp.sum_squares(positive), {positive: x}, "declared nonneg"),
        (-cp.square(w) * parameter, {w: b}, "not concave"),
        (-cp.square(w) - parameter, {w: b}, "rate has no value"),
    ]
    for expression, mapping, message in cases:
        with pytest.raises(ModelError, match=message):
            concave(expression, mapping)


def test_signs_that_the_bounds_prove_are_accepted() -> None:
    m = Model()
    x = m.real("x", 0.0, 2.0, shape=2)
    v = cp.Variable(2, nonneg=True)
    m.add(concave(-cp.square(cp.sum(v) + cp.square(v[0])), {v: x}))
    assert m.value({"x": np.array([1.0, 0.5])}) == pytest.approx(-(2.5**2))


def test_values_and_gradients_of_matrices() -> None:
    m = Model()
    precision, mu = m.positive_definite("L", 2, 0.5, 4.0), m.real("mu", -1.0, 1.0, shape=2)
    X, v = cp.Variable((2, 2)), cp.Variable(2)
    factor = concave(cp.log_det(X) - 3.0 * X[0, 1] - cp.sum_squares(v), {X: precision, v: list(mu)})
    y = np.array([2.0, 0.3, 1.0, 0.5, -0.25])
    matrix = np.array([[2.0, 0.3], [0.3, 1.0]])
    assert factor.value(y) == pytest.approx(np.log(np.linalg.det(matrix)) - 0.9 - 0.3125)
    gradient = factor.gradient(y)
    assert gradient is not None
    step = 1e-6 * np.eye(5)
    # CVXPY takes X[0, 1] as an entry of its own; the factor's coordinate is both of them.
    numeric = [(factor.value(y + e) - factor.value(y - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    assert factor.value(np.array([1.0, 2.0, 1.0, 0.0, 0.0])) == -np.inf


def test_the_fingerprint_is_of_the_function() -> None:
    def model(weight: float) -> str:
        m = Model()
        x = m.real("x", -1.0, 1.0)
        v = cp.Variable()  # CVXPY gives it a new name every time
        m.add(concave(-weight * cp.square(v) + cp.minimum(v, 0.5), {v: x}))
        return m.fingerprint()

    assert model(2.0) == model(2.0)
    assert model(2.0) != model(2.5)


def test_the_package_works_without_the_extra() -> None:
    code = (
        "import sys; sys.modules['cvxpy'] = None\n"
        "import certimap, certimap.oracles\n"
        "from certimap.model.concave import concave\n"
        "try:\n    concave(None, {})\n"
        "except certimap.ModelError as error:\n    print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 'pip install "certimap[convex]"' in shown


# ------------------------------------------------------------------------------------------------------------- oracle
def test_cuts_are_tangents_at_their_witness() -> None:
    model, factor = entropy()
    oracle, root = single(model)
    rng = np.random.default_rng(0)
    for _ in range(10):
        y = rng.dirichlet(np.ones(3))
        cuts = oracle.separate(y, np.array([9.0]), root, 1e-7)
        assert cuts.witness is not None
        np.testing.assert_array_equal(cuts.witness[0], y)
        np.testing.assert_array_equal(cuts.u[0], factor.gradient(y))
        assert not cuts.local.any()
        assert cuts.u[0] @ y + cuts.h[0] == pytest.approx(factor.value(y), abs=1e-7)
        points = rng.dirichlet(np.ones(3), size=50)
        assert all(factor.value(x) <= cuts.u[0] @ x + cuts.h[0] for x in points)


def test_where_the_gradient_is_infinite_a_point_inwards_serves() -> None:
    model, factor = entropy()
    oracle, root = single(model)
    y = np.array([0.0, 0.0, 1.0])
    cuts = oracle.separate(y, np.array([1.0]), root, 1e-7)
    assert cuts.witness is not None
    assert np.abs(cuts.witness[0] - y).max() <= 1e-6
    assert cuts.u[0] @ y + cuts.h[0] == pytest.approx(factor.value(y), abs=1e-5)


def test_outside_the_domain_a_steep_tangent_cuts() -> None:
    m = Model()
    v, x = cp.Variable(2), m.real("x", -1.0, 1.0, shape=2)
    m.add(concave(cp.log(v[0] + v[1]) - cp.square(v[0]), {v: x}))
    oracle, root = single(m)
    y = np.array([-0.4, -0.2])
    assert oracle.value(y)[0] == -np.inf
    t = 0.5
    for _ in range(3):
        cuts = oracle.separate(y, np.array([t]), root, 1e-7)
        assert len(cuts)
        t = float(cuts.u[0] @ y + cuts.h[0]) - 1.0
        if t < -3.0:
            break
    assert t < -1.0


def test_the_maximum_over_a_box_is_certified() -> None:
    model, factor = entropy()
    oracle, root = single(model)
    box = Box(np.array([0.2, 0.0, 0.1]), np.array([0.4, 0.3, 0.3]))
    mesh = np.stack(np.meshgrid(*[np.linspace(a, b, 13) for a, b in zip(box.lower, box.upper, strict=True)]), axis=-1)
    best = max(factor.value(x) for x in mesh.reshape(-1, 3))
    assert best <= oracle.upper(box)[0] <= best + 1e-2
    assert oracle.upper(box)[0] < oracle.upper(root)[0]
    u = np.array([0.5, -1.0, 0.0])
    h, x = oracle.conjugate(0, u, box)
    assert factor.value(x) - u @ x == pytest.approx(h, abs=1e-5)
