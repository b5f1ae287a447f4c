"""Ascent to a local optimum: moves of single items, of a topic's part of a document, of a word's part of a topic."""

import numpy as np

from certimap._numeric.jit import entry, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.search.arrays import VALUE, VIOLATION, Instance, State, Tables
from certimap.topics.search.moves import LEAST_GAIN, better, cell_gains, shift

# An instance is passed as some two hundred machine words, so the innermost loops hand on single arrays instead.


@entry
def ascend(instance: Instance, state: State, rng: np.random.Generator, max_sweeps: int) -> bool:
    """Take moves that improve the state until there is none; False if the sweeps were used up before."""
    gains = np.empty(instance.n_topics)
    members = np.empty(_longest_list(instance), dtype=np.int64)
    for _ in range(max_sweeps):
        if _sweep_items(instance, state, rng, gains):
            continue
        moved = _sweep_documents(instance, state, members, gains)
        moved = _sweep_words(instance, state, members, gains) or moved
        if not moved:
            return True
    return False


@kernel
def _longest_list(instance: Instance) -> int:
    longest = 1
    for d in range(len(instance.document_start) - 1):
        longest = max(longest, instance.document_start[d + 1] - instance.document_start[d])
    for v in range(len(instance.word_start) - 1):
        longest = max(longest, instance.word_start[v + 1] - instance.word_start[v])
    return longest


@kernel
def _sweep_items(instance: Instance, state: State, rng: np.random.Generator, gains: FloatArray) -> bool:
    """Move every item to its best topic, document by document in random order."""
    moved = False
    tables, count, word, labels, total = instance.tables, instance.count, instance.word, state.labels, state.totals
    for d in rng.permutation(len(instance.document_start) - 1):
        in_document = state.by_document[d]
        for c in range(instance.document_start[d], instance.document_start[d + 1]):
            item = instance.cell_item[c]
            if instance.movable[c] and not instance.constrained:
                cell_gains(tables, in_document, state.by_word[word[c]], total, count[c], labels[item], gains)
                target = int(np.argmax(gains))
                if gains[target] > LEAST_GAIN:
                    shift(instance, state, item, target)
                    moved = True
            elif instance.fixed[item] < 0 and instance.item_cells[instance.item_start[item]] == c:
                moved = _move_by_trial(instance, state, item, gains) or moved
    return moved


@kernel
def _move_by_trial(instance: Instance, state: State, item: int, gains: FloatArray) -> bool:
    """Move an item to the topic in which the state is best; trials where F alone does not rule the topic out."""
    source, cell = state.labels[item], instance.item_cells[instance.item_start[item]]
    single = instance.movable[cell]
    if single:
        rows = state.by_document[instance.document[cell]], state.by_word[instance.word[cell]]
        cell_gains(instance.tables, rows[0], rows[1], state.totals, instance.count[cell], source, gains)
    value, violation = state.score[VALUE], state.score[VIOLATION]
    best, best_value, best_violation = source, value, violation
    for k in range(instance.n_topics):
        hopeless = single and best_violation == 0.0 and value + gains[k] + instance.slack[item] <= best_value
        if k == source or hopeless:
            continue
        shift(instance, state, item, k)
        if better(state.score[VALUE], state.score[VIOLATION], best_value, best_violation):
            best, best_value, best_violation = k, state.score[VALUE], state.score[VIOLATION]
        shift(instance, state, item, source)
        state.score[VALUE], state.score[VIOLATION] = value, violation
    if best == source:
        return False
    shift(instance, state, item, best)
    return True


@kernel
def _sweep_documents(instance: Instance, state: State, members: IntArray, gains: FloatArray) -> bool:
    """Move what a document has in one topic to another topic as a whole."""
    moved = False
    movable, cell_item, word, labels = instance.movable, instance.cell_item, instance.word, state.labels
    for d in range(len(instance.document_start) - 1):
        in_document = state.by_document[d]
        for k in range(instance.n_topics):
            if in_document[k] == 0:
                continue
            size = 0
            for c in range(instance.document_start[d], instance.document_start[d + 1]):
                if movable[c] and labels[cell_item[c]] == k:
                    members[size] = c
                    size += 1
            if size > 1:
                # The words differ, so that their parts add up.
                n, loss = _own_gains(
                    instance.tables.word, state.by_word, word, instance.count, members[:size], k, gains
                )
                _add_shared_gains(
                    instance.tables, instance.tables.document, in_document, state.totals, n, k, loss, gains
                )
                if instance.constrained or gains.max() > LEAST_GAIN:
                    moved = _move_block(instance, state, members[:size], k, gains) or moved
    return moved


@kernel
def _sweep_words(instance: Instance, state: State, members: IntArray, gains: FloatArray) -> bool:
    """Move what a topic has of one word to another topic as a whole."""
    moved = False
    movable, cell_item, document, labels = instance.movable, instance.cell_item, instance.document, state.labels
    for v in range(len(instance.word_start) - 1):
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
            if size > 1:
                # The documents differ.
                tables, own = instance.tables, members[:size]
                n, loss = _own_gains(tables.document, state.by_document, document, instance.count, own, k, gains)
                _add_shared_gains(tables, tables.word, of_word, state.totals, n, k, loss, gains)
                if instance.constrained or gains.max() > LEAST_GAIN:
                    moved = _move_block(instance, state, own, k, gains) or moved
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
def _move_block(instance: Instance, state: State, members: IntArray, source: int, gains: FloatArray) -> bool:
    """Move the cells to the topic in which the state is best, if there is a better one."""
    value, violation = state.score[VALUE], state.score[VIOLATION]
    best, best_value, best_violation = source, value, violation
    slack = 0.0
    if instance.constrained:
        for c in members:
            slack += instance.slack[instance.cell_item[c]]
    for k in range(instance.n_topics):
        if k == source:
            continue
        if not instance.constrained:
            if value + gains[k] > best_value + LEAST_GAIN:
                best, best_value = k, value + gains[k]
        elif best_violation > 0.0 or value + gains[k] + slack > best_value:
            _shift_block(instance, state, members, k)
            if better(state.score[VALUE], state.score[VIOLATION], best_value, best_violation):
                best, best_value, best_violation = k, state.score[VALUE], state.score[VIOLATION]
            _shift_block(instance, state, members, source)
            state.score[VALUE], state.score[VIOLATION] = value, violation
    if best == source:
        return False
    _shift_block(instance, state, members, best)
    return True


@kernel
def _shift_block(instance: Instance, state: State, members: IntArray, target: int) -> None:
    for c in members:
        shift(instance, state, instance.cell_item[c], target)
