"""Merged factors equal the sum of their members, with private variables maximised out."""

import itertools
import math

import numpy as np
import pytest

from certimap import Block, Model, ModelError, gaussian, linear, must_link, polynomial, potts, ridge, soft, table
from certimap.graph.blocks import MAX_JOINT_ENTRIES, RidgeSum, joint_size, merge
from certimap.graph.compile import compile_model
from certimap.model.factors import SparseTable


def points(variables):
    for x in itertools.product(*(v.states for v in variables)):
        yield {v.name: s for v, s in zip(variables, x, strict=True)}


@pytest.mark.parametrize("seed", range(10))
def test_a_joint_table_is_the_sum_of_its_members(seed):
    rng = np.random.default_rng(seed)
    m = Model()
    z = [m.categorical("a", 2), m.integer("b", -1, 1), m.categorical("c", 3), m.binary("d")]
    members = [potts(z[0], z[3], float(rng.normal()))]
    for arity in (1, 2, 3):
        scope = [z[k] for k in rng.choice(4, arity, replace=False)]
        values = rng.normal(size=[len(v.states) for v in scope])
        values[rng.random(values.shape) < 0.2] = -np.inf
        values.flat[0] = 0.0
        members.append(table(scope, values))
    hidden = [v for v in z if rng.random() < 0.4 and any(v in f.variables() for f in members)][:2]
    joint = merge(members, hidden)
    assert not set(hidden) & set(joint.variables())
    for s in points(joint.variables()):
        best = max(math.fsum(f.value_at({**s, **h}) for f in members) for h in points(hidden))
        assert joint.value_at(s) == pytest.approx(best, abs=1e-12)


def test_sparse_tables_join():
    m = Model()
    z = m.categorical("z", 3, shape=2)
    sparse = SparseTable((z[0], z[1]), np.array([[0, 1], [2, 2]]), np.array([1.0, 2.0]))
    joint = merge([sparse, table(z[0], [0.5, 0.0, -0.5])], [])
    assert joint.value_at({"z[0]": 0, "z[1]": 1}) == 1.5
    assert joint.value_at({"z[0]": 2, "z[1]": 2}) == 1.5
    assert joint.value_at({"z[0]": 1, "z[1]": 1}) == -math.inf


def test_ridges_of_one_direction_join():
    m = Model()
    x, y = m.real("x", -1.0, 1.0), m.real("y", -1.0, 1.0)
    members = [ridge(x - 2 * y + c, g) for c, g in ((0.0, gaussian(0.3)), (1.5, polynomial([0.0, 0.0, 1.0])))]
    joint = merge(members, [])
    assert isinstance(joint, RidgeSum)
    for s in ({"x": 0.2, "y": -0.7}, {"x": -1.0, "y": 1.0}):
        assert joint.value_at(s) == pytest.approx(sum(f.value_at(s) for f in members), abs=1e-14)


def test_one_factor_without_private_variables_stays_itself():
    f = table(Model().categorical("a", 2), [0.0, 1.0])
    assert merge([f], []) is f


def test_joint_size_counts_states_of_all_variables():
    m = Model()
    z = m.categorical("z", 3, shape=4)
    assert joint_size([potts(z[0], z[1]), potts(z[1], z[2])]) == 27


def wide(m, z, x):
    assert MAX_JOINT_ENTRIES < 2**17
    return Block(potts(z[:-1], z[1:]))


def linked_private(m, z, x):
    m.constrain(must_link(z[1], z[2]))
    return Block([potts(z[0], z[1])], private=[z[1]])


def softly_linked_private(m, z, x):
    m.add(soft(must_link(z[1], z[2]), 1.0))
    return Block([potts(z[0], z[1])], private=[z[1]])


def priced_private(m, z, x):
    m.add(linear([(z[1].is_(0), 1.0)]))
    return Block([potts(z[0], z[1])], private=[z[1]])


def shared_private(m, z, x):
    m.add(potts(z[1], z[2]))
    return Block([potts(z[0], z[1])], private=[z[1]])


REFUSED = [
    (wide, r"131072 joint states, the limit is 65536; use smaller blocks"),
    (linked_private, r"z\[1\] cannot be private, it also occurs in a linear term or a constraint"),
    (softly_linked_private, r"z\[1\] cannot be private, it also occurs in"),
    (priced_private, r"z\[1\] cannot be private, it also occurs in a linear term or a constraint"),
    (shared_private, r"z\[1\] cannot be private, it also occurs in potts\(z\[1\], z\[2\]\)"),
    (lambda m, z, x: Block([potts(z[0], z[1])], private=z[:2]), r"every variable is private; leave at least one"),
    (
        lambda m, z, x: Block([ridge(x[0], gaussian(0.0)), ridge(x[1], gaussian(0.0))]),
        r"ridge\(x\[0\]\) and ridge\(x\[1\]\) have different directions; only equal ones join",
    ),
    (
        lambda m, z, x: Block([ridge(x[0], gaussian(0.0)), potts(z[0], z[1])]),
        r"no rule joins factors of kind potts, ridge; group tables, or ridges of one direction",
    ),
    (
        lambda m, z, x: Block([ridge(x[0], gaussian(0.0))], private=[x[0]]),
        r"private variables need blocks of tables, got factors of kind ridge",
    ),
]


@pytest.mark.parametrize("group, message", REFUSED)
def test_blocks_that_cannot_be_are_refused_with_the_reason(group, message):
    m = Model()
    z, x = m.categorical("z", 2, shape=17), m.real("x", 0.0, 1.0, shape=2)
    m.add(group(m, z, x))
    with pytest.raises(ModelError, match=message):
        compile_model(m)
