"""Annealed Gibbs sampling, the start of a search: topics are drawn while the temperature falls.

Three kinds of sweeps draw, with probability proportional to exp(gain / T), the topic of whole documents (more exactly
of what a document has in one topic), of whole words, or of single cells. Which of them leads to the best optima depends
on the priors and on the length of the documents, so that a search uses all three.

The documents, or words, are dealt out to shards. Within a sweep a shard sees its own changes at once and those of the
others after the sweep, so that shards can run on threads of their own while the answer does not depend on how many
there are. Memory is a few numbers for each cell, and the tokens by topic of documents and words once for every shard.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from enum import Enum

import numpy as np

from certimap._numeric.jit import entry, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.search.arrays import VALUE, VIOLATION, Instance, State, Tables
from certimap.topics.search.descent import draw_by_gains, refused, sweep_document_blocks, sweep_word_blocks
from certimap.topics.search.moves import cell_gains, recount, shift

_SHARDS = 8
_LEAST_CELLS_PER_SHARD = 20_000


class Sweep(Enum):
    """What is drawn at once."""

    DOCUMENTS = "documents"
    WORDS = "words"
    CELLS = "cells"


TEMPERATURES = {Sweep.DOCUMENTS: (3.0, 0.3), Sweep.WORDS: (3.0, 0.3), Sweep.CELLS: (1.0, 0.1)}  # first and last
_OVERALL = ("totals", "topic_documents", "score")
_SHARED = {
    Sweep.DOCUMENTS: ("by_word", *_OVERALL),
    Sweep.WORDS: ("by_document", "document_topics", *_OVERALL),
    Sweep.CELLS: ("by_word", *_OVERALL),
}


def anneal(
    instance: Instance,
    state: State,
    kind: Sweep,
    generators: Callable[[int], np.random.Generator],
    n_sweeps: int,
    threads: Executor,
    interrupted: Callable[[], bool],
) -> None:
    """Anneal from the labels of the state; `generators(i)` are independent random numbers for shard i."""
    recount(instance, state)
    shards = _shards(instance, kind)
    rngs = [generators(i) for i in range(len(shards))]
    highest, lowest = TEMPERATURES[kind]
    for sweep in range(n_sweeps):
        temperature = highest * (lowest / highest) ** (sweep / max(1, n_sweeps - 1))
        odds = _odds(instance.tables, temperature)
        copies = [_own(state, kind) for _ in shards]

        def run(i: int, copies: list[State] = copies, odds: Tables = odds, temperature: float = temperature) -> None:
            if kind is Sweep.DOCUMENTS:
                sweep_document_blocks(instance, copies[i], rngs[i], temperature, shards[i])
            elif kind is Sweep.WORDS:
                sweep_word_blocks(instance, copies[i], rngs[i], temperature, shards[i])
            else:
                sweep_cells(instance, copies[i], rngs[i], odds, temperature, shards[i])

        list(threads.map(run, range(len(shards))))
        for name in _SHARED[kind]:
            merged = getattr(state, name)
            merged += sum(getattr(copy, name) - merged for copy in copies)
        if interrupted():
            break
    recount(instance, state)


def _shards(instance: Instance, kind: Sweep) -> list[IntArray]:
    """Documents or words of every shard; a single shard where constraints tie shards to each other."""
    n_rows = len(instance.word_start if kind is Sweep.WORDS else instance.document_start) - 1
    n_cells = len(instance.document)
    coupled = instance.constrained or len(instance.fixed) < n_cells
    n_shards = 1 if coupled else max(1, min(_SHARDS, n_cells // _LEAST_CELLS_PER_SHARD))
    return [np.arange(i, n_rows, n_shards) for i in range(n_shards)]


def _own(state: State, kind: Sweep) -> State:
    """The state as one shard changes it: labels and its own rows in place, the counts that others need in a copy."""
    return state._replace(**{name: getattr(state, name).copy() for name in _SHARED[kind]})


def _odds(tables: Tables, temperature: float) -> Tables:
    """exp(gain / T) of one token more, by the tokens that are there."""
    return Tables(
        _step_odds(tables.document, temperature),
        _step_odds(tables.word, temperature),
        _step_odds(-tables.topic, temperature),
    )


def _step_odds(table: FloatArray, temperature: float) -> FloatArray:
    """Scaled about the middle step, so that products of three stay in range."""
    steps = np.diff(table, append=table[-1])
    return np.asarray(np.exp((steps - steps[len(steps) // 2]) / temperature))


@entry
def sweep_cells(
    instance: Instance, state: State, rng: np.random.Generator, odds: Tables, temperature: float, documents: IntArray
) -> None:
    """Draw a topic for every item of the documents; the score is kept only where constraints need it."""
    weights = np.empty(instance.n_topics)
    count, word, labels, total = instance.tokens, instance.word, state.labels, state.totals
    for d in documents:
        in_document = state.by_document[d]
        for c in range(instance.document_start[d], instance.document_start[d + 1]):
            item, n = instance.cell_item[c], count[c]
            if not instance.movable[c]:
                if instance.fixed[item] < 0 and instance.item_cells[instance.item_start[item]] == c:
                    _propose(instance, state, rng, item, int(rng.random() * len(weights)), 0.0, temperature)
                continue
            of_word, source = state.by_word[word[c]], labels[item]
            if n == 1 and not instance.constrained:
                target = _draw_for_token(odds, in_document, of_word, total, source, rng, weights)
            else:
                cell_gains(instance.tables, in_document, of_word, total, n, source, weights)
                target = draw_by_gains(rng, weights, temperature)
            if target != source:
                if instance.constrained:
                    _propose(instance, state, rng, item, target, weights[target], temperature)
                    continue
                labels[item] = target
                for counts in (in_document, of_word, total):
                    counts[source] -= n
                    counts[target] += n


@kernel
def _draw_for_token(
    odds: Tables,
    in_document: IntArray,
    of_word: IntArray,
    total: IntArray,
    source: int,
    rng: np.random.Generator,
    weights: FloatArray,
) -> int:
    """A topic for a single token: its gains are single steps of the tables."""
    s = 0.0
    for k in range(len(weights)):
        own = 1 if k == source else 0
        s += odds.document[in_document[k] - own] * odds.word[of_word[k] - own] * odds.topic[total[k] - own]
        weights[k] = s
    return _first_above(weights, s * rng.random())


@kernel
def _first_above(cumulative: FloatArray, level: float) -> int:
    k = 0
    while k < len(cumulative) - 1 and cumulative[k] <= level:
        k += 1
    return k


@kernel
def _propose(
    instance: Instance,
    state: State,
    rng: np.random.Generator,
    item: int,
    target: int,
    gain: float,
    temperature: float,
) -> None:
    """Move an item unless `refused`; `gain` is what the target was drawn for."""
    source, value, violation = state.labels[item], state.score[VALUE], state.score[VIOLATION]
    if source == target:
        return
    shift(instance, state, item, target)
    if refused(state, value + gain, violation, rng, temperature):
        shift(instance, state, item, source)
        state.score[VALUE], state.score[VIOLATION] = value, violation
