"""The HTML report: self-contained, complete, honest."""

import base64
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.report.pages import Page

from certimap import Certificate, GaussianMixtureMAP, Result, Status, StopReason, __version__
from certimap.report.badge import gap_badge
from certimap.report.clustering import ClusteringReport
from certimap.report.explanation import not_proved, proved
from certimap.report.html import MissingExtraError, clustering_html
from certimap.report.plots import MOST_POINTS, drawn_points, scatter_plot
from certimap.results import RankedPartition, Ranking


def report(dimension: int = 3, n: int = 40, **constraints: Any) -> ClusteringReport:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, dimension)) + 4.0 * (np.arange(n) % 2)[:, None]
    model = GaussianMixtureMAP(2, n_init=4, random_state=3, algorithm="local-search").fit(X, **constraints)
    names = tuple(f"<{j}>" for j in range(dimension))
    return ClusteringReport(
        title="A & B",
        data=X,
        feature_names=names,
        prior=model.prior_,
        constraints=model.constraints_,
        result=model.result_,
        tolerance=1e-3,
        seed=model.seed_,
    )


def with_bound(summary: ClusteringReport, bound: float, status: Status) -> ClusteringReport:
    """As if a bound had been proved; the history shows it in its last record."""
    result = summary.result
    history = (*result.history, replace(result.history[-1], bound=bound, source="C"))
    proof = Certificate("branch-and-price", "", result.log_map, bound, 1e-3, status.name, None)
    result = replace(
        result, upper_bound=bound, status=status, history=history, certificate=proof, stop_reason=StopReason.TOLERANCE
    )
    return replace(summary, result=result, certificate_path="my proof.json")


def test_complete_and_self_contained() -> None:
    summary = report(must_link=[(0, 2), (1, 2, 0.5)], cannot_link=[(0, 1)], min_cluster_size=5)
    summary = replace(summary, agreement={"adjusted Rand index with kind": 0.5})
    text = clustering_html(summary)
    assert "http:" not in text
    assert "https:" not in text
    assert "<script" not in text
    document = Page(text)
    assert set(document.images) == {"scatter", "convergence"}
    for source in document.images.values():
        assert base64.b64decode(source.partition(",")[2]).startswith(b"\x89PNG")
    assert "A & B" in document.text
    clusters = document.tables["clusters"]
    assert clusters[0] == ["cluster", "points", "weight", "mean <0>", "mean <1>", "mean <2>"]
    assert [row[1] for row in clusters[1:]] == [str(size) for size in np.bincount(summary.labels)]
    assert document.tables["constraints"][1:] == [
        ["soft must-link", "points 1, 2, weight 0.5", "no"],  # violated ones first
        ["must-link", "points 0, 2", "yes"],
        ["cannot-link", "points 0, 1", "yes"],
        ["minimum size", "5", "yes"],
    ]
    assert "3 of 3 hard constraints satisfied; 0 of 1 soft constraint satisfied, cost 0.5" in document.text
    assert ["seed", "3"] in document.tables["reproduce"]
    assert ["certimap", __version__] in document.tables["reproduce"]
    assert ["adjusted Rand index with kind", "0.5000"] in document.tables["answer"]
    assert clustering_html(summary) == text


def test_without_a_bound_nothing_is_claimed() -> None:
    document = Page(clustering_html(report()))
    assert "FEASIBLE · no upper bound" in document.text
    assert "how much better others may be is open" in document.text
    assert ["upper bound on every clustering", "none"] in document.tables["answer"]
    assert "No proof was saved" in document.text
    assert "constraints" not in document.tables


def test_proved_optimum() -> None:
    summary = report()
    document = Page(clustering_html(with_bound(summary, summary.result.log_map + 0.01, Status.OPTIMAL)))
    assert "OPTIMAL · gap 0.0" in document.text
    assert "no clustering that satisfies the constraints has more than" in document.text
    assert "certimap verify 'my proof.json'" in document.text


def test_bounded() -> None:
    summary = report()
    result = with_bound(summary, summary.result.log_map + 20.0, Status.BOUNDED).result
    assert "has a log-posterior of more than" in proved(result)
    assert "a better one may exist, by at most 20.0000" in not_proved(result)
    local = replace(result, status=Status.LOCALLY_OPTIMAL, neighbourhood="2 moved points")
    assert "within this neighbourhood is better: 2 moved points" in proved(local)
    assert "LOCALLY OPTIMAL · gap" in gap_badge(local)


def test_ranking() -> None:
    summary = report()
    labels = summary.labels
    moved = np.where(np.arange(len(labels)) < 2, 1 - labels, labels)
    first, second = RankedPartition(labels, -1.0, 0.0), RankedPartition(moved, -3.5, 2.5)
    ranking = Ranking((first, second), -4.0, 3)
    document = Page(clustering_html(replace(summary, result=replace(summary.result, ranking=ranking))))
    assert document.tables["ranking"][1:] == [
        ["1", "-1", "0.000000", "1", "0"],
        ["2", "-3.5", "2.500000", "0.0821", "2"],
    ]
    assert "has a log-posterior of at most -4. 3 clusterings were asked for; the proof ends here." in document.text
    document = Page(clustering_html(replace(summary, result=replace(summary.result, ranking=Ranking((), 7.0, 3)))))
    assert "ranking" not in document.tables
    assert "No clustering could be ranked; none has a log-posterior above 7.0000." in document.text


def test_no_answer() -> None:
    infinite = float("inf")
    infeasible = Result(None, -infinite, -infinite, Status.INFEASIBLE, StopReason.EXHAUSTED, None, conflict=("a", "b"))
    assert "These exclude each other: a; b." in proved(infeasible)
    assert "no feasible point exists" in gap_badge(infeasible)
    unknown = Result(None, -infinite, infinite, Status.UNKNOWN, StopReason.TIME, None)
    assert "Nothing" in proved(unknown)
    assert "longer search" in not_proved(unknown)
    with pytest.raises(ValueError, match="a report needs an answer, got the status UNKNOWN"):
        clustering_html(replace(report(), result=unknown))


@pytest.mark.parametrize("dimension", [1, 2, 6])
def test_any_dimension(dimension: int) -> None:
    assert set(Page(clustering_html(report(dimension))).images) == {"scatter", "convergence"}


def test_large_data_is_thinned_evenly() -> None:
    shown = drawn_points(report(1, n=2 * MOST_POINTS))
    assert len(shown) == MOST_POINTS
    assert (shown[0], shown[-1]) == (0, 2 * MOST_POINTS - 1)
    assert len(np.unique(shown)) == MOST_POINTS


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certimap.report.html.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs matplotlib and jinja2: pip install 'certimap\[report\]'"):
        clustering_html(report())


def test_names_are_no_formulas() -> None:
    for dimension in (1, 2):
        named = replace(report(dimension), feature_names=(r"$\no formula$", "US$ for CA$")[:dimension])
        assert scatter_plot(named).startswith(b"\x89PNG")
