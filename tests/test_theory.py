"""What the paper leaves open, as examples: each shows a failure of its argument and how it is closed here."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers import assert_solved, enumerate_map

from certimap import (
    Block,
    CertificateError,
    Model,
    ModelError,
    Status,
    StopReason,
    black_box,
    gaussian,
    log,
    polynomial,
    potts,
    ridge,
    table,
)
from certimap.solver import solve
from certimap.verification.checker import verify


# ------------------------------------------------------- its theorem needs every factor concave, not their sum only
def square_minus_two_squares(grouped):
    """x^2 - 2 x^2 on [-1, 1]: the sum is concave with maximum 0, but one factor is convex."""
    m = Model()
    x = m.real("x", -1.0, 1.0)
    parts = [ridge(x, polynomial([0.0, 0.0, 1.0])), ridge(x, polynomial([0.0, 0.0, -2.0]))]
    m.add(Block(parts) if grouped else parts)
    return m


def test_the_dual_of_a_concave_sum_has_a_gap():
    result = solve(square_minus_two_squares(grouped=False), max_nodes=1)
    assert result.log_map == pytest.approx(0.0, abs=1e-9)
    assert result.upper_bound == pytest.approx(1.0, abs=1e-6)


def test_branching_closes_that_gap():
    m = square_minus_two_squares(grouped=False)
    result = solve(m, gap=1e-5)
    assert_solved(m, result, optimum=0.0, status=Status.OPTIMAL)
    assert result.statistics["nodes"] > 1


def test_grouping_closes_that_gap_at_the_root():
    m = square_minus_two_squares(grouped=True)
    result = solve(m, max_nodes=1)
    assert_solved(m, result, optimum=0.0, status=Status.OPTIMAL)


# ------------------------------------------------------------------------- its loop can stay at one point for ever
def integer_coded():
    """On {0, 1, 2}: -.4, 0, -.4 and, in a block of its own, the dent 0, -1, 0, which is invisible in a number."""
    m = Model()
    x = m.integer("x", 0, 2)
    m.add(table(x, [-0.4, 0.0, -0.4]))
    m.add(Block([table(x, [0.0, -1.0, 0.0])]))
    return m


def test_the_papers_loop_stalls_on_numbers_with_a_gap():
    m = integer_coded()
    result = solve(m, algorithm="gbd")
    assert_solved(m, result, optimum=-0.4)
    assert result.stop_reason is StopReason.STALLED
    assert result.upper_bound + 0.4 == pytest.approx(0.4, abs=1e-6), "the bound stays 0.4 above the optimum"


def test_one_hot_coding_closes_what_stalled():
    m = integer_coded()
    result = solve(m)
    assert_solved(m, result, optimum=-0.4, status=Status.OPTIMAL)


# --------------------------------------------------------------- a local maximum in the place of h cuts off the MAP
def double_well(x):
    """-(x^2 - 1)^2 + .3 x: the global maximum is near 1, a local one near -1 and 0.6 below."""
    return -((x * x - 1.0) ** 2) + 0.3 * x


WELL = polynomial([-1.0, 0.3, 2.0, 0.0, -1.0])
GRID = np.linspace(-2.0, 2.0, 40_001)
WELL_OPTIMUM = float(double_well(GRID).max())
LEFT_OPTIMUM = float(double_well(GRID[GRID < 0.0]).max())


class DoubleWell:
    """The same function as a user's oracle, bounded by its values on a grid and its largest slope."""

    def value(self, x):
        return float(double_well(float(x[0])))

    def upper(self, lower, upper):
        points = np.linspace(lower[0], upper[0], 101)
        half = 0.5 * (upper[0] - lower[0]) / 100.0
        steepest = float(np.abs(-4.0 * points**3 + 4.0 * points + 0.3).max()) + 44.0 * half  # |theta''| <= 44
        return float(double_well(points).max()) + steepest * half + 1e-12


def test_the_two_maxima_differ_by_the_stated_amount():
    assert pytest.approx(0.6, abs=0.01) == WELL_OPTIMUM - LEFT_OPTIMUM


def test_certified_cuts_find_the_global_maximum():
    m = Model()
    m.add(ridge(m.real("x", -2.0, 2.0), WELL))
    result = solve(m)
    assert_solved(m, result, optimum=WELL_OPTIMUM, status=Status.OPTIMAL)
    assert result.log_map == pytest.approx(WELL_OPTIMUM, abs=1e-5)


def test_a_certificate_with_a_local_h_is_refused():
    m = Model()
    m.add(ridge(m.real("x", -2.0, 2.0), WELL))
    honest = solve(m).certificate
    left = GRID[int(np.argmax(np.where(GRID < 0.0, double_well(GRID), -np.inf)))]
    cuts = tuple(replace(c, u=np.zeros(1), h=LEFT_OPTIMUM, lower=None, upper=None) for c in honest.cuts)
    value = m.value({"x": float(left)})
    forged = replace(
        honest,
        cuts=cuts,
        assignment={"x": float(left)},
        log_map=value,
        upper_bound=max(LEFT_OPTIMUM, value) + 1e-9,
        status="OPTIMAL",
    )
    verify(honest, m)
    with pytest.raises(CertificateError):
        verify(forged, m)


def test_the_papers_loop_reports_its_bound_as_local_only():
    m = Model()
    m.add(black_box(m.real("x", -2.0, 2.0), DoubleWell()))
    result = solve(m, algorithm="gbd", gap=1e-4)
    assert result.local_bound is not None
    assert result.upper_bound == math.inf
    assert result.status is Status.FEASIBLE
    assert result.certificate is None


def test_the_local_bound_can_be_wrong():
    """Here the loop starts in the basin of the wrong maximum, and its bound excludes the right one."""
    m = Model()
    x = m.real("x", -2.9, 1.1)  # the loop starts in the middle, at -0.9
    m.add(black_box(x, DoubleWell()))
    result = solve(m, algorithm="gbd", gap=1e-4)
    assert result.local_bound < WELL_OPTIMUM - 0.3
    assert result.upper_bound == math.inf
    assert result.status is Status.FEASIBLE
    right = solve(m, gap=1e-4)
    assert_solved(m, right, optimum=WELL_OPTIMUM, status=Status.OPTIMAL)


# ---------------------------------------------------------------------- no finite multiplier without a finite domain
def test_unbounded_domains_are_refused():
    with pytest.raises(ModelError, match="bounds must be finite"):
        Model().real("x", 0.0, math.inf)


def test_the_log_of_zero_is_refused():
    m = Model()
    p = m.simplex("p", 3)
    with pytest.raises(ModelError, match="log 0 = -inf has no finite multiplier"):
        ridge(p[0], log())
    bounded = m.simplex("q", 3, 1e-3)
    m.add([ridge(bounded[k], log()) for k in range(3)])
    result = solve(m, gap=1e-5)
    assert_solved(m, result, optimum=-3.0 * math.log(3.0) - 1e-9, status=Status.OPTIMAL)


# ------------------------------------------------------------------------------------------- coarse and tree blocks
def frustrated_cycle(grouped):
    """Four binaries in a ring with an odd number of repulsive couplings: no state satisfies all of them."""
    m = Model()
    z = m.binary("z", shape=4)
    couplings = [potts(z[k], z[(k + 1) % 4], -1.0 if k == 3 else 1.0) for k in range(4)]
    m.add(Block(couplings) if grouped else couplings)
    return m


def test_a_frustrated_cycle_has_a_gap_by_its_edges_and_none_as_a_block():
    edges, block = frustrated_cycle(grouped=False), frustrated_cycle(grouped=True)
    optimum, _ = enumerate_map(edges)
    assert optimum == 2.0
    by_edges, by_block = solve(edges, max_nodes=1), solve(block, max_nodes=1)
    assert by_edges.upper_bound == pytest.approx(3.0, abs=1e-6)
    assert_solved(block, by_block, optimum=optimum, status=Status.OPTIMAL)
    assert_solved(edges, solve(edges), optimum=optimum, status=Status.OPTIMAL)


def test_blocks_of_trees_give_exactly_the_bound_of_their_edges():
    bounds = []
    for grouped in (False, True):
        rng = np.random.default_rng(4)
        m = Model()
        z = m.categorical("z", 3, shape=5)
        m.add([table(v, rng.normal(size=3)) for v in z])
        edges = {(a, b): table([z[a], z[b]], 3.0 * rng.normal(size=(3, 3))) for a in range(5) for b in range(a)}
        star = [edges[k] for k in ((1, 0), (2, 0), (3, 0), (4, 0))]
        rest = [f for f in edges.values() if f not in star]
        m.add(Block(star) if grouped else star, rest)
        result = solve(m, max_nodes=1)
        assert_solved(m, result, optimum=enumerate_map(m)[0])
        bounds.append(result.history[-1].bound)
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-5)


def test_natural_parameters_make_a_gaussian_likelihood_concave():
    """A sanity check of the model language: one Gaussian ridge needs one node whatever its direction."""
    m = Model()
    x = m.real("x", -3.0, 3.0, shape=2)
    m.add(ridge(x[0] + 2.0 * x[1], gaussian(1.0)), ridge(x[0] - x[1], gaussian(0.5, 2.0)))
    result = solve(m, gap=1e-5)
    assert_solved(m, result, optimum=-1e-9, status=Status.OPTIMAL)
    assert result.statistics["nodes"] == 1
