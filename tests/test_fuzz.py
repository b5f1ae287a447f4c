"""Random models against brute force: no false OPTIMAL, no bound below the optimum, every certificate verified."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers import assert_solved, enumerate_map
from tests.mixed_search import mixed_map
from tests.models import discrete_model, mixed_model

from certimap import (
    Block,
    Model,
    ModelError,
    Status,
    at_most,
    cannot_link,
    exactly,
    fix,
    gated,
    gaussian,
    implies,
    linear,
    must_link,
    parity,
    polynomial,
    potts,
    ridge,
    soft,
    student_t,
    table,
)
from certimap.solver import solve

DISCRETE, ALL_DISCRETE = 60, 500
MIXED, ALL_MIXED = 15, 100
MIXED_GAP = 1e-5
SEARCH = 1e-6  # accuracy of brute force with reals


def check_discrete(seed):
    model = discrete_model(np.random.default_rng(seed))
    optimum, _ = enumerate_map(model)
    result = solve(model, seed=seed)
    assert_solved(model, result, optimum=optimum)
    assert result.status is (Status.INFEASIBLE if optimum == -np.inf else Status.OPTIMAL)


def check_mixed(seed):
    model = mixed_model(np.random.default_rng(seed))
    optimum = mixed_map(model, seed=seed)
    result = solve(model, gap=MIXED_GAP, seed=seed)
    assert_solved(model, result, optimum=optimum)
    assert result.status is (Status.INFEASIBLE if optimum == -np.inf else Status.OPTIMAL)
    if np.isfinite(optimum):
        assert result.log_map <= optimum + SEARCH * max(1.0, abs(optimum)), "brute force missed the optimum"


@pytest.mark.parametrize("seed", range(DISCRETE))
def test_discrete_models_equal_enumeration(seed):
    check_discrete(seed)


@pytest.mark.parametrize("seed", range(MIXED))
def test_mixed_models_equal_brute_force(seed):
    check_mixed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(DISCRETE, ALL_DISCRETE))
def test_many_discrete_models_equal_enumeration(seed):
    check_discrete(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(MIXED, ALL_MIXED))
def test_many_mixed_models_equal_brute_force(seed):
    check_mixed(seed)


# ----------------------------------------------------------------------- whole models drawn, and shrunk, by Hypothesis
NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, allow_nan=False), st.just(-1e-9))
ENTRIES = st.one_of(NUMBERS, st.just(-math.inf))
SMALL = st.integers(-20, 20).map(lambda k: k / 8.0)
FUNCTIONS = st.one_of(
    st.builds(gaussian, SMALL, st.sampled_from([0.25, 1.0])),
    st.builds(student_t, SMALL),
    st.lists(SMALL, min_size=1, max_size=4).map(polynomial),
)


def drawn_table(draw, scope):
    shape = [len(v.states) for v in scope]
    entries = draw(st.lists(ENTRIES, min_size=math.prod(shape), max_size=math.prod(shape)))
    return table(list(scope), np.array(entries).reshape(shape))


def drawn_constraint(draw, x):
    a, b = draw(st.permutations(x))[:2]
    p, q = (v.is_(draw(st.sampled_from(list(v.states)))) for v in (a, b))
    kinds = [
        lambda: must_link(a, b),
        lambda: cannot_link(a, b),
        lambda: implies(p, q),
        lambda: fix(a, draw(st.sampled_from(list(a.states)))),
        lambda: at_most(draw(st.integers(0, 2)), [p, q]),
        lambda: exactly(1, [p, q]),
        lambda: draw(SMALL) * p + draw(SMALL) * q <= draw(SMALL),
    ]
    constraint = draw(st.sampled_from(kinds))()
    return soft(constraint, abs(draw(NUMBERS))) if draw(st.booleans()) else constraint


@st.composite
def drawn_models(draw, reals=False):
    """Two to four discrete variables under tables, Potts and parity terms, blocks and constraints; perhaps a real."""
    m = Model()
    x = []
    for k in range(draw(st.integers(2, 3 if reals else 4))):
        new = [lambda k: m.categorical(f"c{k}", 3), lambda k: m.binary(f"b{k}"), lambda k: m.integer(f"i{k}", -1, 1)]
        x.append(draw(st.sampled_from(new))(k))
    try:
        for _ in range(draw(st.integers(0, 3))):
            scope = draw(st.permutations(x))[: draw(st.integers(1, 2))]
            factors = [drawn_table(draw, scope) for _ in range(draw(st.integers(1, 2)))]
            m.add(Block(factors) if draw(st.booleans()) else factors)
        if draw(st.booleans()) and x[0].states == x[1].states:
            m.add(potts(x[0], x[1], draw(NUMBERS)))
        if draw(st.booleans()):
            m.add(parity([v.is_(1) for v in x[:2]], odd=draw(st.booleans())))
        if reals:
            r = m.real("r", -1.0, draw(st.sampled_from([-1.0, -0.5, 2.0])))
            m.add(ridge(draw(st.sampled_from([1.0, -0.5])) * r + x[0].is_(1), draw(FUNCTIONS)))
            m.add(gated(x[1].is_(0), r + draw(SMALL), draw(FUNCTIONS)), draw(SMALL) * r)
            if draw(st.booleans()):
                m.constrain(r + draw(SMALL) * x[0].is_(0) <= draw(SMALL))
        m.add(linear([(v.is_(1), draw(NUMBERS)) for v in x]))
        for _ in range(draw(st.integers(0, 3))):
            part = drawn_constraint(draw, x)
            (m.add if hasattr(part, "weight") else m.constrain)(part)
    except ModelError as error:  # a part that could never hold is refused at once
        assert "never hold" in str(error) or "excluded" in str(error)
    return m


@settings(max_examples=100)
@given(drawn_models())
def test_drawn_discrete_models_equal_enumeration(model):
    optimum, _ = enumerate_map(model)
    result = solve(model)
    assert_solved(model, result, optimum=optimum)
    assert result.status is (Status.INFEASIBLE if optimum == -np.inf else Status.OPTIMAL)


@settings(max_examples=25)
@given(drawn_models(reals=True))
def test_drawn_mixed_models_are_bounded_and_verified(model):
    assert_solved(model, solve(model, gap=1e-4, max_nodes=300), optimum=enumerate_map(model, grid=41)[0])
