"""Factor constructors: values, broadcasting, and what is said when a factor is wrong."""

import itertools
import math

import numpy as np
import pytest

from certimap import (
    Model,
    ModelError,
    black_box,
    gated,
    gaussian,
    log,
    parity,
    poisson,
    polynomial,
    potts,
    ridge,
    separable,
    table,
)
from certimap.model.constructors import MAX_DENSE_ENTRIES
from certimap.model.factors import SparseTable, Table

INF = math.inf


class Parabola:
    """A user oracle: -sum x^2, bounded on a box by its point nearest to zero."""

    def value(self, x):
        return -float(x @ x)

    def upper(self, lower, upper):
        nearest = np.clip(0.0, lower, upper)
        return -float(nearest @ nearest)


def small_model():
    m = Model()
    return m, m.categorical("a", 2), m.categorical("b", 3), m.integer("i", -1, 1), m.real("x", -1.0, 2.0), m.binary("y")


def test_a_table_reads_one_entry_per_joint_state():
    _, a, b, i, *_ = small_model()
    values = np.arange(18.0).reshape(2, 3, 3)
    values[1, 2, 0] = -INF
    f = table([a, b, i], values)
    for p, q, s in itertools.product(range(2), range(3), (-1, 0, 1)):
        assert f.value_at({"a": p, "b": q, "i": s}) == values[p, q, s + 1]


def test_a_table_does_not_change_with_the_array_it_was_made_from():
    _, a, *_ = small_model()
    values = np.zeros(2)
    f = table(a, values)
    values[0] = 5.0
    assert f.value_at({"a": 0}) == 0.0


def test_a_mapping_excludes_what_it_does_not_list():
    _, _, b, i, *_ = small_model()
    f = table([b, i], {(0, -1): 1.0, (2, 1): -2.0, (1, 0): -INF})
    assert isinstance(f, Table)
    assert f.value_at({"b": 0, "i": -1}) == 1.0
    assert f.value_at({"b": 2, "i": 1}) == -2.0
    assert f.value_at({"b": 1, "i": 0}) == f.value_at({"b": 0, "i": 0}) == -INF


def test_large_mappings_stay_sparse():
    m = Model()
    z = m.categorical("z", 9, shape=4)
    assert MAX_DENSE_ENTRIES < 9**4
    f = table(z, {(0, 1, 2, 3): 1.0, (8, 8, 8, 8): 2.0, (1, 1, 1, 1): -INF})
    assert isinstance(f, SparseTable)
    assert len(f.log_values) == 2
    point = {f"z[{k}]": 8 for k in range(4)}
    assert f.value_at(point) == 2.0
    assert f.value_at({**point, "z[0]": 1}) == -INF


def test_potts_broadcasts_over_arrays():
    m = Model()
    z = m.categorical("z", 3, shape=(2, 3))
    factors = potts(z[0], z[1], weight=-1.5)
    assert [f.label() for f in factors] == [f"potts(z[0,{j}], z[1,{j}])" for j in range(3)]
    assert factors[0].value_at({"z[0,0]": 2, "z[1,0]": 2}) == -1.5
    assert factors[0].value_at({"z[0,0]": 2, "z[1,0]": 1}) == 0.0


def test_ridge_gated_and_separable_apply_their_function():
    _, a, _, i, x, y = small_model()
    g = polynomial([0.0, 1.0, 1.0])
    assert ridge(2 * x - i + 1, g).value_at({"x": 0.5, "i": -1}) == pytest.approx(3.0 + 9.0)
    on = gated(y, x - 1, gaussian(0.0))
    assert on.value_at({"y": 1, "x": 2.0}) == pytest.approx(-0.5)
    assert on.value_at({"y": 0, "x": 2.0}) == 0.0
    assert gated(a.is_(1), x, gaussian(0.0)).value_at({"a": 0, "x": 2.0}) == 0.0
    first, second = separable([x, i], [gaussian(1.0), polynomial([1.0])])
    assert first.value_at({"x": 1.0}) == 0.0
    assert second.value_at({"i": 1}) == 1.0
    assert len(separable([x, i], gaussian(0.0))) == 2


@pytest.mark.parametrize("odd", [True, False])
def test_parity_excludes_the_other_parity(odd):
    m = Model()
    z, c = m.binary("z", shape=2), m.categorical("c", 3)
    f = parity([*z, c.is_(2)], odd=odd)
    for p, q, s in itertools.product((0, 1), (0, 1), range(3)):
        ones = p + q + (s == 2)
        assert f.value_at({"z[0]": p, "z[1]": q, "c": s}) == (0.0 if (ones % 2 == 1) == odd else -INF)


def test_a_black_box_evaluates_the_users_oracle():
    m = Model()
    x = m.real("x", -1.0, 1.0, shape=2)
    assert black_box(x, Parabola()).value_at({"x[0]": 0.5, "x[1]": 1.0}) == -1.25


WRONG_FACTORS = [
    (
        lambda a, b, i, x, y: table([a, b], np.zeros((3, 2))),
        r"table\(a, b\): .* has shape \(3, 2\), .* need \(2, 3\)",
    ),
    (lambda a, b, i, x, y: table(a, [0.0, math.nan]), r"table\(a\): a log-value is NaN; allowed are finite .* -inf"),
    (lambda a, b, i, x, y: table(a, [0.0, INF], name="prior"), r"prior: a log-value is \+inf; allowed are"),
    (lambda a, b, i, x, y: table(a, [-INF, -INF]), r"table\(a\): every log-value is -inf"),
    (lambda a, b, i, x, y: table([a, a], np.zeros((2, 2))), r"table\(a, a\): a variable occurs twice"),
    (lambda a, b, i, x, y: table(x, [0.0]), r"x is a real .* no finite list of values"),
    (lambda a, b, i, x, y: table("a", [0.0, 0.0]), r"expected a variable or an array of variables, got 'a'"),
    (lambda a, b, i, x, y: table([a, b], {}), r"table\(a, b\): no state is listed"),
    (lambda a, b, i, x, y: table([a, b], {(0,): 1.0}), r"state \(0,\) has 1 entries for 2 variables"),
    (lambda a, b, i, x, y: table([a, b], {(0, 7): 1.0}), r"b is a categorical with values 0..2; got 7"),
    (lambda a, b, i, x, y: table(a, [0.0, -1e300]), r"table\(a\): a log-value lies beyond ±1e\+15; .* use -inf"),
    (lambda a, b, i, x, y: table([a, b], {(0, 1): math.nan}), r"table\(a, b\): a log-value is NaN"),
    (lambda a, b, i, x, y: potts(a, b), r"potts needs two variables with the same values: a is .*, b a categ"),
    (lambda a, b, i, x, y: potts(a, a), r"potts needs two variables"),
    (lambda a, b, i, x, y: potts([a, b], [a]), r"potts: 2 variables on the left and 1 on the right"),
    (lambda a, b, i, x, y: table(a, ["p", "q"]), r"table\(a\): expected numbers, got \['p', 'q'\]"),
    (lambda a, b, i, x, y: potts([a, a], [b, b], [1.0, 2.0, 3.0]), r"potts: 3 weights for 2 pairs of variables"),
    (lambda a, b, i, x, y: potts(a, a, "x"), r"potts: expected numbers, got 'x'"),
    (lambda a, b, i, x, y: ridge(x, math.exp), r"ridge\(\+1 x\): expected a function such as gaussian.* got <built-in"),
    (lambda a, b, i, x, y: potts(a, a, INF), r"potts: the weight must be finite, got inf"),
    (lambda a, b, i, x, y: potts(a, a, 1e16), r"must be finite, got 1e\+16 \(the limit is 1e\+15; .* use -inf\)"),
    (lambda a, b, i, x, y: ridge(a, gaussian(0.0)), r"a is a categorical .* no numeric value"),
    (lambda a, b, i, x, y: ridge(3.0, gaussian(0.0)), r"ridge\(\+3\): the expression contains no variable"),
    (lambda a, b, i, x, y: ridge(x, log()), r"ridge\(\+1 x\): log needs a positive argument; its range is \[-1, 2\]"),
    (lambda a, b, i, x, y: ridge(x + 1, log()), r"log 0 = -inf has no finite multiplier"),
    (lambda a, b, i, x, y: gated(y, x, log()), r"gated\(\+1 x\): log needs a positive argument"),
    (lambda a, b, i, x, y: ridge(500 * x, poisson(1)), r"exp overflows on the argument's range \[-500, 1000\]"),
    (lambda a, b, i, x, y: gated(a, x, gaussian(0.0)), r"gated takes binary variables or indicators .* got <a:"),
    (lambda a, b, i, x, y: gated(y, x + y, gaussian(0.0)), r"gated: the gate \[y=1\] must not occur"),
    (lambda a, b, i, x, y: parity([]), r"parity needs at least one item"),
    (lambda a, b, i, x, y: parity([y, y]), r"parity: an item occurs twice"),
    (lambda a, b, i, x, y: parity([y, 2 * y]), r"parity takes binary variables or indicators"),
    (lambda a, b, i, x, y: separable([x, i], [gaussian(0.0)]), r"separable: 2 variables and 1 functions"),
    (lambda a, b, i, x, y: black_box(x, object()), r"black_box: the oracle .* has no method 'value'"),
]


@pytest.mark.parametrize("make, message", WRONG_FACTORS)
def test_wrong_factors_say_what_was_given_and_what_is_allowed(make, message):
    _, a, b, i, x, y = small_model()
    with pytest.raises(ModelError, match=message):
        make(a, b, i, x, y)


def test_a_state_listed_by_number_and_by_label_is_refused():
    colour = Model().categorical("colour", ["red", "blue"])
    with pytest.raises(ModelError, match=r"table\(colour\): a state is listed twice, by its number and by its label"):
        table(colour, {"red": 1.0, 1: 2.0, 0: 3.0})


def test_labels_are_the_users_names_or_the_scope():
    m, a, b, *_ = small_model()
    z = m.categorical("z", 2, shape=6)
    assert table(a, [0, 0], name="prior").label() == "prior"
    assert table([a, b], np.zeros((2, 3))).label() == "table(a, b)"
    assert table(z, np.zeros((2,) * 6)).label() == "table(z[0], z[1], z[2], z[3], ...)"
