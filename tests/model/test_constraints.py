"""Constraints hold exactly where their definition says: by enumeration, over arrays, hard and soft."""

import itertools
import math

import numpy as np
import pytest
from tests.helpers import joint_states

from certimap import (
    Model,
    ModelError,
    all_of,
    any_of,
    at_least,
    at_most,
    cannot_link,
    exactly,
    fix,
    implies,
    linear,
    must_link,
    soft,
)


def discrete_model():
    m = Model()
    return m, {
        "a": m.categorical("a", 3),
        "b": m.categorical("b", 3),
        "c": m.categorical("c", 2),
        "i": m.integer("i", -1, 2),
        "j": m.integer("j", 0, 3),
        "x": m.binary("x"),
        "y": m.binary("y"),
    }


CASES = [
    (lambda v: must_link(v["a"], v["b"]), lambda s: s["a"] == s["b"]),
    (lambda v: must_link(v["a"], v["c"]), lambda s: s["a"] == s["c"]),
    (lambda v: must_link(v["i"], v["j"]), lambda s: s["i"] == s["j"]),
    (lambda v: must_link(v["i"], v["x"]), lambda s: s["i"] == s["x"]),
    (lambda v: must_link(v["a"], v["i"]), lambda s: s["a"] == s["i"]),
    (lambda v: must_link(v["a"], v["a"]), lambda s: True),
    (lambda v: cannot_link(v["a"], v["b"]), lambda s: s["a"] != s["b"]),
    (lambda v: cannot_link(v["i"], v["j"]), lambda s: s["i"] != s["j"]),
    (lambda v: cannot_link(v["x"], v["c"]), lambda s: s["x"] != s["c"]),
    (lambda v: fix(v["a"], 2), lambda s: s["a"] == 2),
    (lambda v: fix(v["i"], -1), lambda s: s["i"] == -1),
    (lambda v: fix([v["a"], v["x"]], [1, 0]), lambda s: s["a"] == 1 and s["x"] == 0),
    (lambda v: fix([v["a"], v["x"]], 1), lambda s: s["a"] == 1 and s["x"] == 1),
    (lambda v: implies(v["x"], v["y"]), lambda s: s["x"] <= s["y"]),
    (lambda v: implies(v["a"].is_(0), v["i"].is_(2)), lambda s: s["a"] != 0 or s["i"] == 2),
    (lambda v: implies(1 - v["x"], v["a"].is_(1)), lambda s: s["x"] == 1 or s["a"] == 1),
    (lambda v: at_most(1, [v["a"], v["b"], v["i"]]), lambda s: [s["a"], s["b"], s["i"]].count(1) <= 1),
    (lambda v: at_least(2, [v["a"], v["b"], v["i"]], value=2), lambda s: [s["a"], s["b"], s["i"]].count(2) >= 2),
    (lambda v: exactly(1, [v["x"], v["a"].is_(2), v["y"]]), lambda s: s["x"] + (s["a"] == 2) + s["y"] == 1),
    (lambda v: exactly(0, [v["x"], v["y"]]), lambda s: s["x"] == s["y"] == 0),
    (lambda v: all_of(v["x"], [v["y"], v["a"].is_(0)]), lambda s: s["x"] == (s["y"] and s["a"] == 0)),
    (lambda v: any_of(v["x"], [v["y"], v["a"].is_(0)]), lambda s: s["x"] == (s["y"] or s["a"] == 0)),
    (lambda v: linear({v["i"]: 2, v["j"]: -1}) <= 1, lambda s: 2 * s["i"] - s["j"] <= 1),
    (lambda v: v["i"] + v["j"] >= 2, lambda s: s["i"] + s["j"] >= 2),
    (lambda v: linear([(v["a"].is_(1), 1), (v["x"], 1)]) == 1, lambda s: (s["a"] == 1) + s["x"] == 1),
]


@pytest.mark.parametrize("make, holds", CASES)
def test_a_constraint_holds_exactly_where_its_definition_does(make, holds):
    m, v = discrete_model()
    constraint = make(v)
    for s in joint_states(m):
        assert constraint.satisfied(s) == bool(holds(s)), s


def test_constraints_bind_the_value_and_soft_ones_cost_their_weight():
    for make, holds in CASES[:6]:
        m, v = discrete_model()
        m.constrain(make(v))
        n, w = discrete_model()
        n.add(soft(make(w), weight=2.5))
        for s in itertools.islice(joint_states(m), 0, None, 7):
            assert m.value(s) == (0.0 if holds(s) else -math.inf)
            assert n.value(s) == (0.0 if holds(s) else -2.5)


def test_arrays_match_element_by_element_and_broadcast():
    m = Model()
    z = m.categorical("z", 3, shape=(2, 3))
    x = m.binary("x")
    assert [(a.name, b.name) for a, b, _ in must_link(z[0], z[1]).links] == [
        (f"z[0,{j}]", f"z[1,{j}]") for j in range(3)
    ]
    assert len(cannot_link(z[0, 0], z[1]).links) == 3
    assert len(must_link(z, z[0, 0]).links) == 6
    assert len(implies(x, [v.is_(0) for v in z.ravel()]).rows) == 6
    assert len(fix(z, np.zeros((2, 3), dtype=int)).rows) == 6
    assert len(at_most(2, z, value=2).rows[0].terms) == 6


def test_continuous_variables_are_linked_and_fixed_coordinate_by_coordinate():
    m = Model()
    x, y = m.real("x", 0.0, 1.0, shape=2)[0], m.real("y", -1.0, 1.0)
    p, q = m.simplex("p", 2), m.positive_definite("q", 2, 0.5, 2.0)
    assert must_link(x, y).satisfied({"x[0]": 0.5, "y": 0.5})
    assert not must_link(x, y).satisfied({"x[0]": 0.5, "y": 0.4})
    assert fix(p, [0.25, 0.75]).satisfied({"p": [0.25, 0.75]})
    assert not fix(p, [0.25, 0.75]).satisfied({"p": [0.75, 0.25]})
    eye = np.eye(2)
    assert fix(q, eye).satisfied({"q": eye})
    assert not fix(q, eye).satisfied({"q": 1.5 * eye})


WRONG_CONSTRAINTS = [
    (lambda m: must_link(m["a"], 3), r"must_link takes variables, got 3"),
    (lambda m: must_link(m["a"], m["r"]), r"must_link needs variables of one kind: a is a cat.*, r is a real"),
    (lambda m: must_link(m["p"], m["p3"]), r"must_link needs variables of one size: p is .*2 parts.*3 parts"),
    (lambda m: cannot_link(m["r"], m["r"]), r"cannot_link takes categorical or integer variables; r is a real"),
    (lambda m: cannot_link(m["big"], m["a"]), r"big has 20001 values"),
    (lambda m: must_link([m["a"], m["a"]], [m["a"]] * 3), r"shapes \(2,\) and \(3,\) do not match"),
    (lambda m: fix(m["a"], 5), r"a is a categorical with values 0..2; got 5"),
    (lambda m: fix([m["a"], m["x"]], [0, 1, 1]), r"fix got 2 variables and 3 values"),
    (lambda m: implies(m["a"], m["x"]), r"a is a categorical .*, not a binary; use a.is_\(value\)"),
    (lambda m: implies(m["x"], 2 * m["x"]), r"expected a binary variable or an indicator .* got"),
    (lambda m: implies(m["x"], 0.5 * m["x"]), r"expected a binary variable or an indicator .* got"),
    (lambda m: at_most(-1, [m["x"]]), r"at_most takes a whole number of items >= 0, got -1"),
    (lambda m: at_least(1.5, [m["x"]]), r"at_least takes a whole number of items >= 0, got 1.5"),
    (lambda m: exactly(1, [m["x"]], value=7), r"x is a .*; got 7"),
    (lambda m: soft(3, 1.0), r"soft takes constraints such as must_link\(a, b\), got 3"),
    (lambda m: soft(m["x"] == 1, 1.0), r"got False; write must_link\(a, b\) .* fix\(a, 1\) for a value"),
    (lambda m: soft(must_link(m["a"], m["a"]), -1.0), r"soft\(must_link\(a, a\)\): .* finite number >= 0, got -1.0"),
    (lambda m: soft(must_link(m["a"], m["a"]), "x"), r"the weight must be a finite number >= 0, got 'x'"),
    (lambda m: soft(must_link(m["a"], m["a"]), math.inf), r"the weight must be a finite number >= 0, got inf"),
]


@pytest.mark.parametrize("make, message", WRONG_CONSTRAINTS)
def test_wrong_constraints_say_what_was_given_and_what_is_allowed(make, message):
    m = Model()
    variables = {
        "a": m.categorical("a", 3),
        "x": m.binary("x"),
        "r": m.real("r", 0.0, 1.0),
        "p": m.simplex("p", 2),
        "p3": m.simplex("p3", 3),
        "big": m.integer("big", 0, 20_000),
    }
    with pytest.raises(ModelError, match=message):
        make(variables)


IMPOSSIBLE = [
    (
        lambda v: v["i"] + v["j"] >= 6,
        r"'\+1 i \+1 j >= 6' can never hold: .* lies in \[-1, 5\], .* \[6, inf\]",
    ),
    (lambda v: at_least(3, [v["x"], v["y"]]), r"at_least\(3, x .. y, value=1\)' can never hold: .* \[0, 2\]"),
    (lambda v: exactly(4, [v["a"], v["b"]]), r"exactly\(4, a .. b, value=1\)' can never hold"),
    (lambda v: cannot_link(v["a"], v["a"]), r"cannot_link\(a, a\)' can never hold: a cannot differ from itself"),
]


@pytest.mark.parametrize("make, message", IMPOSSIBLE)
def test_a_constraint_that_can_never_hold_is_refused_at_once(make, message):
    m, v = discrete_model()
    with pytest.raises(ModelError, match=message):
        m.constrain(make(v))
