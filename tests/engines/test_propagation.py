"""Every tightening keeps every point that satisfies its row, step by step."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.helpers import joint_states
from tests.models import discrete_model

from certimap import Model, ModelError, linear
from certimap.engines.propagation import Propagator
from certimap.graph.compile import compile_model
from certimap.oracles.protocol import Box


def integer_model(rng):
    """Integers under random rows."""
    m = Model()
    x = m.integer("x", -2, 3, shape=4)
    for _ in range(rng.integers(2, 5)):
        expression = linear([(v, float(rng.integers(-3, 4))) for v in x])
        low, high = expression.bounds()
        if low < high:
            m.constrain(expression <= np.round(low + 0.4 * rng.random() * (high - low)))
    return m


def satisfying(graph, points, row):
    activity = points @ graph.rows.matrix[[row]].toarray()[0]
    return (activity >= graph.rows.lower[row] - 1e-9) & (activity <= graph.rows.upper[row] + 1e-9)


def check_steps(graph, points, box, changed=None):
    """Repeat the steps on the points; returns the tightened box."""
    inside = ((points >= box.lower) & (points <= box.upper)).all(axis=1)
    tightened, steps, alive = Propagator(graph).tighten(box, changed)
    lower, upper = box.lower.copy(), box.upper.copy()
    for step in steps:
        kept = inside & satisfying(graph, points, step.row)
        column = points[:, step.column]
        assert not (kept & ((column < step.lower) | (column > step.upper))).any(), step
        assert step.lower >= lower[step.column]
        assert step.upper <= upper[step.column]
        lower[step.column], upper[step.column] = step.lower, step.upper
        inside &= (column >= step.lower) & (column <= step.upper)
    assert np.array_equal(tightened.lower, lower)
    assert np.array_equal(tightened.upper, upper)
    feasible = inside & np.all([satisfying(graph, points, r) for r in range(len(graph.rows))], axis=0)
    assert alive or not feasible.any()
    return tightened, alive


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("make", [integer_model, lambda rng: discrete_model(rng, private=False, max_states=800)])
def test_steps_keep_every_point_that_satisfies_their_row(make, seed):
    rng = np.random.default_rng(seed)
    model = make(rng)
    graph = compile_model(model)
    points = np.array([graph.encode(s) for s in joint_states(model)])
    root = Box(graph.lower.copy(), graph.upper.copy())
    box, alive = check_steps(graph, points, root)
    for _ in range(4):
        free = np.flatnonzero(graph.integer & (box.lower < box.upper))
        if not alive or not len(free):
            break
        column = int(rng.choice(free))
        lower, upper = box.lower.copy(), box.upper.copy()
        middle = rng.integers(int(lower[column]), int(upper[column]))
        if rng.random() < 0.5:
            upper[column] = middle
        else:
            lower[column] = middle + 1
        box, alive = check_steps(graph, points, Box(lower, upper), column)


@pytest.mark.parametrize("seed", range(20))
def test_steps_on_reals_contain_what_the_row_allows(seed):
    rng = np.random.default_rng(seed)
    m = Model()
    x = m.real("x", -1.0, 2.0, shape=4)
    for _ in range(3):
        expression = linear([(v, float(rng.normal())) for v in x])
        low, high = expression.bounds()
        m.constrain(expression <= low + 0.3 * rng.random() * (high - low))
    graph = compile_model(m)
    box = Box(graph.lower.copy(), graph.upper.copy())
    tightened, steps, _ = Propagator(graph).tighten(box)
    lower, upper = box.lower.copy(), box.upper.copy()
    for step in steps:
        row = graph.rows.matrix[[step.row]].toarray()
        for sign, claimed in ((1.0, step.lower), (-1.0, -step.upper)):
            cost = np.zeros(4)
            cost[step.column] = sign
            bounds = list(zip(lower, upper, strict=True))
            found = linprog(cost, A_ub=row, b_ub=[graph.rows.upper[step.row]], bounds=bounds)
            assert found.status != 0 or found.fun >= claimed
        lower[step.column], upper[step.column] = step.lower, step.upper
    assert np.array_equal(tightened.lower, lower)


def test_a_contradiction_ends_propagation():
    m = Model()
    x = m.integer("x", 0, 10, shape=2)
    m.constrain(x[0] - x[1] >= 6, x[0] + x[1] <= 5)
    graph = compile_model(m)
    _, steps, alive = Propagator(graph).tighten(Box(graph.lower.copy(), graph.upper.copy()))
    assert not alive
    assert steps[-1].lower > steps[-1].upper


def test_the_box_that_was_given_is_not_changed():
    m = Model()
    x = m.integer("x", 0, 10)
    m.constrain(2 * x <= 7)
    graph = compile_model(m)
    box = Box(graph.lower.copy(), graph.upper.copy())
    tightened, steps, alive = Propagator(graph).tighten(box)
    assert (box.upper[0], tightened.upper[0], len(steps), alive) == (10.0, 3.0, 1, True)


@pytest.mark.parametrize("coefficient", [1e-12, 1e-6, 1e6])
def test_rows_of_any_scale_cut_off_no_point_that_satisfies_them(coefficient):
    m = Model()
    x = m.integer("x", 0, 10)
    try:
        m.constrain(coefficient * x <= 4 * coefficient)
    except ModelError:
        pytest.fail("the row can hold")
    graph = compile_model(m)
    tightened, _, alive = Propagator(graph).tighten(Box(graph.lower.copy(), graph.upper.copy()))
    assert alive
    assert tightened.upper[0] >= 4.0 and math.isfinite(tightened.upper[0])


@pytest.mark.parametrize("seed", range(10))
def test_large_terms_that_cancel_leave_room_for_their_rounding(seed):
    rng = np.random.default_rng(seed)
    m = Model()
    fixed = rng.integers(10**11, 10**12, size=60).tolist()
    large = [m.integer(f"x{k}", value, value) for k, value in enumerate(fixed)]
    y = m.integer("y", 0, 20)
    weights = np.round(rng.normal(size=60), 3).tolist()
    rest = sum(Fraction(w) * value for w, value in zip(weights, fixed, strict=True))
    m.constrain(linear([*zip(large, weights, strict=True), (y, 1.0)]) <= float(rest + 10))
    graph = compile_model(m)
    box, _, alive = Propagator(graph).tighten(Box(np.array(graph.lower), np.array(graph.upper)))
    implied = Fraction(float(graph.rows.widest_upper[0])) - rest
    assert alive
    assert min(20, math.floor(implied)) <= box.upper[graph.column_of[y.numeric()]] <= 20
