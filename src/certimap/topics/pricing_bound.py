"""Kernels of the bound on a box: Lagrangian decomposition into documents, words and the normaliser.

For any t and any weights w of the arcs whose sum over the arcs of group g is -lambda_g - t n_g, every set S of the box
has

    c(S) - lambda(S) <= exp(t - 1) - t V e + sum_f max over x of [h_f(n_f(x)) + sum of the w of the arcs that x takes],

because -phi(y) <= exp(t - 1) - t y; less what documents cost that are missing in any case. Each maximum is a dynamic
program over the token counts that the box allows. The weights and t descend by subgradients; the weight of a group's
first arc is always what the others leave over.

Rounding: no number below has gone through more than `roundings` operations, on quantities whose magnitudes add up to
`magnitude`; the bound is raised by 2^-52 times the product, twice the a-priori error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certimap._numeric.jit import inlined, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.pricing_arrays import Flags, PricingArrays
from certimap.topics.pricing_boxes import FREE, IN, Box

NOTHING = -1e300  # no choice within the box
STALL, SHRINK, LEAST_STEP, INERTIA = 6, 0.6, 0.02, 0.3
PROGRESS = 1e-6
LEAST_T, LARGEST_T = -30.0, 60.0  # a long step must not overflow: without numbers there is no bound


class Scratch(NamedTuple):
    """Weights of the node in hand and the arrays that its bound needs."""

    weight: FloatArray  # per arc
    kept: FloatArray  # the best weights so far
    direction: FloatArray  # per arc
    chosen: Flags  # per arc: what the maximum takes
    arc: IntArray  # free arcs, by factor
    first: IntArray  # where those of a factor begin
    level: IntArray  # per factor: n_f at its maximum
    mean_count: FloatArray  # averages over the iterations
    mean_value: FloatArray
    best: FloatArray  # per factor: its maximum
    gain: FloatArray  # per arc: maximum with the group in, less without
    ahead: FloatArray  # dynamic program
    behind: FloatArray  # (free arcs of a factor + 1, tokens + 1)
    taken: NDArray[np.bool_]


def new_scratch(arrays: PricingArrays) -> Scratch:
    arcs, factors = len(arrays.group), len(arrays.start) - 1
    longest = int(np.diff(arrays.start).max(initial=0)) + 1
    widest = int(np.diff(arrays.table_start).max(initial=1)) + 1
    return Scratch(
        weight=np.zeros(arcs),
        kept=np.zeros(arcs),
        direction=np.zeros(arcs),
        chosen=np.zeros(arcs, dtype=np.int8),
        arc=np.zeros(arcs, dtype=np.int64),
        first=np.zeros(factors + 1, dtype=np.int64),
        level=np.zeros(factors, dtype=np.int64),
        mean_count=np.zeros(factors),
        mean_value=np.zeros(factors),
        best=np.zeros(factors),
        gain=np.zeros(arcs),
        ahead=np.zeros(widest),
        behind=np.zeros((longest, widest)),
        taken=np.zeros((longest, widest), dtype=np.bool_),
    )


@kernel
def gather(arrays: PricingArrays, box: Box, scratch: Scratch) -> int:
    """List the free arcs of every factor; how many there are."""
    k = 0
    for f in range(len(box.low)):
        scratch.first[f] = k
        for arc in range(arrays.start[f], arrays.start[f + 1]):
            if box.status[arrays.group[arc]] == FREE:
                scratch.arc[k] = arc
                k += 1
    scratch.first[len(box.low)] = k
    return k


@kernel
def balance(arrays: PricingArrays, box: Box, scratch: Scratch, prices: FloatArray, t: float) -> float:
    """Give the first arc of every free group what the others leave of -lambda_g - t n_g; the sum over those inside."""
    fixed = 0.0
    for g in range(len(prices)):
        if box.status[g] == FREE:
            rest = -prices[g] - t * arrays.tokens[g]
            for q in range(arrays.arc_start[g] + 1, arrays.arc_start[g + 1]):
                rest -= scratch.weight[arrays.arcs[q]]
            scratch.weight[arrays.arcs[arrays.arc_start[g]]] = rest
        elif box.status[g] == IN:
            fixed -= prices[g] + t * arrays.tokens[g]
    return fixed


@inlined
def maximise_factor(arrays: PricingArrays, box: Box, scratch: Scratch, f: int) -> float:
    """max of h_f(n_f) + sum of weights over the free arcs, with the choice that attains it."""
    at, base = arrays.table_start[f] + box.inside[f], box.inside[f]
    low, high = box.low[f] - base, box.high[f] - base
    begin, end = scratch.first[f], scratch.first[f + 1]
    if begin == end:
        scratch.level[f] = base
        return arrays.table[at] if low <= 0 else NOTHING
    ahead, taken = scratch.ahead, scratch.taken
    ahead[0] = 0.0
    reach = 0
    for k in range(begin, end):
        m, w = arrays.arc_tokens[scratch.arc[k]], scratch.weight[scratch.arc[k]]
        top = min(reach + m, high)
        for s in range(reach + 1, top + 1):
            ahead[s] = NOTHING
        row = taken[k - begin]
        for s in range(top, m - 1, -1):
            with_it = ahead[s - m] + w
            row[s] = with_it > ahead[s]
            if row[s]:
                ahead[s] = with_it
        for s in range(min(m, top + 1)):
            row[s] = False
        reach = max(reach, top)
    best, s = NOTHING, -1
    for n in range(max(low, 0), reach + 1):
        value = ahead[n] + arrays.table[at + n]
        if value > best:
            best, s = value, n
    if best < 0.5 * NOTHING:
        return NOTHING
    scratch.level[f] = base + s
    for k in range(end - 1, begin - 1, -1):
        arc = scratch.arc[k]
        if taken[k - begin, s]:
            scratch.chosen[arc] = 1
            s -= arrays.arc_tokens[arc]
        else:
            scratch.chosen[arc] = 0
    return best


@inlined
def marginals_of_factor(arrays: PricingArrays, box: Box, scratch: Scratch, f: int) -> float:
    """The same maximum, and for every free arc what it is with the group in, less without (`gain`)."""
    at, base = arrays.table_start[f] + box.inside[f], box.inside[f]
    low, high = max(box.low[f] - base, 0), box.high[f] - base
    begin, end = scratch.first[f], scratch.first[f + 1]
    behind, ahead = scratch.behind, scratch.ahead
    rest = box.free[f]
    high = min(high, rest)
    for s in range(high + 1):
        behind[end - begin, s] = arrays.table[at + s] if s >= low else NOTHING
    for k in range(end - 1, begin - 1, -1):
        m, w = arrays.arc_tokens[scratch.arc[k]], scratch.weight[scratch.arc[k]]
        rest -= m
        after, row = behind[k - begin + 1], behind[k - begin]
        for s in range(min(rest, high) + 1):
            row[s] = max(after[s], after[s + m] + w) if s + m <= high else after[s]
    best: float = behind[0, 0]
    if best < 0.5 * NOTHING:
        return NOTHING
    ahead[0] = 0.0
    reach = 0
    for k in range(begin, end):
        arc = scratch.arc[k]
        m, w = arrays.arc_tokens[arc], scratch.weight[arc]
        after = behind[k - begin + 1]
        within = without = NOTHING
        for s in range(reach + 1):
            without = max(without, ahead[s] + after[s])
            if s + m <= high:
                within = max(within, ahead[s] + after[s + m] + w)
        scratch.gain[arc] = within - without
        top = min(reach + m, high)
        for s in range(reach + 1, top + 1):
            ahead[s] = NOTHING
        for s in range(top, m - 1, -1):
            ahead[s] = max(ahead[s], ahead[s - m] + w)
        reach = top
    return best


@kernel
def _missing_documents(arrays: PricingArrays, box: Box) -> float:
    """What every set of the box is charged for documents that it cannot have."""
    possible = 0
    for f in range(arrays.n_documents):
        possible += box.high[f] > 0
    if possible >= arrays.min_documents:
        return 0.0
    return arrays.missing_cost * (arrays.min_documents - possible)


@kernel
def margin_of(arrays: PricingArrays, scratch: Scratch, prices_magnitude: float, free: int, t: float) -> float:
    """What the bound of this node may err by."""
    magnitude: float = arrays.magnitude + prices_magnitude + abs(t) * (arrays.mass + len(arrays.normaliser)) + np.exp(t)
    for k in range(free):
        magnitude += abs(scratch.weight[scratch.arc[k]])
    roundings = len(arrays.start) + 2 * len(arrays.tokens) + len(scratch.behind) + 40
    return roundings * 2.0**-52 * magnitude


@kernel
def descend(
    arrays: PricingArrays,
    box: Box,
    scratch: Scratch,
    prices: FloatArray,
    prices_magnitude: float,
    t: float,
    target: float,
    steps: int,
) -> tuple[float, float]:
    """Subgradient steps on the weights and t until the bound is at most the target; the best bound and its t.

    The best weights are left in `scratch.weight`. -inf: the box holds no set.
    """
    free = gather(arrays, box, scratch)
    factors = len(box.low)
    scratch.mean_count[:] = 0.0
    scratch.mean_value[:] = 0.0
    for k in range(free):
        scratch.direction[scratch.arc[k]] = 0.0
    best, best_t, stall, length, averaged = np.inf, t, 0, 0.6, 0
    missing = _missing_documents(arrays, box)
    for step in range(steps):
        value = balance(arrays, box, scratch, prices, t)
        slope = np.exp(t - 1.0)
        value += slope - t * arrays.mass - missing
        n = 0
        for f in range(factors):
            part = maximise_factor(arrays, box, scratch, f)
            if part == NOTHING:
                return -np.inf, t
            value += part
            if f < arrays.n_documents:
                n += scratch.level[f]
        if 3 * step >= steps or step == 0:
            averaged = 1 if 3 * (step - 1) < steps else averaged + 1
            _average(arrays, scratch, averaged)
        if value < best - PROGRESS:
            best, best_t, stall = value, t, 0
            for k in range(free):
                scratch.kept[scratch.arc[k]] = scratch.weight[scratch.arc[k]]
            if best + margin_of(arrays, scratch, prices_magnitude, free, t) <= target:
                break
        else:
            stall += 1
            if stall == STALL:
                length *= SHRINK
                stall = 0
        change = slope - arrays.mass - n
        norm = _disagreement(arrays, box, scratch) + change * change / max(slope, 1.0)
        if length < LEAST_STEP or not 1e-12 <= norm < 1e100:
            break
        size = length * (value - target) / norm
        for k in range(free):
            arc = scratch.arc[k]
            scratch.weight[arc] -= size * scratch.direction[arc]
        t = min(max(t - size * change / max(slope, 1.0), LEAST_T), LARGEST_T)
    for k in range(free):
        scratch.weight[scratch.arc[k]] = scratch.kept[scratch.arc[k]]
    return best + margin_of(arrays, scratch, prices_magnitude, free, best_t), best_t


@kernel
def _average(arrays: PricingArrays, scratch: Scratch, times: int) -> None:
    """Running means of n_f and h_f(n_f), whose difference from h_f(mean n_f) shows where branching pays."""
    for f in range(len(scratch.level)):
        n = scratch.level[f]
        scratch.mean_count[f] += (n - scratch.mean_count[f]) / times
        scratch.mean_value[f] += (arrays.table[arrays.table_start[f] + n] - scratch.mean_value[f]) / times


@kernel
def _disagreement(arrays: PricingArrays, box: Box, scratch: Scratch) -> float:
    """Direction of every arc: how its factor's choice differs from the mean over the group's arcs; squared norm."""
    norm = 0.0
    for g in range(len(box.status)):
        if box.status[g] != FREE:
            continue
        begin, end = arrays.arc_start[g], arrays.arc_start[g + 1]
        mean = 0.0
        for q in range(begin, end):
            mean += scratch.chosen[arrays.arcs[q]]
        mean /= end - begin
        for q in range(begin, end):
            arc = arrays.arcs[q]
            scratch.direction[arc] = scratch.chosen[arc] - mean + INERTIA * scratch.direction[arc]
            norm += scratch.direction[arc] * scratch.direction[arc]
    return norm


@kernel
def fix_by_bound(
    arrays: PricingArrays,
    box: Box,
    scratch: Scratch,
    prices: FloatArray,
    prices_magnitude: float,
    t: float,
    target: float,
) -> int:
    """Put groups out, or in, without which the bound falls to the target; how many, -1 if that empties the box."""
    free = gather(arrays, box, scratch)
    value = balance(arrays, box, scratch, prices, t) + np.exp(t - 1.0) - t * arrays.mass
    value -= _missing_documents(arrays, box)
    for f in range(len(box.low)):
        part = marginals_of_factor(arrays, box, scratch, f)
        if part == NOTHING:
            return -1
        value += part
    room = target - value - 2.0 * margin_of(arrays, scratch, prices_magnitude, free, t)
    if room >= 0.0:
        return -1
    decided = 0
    for g in range(len(box.status)):
        if box.status[g] != FREE:
            continue
        side = FREE
        for q in range(arrays.arc_start[g], arrays.arc_start[g + 1]):
            gain = scratch.gain[arrays.arcs[q]]
            if gain <= room:  # with the group in, the factor loses at least -gain
                side = -1
            elif -gain <= room:
                side = 1
        if side != FREE:
            box.status[g] = side
            decided += 1
    return decided
