"""Maximum a-posteriori inference for Bayesian factor graphs, with a proof of how good the answer is."""

from certimap._version import __version__
from certimap.certificate import Certificate, CertificateError
from certimap.estimators.gaussian_mixture import GaussianMixtureMAP
from certimap.estimators.latent_dirichlet import LatentDirichletMAP
from certimap.model.concave import concave
from certimap.model.constraints import (
    all_of,
    any_of,
    at_least,
    at_most,
    cannot_link,
    exactly,
    fix,
    implies,
    must_link,
)
from certimap.model.constructors import black_box, gated, parity, potts, ridge, separable, table
from certimap.model.errors import ModelError
from certimap.model.expressions import linear
from certimap.model.model import Block, Model
from certimap.model.partition import clusters_1d
from certimap.model.soft import soft
from certimap.model.univariate import gaussian, laplace, log, logistic, poisson, polynomial, student_t
from certimap.results import IterationRecord, Result, Status, StopReason
from certimap.solver import solve
from certimap.verification.checker import VerificationReport, verify

__all__ = [
    "Block",
    "Certificate",
    "CertificateError",
    "GaussianMixtureMAP",
    "IterationRecord",
    "LatentDirichletMAP",
    "Model",
    "ModelError",
    "Result",
    "Status",
    "StopReason",
    "VerificationReport",
    "__version__",
    "all_of",
    "any_of",
    "at_least",
    "at_most",
    "black_box",
    "cannot_link",
    "clusters_1d",
    "concave",
    "exactly",
    "fix",
    "gated",
    "gaussian",
    "implies",
    "laplace",
    "linear",
    "log",
    "logistic",
    "must_link",
    "parity",
    "poisson",
    "polynomial",
    "potts",
    "ridge",
    "separable",
    "soft",
    "solve",
    "student_t",
    "table",
    "verify",
]
