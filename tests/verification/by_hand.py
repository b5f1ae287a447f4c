"""Certificates made without the engine: linear programming duals over marginals of enumerated tables."""

from collections.abc import Sequence

import numpy as np
from scipy import optimize
from tests.helpers import enumerate_map

import certimap as cm
from certimap.certificate import Certificate, CutRecord, LeafRecord, NodeRecord
from certimap.graph.blocks import dense_values
from certimap.graph.compile import compile_model, with_blocks
from certimap.graph.graph import FactorGraph
from certimap.model.factors import Table
from certimap.results import classify

NO_INTEGERS = np.zeros(0, dtype=np.int64)
NO_NUMBERS = np.zeros(0)


def frustrated_triangle(size: int = 2, seed: int = 0) -> cm.Model:
    """Three variables that should all differ, of which two must be equal: the linear program alone has a gap."""
    rng = np.random.default_rng(seed)
    model = cm.Model()
    x = model.categorical("x", size, shape=3)
    for i in range(3):
        model.add(cm.table([x[i]], 0.1 * rng.normal(size=size)))
        model.add(cm.table([x[i], x[(i + 1) % 3]], 0.1 * rng.normal(size=(size, size)) - np.eye(size)))
    return model


def certify(
    model: cm.Model, nodes: Sequence[NodeRecord] = (), blocks: tuple[tuple[int, ...], ...] | None = None
) -> Certificate:
    """A certificate of a model of tables over the given tree (default: the root alone), with exact claims."""
    graph = compile_model(model)
    if blocks is not None:
        graph = with_blocks(graph, blocks)
    tree = tuple(nodes) or (NodeRecord(-1, -1, 0.0, 0.0),)
    cuts: list[CutRecord] = []
    leaves: list[LeafRecord] = []
    bound = -np.inf
    for index in range(len(tree)):
        if any(node.parent == index for node in tree):
            continue
        value, u, row_weights = dual_point(graph, *_box(graph, tree, index))
        bound = max(bound, value)
        positions = np.arange(len(cuts), len(cuts) + len(u))
        cuts.extend(CutRecord(b, _scope(graph, b), slope, np.nan) for b, slope in enumerate(u))
        rows = np.arange(len(graph.rows))
        leaves.append(LeafRecord(index, False, positions, np.ones(len(u)), rows, row_weights))
    log_map, assignment = enumerate_map(model)
    return Certificate(
        algorithm="branch-and-cut",
        model=model.fingerprint(),
        log_map=log_map,
        upper_bound=bound,
        tolerance=1e-6,
        status=classify(log_map, bound, 1e-6).name,
        assignment=assignment,
        blocks=graph.blocks,
        private=graph.private,
        cuts=tuple(cuts),
        nodes=tree,
        leaves=tuple(leaves),
    )


def dual_point(graph: FactorGraph, lower: np.ndarray, upper: np.ndarray) -> tuple[float, list[np.ndarray], np.ndarray]:
    """Optimum over marginals on a box, with the slope u of every block and the row multipliers."""
    n, blocks = graph.n_columns, len(graph.blocks)
    tables = [_table(graph, b) for b in range(blocks)]
    sizes = [t.log_values.size for t in tables]
    offsets = n + np.cumsum([0, *sizes])
    objective = np.concatenate([graph.cost, *(np.maximum(t.log_values, -1e6).ravel() for t in tables)])
    matrix, right = [], []
    for b, table in enumerate(tables):
        states = np.indices(table.log_values.shape).reshape(table.log_values.ndim, -1)
        for axis, size in enumerate(table.log_values.shape):
            for state in range(size):
                row = np.zeros(offsets[-1])
                row[offsets[b] + np.flatnonzero(states[axis] == state)] = 1.0
                row[_scope(graph, b)[sum(table.log_values.shape[:axis]) + state]] = -1.0
                matrix.append(row)
                right.append(0.0)
    dense = graph.rows.matrix.toarray()
    assert (graph.rows.lower == graph.rows.upper).all(), "built for equality rows"
    for a, side in zip(dense, graph.rows.upper, strict=True):
        matrix.append(np.concatenate([a, np.zeros(offsets[-1] - n)]))
        right.append(float(side))
    bounds = [*zip(lower, upper, strict=True), *[(0.0, None)] * (offsets[-1] - n)]
    solved = optimize.linprog(-objective, A_eq=np.array(matrix), b_eq=right, bounds=bounds, method="highs")
    assert solved.status == 0
    duals = -solved.eqlin.marginals  # of the maximisation
    u, at = [], 0
    for b in range(blocks):
        width = len(_scope(graph, b))
        u.append(duals[at : at + width])
        at += width
    return float(-solved.fun + graph.offset), u, duals[at:]


def binary_split(model: cm.Model, variable: str) -> tuple[NodeRecord, ...]:
    """A root with two children: the variable's first state in, and out."""
    graph = compile_model(model)
    column = graph.column_of[model.variables[variable].indicators()[0]]
    return (NodeRecord(-1, -1, 0.0, 0.0), NodeRecord(0, column, 0.0, 0.0), NodeRecord(0, column, 1.0, 1.0))


def _box(graph: FactorGraph, tree: tuple[NodeRecord, ...], index: int) -> tuple[np.ndarray, np.ndarray]:
    node = tree[index]
    if node.parent < 0:
        return graph.lower.copy(), graph.upper.copy()
    lower, upper = _box(graph, tree, node.parent)
    lower[node.column], upper[node.column] = max(lower[node.column], node.lower), min(upper[node.column], node.upper)
    return lower, upper


def _table(graph: FactorGraph, block: int) -> Table:
    for batch in graph.batches:
        for b, factor in zip(batch.blocks.tolist(), batch.factors, strict=True):
            if b == block:
                return factor if isinstance(factor, Table) else Table(factor.scope, dense_values(factor))
    raise IndexError(block)


def _scope(graph: FactorGraph, block: int) -> np.ndarray:
    for batch in graph.batches:
        for b, scope in zip(batch.blocks.tolist(), batch.scope, strict=True):
            if b == block:
                return scope
    raise IndexError(block)
