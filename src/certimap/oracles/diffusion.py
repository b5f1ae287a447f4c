"""Sequential tree-reweighted message passing (TRW-S) over flat arrays; see `messages` for what it is good for.

Visiting a group i, every term f around it hands over all it knows about i: its max-marginals become its message, and
the group sums them with its own costs. The sum is then shared among the terms that reach a later group, with weight
1 / max(number of terms reaching later groups, number reaching earlier ones). Sweeps alternate their direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

DENSE_PAIR, POTTS, LISTED = 0, 1, 2
_ROUND = 5  # sweeps there and back between two looks at the bound
_STALL = 1e-6  # relative progress over a round below which the sweeps stop
BARRED = 1e30  # message entry of a state that a decoded group has not taken; minus it: of one that a term excludes


class Layout(NamedTuple):
    """All terms, flattened. A slot is a variable of a term; its message has one entry per state of its group."""

    kind: NDArray[np.int8]  # by term
    values: Ints  # by term: where its entries begin in `theta`
    listing: Ints  # by term: where its states begin in `states`
    n_entries: Ints  # by term
    first_slot: Ints  # by term, and one past the last
    message: Ints  # by slot: where its entries begin in the message vector, and one past the last
    term: Ints  # by slot
    group: Ints  # by slot
    is_last: Flags  # by slot: no variable of the term belongs to a later group
    is_first: Flags  # by slot: none belongs to an earlier one
    group_start: Ints  # by group: where its entries begin in `unary`, and one past the last
    first_of_group: Ints  # by group: where its slots begin in `slots`, and one past the last
    slots: Ints
    unary: Floats
    theta: Floats
    states: NDArray[np.int32]  # positions within the term's scope, one per variable


@njit(cache=True, nogil=True)
def diffuse(p: Layout, messages: Floats, sweeps: int, best: Ints) -> float:
    """Improve the messages in place, keep the best decoded states in `best`, and return the final bound."""
    n_groups = len(p.group_start) - 1
    states = np.empty(n_groups, np.int64)
    decoding = np.empty(len(messages))
    widest = 1
    for i in range(n_groups):
        widest = max(widest, p.group_start[i + 1] - p.group_start[i])
    total, out = np.empty(widest), np.empty(widest)
    bound, value = dual_bound(p, messages, out), -np.inf
    for sweep in range(sweeps):
        for i in range(n_groups):
            _visit(p, i, messages, True, total, out)
        for i in range(n_groups - 1, -1, -1):
            _visit(p, i, messages, False, total, out)
        if sweep % _ROUND == _ROUND - 1 or sweep == sweeps - 1:
            for x in range(len(messages)):
                decoding[x] = messages[x]
            _decode(p, decoding, states, total, out)
            reached = _objective(p, states)
            if reached > value:
                value = reached
                for i in range(n_groups):
                    best[i] = states[i]
            previous, bound = bound, dual_bound(p, messages, out)
            scale = max(1.0, abs(bound))
            if previous - bound < _STALL * scale or bound - value < _STALL * scale:
                break
    return bound


@njit(cache=True, nogil=True)
def lower_slack(p: Layout, messages: Floats) -> None:
    """Lower every multiplier as far as its term's constant allows: the cuts become tighter everywhere.

    To -BARRED where the term excludes a state altogether.
    """
    longest = 1
    for s in range(len(p.group)):
        longest = max(longest, p.message[s + 1] - p.message[s])
    out = np.empty(longest)
    for f in range(len(p.kind)):
        first = p.first_slot[f]
        _max_marginals(p, first, messages, out)
        constant = -np.inf
        for k in range(p.message[first + 1] - p.message[first]):
            constant = max(constant, out[k] - messages[p.message[first] + k])
        for s in range(first, p.first_slot[f + 1]):
            _max_marginals(p, s, messages, out)
            for k in range(p.message[s + 1] - p.message[s]):
                messages[p.message[s] + k] = max(out[k] - constant, -BARRED)


@njit(cache=True, nogil=True)
def dual_bound(p: Layout, messages: Floats, out: Floats) -> float:
    """sum of the groups' and of the terms' maxima at these messages."""
    bound = 0.0
    for i in range(len(p.group_start) - 1):
        best = -np.inf
        for k in range(p.group_start[i + 1] - p.group_start[i]):
            z = p.unary[p.group_start[i] + k]
            for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
                z += messages[p.message[p.slots[q]] + k]
            best = max(best, z)
        bound += best
    for f in range(len(p.kind)):
        s = p.first_slot[f]
        _max_marginals(p, s, messages, out)
        best = -np.inf
        for k in range(p.message[s + 1] - p.message[s]):
            best = max(best, out[k] - messages[p.message[s] + k])
        bound += best
    return bound


@njit(cache=True, nogil=True)
def _visit(p: Layout, i: int, messages: Floats, forward: bool, total: Floats, out: Floats) -> None:
    """Collect the max-marginals of group i from its terms, and share their sum among the terms that go on."""
    start, size = p.group_start[i], p.group_start[i + 1] - p.group_start[i]
    going_on = coming = 0
    for k in range(size):
        total[k] = p.unary[start + k]
    for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
        s = p.slots[q]
        going_on += not (p.is_last[s] if forward else p.is_first[s])
        coming += not (p.is_first[s] if forward else p.is_last[s])
        _max_marginals(p, s, messages, out)
        for k in range(size):
            messages[p.message[s] + k] = out[k]
            total[k] += out[k]
    weight = 1.0 / max(going_on, coming, 1)
    for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
        s = p.slots[q]
        if not (p.is_last[s] if forward else p.is_first[s]):
            for k in range(size):
                messages[p.message[s] + k] -= weight * total[k]


@njit(cache=True, nogil=True)
def _max_marginals(p: Layout, s: int, messages: Floats, out: Floats) -> None:
    """out[k] = max of theta - (messages of the other slots) over the term's states with state k at slot s."""
    f = p.term[s]
    first, values = p.first_slot[f], p.values[f]
    own, size = p.message[s], p.message[s + 1] - p.message[s]
    for k in range(size):
        out[k] = -np.inf
    if p.kind[f] == DENSE_PAIR:
        other = first if s > first else first + 1
        there, n_there = p.message[other], p.message[other + 1] - p.message[other]
        if s == first:
            for k in range(size):
                for j in range(n_there):
                    out[k] = max(out[k], p.theta[values + k * n_there + j] - messages[there + j])
        else:
            for j in range(n_there):
                for k in range(size):
                    out[k] = max(out[k], p.theta[values + j * size + k] - messages[there + j])
    elif p.kind[f] == POTTS:
        there = p.message[first if s > first else first + 1]
        weight = p.theta[values]
        top, second, at = -np.inf, -np.inf, 0
        for k in range(size):
            z = -messages[there + k]
            if z > top:
                second, top, at = top, z, k
            elif z > second:
                second = z
        for k in range(size):
            out[k] = max(weight - messages[there + k], second if k == at else top)
    else:
        arity = p.first_slot[f + 1] - first
        base, own_position = p.message[first], s - first
        for e in range(p.n_entries[f]):
            row = p.listing[f] + e * arity
            z = p.theta[values + e]
            for d in range(arity):
                z -= messages[base + p.states[row + d]]
            at = base + p.states[row + own_position]
            out[at - own] = max(out[at - own], z + messages[at])


@njit(cache=True, nogil=True)
def _decode(p: Layout, messages: Floats, states: Ints, total: Floats, out: Floats) -> None:
    """Fix group after group at its best state given those before; overwrites the messages."""
    for i in range(len(states)):
        start, size = p.group_start[i], p.group_start[i + 1] - p.group_start[i]
        for k in range(size):
            total[k] = p.unary[start + k]
        for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
            _max_marginals(p, p.slots[q], messages, out)
            for k in range(size):
                total[k] += out[k]
        states[i] = 0
        for k in range(size):
            if total[k] > total[states[i]]:
                states[i] = k
        for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
            for k in range(size):
                messages[p.message[p.slots[q]] + k] = 0.0 if k == states[i] else BARRED


@njit(cache=True, nogil=True)
def _objective(p: Layout, states: Ints) -> float:
    """Costs and terms at a full assignment."""
    value = 0.0
    for i in range(len(states)):
        value += p.unary[p.group_start[i] + states[i]]
    for f in range(len(p.kind)):
        first, last = p.first_slot[f], p.first_slot[f + 1]
        a, b = states[p.group[first]], states[p.group[last - 1]]
        if p.kind[f] == DENSE_PAIR:
            value += p.theta[p.values[f] + a * (p.message[last] - p.message[last - 1]) + b]
        elif p.kind[f] == POTTS:
            value += p.theta[p.values[f]] if a == b else 0.0
        else:
            value += _listed_value(p, f, states)
    return value


@njit(cache=True, nogil=True)
def _listed_value(p: Layout, f: int, states: Ints) -> float:
    first, arity = p.first_slot[f], p.first_slot[f + 1] - p.first_slot[f]
    for e in range(p.n_entries[f]):
        row = p.listing[f] + e * arity
        equal = True
        for d in range(arity):
            here = p.message[first] + p.states[row + d] - p.message[first + d]
            equal = equal and here == states[p.group[first + d]]
        if equal:
            return float(p.theta[p.values[f] + e])
    return -np.inf
