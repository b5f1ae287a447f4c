"""The command line: one module per command."""

from __future__ import annotations

from typing import Annotated

import typer

from certimap import __version__
from certimap.cli.cluster import cluster_command
from certimap.cli.compare import compare_command
from certimap.cli.demo import demo_command
from certimap.cli.reproduce import reproduce_command
from certimap.cli.solve import solve_command
from certimap.cli.topics import topics_command
from certimap.cli.verify import verify_command

app = typer.Typer(
    name="certimap",
    help="Maximum a-posteriori inference with a proof of how good the answer is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes would break messages into lines
)
app.command("solve")(solve_command)
app.command("cluster")(cluster_command)
app.command("topics")(topics_command)
app.command("verify")(verify_command)
app.command("demo")(demo_command)
app.command("compare")(compare_command)
app.command("reproduce")(reproduce_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"certimap {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Maximum a-posteriori inference with a proof of how good the answer is."""
