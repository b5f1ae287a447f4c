"""Many starts, the best of them, and the distinct local optima met on the way.

A start anneals by documents, words or cells in turn, ascends, and goes on with an iterated local search. It depends on
the seed and its own number only, and results are compared in the order of these numbers, so that the answer is the same
for any number of threads. Where none of the first starts becomes feasible, an integer program finds a feasible
labelling to start from, or proves that there is none.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from certimap._numeric.pool import LabellingPool, generator, thread_count
from certimap.topics.objective import IntArray
from certimap.topics.problem import TopicProblem
from certimap.topics.search.annealing import Sweep, anneal
from certimap.topics.search.arrays import VALUE, VIOLATION, Instance, State, compile_problem, new_state
from certimap.topics.search.descent import ascend
from certimap.topics.search.feasibility import find_feasible
from certimap.topics.search.moves import recount
from certimap.topics.search.perturbation import iterate, new_trail
from certimap.topics.search.starts import initial_labels

_FIRST_STARTS = 3
_ANNEALING_SWEEPS = 30
_MOST_ROUNDS = 500  # of the iterated search in one start
_WORK_PER_START = 400_000  # rounds times cells
_CONSTRAINED_COST = 4  # how much longer a round takes where moves have to be admissible
_WORK_PER_CALL = 100_000  # sweeps times cells between two looks at the clock

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
        value: `TopicProblem.log_map` of the labels; -inf without labels.
        pool: distinct local optima, best first; topics that no constraint names are numbered by first item.
        n_starts: starts that were run, fewer than asked for if the search was interrupted.
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
    problem: TopicProblem,
    n_starts: int = 10,
    seed: int = 0,
    n_jobs: int | None = 1,
    *,
    pool_size: int = 20,
    interrupted: Callable[[], bool] = lambda: False,
    after_start: Callable[[IntArray | None], None] = lambda best: None,
) -> SearchResult:
    """Maximise `problem.log_map` over feasible labellings.

    Args:
        problem: what to maximise.
        n_starts: number of local searches.
        seed: a non-negative integer; equal seeds give equal results for any `n_jobs`.
        n_jobs: number of threads; None is 1, negative counts back from the number of cores (-1: all).
        pool_size: how many distinct local optima to keep.
        interrupted: asked all the time whether to stop with what there is.
        after_start: called after every start with the best labels so far, None before the first feasible ones.
    """
    for name, number in (("n_starts", n_starts), ("pool_size", pool_size)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number!r}.")
    if seed < 0:
        raise ValueError(f"seed must be a non-negative integer, got {seed!r}.")
    instance = compile_problem(problem)
    pinned = np.unique(np.concatenate([problem.fixed[problem.fixed >= 0], problem.wish_topics]))
    pool = LabellingPool(problem.n_topics, pinned, pool_size)
    n_run = n_failed = 0
    infeasible = False
    n_threads = thread_count(n_jobs)
    with ThreadPoolExecutor(n_threads) as starts, ThreadPoolExecutor(n_threads) as shards:

        def run(numbers: range, first: IntArray | None) -> None:
            nonlocal n_run, n_failed
            task = partial(_run_start, instance, seed, shards=shards, interrupted=interrupted, first=first)
            for feasible, value, labels in _in_order(starts, task, numbers, interrupted):
                n_run += 1
                n_failed += not feasible
                if feasible:
                    pool.add(value, labels)
                after_start(pool.entries[0][1] if pool.entries else None)

        n_first = min(n_starts, _FIRST_STARTS)
        run(range(n_first), None)
        first = None
        if not pool.entries and not interrupted():
            found = find_feasible(problem, seed)
            infeasible, first = found.proved_infeasible, found.labels
            if first is not None:
                pool.add(problem.log_map(first), first)
        if not infeasible:
            run(range(n_first, n_starts), first)
    optima = sorted(
        (LocalOptimum(labels, problem.log_map(labels)) for labels in pool.labellings()), key=lambda o: -o.value
    )
    return SearchResult(
        labels=optima[0].labels if optima else None,
        value=optima[0].value if optima else -np.inf,
        pool=tuple(optima),
        n_starts=n_run,
        n_failed=n_failed,
        proved_infeasible=infeasible,
    )


def _in_order(
    threads: Executor, task: Callable[[int], _Outcome], numbers: range, interrupted: Callable[[], bool]
) -> Iterator[_Outcome]:
    """Outcomes in the order of the numbers; tasks that an interruption finds waiting are dropped."""
    futures: list[Future[Any]] = [threads.submit(task, number) for number in numbers]
    for future in futures:
        if interrupted() and future.cancel():
            continue
        yield future.result()


def _run_start(
    instance: Instance,
    seed: int,
    start: int,
    *,
    shards: Executor,
    interrupted: Callable[[], bool],
    first: IntArray | None,
) -> _Outcome:
    rng = generator(seed, start)
    if first is not None:
        state = new_state(instance, first.copy())
        recount(instance, state)
    else:
        state = _annealed(instance, seed, start, rng, shards, interrupted)
    work = max(1, len(instance.document))
    while not ascend(instance, state, rng, max(1, _WORK_PER_CALL // work)) and not interrupted():
        pass
    trail = new_trail(state)
    left = min(_MOST_ROUNDS, _WORK_PER_START // work) // (_CONSTRAINED_COST if instance.constrained else 1)
    while left > 0 and not interrupted():
        rounds = min(left, max(1, _WORK_PER_CALL // (10 * work)))
        iterate(instance, state, trail, rng, rounds)
        left -= rounds
    value, violation = trail.best_score[VALUE] + instance.offset, trail.best_score[VIOLATION]
    return violation == 0.0, float(value), trail.best


def _annealed(
    instance: Instance,
    seed: int,
    start: int,
    rng: np.random.Generator,
    shards: Executor,
    interrupted: Callable[[], bool],
) -> State:
    kind = tuple(Sweep)[start % len(Sweep)]
    if kind is Sweep.WORDS and instance.max_topics < instance.n_topics:
        kind = Sweep.CELLS  # whole words would leave the documents with too many topics
    most = 1 if kind is Sweep.DOCUMENTS else instance.max_topics
    state = new_state(instance, initial_labels(instance, rng, kind is Sweep.WORDS, most))
    anneal(instance, state, kind, partial(generator, seed, 1 + start), _ANNEALING_SWEEPS, shards, interrupted)
    return state
