"""Kernels of the pricing tree: boxes of token counts, and what they say about the groups.

A box holds the sets S with L_f <= n_f <= U_f for every factor that contain the groups of status IN and none of status
OUT. Where no set is worth more than the best one by more than `slack` (0 when the best set is looked for), a set that a
single change improves by more than that need not be looked at. h_f and phi are convex, so that over a box

- g in S gains at most  sum_f [h_f(U_f) - h_f(U_f - n_gf)] - [phi(n + V e) - phi(n - n_g + V e)] - lambda_g  at the
  smallest n: below -slack, g is out;
- g not in S would gain at least  sum_f [h_f(L_f + n_gf) - h_f(L_f)] - [phi(n + n_g + V e) - phi(n + V e)] - lambda_g
  at the largest n: above slack, g is in, unless a group of S is apart from it.

A jump of h_f between 0 tokens and one adds its height to what is gained where tokens besides those of g may or may not
be there. Where topics need a number of documents, leaving costs what the documents of g may then be missed for: g may
leave for nothing only if enough documents stay in any case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certimap._numeric.jit import inlined, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.pricing_arrays import Flags, PricingArrays

OUT, FREE, IN = -1, 0, 1
ROUNDS = 20


class Box(NamedTuple):
    """A node in the making: status of the groups, limits of the factors, tokens that are in or free per factor."""

    status: Flags
    low: IntArray
    high: IntArray
    inside: IntArray
    free: IntArray


def new_box(arrays: PricingArrays) -> Box:
    """The box of all sets."""
    factors = len(arrays.start) - 1
    high = np.diff(arrays.table_start) - 1
    zero = np.zeros(factors, dtype=np.int64)
    return Box(np.zeros(len(arrays.tokens), dtype=np.int8), zero, high, zero.copy(), zero.copy())


@kernel
def put(arrays: PricingArrays, box: Box, g: int, side: int) -> bool:
    """Decide a free group, and with one that is in its foes; False if one of them is in as well."""
    _settle(arrays, box, g, side)
    if side == IN:
        for q in range(arrays.foe_start[g], arrays.foe_start[g + 1]):
            other = arrays.foes[q]
            if box.status[other] == IN:
                return False
            if box.status[other] == FREE:
                _settle(arrays, box, other, OUT)
    return True


@kernel
def _settle(arrays: PricingArrays, box: Box, g: int, side: int) -> None:
    box.status[g] = side
    for q in range(arrays.arc_start[g], arrays.arc_start[g + 1]):
        arc = arrays.arcs[q]
        box.free[arrays.factor[arc]] -= arrays.arc_tokens[arc]
        if side == IN:
            box.inside[arrays.factor[arc]] += arrays.arc_tokens[arc]


@kernel
def _recount(arrays: PricingArrays, box: Box) -> bool:
    """Tokens in and free, and the limits that follow from them; False if they contradict each other."""
    for f in range(len(box.low)):
        inside = free = 0
        for arc in range(arrays.start[f], arrays.start[f + 1]):
            status = box.status[arrays.group[arc]]
            if status == IN:
                inside += arrays.arc_tokens[arc]
            elif status == FREE:
                free += arrays.arc_tokens[arc]
        box.inside[f], box.free[f] = inside, free
        box.low[f] = max(box.low[f], inside)
        box.high[f] = min(box.high[f], inside + free)
        if box.low[f] > box.high[f]:
            return False
    for g in range(len(box.status)):
        if box.status[g] == IN:
            for q in range(arrays.foe_start[g], arrays.foe_start[g + 1]):
                other = arrays.foes[q]
                if box.status[other] == IN:
                    return False
                if box.status[other] == FREE:
                    _settle(arrays, box, other, OUT)
    return True


@kernel
def _totals(arrays: PricingArrays, box: Box) -> tuple[int, int, int, int]:
    """Least and largest n, and the documents that are in for certain and possibly."""
    D = arrays.n_documents
    low = high = word_low = word_high = certain = possible = 0
    for f in range(len(box.low)):
        if f < D:
            low += box.low[f]
            high += box.high[f]
            certain += box.low[f] > 0
            possible += box.high[f] > 0
        elif f < arrays.n_counted:
            word_low += box.low[f]
            word_high += box.high[f]
    return max(low, word_low), min(high, word_high), certain, possible


@inlined
def _gains(
    arrays: PricingArrays, box: Box, prices: FloatArray, g: int, low: int, high: int
) -> tuple[float, float, bool, bool, int]:
    """The most that g in S gains, the least that g would gain, whether g cannot be in or cannot be out; documents."""
    tokens, last = arrays.tokens[g], len(arrays.normaliser) - 1
    least_n = max(low, tokens)
    most_n = min(high, last - tokens)
    most = -prices[g] - (arrays.normaliser[least_n] - arrays.normaliser[least_n - tokens])
    least = -prices[g] - (arrays.normaliser[most_n + tokens] - arrays.normaliser[most_n])
    never = always = False
    documents = 0
    for q in range(arrays.arc_start[g], arrays.arc_start[g + 1]):
        arc = arrays.arcs[q]
        f, m = arrays.factor[arc], arrays.arc_tokens[arc]
        at, size = arrays.table_start[f], arrays.table_start[f + 1] - arrays.table_start[f] - 1
        documents += f < arrays.n_documents
        if box.inside[f] + m > box.high[f]:
            never = True
        if box.inside[f] + box.free[f] - m < box.low[f]:
            always = True
        top, bottom = max(box.high[f], m), min(box.low[f], size - m)
        most += arrays.table[at + top] - arrays.table[at + top - m]
        least += arrays.table[at + bottom + m] - arrays.table[at + bottom]
        jump = arrays.jump[f]
        if jump != 0.0:
            alone = box.inside[f] == 0
            most -= jump * (top == m) - max(jump, 0.0) * alone
            least -= jump * (bottom == 0) - min(jump, 0.0) * alone
    return most, least, never, always, documents


@kernel
def contract(arrays: PricingArrays, box: Box, prices: FloatArray, slack: float, margin: float) -> bool:
    """Decide what the rules decide until nothing changes; False if the box holds no set that matters."""
    for _ in range(ROUNDS):
        if not _recount(arrays, box):
            return False
        changed = False
        low, high, certain, possible = _totals(arrays, box)
        if low > high or (possible < arrays.min_documents and arrays.missing_cost == np.inf):
            return False
        for g in range(len(box.status)):
            if box.status[g] != FREE:
                continue
            most, least, never, always, documents = _gains(arrays, box, prices, g, low, high)
            missing = min(documents, arrays.min_documents - (certain - documents)) if arrays.min_documents else 0
            if missing > 0:
                most += missing * arrays.missing_cost
            if never or most < -slack - margin:
                if always:
                    return False
                put(arrays, box, g, OUT)
                changed = True
            elif always or (least > slack + margin and _is_welcome(arrays, box, g)):
                if not put(arrays, box, g, IN):
                    return False
                changed = True
        if not changed:
            return True
    return _recount(arrays, box)


@inlined
def _is_welcome(arrays: PricingArrays, box: Box, g: int) -> bool:
    """Whether no group that might be in is apart from g."""
    welcome = True
    for q in range(arrays.foe_start[g], arrays.foe_start[g + 1]):
        welcome &= box.status[arrays.foes[q]] == OUT
    return welcome
