"""Pairs of numbered things as graphs: what pairs tie together, along which chain, and who is apart from whom."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

IntArray = NDArray[np.int64]


def closure(ties: IntArray, count: int) -> IntArray:
    """Group of each of `count` things under pairs (T, 2) that tie them, groups numbered by first member."""
    if not len(ties):
        return np.arange(count)
    component = connected_components(_matrix(ties, count), directed=False)[1]
    return numbered_by_first(component.astype(np.int64))


def numbered_by_first(group: IntArray) -> IntArray:
    """The same groups, numbered in the order in which they first occur."""
    _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int64)[inverse]


def chain(ties: IntArray, count: int, start: int, end: int) -> list[int]:
    """A shortest path of ties from `start` to `end`, which must be in one group."""
    before = breadth_first_order(_matrix(ties, count), start, directed=False)[1]
    path = [end]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    return path[::-1]


def compressed_links(links: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Links (L, 2) as compressed rows, both directions, each once: start (count + 1,) and the other ends."""
    both = np.unique(np.concatenate([links, links[:, ::-1]]), axis=0)
    start = np.concatenate([[0], np.cumsum(np.bincount(both[:, 0], minlength=count))])
    return start.astype(np.int64), np.ascontiguousarray(both[:, 1])


def _matrix(ties: IntArray, count: int) -> csr_array:
    return csr_array((np.ones(len(ties)), (ties[:, 0], ties[:, 1])), shape=(count, count))
