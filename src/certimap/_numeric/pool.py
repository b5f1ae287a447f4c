"""What searches over labellings have in common: the best distinct ones, random numbers of a start, thread counts."""

import os

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class LabellingPool:
    """The best distinct labellings, ranked by value, the earlier one first among equals.

    Groups whose number means something (`pinned`) keep it, the others are numbered by first member, so that labellings
    that differ in names only are one.
    """

    def __init__(self, n_groups: int, pinned: IntArray, size: int) -> None:
        self._n_groups = n_groups
        self._free = np.setdiff1d(np.arange(n_groups), pinned)
        self._size = size
        self.entries: list[tuple[float, IntArray]] = []

    def add(self, value: float, labels: IntArray) -> None:
        if len(self.entries) == self._size and value <= self.entries[-1][0]:
            return
        canonical = self._canonical(labels)
        # Two equal labellings differ in value by rounding only, so only close values need comparing.
        tolerance = 1e-7 * max(1.0, abs(value))
        for known, other in self.entries:
            if abs(known - value) <= tolerance and np.array_equal(other, canonical):
                return
        self.entries.append((value, canonical))
        self.entries.sort(key=lambda entry: -entry[0])
        del self.entries[self._size :]

    def labellings(self) -> list[IntArray]:
        """All of them, best first."""
        return [labels for _, labels in self.entries]

    def _canonical(self, labels: IntArray) -> IntArray:
        first = np.full(self._n_groups, len(labels))
        np.minimum.at(first, labels, np.arange(len(labels)))
        number = np.arange(self._n_groups)
        number[self._free[np.argsort(first[self._free], kind="stable")]] = self._free
        return number[labels]


def generator(seed: int, *number: int) -> np.random.Generator:
    """Random numbers that depend on the seed and up to two further numbers only, such as that of a start."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, *(0,) * (2 - len(number)), *number]))


def thread_count(n_jobs: int | None) -> int:
    """Number of threads: None is 1, negative counts back from the number of cores (-1: all)."""
    if n_jobs == 0:
        raise ValueError("n_jobs must be None or a non-zero integer, got 0.")
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
