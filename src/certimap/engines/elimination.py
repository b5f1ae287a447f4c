"""Exact maximisation of a discrete model of small treewidth, variable by variable (algorithm "elimination").

Eliminating x_i joins the tables that contain it and keeps their maximum over its states: a table over its neighbours.
The largest join has one entry per joint state of a variable and its neighbours at that time, so the cost is known
before the work starts. Small tables are joined first, and the last sum is made and compared state by state, so that a
join is never stored. The order of elimination is the certificate: whoever verifies repeats the maximisation.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from certimap._numeric.rounding import gamma
from certimap.certificate import Certificate
from certimap.engines.ledger import Ledger
from certimap.engines.proof import certify
from certimap.graph.graph import FactorGraph
from certimap.graph.tables import TableModel, TableTerm, as_tables
from certimap.results import StopReason

Floats = NDArray[np.float64]

MOST_WORK = 2**28  # entries of all joins together: some seconds
MOST_ENTRIES = 2**26  # of one join: 256 MB if its variable has two states
MOST_AXES = 60  # numpy's limit is 64


@dataclass(frozen=True)
class Choice:
    """The best state of an eliminated variable for every joint state of its neighbours, the variables of `scope`."""

    scope: tuple[int, ...]
    states: NDArray[np.unsignedinteger]


class Elimination:
    """One solve of one graph; `run` returns why it stopped, None if a limit stopped it without a bound."""

    def __init__(self, graph: FactorGraph, ledger: Ledger, tables: TableModel, order: Sequence[int]) -> None:
        self.graph = graph
        self.ledger = ledger
        self._tables = tables
        self._order = tuple(order)

    @staticmethod
    def of(graph: FactorGraph, ledger: Ledger) -> Elimination | None:
        """The engine, if the model is discrete and cheap enough to eliminate."""
        tables = as_tables(graph.model)
        order = None if tables is None else elimination_order(tables)
        return None if tables is None or order is None else Elimination(graph, ledger, tables, order)

    def run(self) -> StopReason | None:
        tables, ledger = self._tables, self.ledger
        choices: list[Choice] = []
        open_terms = list(tables.terms)
        best = tables.constant
        for variable in self._order:
            if ledger.urgent_reason() is not None:
                return None
            bucket = [t for t in open_terms if variable in t.scope]
            open_terms = [t for t in open_terms if variable not in t.scope]
            message, choice = _maximise(variable, bucket, tables.sizes)
            choices.append(choice)
            if message.scope:
                open_terms.append(message)
            else:
                best += float(message.log_values)
        if best > -math.inf:
            assignment = self.graph.model.pack(self._trace_back(choices))
            ledger.offer(assignment, self.graph.model.value(assignment))
        ledger.prove(best + self._margin() if best > -math.inf else best)
        ledger.record("E", open_nodes=0)
        return ledger.stop_reason() or StopReason.EXHAUSTED

    def certificate(self, conflict: tuple[str, ...] = ()) -> Certificate:
        names = [self._tables.variables[i].name for i in self._order]
        return certify(self.graph, self.ledger, algorithm="elimination", conflict=conflict, details={"order": names})

    def _trace_back(self, choices: Sequence[Choice]) -> dict[str, int]:
        """States in reverse order: each variable takes its best one given those eliminated after it."""
        chosen: dict[int, int] = {}
        for variable, choice in zip(reversed(self._order), reversed(choices), strict=True):
            chosen[variable] = int(choice.states[tuple(chosen[i] for i in choice.scope)])
        variables = self._tables.variables
        return {variables[i].name: variables[i].states[k] for i, k in chosen.items()}

    def _margin(self) -> float:
        """Rounding is monotone, so `best` is the largest of the joint states' values, each summed with its own errors.

        Those of an optimal state are proportional to the sum of |entry|, at most twice the positive maxima of the
        tables less their sum, which no feasible value exceeds. Large negative entries do not count.
        """
        tables = self._tables
        highest = math.fsum(max(0.0, float(t.log_values.max())) for t in tables.terms)
        largest = math.fsum(float(np.abs(t.log_values[t.log_values > -np.inf]).max()) for t in tables.terms)
        magnitude = abs(tables.constant) + min(2.0 * highest + abs(tables.constant) + abs(self.ledger.log_map), largest)
        return 2.0 * gamma(len(tables.terms) + 2 * len(self._order) + 4) * magnitude


def _maximise(variable: int, bucket: Sequence[TableTerm], sizes: Sequence[int]) -> tuple[TableTerm, Choice]:
    """The maximum of the bucket's sum over the states of one variable, and where it is attained."""
    *small, large = sorted(bucket, key=lambda t: t.log_values.size) or [
        TableTerm((variable,), np.zeros(sizes[variable]))
    ]
    near = tuple(sorted({i for t in bucket for i in t.scope} - {variable}))
    scope = (variable, *near)
    parts = [_aligned(t, scope) for t in ([reduce(_sum, small), large] if small else [large])]
    shape = [sizes[i] for i in near]
    best = np.full(shape, -np.inf)
    states = np.zeros(shape, dtype=np.min_scalar_type(sizes[variable]))
    for k in range(sizes[variable]):
        value = parts[0][k] + parts[1][k] if small else parts[0][k]
        np.putmask(states, value > best, k)
        np.maximum(best, value, out=best)
    return TableTerm(near, best), Choice(near, states)


def _sum(a: TableTerm, b: TableTerm) -> TableTerm:
    scope = tuple(sorted({*a.scope, *b.scope}))
    return TableTerm(scope, _aligned(a, scope) + _aligned(b, scope))


def _aligned(t: TableTerm, scope: Sequence[int]) -> Floats:
    """A view with the axes in the order of the scope, of length one where the table does not depend on a variable."""
    inside = [i for i in scope if i in t.scope]
    ordered = t.log_values.transpose([t.scope.index(i) for i in inside])
    return ordered[tuple(slice(None) if i in t.scope else np.newaxis for i in scope)]


def elimination_order(tables: TableModel, most_work: int = MOST_WORK) -> list[int] | None:
    """Always the variable whose join is smallest; None if all joins together have too many entries."""
    sizes = tables.sizes
    neighbours: list[set[int]] = [set() for _ in sizes]
    for t in tables.terms:
        for i in t.scope:
            neighbours[i].update(t.scope)
    for i, near in enumerate(neighbours):
        near.discard(i)

    def entries(i: int) -> int:
        return math.prod((sizes[i], *(sizes[j] for j in neighbours[i])))

    heap = [(entries(i), i) for i in range(len(sizes))]
    heapq.heapify(heap)
    order: list[int] = []
    gone = [False] * len(sizes)
    work = 0
    while heap:
        cost, i = heapq.heappop(heap)
        if gone[i] or cost != entries(i):  # an older entry of the heap
            continue
        work += cost
        if work > most_work or cost > MOST_ENTRIES or len(neighbours[i]) >= MOST_AXES:
            return None
        gone[i] = True
        order.append(i)
        for j in neighbours[i]:
            neighbours[j] |= neighbours[i]
            neighbours[j] -= {i, j}
        for j in neighbours[i]:
            heapq.heappush(heap, (entries(j), j))
    return order
