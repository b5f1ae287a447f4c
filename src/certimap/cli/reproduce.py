"""`certimap reproduce`: the paper's tables and figures, its figures beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certimap.baselines.scip import is_available
from certimap.cli.exits import Exit, fail, usage_errors
from certimap.cli.options import Seed
from certimap.cli.output import plain_console
from certimap.experiments.ahead import compiled_ahead
from certimap.experiments.reproduce import PARTS, reproduce
from certimap.experiments.settings import Settings
from certimap.report.html import MissingExtraError, require_extra

NAMES = ", ".join(PARTS)


def reproduce_command(
    table: Annotated[
        list[str] | None, typer.Option(help=f"One table or figure; may be repeated. Default: all of {NAMES}.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two minutes instead of hours.")] = False,
    output: Annotated[Path, typer.Option(help="Folder of the report and its numbers.", file_okay=False)] = Path(
        "out/reproduction"
    ),
    seconds: Annotated[
        float | None,
        typer.Option(help="Limit of each proof and branch and bound; default 600, with --quick 2.", min=0.1),
    ] = None,
    seed: Seed = 0,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of scikit-learn's data sets, for 20 Newsgroups.", file_okay=False)
    ] = None,
) -> None:
    """Reproduce the paper's tables and figures; a second call goes on where the first stopped."""
    names = list(PARTS) if not table else list(dict.fromkeys(table))
    for name in names:
        if name not in PARTS:
            fail(f"--table must be one of {NAMES}, got {name!r}")
    console = plain_console()
    try:
        require_extra()
        if not is_available():
            console.print("without branch and bound: pyscipopt is not installed (pip install 'certimap[scip]')")
        # What is needed last is compiled first: kernels that the first tasks need are compiled here by then.
        warm_ups = list(dict.fromkeys(function for name in names for function in PARTS[name].warm_ups))
        with usage_errors(), compiled_ahead(warm_ups[::-1]):
            report = reproduce(Settings(output, quick, seconds, seed, data_home), names, console)
    except MissingExtraError as error:
        fail(error)
    except KeyboardInterrupt:
        fail("interrupted; finished tasks are kept, the same command goes on from there", Exit.INTERRUPTED)
    console.print(f"report      {report}")
    console.print(f"numbers     {', '.join(sorted(path.name for path in output.glob('*.csv')))}")
