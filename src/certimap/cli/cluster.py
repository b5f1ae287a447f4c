"""`certimap cluster`: constrained clustering of a table of numbers, with a proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from sklearn.metrics import adjusted_rand_score

from certimap.cli.exits import exit_for, fail, usage_errors
from certimap.cli.files import check_folders, save_certificate
from certimap.cli.options import (
    Clusters,
    Columns,
    Components,
    Jobs,
    LabelColumn,
    Points,
    ProofFile,
    Quiet,
    Report,
    SearchSeed,
    Standardize,
    Starts,
    TimeLimit,
    Tolerance,
)
from certimap.cli.output import plain_console, print_answer
from certimap.cli.tables import check_spread, chosen_columns, known_clusters, prepare, read_links
from certimap.estimators.errors import NoFeasiblePointError
from certimap.estimators.gaussian_mixture import GaussianMixtureMAP
from certimap.io.delimited import read_delimited
from certimap.mixture.kernel.gpu import DeviceChoice
from certimap.mixture.record import CLUSTERING, problem_record
from certimap.report.clustering import ClusteringReport, ranking_rows, ranking_summary
from certimap.report.html import MissingExtraError, clustering_html, require_extra
from certimap.report.log import status_line
from certimap.report.text import plural
from certimap.results import Ranking

Covariance = Literal["full", "tied", "diag", "spherical"]


def cluster_command(
    data: Points,
    clusters: Clusters,
    columns: Columns = None,
    label_column: LabelColumn = None,
    known_labels: Annotated[str | None, typer.Option(help="Column of known clusters, empty where unknown.")] = None,
    standardize: Standardize = False,
    pca: Components = None,
    covariance: Annotated[Covariance, typer.Option(help="Shape of the clusters.")] = "full",
    must_link: Annotated[
        Path | None,
        typer.Option(
            help="Pairs of rows, from 0, to put together; a third column is the weight of a soft link.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    cannot_link: Annotated[
        Path | None, typer.Option(help="Pairs of rows to keep apart, likewise.", exists=True, dir_okay=False)
    ] = None,
    min_size: Annotated[int | None, typer.Option(help="Least number of points in a cluster.")] = None,
    max_size: Annotated[int | None, typer.Option(help="Largest number of points in a cluster.")] = None,
    tol: Tolerance = 1e-3,
    time_limit: TimeLimit = None,
    max_nodes: Annotated[int, typer.Option(help="Stop the proof after this many nodes.", min=1)] = 10_000_000,
    starts: Starts = 100,
    seed: SearchSeed = 0,
    jobs: Jobs = 1,
    device: Annotated[DeviceChoice, typer.Option(help="Where long proofs run; auto: a GPU if there is one.")] = "auto",
    top: Annotated[int, typer.Option(help="Rank this many of the best clusterings, with a proof.", min=1)] = 1,
    report: Report = None,
    certificate: ProofFile = None,
    output: Annotated[Path | None, typer.Option(help="Write the cluster of every row here (CSV).")] = None,
    quiet: Quiet = False,
) -> None:
    """Cluster the rows of a table under constraints, with a proof."""
    console = plain_console()
    try:
        with usage_errors():
            check_folders(report, certificate, output)
            if report is not None:
                require_extra()
            table = read_delimited(data)
            prepared = prepare(table, chosen_columns(table, columns, (label_column, known_labels)), standardize, pca)
            check_spread(prepared, covariance, data)
            known = None if known_labels is None else known_clusters(table, known_labels, clusters)
            truth = None if label_column is None else table.column(label_column)
            together, apart = (read_links(path, len(table.rows)) for path in (must_link, cannot_link))
        if not quiet:
            header = "header" if table.has_header else "no header"
            console.print(f"data        {data}: {plural(len(table.rows), 'row')}, {header}; {prepared.description}")
        model = GaussianMixtureMAP(
            clusters,
            covariance_type=covariance,
            tol=tol,
            max_nodes=max_nodes,
            time_limit=time_limit,
            n_init=starts,
            random_state=seed,
            n_jobs=jobs,
            device=device,
            n_top=top,
            verbose=0 if quiet else 1,
        ).fit(
            prepared.points,
            known,
            must_link=together,
            cannot_link=apart,
            min_cluster_size=min_size,
            max_cluster_size=max_size,
        )
    except NoFeasiblePointError as error:
        fail(error, exit_for(error.result))
    except (MissingExtraError, ValueError) as error:
        fail(error)
    agreement = {} if truth is None else {f"adjusted Rand index with {label_column}": _rand(truth, model)}
    summary = ClusteringReport(
        title=f"Clusters of {data.name}",
        data=prepared.points,
        feature_names=prepared.names,
        prior=model.prior_,
        constraints=model.constraints_,
        result=model.result_,
        tolerance=tol,
        seed=seed,
        preparation=prepared.preparation,
        certificate_path=None if certificate is None else str(certificate),
        agreement=agreement,
    )
    if quiet:
        console.print(status_line(summary.result, tol))
    print_clustering(console, summary)
    with usage_errors():
        if certificate is not None:
            carried = {CLUSTERING: problem_record(model.problem_)}
            save_certificate(console, model.certificate_, certificate, data, carried)
        if report is not None:
            report.write_text(clustering_html(summary), encoding="utf-8")
            console.print(f"report      {report}")
        if output is not None:
            _write_labels(summary, output)
    raise typer.Exit(exit_for(summary.result))


def print_clustering(console: Console, summary: ClusteringReport) -> None:
    """Value and bound, the clusters, and how the constraints fared."""
    widths = [max(len(name) + 5, 10) for name in summary.feature_names]
    heads = (f"mean {name}".rjust(width) for name, width in zip(summary.feature_names, widths, strict=True))
    lines = ["  ".join(["cluster  points  weight", *heads])]
    for row in summary.clusters():
        means = (f"{mean:{width}.4g}" for mean, width in zip(row.mean, widths, strict=True))
        lines.append("  ".join([f"{row.cluster:7d}  {row.size:6d}  {row.weight:6.4f}", *means]))
    if summary.result.ranking is not None:
        lines += ["", *ranking_lines(summary.result.ranking)]
    print_answer(console, summary, lines)


def ranking_lines(ranking: Ranking) -> list[str]:
    """The best clusterings as a table, and what bounds the others."""
    lines = ["rank         log_map  difference  points moved"]
    lines += [f"{r.rank:4d}  {r.log_map:14.10g}  {r.difference:10.6f}  {r.moved:12d}" for r in ranking_rows(ranking)]
    return [*lines, ranking_summary(ranking)]


def _rand(truth: tuple[str, ...], model: GaussianMixtureMAP) -> float:
    return float(adjusted_rand_score(truth, model.labels_))


def _write_labels(summary: ClusteringReport, path: Path) -> None:
    lines = [f"{row},{cluster}" for row, cluster in enumerate(summary.labels)]
    path.write_text("\n".join(["row,cluster", *lines, ""]), encoding="utf-8")
