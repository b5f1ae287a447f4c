"""Ascent to a local optimum: moves of single items, of a topic's part of a document, of a word's part of a topic."""

import math

import numpy as np

from certimap._numeric.jit import entry, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.search.arrays import VALUE, VIOLATION, Instance, State, Tables
from certimap.topics.search.moves import LEAST_GAIN, add_penalties, better, cell_gains, shift

# An instance is passed as some two hundred machine words, so the innermost loops hand on single arrays instead.


@entry
def ascend(instance: Instance, state: State, rng: np.random.Generator, max_sweeps: int) -> bool:
    """Take moves that improve the state until there is none; False if the sweeps were used up before."""
    gains = np.empty(instance.n_topics)
    for _ in range(max_sweeps):
        if _sweep_items(instance, state, rng, gains):
            continue
        documents = rng.permutation(len(instance.document_start) - 1)
        moved = sweep_document_blocks(instance, state, rng, 0.0, documents)
        words = rng.permutation(len(instance.word_start) - 1)
        if not sweep_word_blocks(instance, state, rng, 0.0, words) and not moved:
            return True
    return False


@kernel
def _longest_row(start: IntArray) -> int:
    longest = 1
    for row in range(len(start) - 1):
        longest = max(longest, start[row + 1] - start[row])
    return longest


@kernel
def _sweep_items(instance: Instance, state: State, rng: np.random.Generator, gains: FloatArray) -> bool:
    """Move every item to its best topic, document by document in random order."""
    moved = False
    tables, count, word, labels, total = instance.tables, instance.tokens, instance.word, state.labels, state.totals
    violations = np.zeros(instance.n_topics)
    for d in rng.permutation(len(instance.document_start) - 1):
        in_document = state.by_document[d]
        for c in range(instance.document_start[d], instance.document_start[d + 1]):
            item = instance.cell_item[c]
            if instance.movable[c]:
                source = labels[item]
                cell_gains(tables, in_document, state.by_word[word[c]], total, count[c], source, gains)
                if instance.constrained:
                    add_penalties(instance, state, c, source, gains, violations)
                target = _best(gains, violations)
                if better(gains[target], violations[target], 0.0, 0.0):
                    shift(instance, state, item, target)
                    moved = True
            elif instance.fixed[item] < 0 and instance.item_cells[instance.item_start[item]] == c:
                moved = _move_by_trial(instance, state, item) or moved
    return moved


@kernel
def _best(gains: FloatArray, violations: FloatArray) -> int:
    best = 0
    for k in range(1, len(gains)):
        if better(gains[k], violations[k], gains[best], violations[best]):
            best = k
    return best


@kernel
def _move_by_trial(instance: Instance, state: State, item: int) -> bool:
    """Move an item of several cells to the topic in which the state is best."""
    source = state.labels[item]
    value, violation = state.score[VALUE], state.score[VIOLATION]
    best, best_value, best_violation = source, value, violation
    for k in range(instance.n_topics):
        if k != source:
            shift(instance, state, item, k)
            if better(state.score[VALUE], state.score[VIOLATION], best_value, best_violation):
                best, best_value, best_violation = k, state.score[VALUE], state.score[VIOLATION]
            shift(instance, state, item, source)
            state.score[VALUE], state.score[VIOLATION] = value, violation
    if best == source:
        return False
    shift(instance, state, item, best)
    return True


@entry
def sweep_document_blocks(
    instance: Instance, state: State, rng: np.random.Generator, temperature: float, documents: IntArray
) -> bool:
    """Move what a document has in one topic to another topic as a whole.

    To the best one at temperature 0, else to one drawn with probability proportional to exp(gain / temperature).
    """
    moved = False
    gains = np.empty(instance.n_topics)
    members = np.empty(_longest_row(instance.document_start), dtype=np.int64)
    movable, cell_item, word, labels = instance.movable, instance.cell_item, instance.word, state.labels
    for d in documents:
        in_document = state.by_document[d]
        for k in range(instance.n_topics):
            if in_document[k] == 0:
                continue
            size = 0
            for c in range(instance.document_start[d], instance.document_start[d + 1]):
                if movable[c] and labels[cell_item[c]] == k:
                    members[size] = c
                    size += 1
            if size > 1 or (size > 0 and temperature > 0.0):
                # The words differ, so that their parts add up.
                tables, own = instance.tables, members[:size]
                n, loss = _own_gains(tables.word, state.by_word, word, instance.tokens, own, k, gains)
                _add_shared_gains(tables, tables.document, in_document, state.totals, n, k, loss, gains)
                moved = _move_block(instance, state, own, k, gains, rng, temperature) or moved
    return moved


@entry
def sweep_word_blocks(
    instance: Instance, state: State, rng: np.random.Generator, temperature: float, words: IntArray
) -> bool:
    """The same for what a topic has of one word."""
    moved = False
    gains = np.empty(instance.n_topics)
    members = np.empty(_longest_row(instance.word_start), dtype=np.int64)
    movable, cell_item, document, labels = instance.movable, instance.cell_item, instance.document, state.labels
    for v in words:
        of_word = state.by_word[v]
        for k in range(instance.n_topics):
            if of_word[k] == 0:
                continue
            size = 0
            for q in range(instance.word_start[v], instance.word_start[v + 1]):
                c = instance.word_cells[q]
                if movable[c] and labels[cell_item[c]] == k:
                    members[size] = c
                    size += 1
            if size > 1 or (size > 0 and temperature > 0.0):
                tables, own = instance.tables, members[:size]
                n, loss = _own_gains(tables.document, state.by_document, document, instance.tokens, own, k, gains)
                _add_shared_gains(tables, tables.word, of_word, state.totals, n, k, loss, gains)
                moved = _move_block(instance, state, own, k, gains, rng, temperature) or moved
    return moved


@kernel
def _own_gains(
    table: FloatArray,
    counts: IntArray,
    row: IntArray,
    count: IntArray,
    members: IntArray,
    source: int,
    gains: FloatArray,
) -> tuple[int, float]:
    """Tokens of the cells, what leaving gains in the rows of their own, and, in `gains`, what arriving does."""
    gains[:] = 0.0
    loss, n = 0.0, 0
    for c in members:
        m, own = count[c], counts[row[c]]
        n += m
        loss += table[own[source]] - table[own[source] - m]
        for k in range(len(gains)):
            gains[k] += table[own[k] + m] - table[own[k]] if k != source else 0.0
    return n, loss


@kernel
def _add_shared_gains(
    tables: Tables,
    table: FloatArray,
    shared: IntArray,
    total: IntArray,
    n: int,
    source: int,
    loss: float,
    gains: FloatArray,
) -> None:
    """Add the parts of what all n tokens have in common, their document or word, and of the topics' totals."""
    T = tables.topic
    loss += table[shared[source]] - table[shared[source] - n] - (T[total[source]] - T[total[source] - n])
    for k in range(len(gains)):
        if k != source:
            gains[k] += table[shared[k] + n] - table[shared[k]] - (T[total[k] + n] - T[total[k]]) - loss


@kernel
def _move_block(
    instance: Instance,
    state: State,
    members: IntArray,
    source: int,
    gains: FloatArray,
    rng: np.random.Generator,
    temperature: float,
) -> bool:
    gains[source] = 0.0
    if temperature > 0.0:
        target = draw_by_gains(rng, gains, temperature)
        return target != source and _propose_block(instance, state, members, source, target, gains, rng, temperature)
    if not instance.constrained:
        target = int(np.argmax(gains))
        if gains[target] <= LEAST_GAIN:
            return False
    else:
        target = _best_by_trial(instance, state, members, source, gains)
        if target == source:
            return False
    _shift_block(instance, state, members, target)
    return True


@kernel
def _best_by_trial(instance: Instance, state: State, members: IntArray, source: int, gains: FloatArray) -> int:
    """The topic in which the state is best when the cells are there."""
    value, violation = state.score[VALUE], state.score[VIOLATION]
    best, best_value, best_violation = source, value, violation
    slack = 0.0
    for c in members:
        slack += instance.slack[instance.cell_item[c]]
    for k in range(instance.n_topics):
        if k == source or (best_violation == 0.0 and value + gains[k] + slack <= best_value):
            continue
        _shift_block(instance, state, members, k)
        if better(state.score[VALUE], state.score[VIOLATION], best_value, best_violation):
            best, best_value, best_violation = k, state.score[VALUE], state.score[VIOLATION]
        _shift_block(instance, state, members, source)
        state.score[VALUE], state.score[VIOLATION] = value, violation
    return best


@kernel
def _propose_block(
    instance: Instance,
    state: State,
    members: IntArray,
    source: int,
    target: int,
    gains: FloatArray,
    rng: np.random.Generator,
    temperature: float,
) -> bool:
    """Move the cells unless `refused`."""
    value, violation = state.score[VALUE], state.score[VIOLATION]
    _shift_block(instance, state, members, target)
    if instance.constrained and refused(state, value + gains[target], violation, rng, temperature):
        _shift_block(instance, state, members, source)
        state.score[VALUE], state.score[VIOLATION] = value, violation
        return False
    return True


@kernel
def refused(
    state: State, expected_value: float, violation: float, rng: np.random.Generator, temperature: float
) -> bool:
    """Whether to undo a move: it violates more, or by chance where its value falls short of what it was drawn for."""
    if state.score[VIOLATION] != violation:
        return bool(state.score[VIOLATION] > violation)
    shortfall = expected_value - state.score[VALUE]
    return bool(shortfall > 0.0 and rng.random() >= math.exp(-shortfall / temperature))


@kernel
def draw_by_gains(rng: np.random.Generator, gains: FloatArray, temperature: float) -> int:
    """An index, with probability proportional to exp(gain / temperature)."""
    largest, total = gains.max(), 0.0
    for gain in gains:
        total += math.exp((gain - largest) / temperature)
    left = total * rng.random()
    for k in range(len(gains)):
        left -= math.exp((gains[k] - largest) / temperature)
        if left < 0.0:
            return k
    return int(np.argmax(gains))


@kernel
def _shift_block(instance: Instance, state: State, members: IntArray, target: int) -> None:
    for c in members:
        shift(instance, state, instance.cell_item[c], target)
