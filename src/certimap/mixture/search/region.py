"""Whether any clustering with at most r moved items is better: depth-first search over the sets of moves.

A node has some moves made and q more to spend on the moves that are still open. Its value is computed from scratch and
every single open move is tried exactly. Of several more moves T, the gain is at most

    sum over T of U_m,   U_m = g_m + (1/2) sum of the q-1 largest w_mm',

g_m the exact gain of m alone and w_mm' >= 0 what two moves can bring more together (`pair_bounds`; infinite where no
bound is known). The open move of largest U is made in a child and then closed for good, until the rest cannot matter. A
node that breaks a constraint has to repair it: one of the moves that could is made next.
"""

import math

import numpy as np

from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.search.arrays import Instance, State
from certimap.mixture.search.descent import evaluate
from certimap.mixture.search.gains import add_soft_gains, move_gains
from certimap.mixture.search.jit import entry, kernel
from certimap.mixture.search.pair_bounds import Flags, cluster_constants, joint_gain, products

PROVED, BETTER, STOPPED = range(3)


@entry
def search_region(
    instance: Instance,
    state: State,
    start: IntArray,
    radius: int,
    margin: float,
    pruned: bool,
    max_work: float,
    done: FloatArray,
) -> int:
    """PROVED if no feasible labels with up to `radius` moved items gain more than the margin; BETTER leaves such labels
    in the state, STOPPED says nothing. `done` receives nodes and work, in steps of the innermost loops.
    """
    K = instance.n_clusters
    N, D = instance.mean.shape
    deep = max(1, radius - 1) if pruned else 1
    square = np.empty((deep, K, N, N)) if pruned else np.empty((1, 1, 1, 1))
    terms = np.empty((deep, K, N, 2))
    weight = np.empty((radius, K))
    labels = np.empty((radius, N), dtype=np.int64)
    open_moves = np.zeros((radius, N, K), dtype=np.bool_)
    needed = np.ones((radius, N, K), dtype=np.bool_)
    gain = np.empty((radius, N, K))
    value = np.empty(radius)
    broken = np.zeros(radius, dtype=np.bool_)
    bound = np.empty((N, K))
    labels[0] = start
    for i in range(N):
        for k in range(K):
            open_moves[0, i, k] = k != start[i] and instance.fixed[i] < 0
    depth, entering = 0, True
    target = math.inf
    while depth >= 0:
        q = radius - depth
        z, moves = labels[depth], open_moves[depth]
        if entering:
            entering = False
            done[0] += 1.0
            done[1] += float(N * K * (D + 1) ** 2)
            if pruned and q > 1:
                done[1] += 0.5 * K * N * N * (D + 1)
            if done[1] > max_work:
                return STOPPED
            for i in range(N):
                state.labels[i] = z[i]
            value[depth] = evaluate(instance, state)
            if depth == 0:
                target = value[0] + margin
            broken[depth] = _needed_moves(instance, state, moves, needed[depth])
            _gains(instance, state, moves, gain[depth])
            if _single(instance, state, moves, needed[depth], gain[depth], target - value[depth]):
                return BETTER
            if q > 1:
                weight[depth] = state.weight[:K]
                if pruned:
                    products(instance, state, square[depth], terms[depth])
        if q == 1:
            depth -= 1
            continue
        if pruned:
            done[1] += float((N * (K - 1)) ** 2)
            constants = cluster_constants(instance, z, weight[depth], q, moves, square[depth], terms[depth])
            _bounds(instance, z, q, moves, gain[depth], square[depth], terms[depth], constants, bound)
        else:
            bound[:, :] = np.inf
        item, cluster = _next_move(moves, needed[depth], broken[depth], bound, q, target - value[depth])
        if item < 0:
            depth -= 1
            continue
        moves[item, cluster] = False
        labels[depth + 1] = z
        labels[depth + 1, item] = cluster
        open_moves[depth + 1] = moves
        open_moves[depth + 1, item, :] = False
        depth += 1
        entering = True
    return PROVED


@kernel
def _gains(instance: Instance, state: State, moves: Flags, gain: FloatArray) -> None:
    """Exact gains of the open moves."""
    for i in range(len(moves)):
        if moves[i].any():
            move_gains(instance, state, i, gain[i])
            add_soft_gains(instance, state.labels, i, gain[i])


@kernel
def _needed_moves(instance: Instance, state: State, moves: Flags, needed: Flags) -> bool:
    """Whether a constraint is broken; `needed` marks moves one of which has to be made then, else all."""
    N, K = moves.shape
    for k in range(K):
        if instance.min_size <= state.points[k] <= instance.max_size:
            continue
        for i in range(N):
            for c in range(K):
                leaves = state.points[k] > instance.max_size and state.labels[i] == k
                needed[i, c] = leaves or (state.points[k] < instance.min_size and c == k)
        return True
    for i in range(N):
        for e in range(instance.conflict_start[i], instance.conflict_start[i + 1]):
            j = instance.conflict_items[e]
            if state.labels[j] == state.labels[i]:
                needed[:, :] = False
                needed[i, :] = True
                needed[j, :] = True
                return True
    needed[:, :] = True
    return False


@kernel
def _single(instance: Instance, state: State, moves: Flags, needed: Flags, gain: FloatArray, least: float) -> bool:
    """Look for a feasible single move, or none, that gains more than `least`; it is left in the labels."""
    N, K = moves.shape
    scratch = np.ones((N, K), dtype=np.bool_)
    if least < 0.0 and not _needed_moves(instance, state, moves, scratch):
        return True
    for i in range(N):
        source = state.labels[i]
        for k in range(K):
            if not (moves[i, k] and needed[i, k] and gain[i, k] > least):
                continue
            state.labels[i] = k
            state.points[source] -= instance.points[i]
            state.points[k] += instance.points[i]
            if not _needed_moves(instance, state, moves, scratch):
                return True
            state.labels[i] = source
            state.points[source] += instance.points[i]
            state.points[k] -= instance.points[i]
    return False


@kernel
def _bounds(
    instance: Instance,
    z: IntArray,
    q: int,
    moves: Flags,
    gain: FloatArray,
    square: FloatArray,
    terms: FloatArray,
    constants: FloatArray,
    bound: FloatArray,
) -> None:
    """U of every open move."""
    N, K = moves.shape
    best = np.empty(q - 1)
    linked = len(instance.soft_items) > 0
    for i in range(N):
        for b in range(K):
            if not moves[i, b]:
                continue
            best[:] = 0.0
            for j in range(N):
                if j == i:
                    continue
                most = 0.0
                for c in range(K):
                    if moves[j, c]:
                        extra = joint_gain(z, i, b, j, c, square, terms, constants)
                        if linked:  # handing over an instance costs more than all the rest
                            extra += _soft_joint_gain(instance, z, i, b, j, c)
                        most = max(most, extra)
                _keep_largest(best, most)
            bound[i, b] = gain[i, b] + 0.5 * best.sum()


@kernel
def _keep_largest(best: FloatArray, value: float) -> None:
    """Put a value among the largest so far, which stand in falling order, if it is one of them."""
    place = len(best) - 1
    if value <= best[place]:
        return
    while place > 0 and value > best[place - 1]:
        best[place] = best[place - 1]
        place -= 1
    best[place] = value


@kernel
def _soft_joint_gain(instance: Instance, z: IntArray, i: int, b: int, j: int, c: int) -> float:
    """What the soft links between two items gain by both moves more than by each alone."""
    total = 0.0
    for e in range(instance.soft_start[i], instance.soft_start[i + 1]):
        if instance.soft_items[e] == j:
            pairs = int(b == c) - int(b == z[j]) - int(z[i] == c) + int(z[i] == z[j])
            total += instance.soft_gain[e] * pairs
    return total


@kernel
def _next_move(moves: Flags, needed: Flags, broken: bool, bound: FloatArray, q: int, least: float) -> tuple[int, int]:
    """The open (and needed) move of largest U; (-1, -1) if no set of up to q moves with such a one gains more."""
    N, K = moves.shape
    item, cluster, largest = -1, -1, -np.inf
    best = np.zeros(q)
    for i in range(N):
        top = 0.0
        for k in range(K):
            if moves[i, k]:
                top = max(top, bound[i, k])
                if needed[i, k] and (item < 0 or bound[i, k] > largest):
                    item, cluster, largest = i, k, bound[i, k]
        _keep_largest(best, top)
    # Where a constraint is broken, the needed move comes with any others; else it is the first of them itself.
    total = largest + best[: q - 1].sum() if broken else best.sum()
    return (item, cluster) if item >= 0 and total > least else (-1, -1)
