"""`certimap verify`: check a certificate with code that shares nothing with the solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from certimap.certificate import Certificate, CertificateError
from certimap.cli.corpora import CORPUS, model_of_proof
from certimap.cli.exits import Exit, fail, usage_errors
from certimap.cli.files import read_model
from certimap.cli.output import plain_console
from certimap.mixture.factor import mixture_model
from certimap.mixture.record import CLUSTERING, problem_of
from certimap.model.errors import ModelError
from certimap.model.model import Model
from certimap.report.text import percent, plural
from certimap.results import Status
from certimap.verification.checker import VerificationReport, verify


def verify_command(
    certificate: Annotated[Path, typer.Argument(help="Certificate (JSON).", exists=True, dir_okay=False)],
    model: Annotated[
        Path | None,
        typer.Option(help="Model file; without it the file named in the certificate.", exists=True, dir_okay=False),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(help="Evidence file that belongs to --model.", exists=True, dir_okay=False),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Search a long pricing proof again as a whole, not a random sample of it.")
    ] = False,
) -> None:
    """Check a certificate; exit code 1 for a false claim.

    A certificate of a clustering carries its data, prior and constraints, and is checked against these.
    """
    if evidence is not None and model is None:
        fail("--evidence needs --model; a certificate names its own evidence file")
    console = plain_console()
    try:
        proof = Certificate.load(certificate)
        with usage_errors():
            problem = read_model(model, evidence) if model else _named_model(console, proof, certificate)
        report = verify(proof, problem, full=full)
    except CertificateError as error:
        console.print(f"REJECTED    {error}")
        raise typer.Exit(Exit.REJECTED) from None
    print_report(console, proof, report)


def print_report(console: Console, proof: Certificate, report: VerificationReport) -> None:
    """What was checked, what it proves, and what had to be trusted."""
    counts = ((report.nodes, "node"), (report.leaves, "leaf"), (report.cuts, "cut"))
    checked = ", ".join(plural(count, noun) for count, noun in counts)
    within = f" <= {percent(proof.tolerance)}" if report.status is Status.OPTIMAL else ""
    lines = [
        f"VERIFIED    {report.status.name}  gap {percent(report.relative_gap)}{within}  {report.algorithm}",
        f"log_map     {report.lower_bound:.10g}",
        f"upper bound {report.upper_bound:.10g}  (claimed {proof.upper_bound:.10g})",
        f"checked     {checked} in {report.seconds:.2f} s",
    ]
    if report.ranking is not None:
        count, others = len(report.ranking.values), report.ranking.others
        lines.append(f"ranking     the best {count} clusterings; every other one has at most {others:.10g}")
    if report.moves:
        lines.append(f"moves       no clustering with up to {plural(report.moves, 'moved point')} is better")
    if report.trusted:
        lines.append(f"trusted     {'; '.join(report.trusted)}")
    console.print("\n".join(lines))


def _named_model(console: Console, proof: Certificate, path: Path) -> Model:
    """The model that the certificate carries, or names by files relative to its own folder."""
    if CLUSTERING in proof.details:
        try:
            clustering = problem_of(proof.details[CLUSTERING])
        except ValueError as error:
            raise CertificateError(str(error)) from None
        count, features = clustering.data.shape
        about = f"{plural(count, 'point')} of {plural(features, 'feature')}"
        console.print(f"model       Gaussian mixture of the {about} that the certificate carries")
        return mixture_model(clustering)
    if proof.source is None:
        raise ModelError(f"{path}: the certificate names no model file; give it with --model")
    folder = path.resolve().parent
    if CORPUS in proof.details:
        model, description = model_of_proof(folder / proof.source, proof.details[CORPUS])
        # The certificate says how the model comes from the corpus, so that a reader has to know what it is about.
        console.print(f"model       {description}")
        return model
    evidence = proof.details.get("evidence")
    return read_model(folder / proof.source, folder / evidence if evidence else None)
