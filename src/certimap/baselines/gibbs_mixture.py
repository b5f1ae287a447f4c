"""The Gibbs sampler of the mixture, and the two ways to read one point off its samples."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.baselines.mixture_chain import sample_chain
from certimap.baselines.mixture_posterior import check_unconstrained, log_density, run_of
from certimap.baselines.run import MethodRun
from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.problem import MixtureProblem

NAME = "Gibbs sampler"
ITERATIONS = 1000
BURN_IN = 100


@dataclass(frozen=True, eq=False)
class Chain:
    """Samples of all sweeps, the burn-in included: weights (T, K), means (T, K, D), precisions (T, K, D, D),
    labels (T, N)."""

    weights: FloatArray
    means: FloatArray
    precisions: FloatArray
    labels: IntArray
    burn_in: int
    seconds: float


def gibbs_chain(
    problem: MixtureProblem, *, iterations: int = ITERATIONS, burn_in: int = BURN_IN, seed: int = 0
) -> Chain:
    """Sample the posterior from labels drawn uniformly."""
    check_unconstrained(problem, NAME)
    if not 0 <= burn_in < iterations:
        raise ValueError(f"burn_in must be in 0..{iterations - 1}, got {burn_in}: no sample would be left.")
    prior, (N, D), K = problem.prior, problem.data.shape, problem.n_clusters
    out = (
        np.zeros((iterations, K)),
        np.zeros((iterations, K, D)),
        np.zeros((iterations, K, D, D)),
        np.zeros((iterations, N), dtype=np.int64),
    )
    points = np.ascontiguousarray(problem.data)  # one compiled version for every memory layout
    spread = (prior.degrees_of_freedom, prior.covariance)
    location = (prior.weight_concentration, prior.mean_precision, prior.mean)

    def sweep(sweeps: int) -> None:
        rng = np.random.default_rng(seed)
        sample_chain(points, rng.integers(K, size=N), *location, *spread, sweeps, rng, out)

    sweep(1)  # compiles, so that the time is the sampler's
    started = time.perf_counter()
    sweep(iterations)
    weights, means, roots, labels = out
    precisions = np.einsum("tkba,tkbc->tkac", roots, roots)
    return Chain(weights, means, precisions, labels, burn_in, time.perf_counter() - started)


def gibbs_mode(problem: MixtureProblem, chain: Chain) -> MethodRun:
    """Every coordinate at its most frequent value, as in the paper: samples are binned, labels counted.

    Such a point mixes coordinates of different samples, and nothing says that its density is high.
    """
    kept = slice(chain.burn_in, None)
    weights = binned_mode(chain.weights[kept])
    labels = np.stack([(chain.labels[kept] == k).sum(axis=0) for k in range(problem.n_clusters)]).argmax(axis=0)
    parameters = (weights / weights.sum(), binned_mode(chain.means[kept]), _precision_modes(chain.precisions[kept]))
    return run_of("Gibbs, mode of bins", problem, labels.astype(np.int64), parameters, chain.seconds)


def gibbs_best(problem: MixtureProblem, chain: Chain) -> MethodRun:
    """The sample after the burn-in with the largest posterior density."""
    kept = range(chain.burn_in, len(chain.weights))
    samples = [(chain.labels[t], chain.weights[t], chain.means[t], chain.precisions[t]) for t in kept]
    best = max(samples, key=lambda sample: log_density(problem, *sample))
    return run_of("Gibbs, best sample", problem, best[0].copy(), best[1:], chain.seconds)


def binned_mode(samples: FloatArray) -> FloatArray:
    """The centre of the fullest bin of every coordinate over the first axis.

    Samples are multiplied by a factor and rounded to integers, of which the most frequent is taken. The factor is the
    power of ten that makes a bin between a fifth and two standard deviations wide; of equally full bins the first.
    """
    flat = samples.reshape(len(samples), -1)
    deviation = flat.std(axis=0)
    factor = np.where(deviation > 0.0, 10.0 ** np.round(np.log10(1.5 / np.where(deviation > 0.0, deviation, 1.0))), 1.0)
    integers = np.rint(flat * factor)
    modes = [_most_frequent(integers[:, j]) for j in range(flat.shape[1])]
    centres = np.where(deviation > 0.0, np.array(modes) / factor, flat[0])
    return centres.reshape(samples.shape[1:])


def _most_frequent(integers: NDArray[np.float64]) -> float:
    values, counts = np.unique(integers, return_counts=True)
    return float(values[counts.argmax()])


def _precision_modes(samples: FloatArray) -> FloatArray:
    """The binned mode of each precision; the sample next to it where binning has left no positive definite matrix."""
    modes = binned_mode(samples)
    for k, mode in enumerate(modes):
        if np.linalg.eigvalsh(mode)[0] <= 0.0:
            modes[k] = samples[((samples[:, k] - mode) ** 2).sum(axis=(1, 2)).argmin(), k]
    return modes
