"""One sweep after another of the mixture's Gibbs sampler, compiled.

With n, ybar and S the number, mean and scatter of a cluster's points, b = b0+n and nu = nu0+n the conditionals are

    pi | z        ~ Dirichlet(a0 + n_1, ..., a0 + n_K)
    Lambda_k | z  ~ Wishart(V^-1, nu),   V = W0^-1 + S + (b0 n / b) (ybar-m0)(ybar-m0)'
    mu_k | Lambda_k, z ~ Normal((b0 m0 + n ybar) / b, (b Lambda_k)^-1)
    z_i | rest    ~ pi_k N(y_i; mu_k, Lambda_k^-1) up to a factor.

Bartlett: with V = C C' and A lower triangular, A_jj^2 ~ chi2(nu - j) and A_jl ~ N(0, 1), the matrix G = A' C^-1 gives
Lambda = G'G, logdet Lambda = 2 sum_j (log A_jj - log C_jj) and mu = mean + G^-1 noise / sqrt(b).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certimap._numeric.jit import entry, kernel


@entry
def sample_chain(
    Y: Any, z: Any, a0: float, b0: float, m0: Any, nu0: float, W0_inverse: Any, iterations: int, rng: Any, out: Any
) -> None:
    """Sweep `iterations` times from labels z; `out` = (weights, means, roots G, labels), one entry per sweep."""
    weights, means, roots, labels = out
    N, D = Y.shape
    K = weights.shape[1]
    count, total, V = np.zeros(K), np.zeros((K, D)), np.zeros((D, D))
    C, A = np.zeros((D, D)), np.zeros((D, D))
    constant, residual, score = np.zeros(K), np.zeros(D), np.zeros(K)
    for t in range(iterations):
        _sums(Y, z, count, total)
        _sample_weights(rng, count, a0, weights[t])
        for k in range(K):
            _scale_matrix(Y, z, k, count[k], total[k], b0, m0, W0_inverse, V)
            half_log_determinant = _sample_root(rng, V, nu0 + count[k], C, A, roots[t, k])
            _sample_mean(rng, C, A, count[k], total[k], b0, m0, residual, means[t, k])
            constant[k] = math.log(max(weights[t, k], 1e-300)) + half_log_determinant
        for i in range(N):
            for k in range(K):
                score[k] = constant[k] - 0.5 * _squared_distance(roots[t, k], Y[i], means[t, k], residual)
            z[i] = _draw(rng, score)
            labels[t, i] = z[i]


@kernel
def _sums(Y: Any, z: Any, count: Any, total: Any) -> None:
    count[:] = 0.0
    total[:] = 0.0
    for i in range(len(Y)):
        count[z[i]] += 1.0
        total[z[i]] += Y[i]


@kernel
def _sample_weights(rng: Any, count: Any, a0: float, weights: Any) -> None:
    for k in range(len(count)):
        weights[k] = rng.standard_gamma(a0 + count[k])
    weights /= weights.sum()


@kernel
def _scale_matrix(Y: Any, z: Any, k: int, n: float, total: Any, b0: float, m0: Any, W0_inverse: Any, V: Any) -> None:
    """V, the scatter taken about the mean so that nothing cancels."""
    D = len(m0)
    V[:] = W0_inverse
    if n == 0.0:
        return
    for i in range(len(Y)):
        if z[i] == k:
            for a in range(D):
                for b in range(a + 1):
                    V[a, b] += (Y[i, a] - total[a] / n) * (Y[i, b] - total[b] / n)
    for a in range(D):
        for b in range(a + 1):
            V[a, b] += b0 * n / (b0 + n) * (total[a] / n - m0[a]) * (total[b] / n - m0[b])


@kernel
def _sample_root(rng: Any, V: Any, nu: float, C: Any, A: Any, G: Any) -> float:
    """Draw A and with it G; returns logdet Lambda / 2. Only the lower triangle of V is read."""
    D = len(V)
    half = 0.0
    for i in range(D):
        for j in range(i + 1):
            rest = V[i, j]
            for m in range(j):
                rest -= C[i, m] * C[j, m]
            C[i, j] = math.sqrt(rest) if i == j else rest / C[j, j]
    for j in range(D):
        A[j, j] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (nu - j)))
        half += math.log(A[j, j]) - math.log(C[j, j])
        for m in range(j):
            A[j, m] = rng.standard_normal()
    for i in range(D):
        # Row i of G solves g C = (row i of A'), from the right.
        for j in range(D - 1, -1, -1):
            rest = A[j, i] if j >= i else 0.0
            for m in range(j + 1, D):
                rest -= G[i, m] * C[m, j]
            G[i, j] = rest / C[j, j]
    return half


@kernel
def _sample_mean(rng: Any, C: Any, A: Any, n: float, total: Any, b0: float, m0: Any, shift: Any, mean: Any) -> None:
    """(b0 m0 + sum y)/b + G^-1 noise / sqrt(b), with G^-1 noise = C (A')^-1 noise."""
    D = len(m0)
    for j in range(D - 1, -1, -1):
        rest = rng.standard_normal()
        for m in range(j + 1, D):
            rest -= A[m, j] * shift[m]
        shift[j] = rest / A[j, j]
    for a in range(D):
        step = 0.0
        for m in range(a + 1):
            step += C[a, m] * shift[m]
        mean[a] = (b0 * m0[a] + total[a] + math.sqrt(b0 + n) * step) / (b0 + n)


@kernel
def _squared_distance(G: Any, y: Any, mean: Any, residual: Any) -> float:
    D = len(y)
    for a in range(D):
        residual[a] = y[a] - mean[a]
    square = 0.0
    for a in range(D):
        entry_a = 0.0
        for b in range(D):
            entry_a += G[a, b] * residual[b]
        square += entry_a * entry_a
    return square


@kernel
def _draw(rng: Any, score: Any) -> int:
    """An index with probability proportional to exp(score)."""
    largest = score.max()
    total = 0.0
    for k in range(len(score)):
        total += math.exp(score[k] - largest)
    left = rng.random() * total
    for k in range(len(score)):
        left -= math.exp(score[k] - largest)
        if left < 0.0:
            return k
    return len(score) - 1
