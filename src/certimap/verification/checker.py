"""Verification: re-derive the proof of a certificate from the model, without any of the solver's code.

    report = verify("certificate.json", model)

Every algorithm's proof has one check in `PROOFS`; what all certificates claim alike (the model, the point and its
value, the status) is checked here.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from certimap.certificate import Certificate, CertificateError
from certimap.model.errors import ModelError
from certimap.model.model import Model
from certimap.results import Status, classify, gap_between, relative_gap
from certimap.verification.elimination import check_elimination
from certimap.verification.form import check_form
from certimap.verification.partition import NEIGHBOURHOOD, check_partition
from certimap.verification.proof import ALLOWANCE, Effort, Proof, RankingProof, Replay, allowed
from certimap.verification.tree import check_tree

PROOFS: Mapping[str, Callable[[Certificate, Model, Effort], Proof]] = {
    "branch-and-cut": lambda certificate, model, effort: check_tree(certificate, model),
    "branch-and-price": check_partition,
    "elimination": lambda certificate, model, effort: check_elimination(certificate, model),
    "gbd": lambda certificate, model, effort: check_tree(certificate, model),
}


@dataclass(frozen=True)
class VerificationReport:
    """What was established: `lower_bound` is the value of the point, no point has more than `upper_bound`.

    Both are the verifier's own numbers. `trusted` lists what they rest on besides the model and the shared definition
    of its columns and rows; it is empty for a proof from the model's data alone. `replay` says which part of a long
    pricing proof was searched again; the rest is then among what is trusted. `ranking` holds what is established about
    the best few partitions where the certificate ranks them; no clustering with up to `moves` moved points is better.
    """

    algorithm: str
    status: Status
    lower_bound: float
    upper_bound: float
    nodes: int
    leaves: int
    cuts: int
    trusted: tuple[str, ...]
    seconds: float
    replay: Replay | None = None
    ranking: RankingProof | None = None
    moves: int = 0

    @property
    def sampled(self) -> bool:
        """Whether only a part of the proof was checked."""
        return self.replay is not None and not self.replay.whole

    @property
    def gap(self) -> float:
        return gap_between(self.lower_bound, self.upper_bound)

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.lower_bound, self.upper_bound)


def verify(
    certificate: Certificate | str | Path | None, model: Model, *, full: bool = False, seed: int | None = None
) -> VerificationReport:
    """Check every claim of the certificate (or of the file) against the model; `CertificateError` on a false one.

    Args:
        certificate: a certificate or its file.
        model: what it speaks about.
        full: search long pricing proofs again as a whole, however long that takes; else a random sample of their boxes.
        seed: of the sample; None draws one, so that it cannot be foreseen. The report states it.
    """
    started = time.perf_counter()
    if certificate is None:
        raise CertificateError("there is no certificate: the search stopped before it had proved any bound")
    if not isinstance(certificate, Certificate):
        certificate = Certificate.load(certificate)
    check_form(certificate)
    if certificate.algorithm not in PROOFS:
        known = ", ".join(sorted(PROOFS))
        raise CertificateError(f"no check is known for algorithm {certificate.algorithm!r}; known are {known}")
    if certificate.model != model.fingerprint():
        raise CertificateError("the certificate was made for another model (the fingerprints differ)")
    _check_numbers(certificate)
    _check_conflict(certificate, model)
    lower_bound = _value_of_point(certificate, model)
    status, trusted = _check_status(certificate)
    effort = Effort(full, secrets.randbits(32) if seed is None else seed)
    proof = PROOFS[certificate.algorithm](certificate, model, effort)
    if proof.value is not None:
        _check_value(proof.value, certificate.log_map)
        lower_bound = proof.value
    if not proof.upper_bound <= allowed(certificate.upper_bound):
        raise CertificateError(f"the proof gives {proof.upper_bound!r}, claimed is {certificate.upper_bound!r}")
    if lower_bound > allowed(proof.upper_bound):
        raise CertificateError(f"the point has value {lower_bound!r}, above the proved bound {proof.upper_bound!r}")
    return VerificationReport(
        algorithm=certificate.algorithm,
        status=status,
        lower_bound=lower_bound,
        upper_bound=proof.upper_bound,
        nodes=proof.nodes,
        leaves=proof.leaves,
        cuts=proof.cuts,
        trusted=trusted + proof.trusted,
        seconds=time.perf_counter() - started,
        replay=proof.replay,
        ranking=proof.ranking,
        moves=proof.moves,
    )


def _check_numbers(certificate: Certificate) -> None:
    for name in ("log_map", "upper_bound", "tolerance"):
        value = getattr(certificate, name)
        if not isinstance(value, int | float) or math.isnan(value):
            raise CertificateError(f"{name} is not a number: {value!r}")
    if certificate.tolerance < 0.0:
        raise CertificateError(f"the tolerance is negative: {certificate.tolerance!r}")


def _check_conflict(certificate: Certificate, model: Model) -> None:
    """The named parts exist, and only an infeasible model has any; that they suffice is not proved again."""
    if certificate.conflict and certificate.status != Status.INFEASIBLE.name:
        raise CertificateError(f"a conflict is named for a model whose status is {certificate.status}")
    unknown = set(certificate.conflict).difference(model.constraints, model.factor_names())
    if unknown:
        raise CertificateError(f"the conflict names {min(unknown)!r}, which the model does not have")


def _value_of_point(certificate: Certificate, model: Model) -> float:
    """The closed-form value of the assignment, which must satisfy the constraints and have the claimed value."""
    if certificate.assignment is None:
        if certificate.log_map != -math.inf:
            raise CertificateError(f"the value {certificate.log_map!r} is claimed without a point that attains it")
        return -math.inf
    try:
        value = model.value(certificate.assignment)
        violated = model.violated(certificate.assignment)
    except (ModelError, TypeError, ValueError) as error:
        raise CertificateError(f"the assignment does not fit the model: {error}") from None
    if violated:
        raise CertificateError(f"the assignment violates {', '.join(violated[:5])}")
    if not math.isfinite(value):
        raise CertificateError("a factor excludes the assignment")
    _check_value(value, certificate.log_map)
    return value


def _check_value(value: float, claimed: float) -> None:
    if not abs(value - claimed) <= ALLOWANCE * max(1.0, abs(value)):
        raise CertificateError(f"the assignment has value {value!r}, claimed is {claimed!r}")


def _check_status(certificate: Certificate) -> tuple[Status, tuple[str, ...]]:
    """The claimed status must be what the claimed numbers justify, or local optimality, which is weaker."""
    searched = certificate.algorithm == "branch-and-price" and NEIGHBOURHOOD in certificate.details
    neighbourhood = NEIGHBOURHOOD if searched else None
    justified = classify(certificate.log_map, certificate.upper_bound, certificate.tolerance, neighbourhood)
    if certificate.status == justified.name:
        return justified, ()
    if certificate.status == Status.LOCALLY_OPTIMAL.name and justified in (Status.BOUNDED, Status.FEASIBLE):
        return Status.LOCALLY_OPTIMAL, ("local optimality: the neighbourhood was not searched again",)
    raise CertificateError(f"the status {certificate.status!r} is claimed where the numbers give {justified.name}")
