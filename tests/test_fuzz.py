"""Random models against brute force: no false OPTIMAL, no bound below the optimum, every certificate verified."""

import numpy as np
import pytest
from tests.helpers import assert_solved, enumerate_map
from tests.mixed_search import mixed_map
from tests.models import discrete_model, mixed_model

from certimap import Status
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
