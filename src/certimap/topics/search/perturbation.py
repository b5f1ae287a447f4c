"""Iterated local search: disturb a local optimum, ascend, and go on from there unless too much was lost."""

from typing import NamedTuple

import numpy as np

from certimap._numeric.jit import entry, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.search.arrays import VALUE, VIOLATION, Instance, State
from certimap.topics.search.descent import ascend
from certimap.topics.search.moves import better, recount

_TOLERATED_LOSS = 2.0  # a new optimum may be worse by up to so many nats, drawn anew every time
_LARGEST_SHARE = 0.3
_MOST_SWEEPS = 1000
_DOCUMENTS, _WORDS, _TWO_TOPICS, _ITEMS = range(4)


class Trail(NamedTuple):
    """Where an iterated search stands and the best it has met: labels of the items, with their scores."""

    current: IntArray
    current_score: FloatArray
    best: IntArray
    best_score: FloatArray


def new_trail(state: State) -> Trail:
    """A trail that begins at a local optimum."""
    return Trail(state.labels.copy(), state.score.copy(), state.labels.copy(), state.score.copy())


@entry
def iterate(instance: Instance, state: State, trail: Trail, rng: np.random.Generator, rounds: int) -> None:
    """So many rounds of disturbance and ascent; the state is working space."""
    for _ in range(rounds):
        state.labels[:] = trail.current
        _disturb(instance, state.labels, rng)
        recount(instance, state)
        ascend(instance, state, rng, _MOST_SWEEPS)
        value, violation = state.score[VALUE], state.score[VIOLATION]
        accepted_loss = _TOLERATED_LOSS * rng.random()
        if better(value + accepted_loss, violation, trail.current_score[VALUE], trail.current_score[VIOLATION]):
            trail.current[:] = state.labels
            trail.current_score[:] = state.score
        if better(value, violation, trail.best_score[VALUE], trail.best_score[VIOLATION]):
            trail.best[:] = state.labels
            trail.best_score[:] = state.score


@kernel
def _disturb(instance: Instance, labels: IntArray, rng: np.random.Generator) -> None:
    """Relabel random documents, random words, two topics or random items; constraints are not looked at."""
    kind = int(rng.random() * 4.0)
    share = _LARGEST_SHARE * rng.random()
    K = instance.n_topics
    if kind == _DOCUMENTS:
        for d in range(len(instance.document_start) - 1):
            if rng.random() < share:
                k = int(rng.random() * K)
                for c in range(instance.document_start[d], instance.document_start[d + 1]):
                    _relabel(instance, labels, instance.cell_item[c], k)
    elif kind == _WORDS:
        for v in range(len(instance.word_start) - 1):
            if rng.random() < share:
                k = int(rng.random() * K)
                for q in range(instance.word_start[v], instance.word_start[v + 1]):
                    _relabel(instance, labels, instance.cell_item[instance.word_cells[q]], k)
    elif kind == _TWO_TOPICS:
        first, second = int(rng.random() * K), int(rng.random() * K)
        for i in range(len(labels)):
            if labels[i] == first or labels[i] == second:
                _relabel(instance, labels, i, first if rng.random() < 0.5 else second)
    else:
        for i in range(len(labels)):
            if rng.random() < share:
                _relabel(instance, labels, i, int(rng.random() * K))


@kernel
def _relabel(instance: Instance, labels: IntArray, item: int, topic: int) -> None:
    if instance.fixed[item] < 0:
        labels[item] = topic
