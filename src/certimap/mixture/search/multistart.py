"""Many starts, the best of them, and the distinct local optima met on the way.

A start depends on the seed and its own number only (counter-based random numbers), and results are compared in the
order of these numbers, so that the answer is the same for any number of threads. The last third of the starts
disturbs the best labellings that the first two thirds found. Where no start of a first few can be made feasible, an
integer program finds a feasible labelling, which the other starts then disturb, or proves that there is none. At the
end the best labellings go through merges and splits.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from certimap._numeric.pool import LabellingPool, generator, thread_count
from certimap.mixture.clusters import IntArray
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.search.arrays import Instance, compile_problem, new_state
from certimap.mixture.search.descent import ascend
from certimap.mixture.search.feasibility import find_feasible
from certimap.mixture.search.repair import repair
from certimap.mixture.search.split_merge import improve_by_split_merge
from certimap.mixture.search.starts import disturbed_labels, seeded_labels

_FIRST_STARTS = 8
_STARTS_PER_REFINEMENT = 10

_Outcome: TypeAlias = tuple[bool, float, IntArray]  # feasible, value, labels


@dataclass(frozen=True, eq=False)
class LocalOptimum:
    """Labels of the items and their closed-form value."""

    labels: IntArray
    value: float


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Outcome of a search; every labelling in it satisfies all hard constraints.

    Attributes:
        labels: best labels of the items, or None if no feasible labelling was found.
        value: `MixtureProblem.log_map` of the labels; -inf without labels.
        pool: distinct local optima, best first; clusters that no fixed item names are numbered by first item.
        n_starts: starts that were run, fewer than asked for if `should_stop` ended the search.
        n_failed: starts that found no feasible labelling.
        proved_infeasible: whether it is proved that no feasible labelling exists.
    """

    labels: IntArray | None
    value: float
    pool: tuple[LocalOptimum, ...]
    n_starts: int
    n_failed: int
    proved_infeasible: bool


def search(
    problem: MixtureProblem,
    n_starts: int = 100,
    seed: int = 0,
    n_jobs: int | None = 1,
    *,
    pool_size: int = 20,
    should_stop: Callable[[IntArray | None], bool] = lambda best: False,
) -> SearchResult:
    """Maximise `problem.log_map` over feasible labellings by multi-start local search.

    Args:
        problem: what to maximise.
        n_starts: number of local searches.
        seed: a non-negative integer; equal seeds give equal results for any `n_jobs`.
        n_jobs: number of threads; None is 1, negative counts back from the number of cores (-1: all).
        pool_size: how many distinct local optima to keep.
        should_stop: called after every start with the best labels so far, None before the first feasible ones;
            ends the search by returning True.
    """
    for name, number in (("n_starts", n_starts), ("pool_size", pool_size)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number!r}.")
    if seed < 0:
        raise ValueError(f"seed must be a non-negative integer, got {seed!r}.")
    instance = compile_problem(problem)
    pool = LabellingPool(problem.n_clusters, np.unique(problem.fixed[problem.fixed >= 0]), pool_size)
    n_run = n_failed = 0
    infeasible = stopped = False
    with ThreadPoolExecutor(thread_count(n_jobs)) as threads:

        def results(task: Callable[[int], _Outcome], numbers: range) -> Iterator[_Outcome]:
            nonlocal stopped
            if stopped:
                return
            for outcome in threads.map(task, numbers):
                yield outcome
                if should_stop(pool.entries[0][1] if pool.entries else None):
                    stopped = True
                    threads.shutdown(cancel_futures=True)
                    return

        def run(starts: range, bases: list[IntArray]) -> None:
            nonlocal n_run, n_failed
            for feasible, value, labels in results(lambda start: _run_start(instance, seed, start, bases), starts):
                n_run += 1
                n_failed += not feasible
                if feasible:
                    pool.add(value, labels)

        n_fresh = n_starts - n_starts // 3
        n_first = min(n_fresh, _FIRST_STARTS)
        run(range(n_first), [])
        if not pool.entries and not stopped:
            found = find_feasible(problem, seed)
            infeasible = found.proved_infeasible
            if found.labels is not None:
                pool.add(*_ascend_from(instance, found.labels))
                n_fresh = n_first
        if not infeasible:
            run(range(n_first, n_fresh), [])
            run(range(n_fresh, n_starts), pool.labellings())
            # Costly beside a start on large problems, hence one for every ten starts.
            best = pool.entries[: max(1, n_starts // _STARTS_PER_REFINEMENT)]
            refined = results(lambda rank: _refine(instance, seed, n_starts + rank, *best[rank]), range(len(best)))
            for _, value, labels in refined:
                pool.add(value, labels)
    optima = [LocalOptimum(labels, problem.log_map(labels)) for labels in pool.labellings()]
    optima.sort(key=lambda optimum: -optimum.value)
    return SearchResult(
        labels=optima[0].labels if optima else None,
        value=optima[0].value if optima else -np.inf,
        pool=tuple(optima),
        n_starts=n_run,
        n_failed=n_failed,
        proved_infeasible=infeasible,
    )


def _run_start(instance: Instance, seed: int, start: int, bases: list[IntArray]) -> _Outcome:
    rng = generator(seed, start)
    if bases:
        labels, seeds = disturbed_labels(instance, rng, bases[start % len(bases)])
    else:
        labels, seeds = seeded_labels(instance, rng, start % 2 == 0, start % 4 == 3)
    if not repair(instance, rng, labels, seeds):
        return False, -np.inf, labels
    value, labels = _ascend_from(instance, labels)
    return True, value, labels


def _refine(instance: Instance, seed: int, number: int, value: float, labels: IntArray) -> _Outcome:
    return True, *improve_by_split_merge(instance, generator(seed, number), labels, value)


def _ascend_from(instance: Instance, labels: IntArray) -> tuple[float, IntArray]:
    state = new_state(instance, labels)
    return ascend(instance, state) + instance.offset, labels
