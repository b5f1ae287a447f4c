"""A clustering, or topics, as one self-contained HTML file; needs the `[report]` extra (matplotlib and jinja2).

report = ClusteringReport(title="Iris", data=data, feature_names=names, prior=prior, constraints=constraints,
                          result=result, tolerance=1e-3, seed=0)
Path("iris.html").write_text(clustering_html(report), encoding="utf-8")
"""

from __future__ import annotations

import base64
import math
import os
import platform
import shlex
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from certimap._version import __version__
from certimap.report.answer import AnswerReport, constraint_summary
from certimap.report.badge import gap_badge
from certimap.report.clustering import ClusteringReport, ranking_rows, ranking_summary
from certimap.report.explanation import not_proved, proved
from certimap.report.plots import ELLIPSE, convergence_plot, drawn_points, scatter_plot
from certimap.report.template import CLUSTERING, TOPICS
from certimap.report.text import number, percent, plural
from certimap.report.topics import TopicReport

if TYPE_CHECKING:
    from jinja2 import Environment

EXTRA = ("matplotlib", "jinja2")
PACKAGES = ("numpy", "scipy", "numba", "highspy", "scikit-learn")
MOST_CONSTRAINTS = 200  # rows; violated ones come first


class MissingExtraError(ImportError):
    """A report was asked for, and a package that it needs is not installed."""


def require_extra() -> None:
    """Raise MissingExtraError unless reports can be written; to be called before a long solve."""
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"an HTML report needs {' and '.join(missing)}: pip install 'certimap[report]'")


def clustering_html(report: ClusteringReport) -> str:
    """The whole document: nothing in it is loaded from elsewhere."""
    require_extra()
    ranking = report.result.ranking
    return _rendered(
        CLUSTERING,
        report,
        "clustering",
        _clustering_facts(report),
        scatter=embedded(scatter_plot(report)),
        scatter_note=_scatter_note(report),
        feature_names=report.feature_names,
        clusters=report.clusters(),
        ranking=None if ranking is None else ranking_rows(ranking),
        ranking_summary="" if ranking is None else ranking_summary(ranking),
    )


def topics_html(report: TopicReport) -> str:
    """The whole document: nothing in it is loaded from elsewhere."""
    return _rendered(TOPICS, report, "topic assignment", _topic_facts(report), topics=report.topics())


def _rendered(
    template: str,
    report: AnswerReport,
    noun: str,
    facts: list[tuple[str, str]],
    **parts: object,
) -> str:
    ordered = sorted(report.checks(), key=lambda check: check.satisfied)
    result = report.result
    return (
        templates()
        .from_string(template)
        .render(
            title=report.title,
            badge=gap_badge(result),
            proved=proved(result, noun),
            not_proved=not_proved(result, noun),
            facts=facts,
            answer=_answer(report, noun),
            convergence=embedded(convergence_plot(result.history, report.tolerance, f"best {noun}")),
            constraint_summary=constraint_summary(ordered),
            checks=ordered[:MOST_CONSTRAINTS],
            hidden_checks=len(ordered) - len(ordered[:MOST_CONSTRAINTS]),
            certificate=_certificate(report),
            reproduce=surroundings(report.seed),
            **parts,
        )
    )


def _topic_facts(report: TopicReport) -> list[tuple[str, str]]:
    problem = report.problem
    cells, prior = problem.cells, problem.prior
    size = f"{plural(cells.n_documents, 'document')}, {plural(cells.n_words, 'word')}"
    return [
        ("data", f"{size}, {plural(int(cells.count.sum()), 'token')} in {plural(len(cells), 'nonzero count')}"),
        ("preparation", report.preparation),
        ("model", f"latent Dirichlet allocation, {plural(problem.n_topics, 'topic')}"),
        ("prior", f"alpha = {prior.alpha:g}, eta = {prior.eta:g}"),
        ("constraints", report.constraints.summary() or "none"),
    ]


def _clustering_facts(report: ClusteringReport) -> list[tuple[str, str]]:
    prior = report.prior
    dof = "" if prior.covariance_type == "known" else f", nu0 = {prior.degrees_of_freedom:g}"
    n, d = report.data.shape
    return [
        ("data", f"{plural(n, 'point')}, {plural(d, 'feature')}: {', '.join(report.feature_names)}"),
        ("preparation", report.preparation),
        ("model", f"Bayesian Gaussian mixture of {report.n_clusters}, {prior.covariance_type} covariance"),
        ("prior", f"a0 = {prior.weight_concentration:g}, b0 = {prior.mean_precision:g}{dof}"),
        ("constraints", report.constraints.summary() or "none"),
    ]


def _answer(report: AnswerReport, noun: str) -> list[tuple[str, str]]:
    result = report.result
    rows = [
        (f"log-posterior of this {noun}", f"{result.log_map:.10g}"),
        (
            f"upper bound on every {noun}",
            f"{result.upper_bound:.10g}" if math.isfinite(result.upper_bound) else "none",
        ),
        ("gap", f"{number(result.gap)} ({percent(result.relative_gap)})" if math.isfinite(result.gap) else "open"),
        *([("none better among", result.neighbourhood)] if result.neighbourhood else []),
        ("tolerance", percent(report.tolerance)),
        ("stopped by", result.stop_reason.value),
    ]
    return rows + [(name, f"{value:.4f}") for name, value in report.agreement.items()]


def _scatter_note(report: ClusteringReport) -> str:
    shown, n = len(drawn_points(report)), len(report.data)
    points = f"{shown} of {n} points" if shown < n else f"all {n} points"
    return f"{points}; the first features only where there are many; ellipses: {ELLIPSE:g} standard deviations"


def _certificate(report: AnswerReport) -> str | None:
    path = report.certificate_path
    return None if path is None or report.result.certificate is None else f"certimap verify {shlex.quote(path)}"


def surroundings(seed: int, *others: str) -> list[tuple[str, str]]:
    """What the numbers of a report depend on besides the data: seed, versions (`others` are packages too), machine."""
    packages = ", ".join(f"{name} {version(name)}" for name in (*PACKAGES, *others))
    return [
        ("seed", str(seed)),
        ("certimap", __version__),
        ("Python", platform.python_version()),
        ("packages", packages),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
    ]


def templates() -> Environment:
    """Where all reports come from: whatever is put into them is escaped, and a missing value is an error."""
    require_extra()
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def embedded(png: bytes) -> str:
    """An image as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
