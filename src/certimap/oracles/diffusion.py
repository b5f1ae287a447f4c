"""Sequential tree-reweighted message passing (TRW-S) over flat arrays; see `messages` for what it is good for.

Visiting a group i, every term f around it hands over all it knows about i: its max-marginals become its message, and
the group sums them with its own costs. The sum is then shared among the terms that reach a later group, with weight
1 / max(number of terms reaching later groups, number reaching earlier ones). Sweeps alternate their direction.

Terms with listed entries keep theta minus all their messages, the reduced entries, so that a max-marginal is a plain
maximum and a new message a plain shift, however many variables the term has. Potts terms need neither. The innermost
kernels are inlined by force: passing all the arrays of the layout would cost more than their work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

DENSE, POTTS, LISTED = 0, 1, 2
BARRED = 1e30  # message entry of a state that a decoded group has not taken; minus it: of one that a term excludes
_ROUND = 5  # sweeps there and back between two looks at the bound
_STALL = 1e-6  # relative progress over a round below which the sweeps stop


class Layout(NamedTuple):
    """All terms, flattened. A slot is a variable of a term; its message has one entry per state of its group."""

    kind: NDArray[np.int8]  # by term
    values: Ints  # by term: where its entries begin in `theta`, and one past the last
    listing: Ints  # by term: where its states begin in `states`
    first_slot: Ints  # by term, and one past the last
    message: Ints  # by slot: where its entries begin in the message vector, and one past the last
    term: Ints  # by slot
    group: Ints  # by slot
    stride: Ints  # by slot: step in a dense table from one of its states to the next
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
    widest = 1
    for i in range(n_groups):
        widest = max(widest, p.group_start[i + 1] - p.group_start[i])
    total, out = np.empty(widest), np.empty(widest)
    reduced, fresh = np.empty(len(p.theta)), np.empty(len(messages))
    _reduce(p, messages, reduced, out)
    bound, value = _bound(p, messages, reduced, out), -np.inf
    for sweep in range(sweeps):
        for i in range(n_groups):
            _visit(p, i, messages, reduced, True, total, fresh, out)
        for i in range(n_groups - 1, -1, -1):
            _visit(p, i, messages, reduced, False, total, fresh, out)
        if sweep % _ROUND == _ROUND - 1 or sweep == sweeps - 1:
            _reduce(p, messages, reduced, out)
            previous, bound = bound, _bound(p, messages, reduced, out)
            _decode(p, messages.copy(), reduced, states, total, out)
            _reduce(p, messages, reduced, out)
            reached = _objective(p, states)
            if reached > value:
                value = reached
                for i in range(n_groups):
                    best[i] = states[i]
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
    out, new = np.empty(longest), np.empty(longest)
    reduced = np.empty(len(p.theta))
    _reduce(p, messages, reduced, out)
    for f in range(len(p.kind)):
        constant = _largest(p, f, messages, reduced, out)
        for s in range(p.first_slot[f], p.first_slot[f + 1]):
            _max_marginals(p, s, messages, reduced, out)
            for k in range(p.message[s + 1] - p.message[s]):
                new[k] = max(out[k] - constant, -BARRED)
            _replace(p, s, new, messages, reduced)


@njit(cache=True, nogil=True)
def _reduce(p: Layout, messages: Floats, reduced: Floats, amount: Floats) -> None:
    """Reduced entries from scratch, free of accumulated rounding."""
    for e in range(len(p.theta)):
        reduced[e] = p.theta[e]
    for s in range(len(p.group)):
        for k in range(p.message[s + 1] - p.message[s]):
            amount[k] = -messages[p.message[s] + k]
        _shift(p, s, amount, reduced)


@njit(cache=True, nogil=True, forceinline=True)
def _replace(p: Layout, s: int, new: Floats, messages: Floats, reduced: Floats) -> None:
    """Give slot s a new message; `new` is left holding the change of the reduced entries."""
    for k in range(p.message[s + 1] - p.message[s]):
        at = p.message[s] + k
        messages[at], new[k] = new[k], messages[at] - new[k]
    _shift(p, s, new, reduced)


@njit(cache=True, nogil=True, forceinline=True)
def _shift(p: Layout, s: int, amount: Floats, reduced: Floats) -> None:
    """Add amount[k] to the reduced entries of the term's states with state k at slot s."""
    f = p.term[s]
    first, last = p.values[f], p.values[f + 1]
    if p.kind[f] == DENSE:
        step, size = p.stride[s], p.message[s + 1] - p.message[s]
        for k in range(size):
            for start in range(first + k * step, last, step * size):
                for e in range(start, start + step):
                    reduced[e] += amount[k]
    elif p.kind[f] == LISTED:
        arity = p.first_slot[f + 1] - p.first_slot[f]
        at = p.listing[f] + s - p.first_slot[f]
        offset = p.message[s] - p.message[p.first_slot[f]]
        for e in range(first, last):
            reduced[e] += amount[p.states[at + (e - first) * arity] - offset]


@njit(cache=True, nogil=True, forceinline=True)
def _max_marginals(p: Layout, s: int, messages: Floats, reduced: Floats, out: Floats) -> None:
    """out[k] = max of theta - (messages of the other slots) over the term's states with state k at slot s."""
    f = p.term[s]
    own, size = p.message[s], p.message[s + 1] - p.message[s]
    first, last = p.values[f], p.values[f + 1]
    if p.kind[f] == POTTS:
        _potts_marginals(p, s, messages, out)
        return
    for k in range(size):
        out[k] = -np.inf
    if p.kind[f] == DENSE:
        step = p.stride[s]
        for k in range(size):
            best = -np.inf
            for start in range(first + k * step, last, step * size):
                for e in range(start, start + step):
                    if reduced[e] > best:
                        best = reduced[e]
            out[k] = best
    else:
        arity = p.first_slot[f + 1] - p.first_slot[f]
        at = p.listing[f] + s - p.first_slot[f]
        offset = own - p.message[p.first_slot[f]]
        for e in range(first, last):
            k = p.states[at + (e - first) * arity] - offset
            out[k] = max(out[k], reduced[e])
    for k in range(size):
        out[k] += messages[own + k]


@njit(cache=True, nogil=True, forceinline=True)
def _potts_marginals(p: Layout, s: int, messages: Floats, out: Floats) -> None:
    """An equal pair gains the weight; an unequal one is led by the best or, at that state, second best of the other."""
    f = p.term[s]
    first = p.first_slot[f]
    there = p.message[first if s > first else first + 1]
    size = p.message[s + 1] - p.message[s]
    weight = p.theta[p.values[f]]
    top, second, at = -np.inf, -np.inf, 0
    for k in range(size):
        z = -messages[there + k]
        if z > top:
            second, top, at = top, z, k
        elif z > second:
            second = z
    for k in range(size):
        out[k] = max(weight - messages[there + k], second if k == at else top)


@njit(cache=True, nogil=True)
def _largest(p: Layout, f: int, messages: Floats, reduced: Floats, out: Floats) -> float:
    """max over the term's states of theta minus all messages."""
    s = p.first_slot[f]
    _max_marginals(p, s, messages, reduced, out)
    best = -np.inf
    for k in range(p.message[s + 1] - p.message[s]):
        best = max(best, out[k] - messages[p.message[s] + k])
    return best


@njit(cache=True, nogil=True)
def _bound(p: Layout, messages: Floats, reduced: Floats, out: Floats) -> float:
    """Sum of the groups' and of the terms' maxima at these messages."""
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
        bound += _largest(p, f, messages, reduced, out)
    return bound


@njit(cache=True, nogil=True)
def _visit(
    p: Layout, i: int, messages: Floats, reduced: Floats, forward: bool, total: Floats, fresh: Floats, out: Floats
) -> None:
    """Collect the max-marginals of group i from its terms, and share their sum among the terms that go on."""
    start, size = p.group_start[i], p.group_start[i + 1] - p.group_start[i]
    going_on = coming = 0
    for k in range(size):
        total[k] = p.unary[start + k]
    for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
        s = p.slots[q]
        going_on += not (p.is_last[s] if forward else p.is_first[s])
        coming += not (p.is_first[s] if forward else p.is_last[s])
        _max_marginals(p, s, messages, reduced, out)
        for k in range(size):
            fresh[p.message[s] + k] = out[k]
            total[k] += out[k]
    weight = 1.0 / max(going_on, coming, 1)
    for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
        s = p.slots[q]
        share = 0.0 if (p.is_last[s] if forward else p.is_first[s]) else weight
        for k in range(size):
            out[k] = fresh[p.message[s] + k] - share * total[k]
        _replace(p, s, out, messages, reduced)


@njit(cache=True, nogil=True)
def _decode(p: Layout, messages: Floats, reduced: Floats, states: Ints, total: Floats, out: Floats) -> None:
    """Fix group after group at its best state given those before; overwrites messages and reduced entries."""
    for i in range(len(states)):
        start, size = p.group_start[i], p.group_start[i + 1] - p.group_start[i]
        for k in range(size):
            total[k] = p.unary[start + k]
        for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
            _max_marginals(p, p.slots[q], messages, reduced, out)
            for k in range(size):
                total[k] += out[k]
        states[i] = 0
        for k in range(size):
            if total[k] > total[states[i]]:
                states[i] = k
        for q in range(p.first_of_group[i], p.first_of_group[i + 1]):
            for k in range(size):
                out[k] = 0.0 if k == states[i] else BARRED
            _replace(p, p.slots[q], out, messages, reduced)


@njit(cache=True, nogil=True)
def _objective(p: Layout, states: Ints) -> float:
    """Costs and terms at a full assignment."""
    value = 0.0
    for i in range(len(states)):
        value += p.unary[p.group_start[i] + states[i]]
    for f in range(len(p.kind)):
        first, last = p.first_slot[f], p.first_slot[f + 1]
        if p.kind[f] == DENSE:
            at = p.values[f]
            for s in range(first, last):
                at += p.stride[s] * states[p.group[s]]
            value += p.theta[at]
        elif p.kind[f] == POTTS:
            value += p.theta[p.values[f]] if states[p.group[first]] == states[p.group[last - 1]] else 0.0
        else:
            value += _listed_value(p, f, states)
    return value


@njit(cache=True, nogil=True)
def _listed_value(p: Layout, f: int, states: Ints) -> float:
    first, arity = p.first_slot[f], p.first_slot[f + 1] - p.first_slot[f]
    for e in range(p.values[f + 1] - p.values[f]):
        row = p.listing[f] + e * arity
        equal = True
        for d in range(arity):
            here = p.message[first] + p.states[row + d] - p.message[first + d]
            equal = equal and here == states[p.group[first + d]]
        if equal:
            return float(p.theta[p.values[f] + e])
    return -np.inf
