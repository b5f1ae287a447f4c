"""Coarser blocks without being asked: short cycles of pairwise factors, bounded together.

The edges of a tree bound as well one by one as together; a cycle bounds better. Windows are grown from chordless
triangles and squares (on a grid, every other square: a checkerboard), share no factor, and leave the user's own blocks
alone. Factors within the scope of another block join it, which costs no joint states.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

from certimap.graph.blocks import joint_size
from certimap.graph.compile import with_blocks
from certimap.graph.graph import FactorGraph
from certimap.model.expressions import Variable
from certimap.model.factors import Potts, SparseTable, Table

Edge = tuple[int, int]  # positions of two variables, the smaller first
Cycle = tuple[int, ...]

_LONGEST = 12  # cycles longer than this tighten little and have many joint states


def coarsen(graph: FactorGraph, max_states: int = 4096, level: int = 1) -> FactorGraph | None:
    """The same problem with windows as blocks; None when there is no cycle to gain from."""
    windows = cyclic_windows(graph, max_states, level)
    if windows is None:
        return None
    names = dict(zip(graph.blocks, graph.private, strict=True))
    return with_blocks(graph, windows, [names.get(members, ()) for members in windows])


def cyclic_windows(graph: FactorGraph, max_states: int = 4096, level: int = 1) -> list[tuple[int, ...]] | None:
    """A grouping of the graph's block factors into windows of at most `max_states` joint states.

    Every factor of `graph.blocks` is in exactly one of the blocks returned. Level 1 makes single short cycles; level 2
    grows each by neighbouring cycles as far as `max_states` allows. None when no two blocks could be joined.
    """
    pairs = _Pairs(graph)
    hosts = _absorb_into_tables(graph, pairs, max_states)
    windows = _short_cycles(pairs, max_states, grow=level > 1) or _longer_cycles(pairs, max_states)
    grouped = []
    for window in windows:
        chords = pairs.free.intersection(_edges_within(window.variables))
        pairs.free -= chords
        grouped.append(pairs.factors_of(window.edges | chords))
    parallel = (e for e in sorted(pairs.free) if len(pairs.factors[e]) > 1 and pairs.joint(e) <= max_states)
    grouped.extend(pairs.factors_of({e}) for e in parallel)
    if not grouped and not any(hosts.values()):
        return None
    taken = {f for members in grouped for f in members} | {f for extra in hosts.values() for f in extra}
    kept = [
        (*members, *hosts.get(members, ())) for members in graph.blocks if len(members) > 1 or members[0] not in taken
    ]
    return kept + grouped


class _Pairs:
    """The graph of variables whose edges are pairwise factors outside the user's own blocks."""

    def __init__(self, graph: FactorGraph) -> None:
        variables = list(graph.model.variables.values())
        self.position: dict[Variable, int] = {v: i for i, v in enumerate(variables)}
        self.sizes: dict[int, int] = {}
        self.factors: dict[Edge, list[int]] = {}
        self.neighbours: dict[int, set[int]] = {}
        for members, private in zip(graph.blocks, graph.private, strict=True):
            f = graph.factors[members[0]]
            if len(members) == 1 and not private and isinstance(f, Table | SparseTable | Potts) and len(f.scope) == 2:
                a, b = (self.position[v] for v in f.scope)
                self.sizes.update({self.position[v]: len(v.states) for v in f.scope})
                self.factors.setdefault(_edge(a, b), []).append(members[0])
                self.neighbours.setdefault(a, set()).add(b)
                self.neighbours.setdefault(b, set()).add(a)
        self.free = set(self.factors)  # edges not yet in a window

    def factors_of(self, edges: set[Edge]) -> tuple[int, ...]:
        return tuple(sorted(f for e in edges for f in self.factors[e]))

    def joint(self, variables: set[int] | Cycle) -> int:
        return math.prod(self.sizes[v] for v in variables)

    def faces(self, edge: Edge, usable: set[Edge]) -> Iterator[Cycle]:
        """Chordless triangles, then squares, through the edge whose edges are all usable, in a fixed order."""
        a, b = edge
        for c in sorted(self.neighbours[a] & self.neighbours[b]):
            if _edge(a, c) in usable and _edge(b, c) in usable:
                yield a, b, c
        for c in sorted(self.neighbours[b] - self.neighbours[a] - {a}):
            if _edge(b, c) in usable:
                for d in sorted(self.neighbours[a] & self.neighbours[c] - self.neighbours[b] - {b}):
                    if _edge(c, d) in usable and _edge(a, d) in usable:
                        yield a, b, c, d


class _Window:
    """A connected set of cycles."""

    def __init__(self, cycle: Cycle) -> None:
        self.variables = set(cycle)
        self.edges = _edges(cycle)

    def add(self, cycle: Cycle) -> None:
        self.variables.update(cycle)
        self.edges |= _edges(cycle)


def _short_cycles(pairs: _Pairs, max_states: int, grow: bool) -> list[_Window]:
    """Triangles first, then squares, each taken if none of its edges is; grown at once if asked for."""
    windows = []
    for length in (3, 4):
        for edge in sorted(pairs.factors):
            if edge not in pairs.free:
                continue
            fitting = (c for c in pairs.faces(edge, pairs.free) if len(c) == length and pairs.joint(c) <= max_states)
            cycle = next(fitting, None)
            if cycle is not None:
                window = _Window(cycle)
                pairs.free -= window.edges
                if grow:
                    _grow(window, edge[0], pairs, max_states)
                windows.append(window)
    return windows


def _grow(window: _Window, centre: int, pairs: _Pairs, max_states: int) -> None:
    """Add neighbouring cycles: first those that add fewest joint states, then those nearest to where it began."""
    distance = _distances(centre, pairs)
    while True:
        usable = pairs.free | window.edges
        candidates = []
        for edge in sorted(window.edges):
            for cycle in pairs.faces(edge, usable):
                added = pairs.joint(set(cycle) - window.variables)
                if not _edges(cycle) <= window.edges and added * pairs.joint(window.variables) <= max_states:
                    candidates.append((added, max(distance[v] for v in cycle), tuple(sorted(cycle)), cycle))
        if not candidates:
            return
        window.add(min(candidates)[-1])
        pairs.free -= window.edges


def _longer_cycles(pairs: _Pairs, max_states: int) -> list[_Window]:
    """Disjoint cycles of the smallest length for which there are any that fit; only for graphs without short ones."""
    for length in range(5, _LONGEST + 1):
        windows = []
        for edge in sorted(pairs.factors):
            cycle = _shortest_cycle(edge, pairs, length) if edge in pairs.free else None
            if cycle is not None and pairs.joint(cycle) <= max_states:
                windows.append(_Window(cycle))
                pairs.free -= windows[-1].edges
        if windows:
            return windows
    return []


def _shortest_cycle(edge: Edge, pairs: _Pairs, longest: int) -> Cycle | None:
    """A shortest cycle of free edges through a free edge, of at most `longest` variables."""
    start, goal = edge
    parent = {start: start}
    queue = deque([(start, 1)])
    while queue:
        v, length = queue.popleft()
        if length >= longest:
            return None
        for w in sorted(pairs.neighbours[v]):
            if w in parent or _edge(v, w) not in pairs.free or _edge(v, w) == edge:
                continue
            parent[w] = v
            if w == goal:
                path = [w]
                while path[-1] != start:
                    path.append(parent[path[-1]])
                return tuple(path)
            queue.append((w, length + 1))
    return None


def _distances(start: int, pairs: _Pairs) -> dict[int, int]:
    """Number of edges from a variable to every variable it is connected to."""
    distance = {start: 0}
    queue = deque([start])
    while queue:
        v = queue.popleft()
        for w in pairs.neighbours[v]:
            if w not in distance:
                distance[w] = distance[v] + 1
                queue.append(w)
    return distance


def _absorb_into_tables(graph: FactorGraph, pairs: _Pairs, max_states: int) -> dict[tuple[int, ...], list[int]]:
    """Pairwise factors within the scope of a larger table, by that table's block: joining them adds no joint states."""
    hosts: dict[tuple[int, ...], list[int]] = {}
    for members, private in zip(graph.blocks, graph.private, strict=True):
        f = graph.factors[members[0]]
        if len(members) > 1 or private or not isinstance(f, Table | SparseTable) or len(f.scope) <= 2:
            continue
        if joint_size([f]) <= max_states:
            inside = {pairs.position[v] for v in f.scope}
            edges = pairs.free.intersection(_edges_within(inside))
            pairs.free -= edges
            hosts[members] = list(pairs.factors_of(edges))
    return hosts


def _edges_within(variables: set[int]) -> list[Edge]:
    return [(a, b) for a in variables for b in variables if a < b]


def _edge(a: int, b: int) -> Edge:
    return (a, b) if a < b else (b, a)


def _edges(cycle: Sequence[int]) -> set[Edge]:
    return {_edge(a, b) for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True)}
