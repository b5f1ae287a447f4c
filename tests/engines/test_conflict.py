"""Infeasible models name an irreducible set of constraints and excluding factors."""

import itertools

import numpy as np
import pytest
from tests.helpers import assert_conflict, assert_solved, enumerate_map
from tests.models import discrete_model

from certimap import Block, Model, Status, cannot_link, exactly, fix, gaussian, must_link, ridge, soft, table
from certimap.engines.conflict import irreducible_conflict, minimal_subset
from certimap.engines.ledger import Ledger, Limits
from certimap.solver import solve

INF = np.inf


@pytest.mark.parametrize("seed", range(30))
def test_minimal_subsets_fail_and_none_of_their_parts_does(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    cores = [frozenset(rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False).tolist()) for _ in range(3)]
    calls = []

    def fails(chosen):
        calls.append(len(chosen))
        return any(core <= set(chosen) for core in cores)

    subset = minimal_subset(range(n), fails)
    assert frozenset(subset) in cores
    assert not any(fails([p for p in subset if p != left_out]) for left_out in subset)


def test_few_checks_find_a_small_subset_of_many_parts():
    calls = []

    def fails(chosen):
        calls.append(len(chosen))
        return {17, 640} <= set(chosen)

    assert sorted(minimal_subset(range(1000), fails)) == [17, 640]
    assert len(calls) < 60


def test_an_empty_list_has_no_conflict():
    assert minimal_subset([], lambda chosen: True) == []


def test_a_solve_that_has_to_stop_names_a_larger_set():
    m = Model()
    z = m.categorical("z", 3, shape=4)
    m.constrain(must_link(z[0], z[1]), cannot_link(z[0], z[1]), fix(z[2], 1), fix(z[3], 2))
    assert len(irreducible_conflict(m, Ledger(Limits()))) == 2
    late = irreducible_conflict(m, Ledger(Limits(time_limit=1e-9)))
    assert sorted(late) == sorted(m.constraints), "infeasible as well, without a search for a smaller set"


def test_random_infeasible_models_name_an_irreducible_set():
    infeasible = 0
    for seed in itertools.count():
        model = discrete_model(np.random.default_rng(seed), max_states=800)
        if any(f.kind == "parity" for f in model.factors) or enumerate_map(model)[0] > -INF:
            continue
        result = solve(model)
        assert_solved(model, result, optimum=-INF, status=Status.INFEASIBLE)
        assert_conflict(model, result.conflict)
        infeasible += 1
        if infeasible == 12:
            break


def test_constraints_and_excluding_tables_share_a_conflict():
    m = Model()
    z = m.categorical("z", 3, shape=3)
    m.add(table(z[:2], np.where(np.eye(3) > 0, -INF, 1.0), name="differ"), table(z[2], [0.0, 1.0, 2.0]))
    m.constrain(must_link(z[0], z[1]).named("same"), cannot_link(z[1], z[2]).named("unrelated"))
    result = solve(m)
    assert_solved(m, result, status=Status.INFEASIBLE)
    assert sorted(result.conflict) == ["differ", "same"]


def test_constraints_on_reals_conflict_by_name():
    m = Model()
    x = m.real("x", 0.0, 1.0, shape=3)
    m.add([ridge(v, gaussian(0.5)) for v in x])
    m.constrain((x[0] + x[1] >= 1.5).named("floor"), (x[0] - x[1] <= 0.1).named("order"))
    m.constrain((x[1] <= 0.6).named("cap"), (x[2] >= 0.5).named("unrelated"))
    result = solve(m)
    assert_solved(m, result, status=Status.INFEASIBLE)
    assert sorted(result.conflict) == ["cap", "floor", "order"]


def test_a_fixed_state_that_a_table_excludes():
    m = Model()
    z = m.categorical("z", 2)
    m.add(table(z, [-INF, 0.0], name="prior"))
    m.constrain(fix(z, 0))
    assert sorted(irreducible_conflict(m, Ledger(Limits()))) == ["fix(z, 0)", "prior"]


def test_soft_constraints_blocks_and_values_do_not_matter():
    m = Model()
    z = m.binary("z", shape=4)
    hidden = m.binary("hidden")
    m.add(soft(fix(z, 0), 5.0), Block([table([z[0], hidden], [[1.0, 2.0], [3.0, 4.0]])], private=[hidden]))
    m.constrain(exactly(1, z[:2]).named("one"), exactly(3, z).named("three"), (z[2] + z[3] <= 1).named("few"))
    result = solve(m)
    assert_solved(m, result, status=Status.INFEASIBLE)
    assert sorted(result.conflict) == ["few", "one", "three"]
