"""Kernels that look for sets of large value c(S) - lambda(S): annealing and climbing by single changes.

They prove nothing. Single changes alone end in poor optima, tens of nats below the best set; annealed first, they find
what certified pricing would need a long search for.
"""

from __future__ import annotations

import numpy as np

from certimap._numeric.jit import entry, inlined, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.pricing_arrays import Flags, PricingArrays


@entry
def anneal(
    arrays: PricingArrays,
    prices: FloatArray,
    columns: Flags,
    values: FloatArray,
    rng: np.random.Generator,
    sweeps: int,
    hottest: float,
    coldest: float,
) -> None:
    """Anneal columns of 0 and 1 in place from the temperature `hottest` to `coldest`, then climb; their values.

    A column that violates the rules gets -inf.
    """
    groups = len(prices)
    count = np.zeros(len(arrays.start) - 1, dtype=np.int64)
    cooling = (coldest / hottest) ** (1.0 / max(1, sweeps - 1))
    for row in range(len(columns)):
        x = columns[row]
        n, documents = _recount(arrays, x, count)
        temperature = hottest
        for _ in range(sweeps):
            for _ in range(groups):
                g = int(rng.random() * groups)
                gain, lost = _gain(arrays, prices, x, count, n, g)
                refused = gain < 0.0 and rng.random() >= np.exp(gain / temperature)
                if not refused and _may_change(arrays, x, g, documents, lost):
                    n, documents = _change(arrays, x, count, n, documents, g)
            temperature *= cooling
        values[row] = climb_one(arrays, prices, x, count)


@kernel
def climb_one(arrays: PricingArrays, prices: FloatArray, x: Flags, count: IntArray) -> float:
    """Single changes that improve c(S) - lambda(S) until none does, in place; -inf where the rules are violated.

    `count` is scratch, n_f.
    """
    n, documents = _recount(arrays, x, count)
    changed = True
    while changed:
        changed = False
        for g in range(len(x)):
            gain, lost = _gain(arrays, prices, x, count, n, g)
            if gain > 1e-9 * (1.0 + abs(prices[g])) and _may_change(arrays, x, g, documents, lost):
                n, documents = _change(arrays, x, count, n, documents, g)
                changed = True
    value: float = -arrays.normaliser[n]
    if documents < arrays.min_documents:
        value -= arrays.missing_cost * (arrays.min_documents - documents)
    for f in range(len(count)):
        value += arrays.table[arrays.table_start[f] + count[f]]
    for g in range(len(x)):
        if x[g] == 1:
            value -= prices[g]
    return value


@kernel
def _recount(arrays: PricingArrays, x: Flags, count: IntArray) -> tuple[int, int]:
    """Tokens and documents of a set, its n_f in `count`; groups that are apart from an earlier one leave it."""
    count[:] = 0
    n = documents = 0
    for g in range(len(x)):
        if x[g] == 1 and _clashes(arrays, x, g):
            x[g] = 0
        if x[g] == 1:
            n += arrays.tokens[g]
            for q in range(arrays.arc_start[g], arrays.arc_start[g + 1]):
                count[arrays.factor[arrays.arcs[q]]] += arrays.arc_tokens[arrays.arcs[q]]
    for f in range(arrays.n_documents):
        documents += count[f] > 0
    return n, documents


@inlined
def _gain(arrays: PricingArrays, prices: FloatArray, x: Flags, count: IntArray, n: int, g: int) -> tuple[float, int]:
    """What the change of g is worth but for missing documents, and how many documents it takes the last tokens of."""
    sign = -1 if x[g] == 1 else 1
    gain = arrays.normaliser[n] - arrays.normaliser[n + sign * arrays.tokens[g]] - sign * prices[g]
    lost = 0
    for q in range(arrays.arc_start[g], arrays.arc_start[g + 1]):
        arc = arrays.arcs[q]
        f, m = arrays.factor[arc], arrays.arc_tokens[arc]
        at = arrays.table_start[f] + count[f]
        gain += arrays.table[at + sign * m] - arrays.table[at]
        lost += f < arrays.n_documents and sign < 0 and count[f] == m
    return gain, lost


@inlined
def _may_change(arrays: PricingArrays, x: Flags, g: int, documents: int, lost: int) -> bool:
    if x[g] == 1:
        return lost == 0 or documents - lost >= arrays.min_documents or arrays.missing_cost < np.inf
    return not _clashes(arrays, x, g)


@inlined
def _change(arrays: PricingArrays, x: Flags, count: IntArray, n: int, documents: int, g: int) -> tuple[int, int]:
    """Take g in or out; tokens and documents afterwards."""
    sign = -1 if x[g] == 1 else 1
    x[g] = 1 - x[g]
    after = documents
    for q in range(arrays.arc_start[g], arrays.arc_start[g + 1]):
        arc = arrays.arcs[q]
        f = arrays.factor[arc]
        before = int(count[f] > 0)
        count[f] += sign * arrays.arc_tokens[arc]
        if f < arrays.n_documents:
            after += int(count[f] > 0) - before
    return n + sign * arrays.tokens[g], after


@inlined
def _clashes(arrays: PricingArrays, x: Flags, g: int) -> bool:
    """Whether x holds another group that is apart from g."""
    clashes = False
    for q in range(arrays.foe_start[g], arrays.foe_start[g + 1]):
        clashes |= x[arrays.foes[q]] == 1
    return clashes
