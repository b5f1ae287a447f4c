"""`certimap compare`: every method on a user's table of numbers, on one objective."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as ScreenTable

from certimap.baselines.scip import is_available
from certimap.cli.exits import Exit, fail, usage_errors
from certimap.cli.files import check_folders
from certimap.cli.options import (
    Clusters,
    Columns,
    Components,
    LabelColumn,
    Points,
    Report,
    Seed,
    Standardize,
    Starts,
    Tolerance,
)
from certimap.cli.output import plain_console
from certimap.cli.tables import check_spread, chosen_columns, classes, prepare
from certimap.experiments.ahead import compiled_ahead
from certimap.experiments.compare import Comparison, compare
from certimap.experiments.data import DataSet
from certimap.experiments.mixture_tasks import Effort, warm_up
from certimap.io.delimited import read_delimited
from certimap.model.errors import ModelError
from certimap.report.document import document_html
from certimap.report.html import MissingExtraError, require_extra
from certimap.report.text import plural

WIDTH = 120  # of the table on the screen: a narrow one breaks lines, yet leaves nothing out


def compare_command(
    data: Points,
    clusters: Clusters,
    columns: Columns = None,
    label_column: LabelColumn = None,
    standardize: Standardize = False,
    pca: Components = None,
    seconds: Annotated[
        float, typer.Option(help="Limit of certimap's proof and of branch and bound, each.", min=0.1)
    ] = 60.0,
    tol: Tolerance = 1e-3,
    starts: Starts = 400,
    seed: Seed = 0,
    report: Report = None,
    output: Annotated[Path | None, typer.Option(help="Write the table here (CSV).")] = None,
) -> None:
    """Compare certimap, variational Bayes, Gibbs sampling and branch and bound."""
    console = plain_console()
    try:
        with usage_errors():
            check_folders(report, output)
            if report is not None:
                require_extra()
            table = read_delimited(data)
            prepared = prepare(table, chosen_columns(table, columns, (label_column,)), standardize, pca)
            check_spread(prepared, "full", data)
            labels = None if label_column is None else classes(table, label_column)
            if clusters > len(prepared.points):
                raise ModelError(
                    f"--clusters must be at most {len(prepared.points)}, the number of rows of {data}, got {clusters}: "
                    "variational Bayes takes no more"
                )
        console.print(f"data        {data}: {plural(len(table.rows), 'row')}; {prepared.description}")
        if not is_available():
            console.print("without branch and bound: pyscipopt is not installed (pip install 'certimap[scip]')")
        points = DataSet(data.name, prepared.points, labels, clusters, prepared.names, prepared.preparation)
        with compiled_ahead([warm_up]):
            compared = compare(points, Effort(seconds, starts, tol, seed), console)
    except (MissingExtraError, ValueError) as error:
        fail(error)
    except KeyboardInterrupt:
        fail("interrupted before all methods were done", Exit.INTERRUPTED)
    _print_table(compared, console)
    with usage_errors():
        if output is not None:
            output.write_text(compared.file().text(), encoding="utf-8")
            console.print(f"table       {output}")
        if report is not None:
            report.write_text(document_html(compared.document()), encoding="utf-8")
            console.print(f"report      {report}")


def _print_table(compared: Comparison, console: Console) -> None:
    heads, rows = compared.short_rows()
    screen = ScreenTable(box=None, pad_edge=False)
    for number, head in enumerate(heads):
        screen.add_column(head, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        screen.add_row(*row)
    console.print(screen, width=max(console.width, WIDTH), crop=False)
    if any(cell.endswith("*") for row in rows for cell in row):
        console.print("* claimed by the solver; certimap's own bounds are certified")
    for remark in compared.remarks():
        console.print(remark)
