"""Elimination: exact against enumeration, limits, and what it refuses."""

from itertools import pairwise

import numpy as np
import pytest
from tests.helpers import assert_solved, enumerate_map
from tests.models import discrete_model

from certimap import Model, ModelError, Status, StopReason, at_most, gaussian, parity, potts, ridge, soft, table
from certimap.engines.elimination import elimination_order
from certimap.graph.tables import as_tables
from certimap.solver import solve


def frustrated_grid(size, seed):
    rng = np.random.default_rng(seed)
    m = Model()
    x = m.categorical("x", 2, shape=(size, size))
    m.add([table(v, rng.normal(size=2)) for v in x.ravel()])
    for a, b in ((x[1:], x[:-1]), (x[:, 1:], x[:, :-1])):
        m.add(potts(a, b, rng.choice([-1.0, 1.0], size=a.size)))
    return m


@pytest.mark.parametrize("seed", range(40))
def test_random_models_equal_enumeration(seed):
    model = discrete_model(np.random.default_rng(seed))
    optimum, _ = enumerate_map(model)
    result = solve(model, algorithm="elimination")
    assert_solved(model, result, optimum=optimum)
    assert result.status is (Status.INFEASIBLE if optimum == -np.inf else Status.OPTIMAL)
    assert result.certificate.algorithm == "elimination"


def test_a_gap_at_the_root_of_a_narrow_model_is_closed_by_elimination():
    model = frustrated_grid(8, seed=0)
    result = solve(model)
    assert_solved(model, result)
    assert result.certificate.algorithm == "elimination"
    assert [r.source for r in result.history][-1] == "E"
    tree = solve(model, algorithm="branch-and-cut")
    assert tree.certificate.algorithm == "branch-and-cut"
    assert result.log_map == pytest.approx(tree.log_map, abs=1e-6)


def test_counts_and_soft_constraints_become_tables():
    m = Model()
    n = m.integer("n", -2, 3, shape=4)
    z = m.binary("z", shape=3)
    m.add(0.7 * n[0] - 0.3 * n[1] + 0.1, n.sum() * 0.01, parity(z), soft(n[0] + 2 * n[3] <= 1, 0.45))
    m.add([table([a, b], np.random.default_rng(0).normal(size=(6, 6))) for a, b in pairwise(n)])
    m.constrain(at_most(1, n, value=3), n[0] - n[2] >= -2, z[0] + n[1] >= 1)
    result = solve(m, algorithm="elimination")
    assert_solved(m, result, optimum=enumerate_map(m)[0])


def test_large_penalties_in_the_place_of_exclusions_do_not_blur_the_bound():
    rng = np.random.default_rng(5)
    m = Model()
    z = m.categorical("z", 3, shape=6)
    for i in range(6):
        for j in range(i):
            values = rng.uniform(-1.0, 1.0, size=(3, 3))
            values[0, 0] = values[1, 1] = -1e12
            m.add(table([z[i], z[j]], values))
    result = solve(m, algorithm="elimination", gap=1e-12)
    assert_solved(m, result, optimum=enumerate_map(m)[0], status=Status.OPTIMAL)


def test_the_order_keeps_a_chain_narrow_and_gives_up_on_a_clique():
    m = Model()
    x = m.categorical("x", 4, shape=30)
    m.add([potts(a, b) for a, b in pairwise(x)])
    assert elimination_order(as_tables(m), most_work=30 * 16) is not None
    assert elimination_order(as_tables(m), most_work=28 * 16) is None
    m.add([potts(x[i], x[j]) for i in range(20) for j in range(i)])
    assert elimination_order(as_tables(m)) is None


@pytest.mark.parametrize(
    "part", [lambda m: m.real("r", 0, 1), lambda m: m.add(ridge(m.integer("n", 0, 3), gaussian(1)))]
)
def test_other_models_are_refused(part):
    m = Model()
    m.add(table(m.binary("b"), [0.0, 1.0]))
    part(m)
    with pytest.raises(ModelError, match="elimination needs a discrete model of tables"):
        solve(m, algorithm="elimination")


def test_a_stop_before_the_end_claims_nothing():
    result = solve(frustrated_grid(6, seed=1), algorithm="elimination", time_limit=1e-9)
    assert (result.status, result.stop_reason) == (Status.UNKNOWN, StopReason.TIME)
    assert result.certificate is None and result.upper_bound == np.inf
