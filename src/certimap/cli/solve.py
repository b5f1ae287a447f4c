"""`certimap solve`: the most probable assignment of a model file, with a proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from certimap.certificate import Certificate
from certimap.cli.exits import exit_for, usage_errors
from certimap.cli.files import check_folders, read_model, relative_to_folder, write_answer
from certimap.cli.options import Jobs, ProofFile, Quiet, TimeLimit, Tolerance
from certimap.cli.output import bounds_of, plain_console
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
    gap: Tolerance = 1e-6,
    max_nodes: Annotated[int | None, typer.Option(help="Stop after this many nodes.", min=1)] = None,
    time_limit: TimeLimit = None,
    memory_limit: Annotated[float | None, typer.Option(help="Stop at this many megabytes.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the primal search.")] = 0,
    algorithm: Annotated[Algorithm, typer.Option(help="Engine.")] = "auto",
    jobs: Jobs = 1,
    certificate: ProofFile = None,
    solution: Annotated[Path | None, typer.Option(help="Write the assignment here.")] = None,
    quiet: Quiet = False,
) -> None:
    """Find the most probable assignment, with a proof."""
    console = plain_console()
    with usage_errors():
        check_folders(certificate, solution)
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
    lines = bounds_of(result)
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
