"""Variables: declaration, domains, coordinates, and what is said when a declaration is wrong."""

import math

import numpy as np
import pytest

from certimap import Model, ModelError, at_most, fix
from certimap.model.domains import triangle_index, triangle_position
from certimap.model.expressions import Atom


def test_every_kind_is_declared_under_its_name():
    m = Model()
    declared = {
        "c": m.categorical("c", 3),
        "s": m.categorical("s", ["red", "green"]),
        "b": m.binary("b"),
        "i": m.integer("i", -2, 4),
        "r": m.real("r", -1.5, 2.0),
        "p": m.simplex("p", 3, 0.1),
        "q": m.positive_definite("q", 2, 0.5, 2.0),
    }
    assert m.variables == declared
    assert str(declared["c"].domain) == "categorical with values 0..2"
    assert declared["s"].domain.labels == ("red", "green")
    assert list(declared["i"].states) == [-2, -1, 0, 1, 2, 3, 4]
    assert list(declared["b"].states) == [0, 1]


@pytest.mark.parametrize(
    "shape, names", [(2, ["z[0]", "z[1]"]), ((1, 2), ["z[0,0]", "z[0,1]"]), ((), ["z[]"]), (0, [])]
)
def test_arrays_hold_one_variable_per_index(shape, names):
    m = Model()
    z = m.categorical("z", 2, shape=shape)
    assert isinstance(z, np.ndarray)
    assert [v.name for v in z.ravel()] == names
    assert list(m.variables) == names


WRONG_DECLARATIONS = [
    (lambda m: m.categorical("c", 0), r"categorical 'c': needs at least one state, got 0"),
    (lambda m: m.categorical("c", []), r"categorical 'c': needs at least one state"),
    (lambda m: m.categorical("c", 2.5), r"categorical 'c': needs a number of states or a list of labels, got 2.5"),
    (lambda m: m.categorical("c", "ab"), r"categorical 'c': needs a number of states or a list of labels, got 'ab'"),
    (lambda m: m.categorical("c", ["x", "x"]), r"categorical 'c': labels must differ, got \['x', 'x'\]"),
    (lambda m: m.integer("i"), r"integer 'i': bounds must be whole numbers with lower <= upper, got None, None"),
    (lambda m: m.integer("i", 3, 1), r"integer 'i': bounds must be whole numbers with lower <= upper, got 3, 1"),
    (lambda m: m.integer("i", 0.5, 1), r"integer 'i': .* got 0.5, 1"),
    (lambda m: m.integer("i", 0, math.inf), r"integer 'i': .* got 0, inf"),
    (lambda m: m.real("r", 0.0, math.inf), r"real 'r': bounds must be finite with lower <= upper, got 0.0, inf"),
    (lambda m: m.real("r", 0.0, 1e20), r"real 'r': .* got 0.0, 1e\+20 \(the limit is 1e\+15"),
    (lambda m: m.integer("i", 0, 10**16), r"integer 'i': .* got 0, 10000000000000000 \(the limit is"),
    (lambda m: m.real("r"), r"real 'r': bounds must be finite with lower <= upper, got None, None"),
    (lambda m: m.real("r", "0", 1.0), r"real 'r': .* got '0', 1.0"),
    (lambda m: m.real("r", -math.inf, 0.0), r"real 'r': .* got -inf, 0.0"),
    (lambda m: m.real("r", math.nan, 0.0), r"real 'r': .* got nan, 0.0"),
    (lambda m: m.real("r", 1.0, 0.0), r"real 'r': .* got 1.0, 0.0"),
    (lambda m: m.simplex("p", 0), r"simplex 'p': needs size >= 1 .* got 0"),
    (lambda m: m.simplex("p", 2.5), r"simplex 'p': needs size >= 1 .* got 2.5"),
    (lambda m: m.simplex("p", 3, 0.4), r"simplex 'p': .* 0 <= lower <= 1/size, got 3, 0.4"),
    (lambda m: m.positive_definite("q", 2, 0.0, 1.0), r"positive_definite 'q': .* 0 < lower .* got 2, 0.0, 1.0"),
    (lambda m: m.positive_definite("q", 2, 1.0, math.inf), r"positive_definite 'q': .* got 2, 1.0, inf"),
    (lambda m: m.binary(""), r"non-empty name, got ''"),
    (lambda m: m.binary(3), r"non-empty name, got 3"),
    (lambda m: m.binary("taken"), r"the name 'taken' is already taken"),
    (lambda m: m.binary("z", shape=-1), r"'z': a shape has no negative entries, got -1"),
    (lambda m: m.binary("z", shape=2.5), r"'z': a shape is a whole number or a tuple of them, got 2.5"),
]


@pytest.mark.parametrize("declare, message", WRONG_DECLARATIONS)
def test_wrong_declarations_say_what_was_given_and_what_is_allowed(declare, message):
    m = Model()
    m.binary("taken")
    with pytest.raises(ModelError, match=message):
        declare(m)


def test_declared_names_do_not_collide_with_array_entries():
    m = Model()
    m.binary("z[0]")
    with pytest.raises(ModelError, match=r"z\[0\]|'z'"):
        m.binary("z", shape=2)


OUTSIDE = [
    ("c", 3, r"c is a categorical with values 0..2; got 3"),
    ("c", -1, r"c is a categorical with values 0..2; got -1"),
    ("c", 0.5, r"c is a categorical .* got 0.5"),
    ("b", 2, r"b is a integer in 0..1; got 2"),
    ("i", 9, r"i is a integer in -2..4; got 9"),
    ("r", 2.1, r"r is a real in \[-1.5, 2\]; got 2.1"),
    ("r", math.nan, r"r is a real in \[-1.5, 2\]; got nan"),
    ("r", "x", r"r is a real in \[-1.5, 2\]; got 'x'"),
    ("p", [0.5, 0.5], r"p is a simplex of 3 parts, each at least 0.1; got"),
    ("p", [0.05, 0.45, 0.5], r"p is a simplex"),
    ("p", [0.3, 0.3, 0.3], r"p is a simplex"),
    ("q", [[1.0, 0.2], [0.1, 1.0]], r"q is a symmetric 2x2 matrix with eigenvalues in \[0.5, 2\]; got"),
    ("q", [[1.0, 0.9], [0.9, 1.0]], r"q is a symmetric 2x2 matrix"),
]


@pytest.mark.parametrize("name, value, message", OUTSIDE)
def test_values_outside_a_domain_are_refused_by_name(name, value, message):
    m = Model()
    good = {
        m.categorical("c", 3): 0,
        m.binary("b"): 1,
        m.integer("i", -2, 4): 2.0,
        m.real("r", -1.5, 2.0): 0.25,
        m.simplex("p", 3, 0.1): [0.1, 0.2, 0.7],
        m.positive_definite("q", 2, 0.5, 2.0): [[1.0, 0.3], [0.3, 1.0]],
    }
    point = {v.name: value for v, value in good.items()}
    assert m.value(point) == 0.0
    with pytest.raises(ModelError, match=message):
        m.value({**point, name: value})


def test_indicators_components_and_numeric_values_of_variables():
    m = Model()
    c, b, i = m.categorical("c", 3), m.binary("b"), m.integer("i", -1, 1)
    p, q = m.simplex("p", 2), m.positive_definite("q", 2, 1.0, 3.0)
    assert str(c.is_(2)) == "+1 [c=2]"
    assert [str(a) for a in c.coordinates()] == ["[c=0]", "[c=1]", "[c=2]"]
    assert b.numeric() == Atom(b, 1)
    assert i.numeric() == Atom(i, None)
    assert [a.at(-1) for a in i.indicators()] == [1.0, 0.0, 0.0]
    assert str(p[1]) == "+1 p[1]"
    assert str(q[0, 1]) == str(q[1, 0]) == "+1 q[1,0]"
    assert Atom(q, triangle_index(1, 0)).bounds() == (-1.0, 1.0)
    assert Atom(q, triangle_index(1, 1)).bounds() == (1.0, 3.0)
    assert Atom(p, 0).bounds() == (0.0, 1.0)


WRONG_USES = [
    (lambda v: v["c"].is_(3), r"c is a categorical .*; got 3"),
    (lambda v: v["c"] + 1, r"c is a categorical .* no numeric value: use c.is_\(value\)"),
    (lambda v: v["r"].states, r"r is a real .* no finite list of values"),
    (lambda v: v["r"].is_(0), r"r is a real"),
    (lambda v: v["p"][2], r"p is a simplex .* no component 2"),
    (lambda v: v["q"][0], r"q is a symmetric .* no component 0"),
    (lambda v: v["c"][0], r"c is a categorical .* no component 0"),
    (lambda v: v["big"].indicators(), r"big has 20001 values; .* at most 10000 values"),
    (lambda v: v["r"] * v["r"], r"multiplied by a number only"),
    (lambda v: math.nan * v["r"], r"multiplied by a number only, and a finite one, got nan"),
    (lambda v: v["r"] / 0, r"divided by a number only, finite and not 0, got 0"),
    (lambda v: v["r"] + math.inf, r"expected a finite number, a variable or a linear expression, got inf"),
    (lambda v: v["r"] + "x", r"expected a finite number, .* got 'x'"),
]


@pytest.mark.parametrize("use, message", WRONG_USES)
def test_wrong_uses_of_variables_are_explained(use, message):
    m = Model()
    variables = {
        "c": m.categorical("c", 3),
        "r": m.real("r", 0.0, 1.0),
        "p": m.simplex("p", 2),
        "q": m.positive_definite("q", 2, 1.0, 2.0),
        "big": m.integer("big", 0, 20_000),
    }
    with pytest.raises(ModelError, match=message):
        use(variables)


def test_states_answer_to_their_labels():
    m = Model()
    c = m.categorical("c", ["red", "green", "blue"], shape=2)
    assert str(c[0].is_("blue")) == "+1 [c[0]=2]"
    assert fix(c, ["blue", "red"]).satisfied({"c[0]": 2, "c[1]": 0})
    assert not at_most(1, c, value="green").satisfied({"c[0]": 1, "c[1]": 1})
    with pytest.raises(ModelError, match=r"c\[0\] is a categorical .* \(red, green, blue\); got 'pink'"):
        c[0].is_("pink")


def test_comparisons_of_arrays_are_arrays_of_constraints():
    m = Model()
    x = m.integer("x", 0, 5, shape=3)
    assert [c.name for c in x <= 2] == ["+1 x[0] <= 2", "+1 x[1] <= 2", "+1 x[2] <= 2"]
    assert [c.name for c in x >= [1, 2, 3]] == ["+1 x[0] >= 1", "+1 x[1] >= 2", "+1 x[2] >= 3"]
    assert [c.name for c in 2 * x[1:] - 1 == np.ones(2)] == ["+2 x[1] == 2", "+2 x[2] == 2"]
    assert str(np.array([1.0, 2.0, 3.0]) @ x <= 4) == str(x[0] + 2 * x[1] + 3 * x[2] <= 4)
    m.constrain(x[:2] >= 1, x.sum() <= 4)
    assert list(m.constraints) == ["+1 x[0] >= 1", "+1 x[1] >= 1", "+1 x[0] +1 x[1] +1 x[2] <= 4"]


def test_a_variable_is_not_iterable():
    with pytest.raises(TypeError, match="c is not iterable"):
        list(Model().categorical("c", 2))


@pytest.mark.parametrize("order", [1, 2, 3, 7])
def test_triangle_positions_are_inverse_to_indices(order):
    pairs = [(r, c) for r in range(order) for c in range(r + 1)]
    assert [triangle_position(k) for k in range(len(pairs))] == pairs
    assert [triangle_index(r, c) for r, c in pairs] == list(range(len(pairs)))
    assert all(triangle_index(c, r) == triangle_index(r, c) for r, c in pairs)
