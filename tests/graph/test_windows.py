"""Automatic blocks: which factors join, and that the coarser problem stays the same problem."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certimap import Block, Model, potts, table
from certimap.graph.compile import compile_model
from certimap.graph.windows import coarsen, cyclic_windows


def model_over(edges, states=2, seed=0):
    """One pairwise table per edge; variables are named by number."""
    rng = np.random.default_rng(seed)
    model = Model()
    x = [model.categorical(f"x{i}", states) for i in range(1 + max(max(e) for e in edges))]
    for i, j in edges:
        model.add(table([x[i], x[j]], rng.normal(size=(states, states))))
    return model, x


def grid_edges(rows, columns):
    index = np.arange(rows * columns).reshape(rows, columns)
    right = zip(index[:, :-1].ravel(), index[:, 1:].ravel(), strict=True)
    down = zip(index[:-1].ravel(), index[1:].ravel(), strict=True)
    return [(int(a), int(b)) for a, b in [*right, *down]]


def scopes(graph, blocks):
    """The variables of every block with more than one factor."""
    joined = [b for b in blocks if len(b) > 1]
    return [sorted({int(v.name[1:]) for i in b for v in graph.factors[i].variables()}) for b in joined]


def assert_partition(graph, blocks):
    before = sorted(i for b in graph.blocks for i in b)
    assert sorted(i for b in blocks for i in b) == before


def test_a_grid_becomes_a_checkerboard():
    model, _ = model_over(grid_edges(4, 5))
    graph = compile_model(model)
    blocks = cyclic_windows(graph)
    assert_partition(graph, blocks)
    corners = [0, 2, 6, 8, 10, 12]
    assert scopes(graph, blocks) == [[c, c + 1, c + 5, c + 6] for c in corners]
    assert sorted(len(b) for b in blocks) == [1] * 7 + [4] * 6


def test_larger_windows_grow_compactly():
    model, _ = model_over(grid_edges(7, 7))
    graph = compile_model(model)
    blocks = cyclic_windows(graph, max_states=2**9, level=2)
    assert_partition(graph, blocks)
    assert scopes(graph, blocks)[0] == [0, 1, 2, 7, 8, 9, 14, 15, 16]
    assert max(len(s) for s in scopes(graph, blocks)) == 9


def test_nothing_to_join_in_a_tree():
    model, _ = model_over([(0, 1), (1, 2), (1, 3)])
    assert cyclic_windows(compile_model(model)) is None
    assert coarsen(compile_model(model)) is None


def test_triangles_come_before_squares_and_long_cycles_last():
    model, _ = model_over([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (3, 4), (4, 5), (5, 6), (3, 6)])
    graph = compile_model(model)
    blocks = cyclic_windows(graph)
    assert scopes(graph, blocks) == [[0, 1, 2], [3, 4, 5, 6]]
    ring, _ = model_over([(i, (i + 1) % 7) for i in range(7)])
    graph = compile_model(ring)
    assert scopes(graph, cyclic_windows(graph)) == [list(range(7))]
    assert cyclic_windows(graph, max_states=64) is None


def test_limit_on_joint_states():
    model, _ = model_over(grid_edges(3, 3), states=4)
    graph = compile_model(model)
    assert cyclic_windows(graph, max_states=255) is None
    assert max(len(s) for s in scopes(graph, cyclic_windows(graph, max_states=256, level=2))) == 4


def test_chords_parallel_factors_and_larger_tables_cost_nothing():
    model, x = model_over([(0, 1), (1, 2), (2, 3), (0, 3)])
    model.add(potts(x[0], x[1], 0.5), table(x[1:4], np.zeros((2, 2, 2))))
    graph = compile_model(model)
    blocks = cyclic_windows(graph)
    assert_partition(graph, blocks)
    assert sorted(blocks) == [(0, 4), (3,), (5, 1, 2)]


def test_blocks_of_the_user_stay():
    model, x = model_over([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)])
    hidden = model.categorical("h", 2)
    own = [potts(x[0], hidden, 1.0), potts(x[1], hidden, 1.0)]
    model.add(Block(own, private=[hidden]))
    model.add(Block(model.factors[3:5]))
    graph = compile_model(model)
    blocks = cyclic_windows(graph)
    assert_partition(graph, blocks)
    assert blocks[:2] == list(graph.blocks[:2])
    assert scopes(graph, blocks[2:]) == [[0, 1, 2]]
    assert coarsen(graph).private[:2] == (("h",), ())


@pytest.mark.parametrize("level", [1, 2])
def test_the_coarser_graph_has_the_same_values(level):
    model, _ = model_over(grid_edges(3, 3), seed=level)
    graph = compile_model(model)
    coarse = coarsen(graph, 256, level)
    for point in product(range(2), repeat=9):
        assignment = {f"x{i}": s for i, s in enumerate(point)}
        y = coarse.encode(assignment)
        total = sum(f.value(y[s]) for b in coarse.batches for f, s in zip(b.factors, b.scope, strict=True))
        assert total + coarse.offset + coarse.cost @ y == pytest.approx(model.value(assignment), abs=1e-9)
