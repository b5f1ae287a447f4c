"""The verifier's own pricing of topics against enumeration of all subsets, and corrupted certificates of topics."""

import copy
import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.topics.brute import random_charges, random_counts

from certimap import Certificate, CertificateError, Model, Result, Status, verify
from certimap.topics.charges import Charges
from certimap.topics.counts import cells_of, checked_counts
from certimap.topics.factor import topic_clusters, topic_model
from certimap.topics.objective import TopicObjective
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem
from certimap.topics.solve import solve_topics
from certimap.verification.pricing import PriceClaim
from certimap.verification.proof import Effort
from certimap.verification.subsets import GroupRules
from certimap.verification.topic_pricing import TopicPricing
from certimap.verification.topic_values import TopicValues

WHOLE = Effort(full=True, seed=0)
ROOT = {"parent": [-1], "side": [0], "split": [-1], "cut": [0], "nodes": [1]}


class Case:
    """One pricing problem, with c(S) - lambda(S) of every admitted set."""

    def __init__(
        self,
        seed: int,
        documents: int = 4,
        words: int = 4,
        cells: int = 9,
        *,
        groups: tuple[tuple[int, ...], ...] | None = None,
        apart: tuple[tuple[int, int], ...] = (),
        min_documents: int = 0,
        high: int | None = None,
        prior: TopicPrior | None = None,
        charged: bool = False,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.cells = cells_of(checked_counts(random_counts(rng, documents, words, cells)))
        self.prior = prior or TopicPrior(float(rng.choice([1.0, 1.1, 2.0])), float(rng.choice([1.0, 1.1, 1.7])))
        charges = random_charges(rng, self.cells) if charged else Charges.none(min_documents)
        size = len(self.cells) + charges.n_anchors
        items = Model().categorical("z", 2, shape=size)
        factor = topic_clusters(items, self.cells, self.prior, charges=charges)
        members = groups or tuple((i,) for i in range(size))
        self.rules = GroupRules(members, apart, 0, size if high is None else high)
        self.pricing = TopicPricing(factor, (), WHOLE, 1)
        objective = TopicObjective(self.cells, self.prior, 2)
        share = objective.value(np.arange(len(self.cells))) / len(self.cells)
        self.prices = rng.normal(size=size) + share * (np.arange(size) < len(self.cells))
        self.reduced: dict[frozenset[int], float] = {}
        self.best = -math.inf  # of the family that the proof covers: no limit on the number of cells
        for chosen in itertools.product((False, True), repeat=len(members)):
            items = sorted(i for g, x in zip(members, chosen, strict=True) if x for i in g)
            clash = any(chosen[a] and chosen[b] for a, b in apart)
            chosen_items = np.array(items, dtype=np.int64)
            value = objective.value(chosen_items[chosen_items < len(self.cells)])
            value -= charges.of_topic(self.cells, chosen_items) + float(self.prices[items].sum())
            if clash or value == -math.inf:
                continue
            self.best = max(self.best, value)
            if len(items) <= self.rules.high:
                self.reduced[frozenset(items)] = value

    def claim(self, price: float, record: dict[str, Any] | None = None) -> PriceClaim:
        multipliers = [Fraction(float(v)) for v in self.prices]
        return PriceClaim(multipliers, self.rules, Fraction(price), ROOT if record is None else record)

    def check(self, *depths: float) -> None:
        self.pricing.check_price(self.claim(self.best + 1e-9))
        for depth in depths:
            found = self.pricing.columns_above(self.claim(self.best + 1e-9), Fraction(self.best - depth))
            assert found == {s for s, v in self.reduced.items() if s and v > self.best - depth}
        with pytest.raises(CertificateError, match=r"larger reduced value|cannot be confirmed"):
            self.pricing.check_price(self.claim(self.best - 1e-9))


CASES = {
    "plain": {},
    "groups": {"cells": 11, "groups": ((0, 4), (1,), (2, 3, 9), (5,), (6, 8), (7,), (10,))},
    "apart": {"apart": ((0, 1), (2, 5), (3, 8))},
    "documents": {"min_documents": 3},
    "documents and apart": {"min_documents": 2, "apart": ((0, 1), (4, 7)), "documents": 5},
    "all documents": {"min_documents": 4, "cells": 12},
    "no pseudo-tokens": {"prior": TopicPrior(1.0, 1.0)},
    "charges": {"charged": True, "cells": 8},
    "charges and groups": {"charged": True, "groups": ((0, 4), (1,), (2, 3, 10), (5,), (6, 8), (7,), (9,))},
    "charges and apart": {"charged": True, "cells": 8, "apart": ((0, 1), (8, 9), (2, 9))},
    "many pseudo-tokens": {"prior": TopicPrior(3.0, 2.5)},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_prices_and_lists_of_all_subsets(options: dict[str, Any], seed: int) -> None:
    Case(10 + seed, **options).check(0.5, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("seed", range(12))
def test_more_subsets(options: dict[str, Any], seed: int) -> None:
    Case(100 + seed, **options).check(0.1, 1.0, 4.0)


def test_limits_on_the_number_of_cells_are_outside_the_family() -> None:
    case = Case(12, high=3)
    case.pricing.check_price(case.claim(case.best + 1e-9))
    best = max(case.reduced.values())
    assert best < case.best
    with pytest.raises(CertificateError, match="not the family of its proof"):
        case.pricing.check_price(case.claim(0.5 * (best + case.best)))
    found = case.pricing.columns_above(case.claim(case.best + 1e-9), Fraction(best - 1.0))
    assert found == {s for s, v in case.reduced.items() if s and v > best - 1.0}


def test_values_enclose_the_closed_form() -> None:
    case = Case(13, prior=TopicPrior(1.1, 1.3))
    values = TopicValues(_arrays(case))
    objective = TopicObjective(case.cells, case.prior, 2)
    for members in ([], [0], [1, 4, 5], range(9)):
        low, high = values.value(members)
        assert 0 <= high - low < Fraction(1, 10**30)
        assert float(low) == pytest.approx(objective.value(np.array(members, dtype=np.int64)), abs=1e-11)


def _arrays(case: Case) -> dict[str, Any]:
    cells, prior = case.cells, case.prior
    return {
        "document": cells.document,
        "word": cells.word,
        "count": cells.count,
        "shape": np.array([cells.n_documents, cells.n_words]),
        "prior": np.array([prior.alpha, prior.eta]),
        "min_documents": np.array(0),
    }


TREE: dict[str, list[int]] = {  # documents 0..3, words 4..7, then the groups
    "parent": [-1, 0, 0, 1, 1, 2, 2],
    "side": [0, 0, 1, 0, 1, 0, 1],
    "split": [1, 9, 5, -1, -1, -1, -1],
    "cut": [0, 0, 1, 0, 0, 0, 0],
    "nodes": [1, 1, 1, 1, 1, 1, 1],
}


class TestRecords:
    """Recorded trees: what does not cover all sets is refused."""

    def test_any_cuts_cover(self) -> None:
        case = Case(14)
        for cut in ([0, 0, 1], [-5, 0, 100], [2, 7, 0]):
            record = {**TREE, "cut": [*cut, 0, 0, 0, 0]}
            case.pricing.check_price(case.claim(case.best + 1e-9, record))
            with pytest.raises(CertificateError):
                case.pricing.check_price(case.claim(case.best - 1e-9, record))

    @pytest.mark.parametrize(
        "change",
        [
            {"side": [0, 0, 0, 0, 1, 0, 1]},
            {"side": [0, 0, 1, 0, 1, 0, 2]},
            {"parent": [-1, 0, 0, 1, 1, 2, 1]},
            {"parent": [-1, 0, 0, 1, 1, 2, 6]},
            {"parent": [-1, -1, 0, 1, 1, 2, 2]},
            {"split": [1, 9, -1, -1, -1, -1, -1]},
            {"split": [1, 9, 5, 2, -1, -1, -1]},
            {"split": [1, 99, 5, -1, -1, -1, -1]},
            {"nodes": [1, 1, 1, 1, 1, 1]},
            {"nodes": [1, 1, 1, 1, 1, 1, -5]},
            {"cut": ["a"] * 7},
        ],
    )
    def test_malformed(self, change: dict[str, Any]) -> None:
        case = Case(14)
        with pytest.raises(CertificateError):
            case.pricing.check_price(case.claim(case.best + 1e-9, {**TREE, **change}))

    def test_missing_part(self) -> None:
        case = Case(14)
        record = {key: value for key, value in TREE.items() if key != "split"}
        with pytest.raises(CertificateError, match="malformed"):
            case.pricing.check_price(case.claim(case.best + 1e-9, record))


# --------------------------------------------------------------------------------------------------- whole certificates
CONSTRAINTS: dict[str, dict[str, Any]] = {
    "hard": {"cannot_link_words": [(0, 1)]},
    "soft": {
        "soft_cannot_link_words": [(0, 1, 1.5)],
        "soft_must_link_words": [(2, 3, 1.0)],
        "soft_seed_words": [(4, 1, 0.4)],
        "max_topics": 1,
        "max_topics_weight": 0.5,
        "min_documents": 3,
        "min_documents_weight": 0.7,
    },
    "limit left out": {"max_topics": 2, "max_topics_weight": 0.5},
}


def topics(constraints: str = "hard") -> TopicProblem:
    counts = np.random.default_rng(1).poisson(0.8, size=(8, 6))
    return TopicProblem.from_counts(counts, TopicPrior(1.1, 1.1), 3, **CONSTRAINTS[constraints])


@pytest.fixture(scope="module", params=CONSTRAINTS)
def solved(request: pytest.FixtureRequest) -> tuple[Model, Result]:
    problem = topics(request.param)
    return topic_model(problem), solve_topics(problem, tol=1e-9, n_init=5)


@pytest.fixture(scope="module", params=CONSTRAINTS)
def loose(request: pytest.FixtureRequest) -> tuple[Model, Result]:
    """A proof by its bound alone."""
    problem = topics(request.param)
    return topic_model(problem), solve_topics(problem, tol=0.05, n_init=5)


def corrupted(result: Result, **changes: Any) -> Certificate:
    assert result.certificate is not None
    certificate = copy.deepcopy(result.certificate)
    leaf = next(leaf for leaf in certificate.details["leaves"] if leaf["kind"] in ("bound", "columns"))
    for key, change in changes.items():
        leaf[key] = change(leaf[key])
    return certificate


def test_honest_certificates(solved: tuple[Model, Result], loose: tuple[Model, Result]) -> None:
    for model, result in (solved, loose):
        assert result.certificate is not None
        report = verify(result.certificate, model, full=True)
        assert report.trusted == ()
        assert report.replay is not None and report.replay.whole and report.replay.boxes > 0
        assert report.upper_bound >= report.lower_bound - 1e-9


class TestCorruption:
    def test_lower_price(self, loose: tuple[Model, Result]) -> None:
        model, result = loose
        with pytest.raises(CertificateError):
            verify(corrupted(result, price=lambda p: p - 0.1 * abs(result.gap) - 0.5), model, full=True)

    def test_changed_multiplier(self, solved: tuple[Model, Result]) -> None:
        model, result = solved

        def lowered(multipliers: np.ndarray) -> np.ndarray:
            changed = np.array(multipliers)
            changed[3] -= 1.0
            return changed

        with pytest.raises(CertificateError):
            verify(corrupted(result, multipliers=lowered), model, full=True)

    def test_lower_claim(self, loose: tuple[Model, Result]) -> None:
        model, result = loose
        assert result.certificate is not None
        lower = replace(result.certificate, upper_bound=result.log_map + 0.5 * result.gap)
        with pytest.raises(CertificateError, match=r"claimed is|is claimed where"):
            verify(lower, model, full=True)

    def test_shifted_value(self, solved: tuple[Model, Result]) -> None:
        model, result = solved
        assert result.certificate is not None
        with pytest.raises(CertificateError, match="has value"):
            verify(replace(result.certificate, log_map=result.log_map + 1e-4), model)

    def test_dropped_box(self, loose: tuple[Model, Result]) -> None:
        model, result = loose

        def cut_short(pricing: dict[str, Any]) -> dict[str, Any]:
            return {key: np.asarray(value)[:-1] for key, value in pricing.items()}

        with pytest.raises(CertificateError):
            verify(corrupted(result, pricing=cut_short), model, full=True)

    def test_dropped_column(self, solved: tuple[Model, Result]) -> None:
        model, result = solved
        # A claim above the incumbent, by a relaxed value, does not need every column of the list.
        kept = slice(1, None) if result.status is Status.OPTIMAL else slice(0)
        with pytest.raises(CertificateError):
            verify(corrupted(result, columns=lambda columns: np.asarray(columns)[kept]), model, full=True)

    def test_another_prior(self, solved: tuple[Model, Result]) -> None:
        _, result = solved
        other = replace(topics(), prior=TopicPrior(1.1, 1.2))
        with pytest.raises(CertificateError, match="another model"):
            verify(result.certificate, topic_model(other))

    def test_dropped_leaf(self, solved: tuple[Model, Result]) -> None:
        model, result = solved
        certificate = corrupted(result)
        certificate.details["leaves"].pop()
        with pytest.raises(CertificateError, match="cover"):
            verify(certificate, model)


def test_long_proofs_are_sampled_and_say_so(loose: tuple[Model, Result], monkeypatch: pytest.MonkeyPatch) -> None:
    model, result = loose
    monkeypatch.setattr("certimap.verification.topic_pricing.WHOLE_WORK", 1.0)
    report = verify(result.certificate, model, seed=3)
    assert report.sampled
    assert report.replay is not None and 0 < report.replay.replayed < report.replay.boxes
    assert "were not searched again (sample drawn with seed 3)" in report.trusted[0]
    assert not verify(result.certificate, model, full=True).sampled
