"""`certimap cluster`: constrained clustering of a table of numbers, with a proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from sklearn.metrics import adjusted_rand_score

from certimap.cli.exits import exit_for, fail, usage_errors
from certimap.cli.files import check_folders, save_certificate
from certimap.cli.output import plain_console
from certimap.cli.tables import check_spread, chosen_columns, known_clusters, prepare, read_links
from certimap.estimators.errors import NoFeasiblePointError
from certimap.estimators.gaussian_mixture import GaussianMixtureMAP
from certimap.io.delimited import read_delimited
from certimap.mixture.kernel.gpu import DeviceChoice
from certimap.mixture.record import CLUSTERING, problem_record
from certimap.report.clustering import ClusteringReport, constraint_summary
from certimap.report.html import MissingExtraError, clustering_html, require_extra
from certimap.report.log import status_line
from certimap.report.text import plural

Covariance = Literal["full", "tied", "diag", "spherical"]


def cluster_command(
    data: Annotated[Path, typer.Argument(help="Table of points, one row each.", exists=True, dir_okay=False)],
    clusters: Annotated[int, typer.Option("--clusters", "-k", help="Largest number of clusters.", min=1)],
    columns: Annotated[str | None, typer.Option(help="Columns to cluster by, as a,b,c; default: all.")] = None,
    label_column: Annotated[str | None, typer.Option(help="True classes: left out, and compared at the end.")] = None,
    known_labels: Annotated[str | None, typer.Option(help="Column of known clusters, empty where unknown.")] = None,
    standardize: Annotated[bool, typer.Option("--standardize", help="Scale columns to variance 1.")] = False,
    pca: Annotated[int | None, typer.Option(help="Reduce to this many principal components.")] = None,
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
    tol: Annotated[float, typer.Option(help="Relative gap that counts as optimal.", min=0.0)] = 1e-3,
    time_limit: Annotated[float | None, typer.Option(help="Stop after this many seconds.")] = None,
    max_nodes: Annotated[int, typer.Option(help="Stop the proof after this many nodes.", min=1)] = 10_000_000,
    starts: Annotated[int, typer.Option(help="Starts of the local search.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the local search.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; the answer does not depend on it.", min=1)] = 1,
    device: Annotated[DeviceChoice, typer.Option(help="Where long proofs run; auto: a GPU if there is one.")] = "auto",
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Write the proof here (JSON).")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the cluster of every row here (CSV).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
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
    result = summary.result
    lines = [f"log_map     {result.log_map:.10g}", f"upper bound {result.upper_bound:.10g}", ""]
    widths = [max(len(name) + 5, 10) for name in summary.feature_names]
    heads = (f"mean {name}".rjust(width) for name, width in zip(summary.feature_names, widths, strict=True))
    lines.append("  ".join(["cluster  points  weight", *heads]))
    for row in summary.clusters():
        means = (f"{mean:{width}.4g}" for mean, width in zip(row.mean, widths, strict=True))
        lines.append("  ".join([f"{row.cluster:7d}  {row.size:6d}  {row.weight:6.4f}", *means]))
    checks = summary.constraints.checks(summary.labels, summary.n_clusters)
    if checks:
        lines += ["", f"constraints {constraint_summary(checks)}"]
    lines += [f"{name}: {value:.4f}" for name, value in summary.agreement.items()]
    console.print("\n".join(lines))


def _rand(truth: tuple[str, ...], model: GaussianMixtureMAP) -> float:
    return float(adjusted_rand_score(truth, model.labels_))


def _write_labels(summary: ClusteringReport, path: Path) -> None:
    lines = [f"{row},{cluster}" for row, cluster in enumerate(summary.labels)]
    path.write_text("\n".join(["row,cluster", *lines, ""]), encoding="utf-8")
