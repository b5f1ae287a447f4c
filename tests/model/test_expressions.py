"""Linear expressions and comparisons."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certimap import Model, ModelError, linear
from certimap.model.expressions import Constraint, as_expression

NUMBERS = st.floats(-10, 10).filter(lambda c: c == 0.0 or abs(c) > 1e-6)


def evaluate(expression, values):
    return expression.constant + sum(c * a.at(values[a.variable.name]) for a, c in expression.terms.items())


@given(st.lists(NUMBERS, min_size=4, max_size=4), st.integers(-3, 3), st.floats(-1, 1))
def test_arithmetic_agrees_with_numbers(c, i, r):
    m = Model()
    x, y = m.integer("x", -3, 3), m.real("y", -1.0, 1.0)
    expression = c[0] * x + y * c[1] - (x - y) * c[2] + c[3] - (2 - x)
    expected = c[0] * i + r * c[1] - (i - r) * c[2] + c[3] - (2 - i)
    values = {"x": i, "y": r}
    assert evaluate(expression, values) == pytest.approx(expected, abs=1e-9)
    assert evaluate(-expression, values) == pytest.approx(-expected, abs=1e-9)
    low, high = expression.bounds()
    assert low - 1e-9 <= expected <= high + 1e-9


def test_terms_that_cancel_disappear():
    x = Model().real("x", 0.0, 1.0)
    assert (x - x).terms == {}
    assert str(x - x) == "+0"


def test_linear_takes_mappings_pairs_and_single_terms():
    m = Model()
    x, z = m.real("x", 0.0, 1.0), m.categorical("z", 3)
    same = [linear({x: 2.0}, 1.0), linear([(x, 2.0)], 1.0), linear(2 * x, 1.0), linear([2 * x, 1.0])]
    assert len({str(e) for e in same}) == 1
    assert str(linear(x)) == "+1 x"
    assert str(linear([(z.is_(1), 3), x])) == "+3 [z=1] +1 x"
    with pytest.raises(ModelError, match=r"coefficient of .*x.* must be finite, got nan"):
        linear([(x, math.nan)])
    with pytest.raises(ModelError, match=r"z is a categorical .* has no numeric value"):
        linear({z: 1.0})


@pytest.mark.parametrize(
    "make, holds",
    [
        (lambda x, y: x + y <= 1, lambda x, y: x + y <= 1),
        (lambda x, y: 2 * x >= y + 0.5, lambda x, y: 2 * x >= y + 0.5),
        (lambda x, y: linear([(x, 1), (y, -1)]) == 0, lambda x, y: x == y),
        (lambda x, y: x + y >= 1, lambda x, y: x + y >= 1),
        (lambda x, y: x <= y, lambda x, y: x <= y),
    ],
)
def test_comparisons_hold_where_the_numbers_compare(make, holds):
    m = Model()
    constraint = make(m.real("x", 0.0, 1.0), m.real("y", 0.0, 1.0))
    assert isinstance(constraint, Constraint)
    for x in np.linspace(0, 1, 5):
        for y in np.linspace(0, 1, 5):
            assert constraint.satisfied({"x": x, "y": y}) == holds(x, y)


def test_a_constraint_has_no_truth_value():
    x = Model().real("x", 0.0, 1.0)
    with pytest.raises(ModelError, match=r"'\+1 x <= 0.5' has no truth value; pass it to model.constrain"):
        assert x <= 0.5


def test_constraints_are_named_after_what_they_say_or_by_the_user():
    x = Model().real("x", 0.0, 1.0)
    constraint = 2 * x + 1 <= 2
    assert constraint.name == "+2 x <= 1"
    assert constraint.named("budget").name == "budget"
    assert constraint.named("budget").rows == constraint.rows


def test_violation_is_relative_to_the_scale_of_the_row():
    x = Model().real("x", 0.0, 1.0)
    (row,) = (1000 * x <= 500).rows
    assert row.violation({"x": 0.6}) == pytest.approx(0.1)
    assert row.violation({"x": 0.4}) == 0.0


def test_numbers_of_every_kind_become_expressions():
    assert as_expression(np.float64(2.5)).constant == 2.5
    assert as_expression(np.int64(2)).constant == 2.0
