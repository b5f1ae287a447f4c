"""The model: adding parts, closed-form values, assignments as arrays, and the fingerprint."""

import math

import numpy as np
import pytest

from certimap import (
    Block,
    Model,
    ModelError,
    at_most,
    fix,
    gated,
    gaussian,
    linear,
    must_link,
    parity,
    polynomial,
    potts,
    ridge,
    soft,
    table,
)

INF = math.inf


def mixed_model(*, weight=1.0, penalty=2.0, bound=1.0, slope=0.5, entry=0.3, mean=0.2, upper=2.0, odd=True):
    """A model with one of nearly everything; each argument is one of its numbers."""
    m = Model()
    z, x, b = m.categorical("z", 3, shape=2), m.real("x", -1.0, upper), m.binary("b", shape=2)
    m.add(table(z[0], [0.1, entry, -INF]), potts(z[0], z[1], weight), ridge(2 * x, gaussian(mean)))
    m.add(gated(b[0], x - 1, polynomial([0.0, 1.0])), parity(b, odd=odd), linear({x: slope}, 0.25))
    m.add(soft(at_most(1, z), penalty))
    m.constrain(x + b[1] <= bound)
    return m


POINT = {"z": [1, 1], "x": -0.5, "b": [1, 0]}


def test_the_value_is_the_sum_of_all_terms():
    expected = 0.3 + 1.0 - 0.5 * (-1.0 - 0.2) ** 2 + (-1.5) + 0.0 + 0.5 * -0.5 + 0.25 - 2.0
    assert mixed_model().value(POINT) == pytest.approx(expected, abs=1e-14)


def test_the_value_is_minus_infinity_where_a_factor_or_constraint_excludes_the_point():
    m = mixed_model()
    assert m.value({**POINT, "z": [2, 1]}) == -INF
    assert m.value({**POINT, "b": [1, 1]}) == -INF
    assert m.violated({**POINT, "x": 0.5, "b": [0, 1]}) == ["+1 x +1 [b[1]=1] <= 1"]
    assert m.value({**POINT, "x": 0.5, "b": [0, 1]}) == -INF
    assert math.isfinite(m.objective(m.flatten({**POINT, "x": 0.5, "b": [0, 1]})))
    assert m.violated(POINT) == []


def test_flatten_and_pack_are_inverse():
    m = Model()
    m.categorical("z", 3, shape=(2, 2))
    m.real("x", 0.0, 1.0)
    m.simplex("p", 2, shape=3)
    m.positive_definite("q", 2, 0.5, 2.0, shape=1)
    m.binary("none", shape=0)
    point = {
        "z": np.array([[0, 1], [2, 0]]),
        "x": 0.5,
        "p": np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
        "q": np.eye(2)[None],
        "none": np.zeros(0),
    }
    flat = m.flatten(point)
    assert set(flat) == set(m.variables)
    packed = m.pack(flat)
    assert list(packed) == list(m.shapes)
    for name, value in point.items():
        assert np.array_equal(packed[name], value), name
    assert m.flatten({**flat}).keys() == flat.keys()


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda p: p.pop("x"), r"no value for 'x'"),
        (lambda p: p.pop("z"), r"no value for 'z\[0\]'"),
        (lambda p: p.update(z=[1, 1, 1]), r"the assignment of 'z' has shape \(3,\), declared is \(2,\)"),
        (lambda p: p.update(z=[1, 5]), r"z\[1\] is a categorical with values 0..2; got .*5"),
        (lambda p: p.update(x=9.0), r"x is a real in \[-1, 2\]; got 9.0"),
    ],
)
def test_wrong_assignments_are_explained(change, message):
    point = dict(POINT)
    change(point)
    with pytest.raises(ModelError, match=message):
        mixed_model().value(point)


def test_parts_may_be_nested_and_arrays():
    m = Model()
    z = m.categorical("z", 2, shape=(2, 2))
    m.add([table(v, [0.0, 1.0]) for v in z.ravel()], [[potts(z[0], z[1])]])
    m.add(np.array([table(z[0, 0], [1.0, 0.0])], dtype=object))
    m.constrain([must_link(z[0, 0], z[0, 1])], np.array([fix(z[1, 1], 0)], dtype=object), soft(fix(z[1, 0], 1), 1.0))
    assert len(m.factors) == 7
    assert list(m.constraints) == ["must_link(z[0,0], z[0,1])", "fix(z[1,1], 0)"]
    assert len(m.softs) == 1


def test_constraints_of_one_name_are_numbered():
    m = Model()
    x = m.real("x", 0.0, 1.0)
    m.constrain((x <= 0.5).named("cap"), (x <= 0.6).named("cap"), (x <= 0.7).named("cap"))
    assert list(m.constraints) == ["cap", "cap #2", "cap #3"]
    assert [c.name for c in m.constraints.values()] == list(m.constraints)


def add_twice(m, a, other):
    f = table(a, [0.0, 1.0])
    m.add(f, f)


def group_twice(m, a, other):
    f = table(a, [0.0, 1.0])
    m.add(Block([f]), Block([f]))


WRONG_PARTS = [
    (lambda m, a, other: m.add(3), r"add takes factors, blocks, linear expressions and soft constraints, got 3"),
    (lambda m, a, other: m.add(a.is_(0) <= 0), r"add takes .* got Constraint"),
    (lambda m, a, other: m.constrain(table(a, [0, 0])), r"constrain takes constraints such as must_link\(a, b\), got"),
    (
        lambda m, a, other: m.add(table(other, [0, 0])),
        r"table\(other\): variable 'other' does not belong to",
    ),
    (lambda m, a, other: m.add(linear([(other.is_(0), 1)])), r"linear\(.*\): variable 'other' does not belong"),
    (lambda m, a, other: m.constrain(must_link(a, other)), r"must_link\(a, other\): variable 'other' does not"),
    (lambda m, a, other: m.add(soft(must_link(a, other), 1.0)), r"must_link\(a, other\): variable 'other' does not"),
    (add_twice, r"factor table\(a\) is already in the model"),
    (group_twice, r"factor table\(a\) is already in another block"),
    (lambda m, a, other: m.add(Block([])), r"a block needs at least one factor"),
    (
        lambda m, a, other: m.add(Block([table(a, [0, 0])], private=[m.binary("b")])),
        r"block: private variable b occurs in none of the block's factors",
    ),
]


@pytest.mark.parametrize("do, message", WRONG_PARTS)
def test_parts_of_the_wrong_kind_or_model_are_refused_by_name(do, message):
    m = Model()
    with pytest.raises(ModelError, match=message):
        do(m, m.categorical("a", 2), Model().categorical("other", 2))


# --------------------------------------------------------------------------------------------------- fingerprint
def test_equal_models_have_equal_fingerprints():
    assert mixed_model().fingerprint() == mixed_model().fingerprint()


@pytest.mark.parametrize(
    "number",
    [
        {"weight": 1.0 + 2**-52},
        {"penalty": 2.0 + 2**-51},
        {"bound": 1.0 + 2**-52},
        {"slope": 0.5 + 2**-53},
        {"entry": -INF},
        {"mean": 0.2 + 2**-55},
        {"upper": 2.0 + 2**-51},
        {"odd": False},
    ],
    ids=lambda n: next(iter(n)),
)
def test_the_fingerprint_changes_with_the_last_bit_of_any_number(number):
    assert mixed_model(**number).fingerprint() != mixed_model().fingerprint()


def test_the_fingerprint_changes_with_structure():
    base = mixed_model().fingerprint()
    for change in (
        lambda m: m.add(table(m.variables["z[0]"], [0.0, 0.0, 0.0])),
        lambda m: m.binary("extra"),
        lambda m: m.constrain(fix(m.variables["z[0]"], 1)),
        lambda m: m.add(soft(fix(m.variables["z[0]"], 1), 0.0)),
        lambda m: m.add(linear([(m.variables["z[0]"].is_(1), 1e-300)])),
    ):
        m = mixed_model()
        change(m)
        assert m.fingerprint() != base


def test_the_fingerprint_ignores_names_of_factors_blocks_and_the_layout_of_tables():
    def build(name, order, grouped):
        m = Model()
        z = m.categorical("z", 2, shape=2)
        f = table(z, np.array([[1.0, 2.0], [3.0, 4.0]], order=order), name=name)
        m.add(Block([f]) if grouped else f)
        return m.fingerprint()

    assert build("", "C", False) == build("pair", "F", False) == build("", "C", True)
