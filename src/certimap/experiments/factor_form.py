"""Both models as the paper writes them: every latent variable a variable, every term a factor.

For looking at and for checks on small data; certimap solves them with the continuous variables maximised out in blocks,
which gives far better bounds. At the optimal parameters both forms have the same value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap.mixture.prior import NormalWishartPrior
from certimap.model.constraints import exactly
from certimap.model.constructors import black_box, gated, ridge
from certimap.model.model import Model
from certimap.model.univariate import log
from certimap.report.graph_plots import Structure
from certimap.topics.counts import cells_of, checked_counts
from certimap.topics.prior import TopicPrior

MARGIN = 1e-9  # relative, on the black boxes' bounds: a few roundings
LEAST_WEIGHT = 1e-6  # lower bound of probabilities: log 0 has no finite multiplier


@dataclass(frozen=True)
class FactorForm:
    """A model with the directions that its factors come from."""

    model: Model
    structure: Structure


@dataclass(frozen=True)
class LogTerm:
    """[z] (c log s - r s) of a precision s, with z only where `gated`; c >= 0."""

    c: float
    r: float
    gated: bool

    def value(self, x: NDArray[np.float64]) -> float:
        gate = float(x[0]) if self.gated else 1.0
        return gate * (self.c * float(np.log(x[-1])) - self.r * float(x[-1]))

    def upper(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> float:
        peak = self.c / self.r if self.r > 0.0 else np.inf
        s = float(np.clip(peak, lower[-1], upper[-1]))
        best = self.c * float(np.log(s)) - self.r * s
        gates = (float(lower[0]), float(upper[0])) if self.gated else (1.0, 1.0)
        return _raised(max(gate * best for gate in gates))


@dataclass(frozen=True)
class PullTerm:
    """[z] b s (m y - m^2/2) of a mean m and a precision s > 0, with z only where `gated`."""

    y: float
    b: float
    gated: bool

    def value(self, x: NDArray[np.float64]) -> float:
        gate, m, s = (float(x[0]) if self.gated else 1.0), float(x[-2]), float(x[-1])
        return gate * self.b * s * (m * self.y - 0.5 * m * m)

    def upper(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> float:
        m = float(np.clip(self.y, lower[-2], upper[-2]))
        pull = self.b * (m * self.y - 0.5 * m * m)
        gates = (float(lower[0]), float(upper[0])) if self.gated else (1.0, 1.0)
        return _raised(max(gate * s * pull for gate in gates for s in (float(lower[-1]), float(upper[-1]))))


def mixture_factor_form(X: ArrayLike, prior: NormalWishartPrior, n_clusters: int) -> FactorForm:
    """Terms 1 to 6 of the paper's appendix for points on the line, with z_ik binary.

    The boxes hold every optimum: means lie among the points and m0, precisions between those of the smallest and of
    the largest scatter. The constant (K/2) log b0 is part of the model.
    """
    y, K = np.asarray(X, dtype=np.float64).ravel(), n_clusters
    if prior.dimension != 1:
        raise ValueError(f"the factor form is for points on the line, got dimension {prior.dimension}.")
    m0, b0, inverse = float(prior.mean[0]), prior.mean_precision, float(prior.covariance[0, 0])
    v = prior.prior_weight
    model = Model()
    pi = model.simplex("pi", K, LEAST_WEIGHT)
    z = model.binary("z", shape=(len(y), K))
    largest = (v + len(y)) / inverse
    smallest = min(max(v, LEAST_WEIGHT) / (inverse + float(((y - m0) ** 2).sum())), largest)
    Lambda = model.real("Lambda", smallest, largest, shape=K)
    mu = model.real("mu", min(m0, float(y.min())), max(m0, float(y.max())), shape=K)
    for i in range(len(y)):
        model.constrain(exactly(1, z[i]).named(f"point {i} is in one cluster"))
    for k in range(K):
        model.add(ridge(pi[k], log(prior.weight_concentration - 1.0), name=f"theta_pi[{k}]"))
        own = LogTerm(0.5 * v, 0.5 * (b0 * m0 * m0 + inverse), gated=False)
        model.add(black_box([Lambda[k]], own, name=f"theta_Lambda[{k}]"))
        model.add(black_box([mu[k], Lambda[k]], PullTerm(m0, b0, gated=False), name=f"D[{k}]"))
    model.add(0.0 * mu[0] + 0.5 * K * float(np.log(b0)))
    for i, point in enumerate(y.tolist()):
        for k in range(K):
            own = LogTerm(0.5, 0.5 * point * point, gated=True)
            model.add(black_box([z[i, k], Lambda[k]], own, name=f"A[{i},{k}]"))
            model.add(black_box([z[i, k], mu[k], Lambda[k]], PullTerm(point, 1.0, gated=True), name=f"B[{i},{k}]"))
            model.add(gated(z[i, k], pi[k], log(), name=f"C[{i},{k}]"))
    points, clusters = f"N = {len(y)}", f"K = {K}"
    structure = Structure(
        parents={"pi": (), "z": ("pi",), "Lambda": (), "mu": ("Lambda",), "y": ("z", "mu", "Lambda")},
        plates={"z": (points,), "y": (points,), "mu": (clusters,), "Lambda": (clusters,)},
        observed=("y",),
    )
    return FactorForm(model, structure)


def topic_factor_form(counts: ArrayLike, prior: TopicPrior, n_topics: int) -> FactorForm:
    """Terms 1 to 4 of the paper's appendix for documents of one length, with a topic for every token."""
    cells, K = cells_of(checked_counts(counts)), n_topics
    document, word = np.repeat(cells.document, cells.count), np.repeat(cells.word, cells.count)
    lengths = np.bincount(document, minlength=cells.n_documents)
    if len(set(lengths.tolist())) != 1:
        raise ValueError(
            f"the factor form is for documents of one length, got {lengths.min()}..{lengths.max()} tokens."
        )
    M, N = cells.n_documents, int(lengths[0])
    model = Model()
    Theta = model.simplex("Theta", K, LEAST_WEIGHT, shape=M)
    z = model.categorical("z", K, shape=(M, N))
    beta = model.simplex("beta", cells.n_words, LEAST_WEIGHT, shape=K)
    for d in range(M):
        for k in range(K):
            model.add(ridge(Theta[d][k], log(prior.a), name=f"theta_Theta[{d},{k}]"))
    for k in range(K):
        for v in range(cells.n_words):
            model.add(ridge(beta[k][v], log(prior.e), name=f"theta_beta[{k},{v}]"))
    for d in range(M):
        for n, v in enumerate(word[document == d].tolist()):
            for k in range(K):
                model.add(gated(z[d, n].is_(k), Theta[d][k], log(), name=f"B[{d},{n},{k}]"))
                model.add(gated(z[d, n].is_(k), beta[k][v], log(), name=f"A[{d},{n},{k}]"))
    documents, tokens, topics = f"M = {M}", f"N = {N}", f"K = {K}"
    structure = Structure(
        parents={"Theta": (), "z": ("Theta",), "beta": (), "w": ("z", "beta")},
        plates={"Theta": (documents,), "z": (documents, tokens), "w": (documents, tokens), "beta": (topics,)},
        observed=("w",),
    )
    return FactorForm(model, structure)


def _raised(value: float) -> float:
    return value + MARGIN * max(1.0, abs(value))
