"""What several moves can bring more together than each on its own, bounded pair by pair, for full covariance.

With y~ = (1, y), M~_S = diag(b0, W0^-1) + sum y~ y~' and det M~_S = (b0+n) det M_S, cluster k changes by

    psi(d) - (nu+d)/2 logdet(I + E G),   G_ij = y~_i' M~^-1 y~_j,   E = +1 for points that come, -1 for those that go,

d = sum E, psi the part that depends on the size alone. With P those that come and Q those that leave,

    det(I + E G) >= det(I + G_PP) det(I - G_QQ),
    -logdet(I - G_QQ) = -sum log(1 - G_ii) - logdet(I - X),  X_ij = G_ij / sqrt((1-G_ii)(1-G_jj)),  X_ii = 0,
    -logdet(I - X) <= 2 kappa(rho) sum_{i<j} X_ij^2,  kappa(rho) = (-log(1-rho) - rho)/rho^2,

where no eigenvalue of X is above rho: a row of q points has absolute sum at most (q-1) max |X_ij| (Gershgorin). The
points that come have Y_ij = -G_ij / sqrt((1+G_ii)(1+G_jj)) and no eigenvalue above max G_ii/(1+G_ii) either. What is
left over single moves is linear in pairs: -(E_j/2) log(1 + E_i G_ii) and C E_i E_j with the least or the largest
second difference C of psi. Pairs of large X count as infinite: one of their moves has to be decided first.
"""

import math

import numpy as np
from numpy.typing import NDArray

from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.search.arrays import Instance, State
from certimap.mixture.search.jit import kernel
from certimap.mixture.search.statistics import weight_term

Flags = NDArray[np.bool_]

LEAST_REMAINDER = 1e-12  # of 1 - G_ii of a point in the cluster, which is positive but for rounding
LARGEST_RADIUS = 0.9  # of X: pairs for which it would be larger are decided first


@kernel
def kappa(rho: float) -> float:
    """(-log(1-rho) - rho)/rho^2, 1/2 at 0; rounded up."""
    if rho < 1e-3:
        return 0.5 + 0.5 * rho
    return (-math.log(1.0 - rho) - rho) / (rho * rho) * (1.0 + 1e-9)


@kernel
def size_part(instance: Instance, n: float) -> float:
    """psi up to a linear function: m log(m/Nt) + (D nu/2)(log nu - 1) + (nu/2) log(b0+n)."""
    D = instance.mean.shape[1]
    nu = instance.v + n
    value = weight_term(instance.a0, instance.total_pseudo_weight, n)
    if nu > 0.0:
        value += 0.5 * nu * (D * (math.log(nu) - 1.0) + math.log(instance.b0 + n))
    return value


@kernel
def second_differences(instance: Instance, n: float, q: int) -> tuple[float, float]:
    """Least and largest second difference of psi within q steps of n."""
    low, high = np.inf, -np.inf
    reach = min(q, round(n))
    for d in range(-reach + 1, q):
        around = size_part(instance, n + d - 1.0) + size_part(instance, n + d + 1.0)
        second = around - 2.0 * size_part(instance, n + d)
        low, high = min(low, second), max(high, second)
    return low, high


@kernel
def products(instance: Instance, state: State, square: FloatArray, terms: FloatArray) -> None:
    """G_ij^2 for every cluster, and of every point 1/(1-+G_ii) and log(1-+G_ii)/2: it goes from its own, else comes.

    The state is up to date.
    """
    N, D = instance.mean.shape
    image = np.empty((N, D + 1))
    for k in range(instance.n_clusters):
        for i in range(N):
            image[i, D] = 1.0 / math.sqrt(instance.b0 + state.weight[k])
            for a in range(D):
                t = 0.0
                for b in range(a + 1):
                    t += state.inverse[k, a, b] * (instance.mean[i, b] - state.mean[k, b])
                image[i, a] = t
        for i in range(N):
            for j in range(i + 1):
                t = 0.0
                for a in range(D + 1):
                    t += image[i, a] * image[j, a]
                square[k, i, j] = square[k, j, i] = t * t
                if i == j:
                    factor = 1.0 + t if state.labels[i] != k else max(1.0 - t, LEAST_REMAINDER)
                    terms[k, i, 0] = 1.0 / factor
                    terms[k, i, 1] = 0.5 * math.log(factor)


@kernel
def cluster_constants(
    instance: Instance,
    z: IntArray,
    weight: FloatArray,
    q: int,
    open_moves: Flags,
    square: FloatArray,
    terms: FloatArray,
) -> FloatArray:
    """Per cluster: nu kappa of points that leave and that come, largest X^2 that counts, second differences of psi.

    Of the points of a cluster only those with some open move leave it.
    """
    N, K = open_moves.shape
    constants = np.empty((K, 5))
    limit = (LARGEST_RADIUS / max(1, q - 1)) ** 2
    leaves = np.zeros(N, dtype=np.bool_)
    for i in range(N):
        for k in range(K):
            leaves[i] |= open_moves[i, k]
    for k in range(K):
        leaving, coming, most = 0.0, 0.0, 0.0
        for i in range(N):
            if z[i] != k and not open_moves[i, k]:
                continue
            for j in range(i):
                if z[i] == k and z[j] == k:
                    if not leaves[i] or not leaves[j]:
                        continue
                    x = square[k, i, j] * terms[k, i, 0] * terms[k, j, 0]
                    if x <= limit:
                        leaving = max(leaving, x)
                elif open_moves[i, k] and open_moves[j, k]:
                    coming = max(coming, square[k, i, j] * terms[k, i, 0] * terms[k, j, 0])
            if open_moves[i, k]:
                most = max(most, 1.0 - terms[k, i, 0])  # G_ii/(1+G_ii)
        rho = min((q - 1) * math.sqrt(coming), most)
        largest = instance.v + weight[k] + q
        constants[k, 0] = largest * kappa((q - 1) * math.sqrt(leaving))
        constants[k, 1] = largest * kappa(rho)
        constants[k, 2] = limit
        constants[k, 3], constants[k, 4] = second_differences(instance, weight[k], q)
    return constants


@kernel
def joint_gain(
    z: IntArray,
    i: int,
    b: int,
    j: int,
    c: int,
    square: FloatArray,
    terms: FloatArray,
    constants: FloatArray,
) -> float:
    """Bound on what moving i to b and j to c brings more than both moves on their own, as part of up to q moves."""
    a, d = z[i], z[j]
    extra = 0.0
    if a == d:
        x = square[a, i, j] * terms[a, i, 0] * terms[a, j, 0]
        if x > constants[a, 2]:
            return np.inf
        extra += constants[a, 0] * x + terms[a, i, 1] + terms[a, j, 1] + constants[a, 4]
    if b == c:
        y = square[b, i, j] * terms[b, i, 0] * terms[b, j, 0]
        extra += constants[b, 1] * y - terms[b, i, 1] - terms[b, j, 1] + constants[b, 4]
    if b == d:
        extra += terms[b, i, 1] - terms[b, j, 1] - constants[b, 3]
    if c == a:
        extra += terms[c, j, 1] - terms[c, i, 1] - constants[c, 3]
    return extra
