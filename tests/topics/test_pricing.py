"""Certified pricing of topics against enumeration of all subsets."""

import itertools
import math

import numpy as np
import pytest
from tests.topics.brute import random_charges, random_counts

from certimap.oracles.partition import ColumnRules
from certimap.topics.charges import Charges
from certimap.topics.counts import cells_of, checked_counts
from certimap.topics.objective import TopicObjective
from certimap.topics.pricing import Verdict, certify, list_columns
from certimap.topics.pricing_arrays import PricingArrays, pricing_arrays
from certimap.topics.pricing_columns import anneal
from certimap.topics.prior import TopicPrior

Pairs = tuple[tuple[int, int], ...]


class Case:
    """A small corpus with prices and rules, and c(S) - lambda(S) of all admissible sets of groups."""

    def __init__(
        self,
        rng: np.random.Generator,
        documents: int,
        words: int,
        cells: int,
        *,
        together: Pairs = (),
        apart: Pairs = (),
        min_documents: int = 0,
        prior: TopicPrior | None = None,
        level: float = 0.0,
        most: int = 5,
        charged: bool = False,
    ) -> None:
        counts = random_counts(rng, documents, words, cells)
        counts[counts > 0] = rng.integers(1, most, size=int((counts > 0).sum()))
        self.cells = cells_of(checked_counts(counts))
        prior = prior or TopicPrior(float(rng.choice([1.0, 1.1, 2.0])), float(rng.choice([1.0, 1.1, 1.7])))
        charges = random_charges(rng, self.cells) if charged else Charges.none(min_documents)
        items = len(self.cells) + charges.n_anchors
        between = ((items - 2, items - 1),) if charges.n_anchors else ()
        self.rules = ColumnRules.of(items, together, apart + between, 0, items)
        self.arrays: PricingArrays = pricing_arrays(self.cells, prior, self.rules, charges)
        objective = TopicObjective(self.cells, prior, 2)
        masks = np.array(list(itertools.product([False, True], repeat=self.rules.n_groups)))
        whole = masks[:, self.rules.group]
        keep = self.rules.admits(whole)
        whole, masks = whole[keep], masks[keep]
        members = [np.flatnonzero(row) for row in whole]
        worth = np.array([objective.value(m[m < len(self.cells)]) - charges.of_topic(self.cells, m) for m in members])
        allowed = np.isfinite(worth)
        self.sets, worth = masks[allowed], worth[allowed]
        base = worth[-1] if len(worth) else 0.0
        # Prices around what the cells add, so that neither everything nor nothing is the best set.
        self.prices = rng.normal(size=self.rules.n_groups) + base / max(1, self.rules.n_groups) + level
        self.values = worth - self.sets @ self.prices

    @property
    def best(self) -> float:
        return float(self.values.max(initial=-math.inf))

    def certify(self, target: float, tolerance: float = 0.0, nodes: float = math.inf, **options: int) -> Verdict:
        return certify(self.arrays, self.prices, target, tolerance, lambda bound, n: n < nodes, **options)

    def check(self, slack: float = 1.0) -> None:
        best = self.best
        if best == -math.inf:
            assert self.certify(-100.0).bound <= -100.0
            return
        proved = self.certify(best + 1e-7)
        assert proved.closed
        assert best - 1e-9 <= proved.bound <= best + 1e-7 + 1e-9
        exact = self.certify(best - 1.0, 1e-7)
        assert exact.closed
        assert best - 1e-9 <= exact.bound <= best + 1e-6
        assert exact.values.max() == pytest.approx(best, abs=1e-6)
        self.check_values(exact)
        listed = list_columns(
            self.arrays, self.prices, best + 1e-7, best - slack, len(self.sets) + 1, lambda bound, n: True
        )
        assert listed is not None
        keys = [row.tobytes() for row in (listed == 1)]
        assert len(keys) == len(set(keys))
        sure = {row.tobytes() for row in self.sets[(self.values > best - slack + 1e-9)]}
        possible = {row.tobytes() for row in self.sets[(self.values > best - slack - 1e-6)]}
        assert sure <= set(keys) <= possible

    def check_values(self, verdict: Verdict) -> None:
        for column, value in zip(verdict.columns, verdict.values, strict=True):
            (row,) = np.flatnonzero((self.sets == (column == 1)).all(axis=1))
            assert value == pytest.approx(self.values[row], abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for level in (-1.0, 0.0, 1.0):
        Case(rng, 4, 4, 10, level=level).check()


@pytest.mark.parametrize("seed", range(4))
def test_tied_cells(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    ties = tuple(tuple(pair) for pair in rng.integers(0, 11, size=(4, 2)).tolist())
    Case(rng, 4, 4, 11, together=ties).check()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("level", [-1.0, 0.5])
def test_cells_apart(seed: int, level: float) -> None:
    rng = np.random.default_rng(200 + seed)
    pairs = tuple(tuple(rng.choice(9, 2, replace=False).tolist()) for _ in range(5))
    Case(rng, 4, 4, 9, apart=pairs, level=level).check()
    Case(rng, 4, 4, 9, together=((0, 3),), apart=(*pairs[:2], (0, 1)), level=level).check()


@pytest.mark.parametrize("least", [1, 2, 4, 5])
@pytest.mark.parametrize("level", [-1.0, 0.0, 1.5])
def test_minimum_of_documents(least: int, level: float) -> None:
    rng = np.random.default_rng(300 + least)
    Case(rng, 5, 4, 10, min_documents=least, level=level).check()
    Case(rng, 5, 4, 10, min_documents=least, apart=((0, 1), (2, 7)), together=((3, 4),), level=level).check()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [-1.0, 0.5])
def test_charges(seed: int, level: float) -> None:
    rng = np.random.default_rng(350 + seed)
    Case(rng, 4, 4, 9, charged=True, level=level).check()
    Case(rng, 4, 4, 9, charged=True, together=((0, 3), (2, 9)), apart=((1, 4),), level=level).check()


@pytest.mark.parametrize("prior", [TopicPrior(1.0, 1.0), TopicPrior(1.0, 3.0), TopicPrior(4.0, 1.0)])
def test_priors(prior: TopicPrior) -> None:
    rng = np.random.default_rng(400)
    for level in (-0.5, 0.5):
        Case(rng, 4, 4, 10, prior=prior, level=level).check()


def test_large_counts() -> None:
    rng = np.random.default_rng(500)
    for level in (-20.0, 0.0, 20.0):
        Case(rng, 3, 3, 8, most=200, level=level).check(slack=20.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_many_subsets(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    cells = int(rng.integers(5, 14))
    pairs = tuple(tuple(rng.choice(cells, 2, replace=False).tolist()) for _ in range(4))
    for level in (-1.0, 0.0, 1.0):
        Case(
            rng,
            5,
            5,
            cells,
            together=pairs[: rng.integers(3)],
            apart=pairs[2 : 2 + rng.integers(3)],
            min_documents=int(rng.integers(4)),
            level=level,
            charged=bool(rng.integers(2)),
        ).check(slack=float(rng.uniform(0.1, 3.0)))


@pytest.mark.parametrize("nodes", [1, 10, 100, 200, 400, 1000])
def test_bound_holds_at_any_stop(nodes: int) -> None:
    rng = np.random.default_rng(600)
    case = Case(rng, 6, 6, 15)
    stopped = case.certify(case.best + 1e-7, nodes=nodes, steps=2)
    assert stopped.bound >= case.best - 1e-9
    assert stopped.closed or stopped.nodes >= nodes


def test_few_columns_are_enough() -> None:
    rng = np.random.default_rng(700)
    case = Case(rng, 5, 5, 14)
    ended = case.certify(case.best - 3.0, enough=1, steps=1)
    assert len(ended.columns) >= 1
    assert ended.bound >= case.best - 1e-9


def test_list_that_is_too_long_is_refused() -> None:
    rng = np.random.default_rng(800)
    case = Case(rng, 4, 4, 10)
    assert list_columns(case.arrays, case.prices, case.best + 1e-7, case.best - 5.0, 3, lambda b, n: True) is None


def test_record_is_a_tree_that_holds_all_nodes() -> None:
    rng = np.random.default_rng(900)
    case = Case(rng, 6, 6, 16)
    for size in (1, 8, 256):
        verdict = case.certify(case.best + 1e-7, steps=2, record=size)
        record = verdict.record
        assert len(record.parent) <= size
        assert record.parent[0] == -1
        assert record.nodes.sum() == verdict.nodes - 1
        for entry in np.flatnonzero(record.split >= 0):
            assert sorted(record.side[record.parent == entry]) == [0, 1]
        leaves = np.setdiff1d(np.arange(len(record.parent)), record.parent)
        assert (record.split[leaves] == -1).all()


@pytest.mark.parametrize("sweeps", [0, 5])
def test_climbs_end_in_local_optima_of_their_value(sweeps: int) -> None:
    rng = np.random.default_rng(1000)
    case = Case(rng, 5, 5, 12, apart=((0, 1), (4, 7)), min_documents=2)
    columns = rng.integers(0, 2, size=(50, 12)).astype(np.int8)
    values = np.empty(50)
    anneal(case.arrays, case.prices, columns, values, rng, sweeps, 2.0, 0.1)
    index = {row.tobytes(): value for row, value in zip(case.sets, case.values, strict=True)}
    feasible = np.isfinite(values)
    assert feasible.any()
    for column, value in zip(columns[feasible] == 1, values[feasible], strict=True):
        assert value == pytest.approx(index[column.tobytes()], abs=1e-9)
        for g in range(12):
            flipped = column.copy()
            flipped[g] = not flipped[g]
            assert index.get(flipped.tobytes(), -math.inf) <= value + 1e-6
