"""`certimap solve`: the most probable assignment of a model file, with a proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from certimap.certificate import Certificate
from certimap.cli.exits import exit_for, fail, usage_errors
from certimap.cli.files import read_model, relative_to_folder, write_answer
from certimap.cli.output import plain_console
from certimap.io.states import state_label
from certimap.model.model import Model
from certimap.report.log import LogTable, describe, status_line
from certimap.results import Result
from certimap.solver import Algorithm, solve

SHOWN_VARIABLES = 20


def solve_command(
    model: Annotated[Path, typer.Argument(help="Model file, .uai or .bif.", exists=True, dir_okay=False)],
    evidence: Annotated[
        Path | None,
        typer.Option(help="UAI evidence for .uai; lines 'variable = state' for .bif.", exists=True, dir_okay=False),
    ] = None,
    gap: Annotated[float, typer.Option(help="Relative gap that counts as optimal.", min=0.0)] = 1e-6,
    max_nodes: Annotated[int | None, typer.Option(help="Stop after this many nodes.", min=1)] = None,
    time_limit: Annotated[float | None, typer.Option(help="Stop after this many seconds.")] = None,
    memory_limit: Annotated[float | None, typer.Option(help="Stop at this many megabytes.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the primal search.")] = 0,
    algorithm: Annotated[Algorithm, typer.Option(help="Engine.")] = "auto",
    jobs: Annotated[int, typer.Option(help="Threads; the answer does not depend on it.", min=1)] = 1,
    certificate: Annotated[Path | None, typer.Option(help="Write the proof here (JSON).")] = None,
    solution: Annotated[Path | None, typer.Option(help="Write the assignment here.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
) -> None:
    """Find the most probable assignment, with a proof."""
    for target in (certificate, solution):
        if target is not None and not target.resolve().parent.is_dir():
            fail(f"{target}: the folder {target.resolve().parent} does not exist")
    console = plain_console()
    with usage_errors():
        problem = read_model(model, evidence)
        with LogTable(console, heading=describe(problem), gap=gap, seed=seed) as log:
            result = solve(
                problem,
                gap=gap,
                max_nodes=max_nodes,
                time_limit=time_limit,
                memory_limit=memory_limit,
                seed=seed,
                algorithm=algorithm,
                n_jobs=jobs,
                callback=None if quiet else log,
            )
            if not quiet:
                log.finish(result, str(certificate) if certificate and result.certificate else None)
        if quiet:
            console.print(status_line(result, gap))
        _print_answer(console, problem, result)
        if certificate is not None:
            _save_certificate(console, result.certificate, certificate, model, evidence)
        if solution is not None and result.assignment is not None:
            write_answer(problem, result.assignment, solution, model)
    raise typer.Exit(exit_for(result))


def _print_answer(console: Console, model: Model, result: Result) -> None:
    lines = [f"log_map     {result.log_map:.10g}", f"upper bound {result.upper_bound:.10g}"]
    if result.assignment is not None:
        values = model.flatten(result.assignment)
        variables = list(model.variables.values())
        lines.extend(f"  {v.name} = {state_label(v, values[v.name])}" for v in variables[:SHOWN_VARIABLES])
        if len(variables) > SHOWN_VARIABLES:
            lines.append(f"  and {len(variables) - SHOWN_VARIABLES} more; --solution FILE writes all")
    console.print("\n".join(lines))


def _save_certificate(
    console: Console, proof: Certificate | None, path: Path, model: Path, evidence: Path | None
) -> None:
    """Save the proof with the names of the files it speaks about, so that `certimap verify` finds them."""
    if proof is None:
        console.print("no certificate written: the search stopped before it had a proof")
        return
    details = dict(proof.details)
    if evidence is not None:
        details["evidence"] = relative_to_folder(evidence, path)
    replace(proof, source=relative_to_folder(model, path), details=details).save(path)
