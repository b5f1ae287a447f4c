"""Single steps of the search: counts from labels, moves of cells and items, and what they gain."""

import math

from certimap._numeric.jit import entry, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.search.arrays import VALUE, VIOLATION, Instance, State, Tables

LEAST_GAIN = 1e-9  # below this a gain may be rounding


@entry
def recount(instance: Instance, state: State) -> None:
    """All counts and the score from the labels."""
    state.by_document[:] = 0
    state.by_word[:] = 0
    state.totals[:] = 0
    for c in range(len(instance.document)):
        k = state.labels[instance.cell_item[c]]
        state.by_document[instance.document[c], k] += instance.tokens[c]
        state.by_word[instance.word[c], k] += instance.tokens[c]
        state.totals[k] += instance.tokens[c]
    value = 0.0
    for d in range(len(state.by_document)):
        for k in range(instance.n_topics):
            value += instance.tables.document[state.by_document[d, k]]
    for v in range(len(state.by_word)):
        for k in range(instance.n_topics):
            value += instance.tables.word[state.by_word[v, k]]
    for k in range(instance.n_topics):
        value -= instance.tables.topic[state.totals[k]]
    state.score[VALUE] = value
    state.score[VIOLATION] = 0.0
    if instance.constrained:
        _count_penalties(instance, state)


@kernel
def _count_penalties(instance: Instance, state: State) -> None:
    state.document_topics[:] = 0
    state.topic_documents[:] = 0
    for d in range(len(state.by_document)):
        for k in range(instance.n_topics):
            if state.by_document[d, k] > 0:
                state.document_topics[d] += 1
                state.topic_documents[k] += 1
        _charge(state, instance.max_topics_weight, max(state.document_topics[d] - instance.max_topics, 0))
    for k in range(instance.n_topics):
        _charge(state, instance.min_documents_weight, max(instance.min_documents - state.topic_documents[k], 0))
    for v in range(len(state.by_word)):
        for k in range(instance.n_topics):
            if state.by_word[v, k] > 0:
                # Pairs of two present words are met from both ends.
                for q in range(instance.conflict_start[v], instance.conflict_start[v + 1]):
                    if instance.conflict_words[q] < v and state.by_word[instance.conflict_words[q], k] > 0:
                        state.score[VIOLATION] += 1.0
                for q in range(instance.pair_start[v], instance.pair_start[v + 1]):
                    w = instance.pair_words[q]
                    if (state.by_word[w, k] > 0 and w < v) or (state.by_word[w, k] == 0 and instance.pair_together[q]):
                        state.score[VALUE] -= instance.pair_weights[q]
    for i in range(len(state.labels)):
        for q in range(instance.wish_start[i], instance.wish_start[i + 1]):
            if instance.wish_topics[q] != state.labels[i]:
                state.score[VALUE] -= instance.wish_costs[q]


@kernel
def _charge(state: State, weight: float, units: int) -> None:
    """Units of a violated limit: counted where it is hard, paid for where it is soft."""
    if units != 0:
        if weight == math.inf:
            state.score[VIOLATION] += units
        else:
            state.score[VALUE] -= weight * units


@kernel
def shift(instance: Instance, state: State, item: int, target: int) -> None:
    """Move an item; everything in the state follows."""
    source = state.labels[item]
    for q in range(instance.item_start[item], instance.item_start[item + 1]):
        _shift_cell(instance, state, instance.item_cells[q], source, target)
    for q in range(instance.wish_start[item], instance.wish_start[item + 1]):
        if instance.wish_topics[q] == source:
            state.score[VALUE] -= instance.wish_costs[q]
        elif instance.wish_topics[q] == target:
            state.score[VALUE] += instance.wish_costs[q]
    state.labels[item] = target


@kernel
def _shift_cell(instance: Instance, state: State, cell: int, source: int, target: int) -> None:
    d, v, n = instance.document[cell], instance.word[cell], instance.tokens[cell]
    in_document, of_word, total = state.by_document[d], state.by_word[v], state.totals
    A, E, T = instance.tables.document, instance.tables.word, instance.tables.topic
    gain = A[in_document[target] + n] - A[in_document[target]] + A[in_document[source] - n] - A[in_document[source]]
    gain += E[of_word[target] + n] - E[of_word[target]] + E[of_word[source] - n] - E[of_word[source]]
    gain -= T[total[target] + n] - T[total[target]] + T[total[source] - n] - T[total[source]]
    state.score[VALUE] += gain
    in_document[source] -= n
    in_document[target] += n
    of_word[source] -= n
    of_word[target] += n
    total[source] -= n
    total[target] += n
    if instance.constrained:
        if in_document[source] == 0:
            _count_topic(instance, state, d, source, -1)
        if in_document[target] == n:
            _count_topic(instance, state, d, target, 1)
        if of_word[source] == 0:
            _count_word(instance, state, v, source, -1)
        if of_word[target] == n:
            _count_word(instance, state, v, target, 1)


@kernel
def _count_topic(instance: Instance, state: State, d: int, k: int, change: int) -> None:
    """Document d has gained (1) or lost (-1) topic k."""
    topics, documents = state.document_topics[d], state.topic_documents[k]
    excess = max(topics + change - instance.max_topics, 0) - max(topics - instance.max_topics, 0)
    missing = max(instance.min_documents - documents - change, 0) - max(instance.min_documents - documents, 0)
    state.document_topics[d] += change
    state.topic_documents[k] += change
    _charge(state, instance.max_topics_weight, excess)
    _charge(state, instance.min_documents_weight, missing)


@kernel
def _count_word(instance: Instance, state: State, v: int, k: int, change: int) -> None:
    """Topic k has gained (1) or lost (-1) word v."""
    cost, violation = _word_penalty(instance, state, v, k)
    state.score[VALUE] -= change * cost
    state.score[VIOLATION] += change * violation


@kernel
def cell_gains(
    tables: Tables, in_document: IntArray, of_word: IntArray, total: IntArray, n: int, source: int, gains: FloatArray
) -> None:
    """What F gains when n tokens of one cell move from their topic to every other."""
    A, E, T = tables.document, tables.word, tables.topic
    loss = A[in_document[source]] - A[in_document[source] - n] + E[of_word[source]] - E[of_word[source] - n]
    loss -= T[total[source]] - T[total[source] - n]
    for k in range(len(total)):
        gain = A[in_document[k] + n] - A[in_document[k]] + E[of_word[k] + n] - E[of_word[k]]
        gains[k] = gain - (T[total[k] + n] - T[total[k]]) - loss
    gains[source] = 0.0


@kernel
def add_penalties(
    instance: Instance, state: State, cell: int, source: int, gains: FloatArray, violations: FloatArray
) -> None:
    """Take off the gains what soft constraints cost more, and count by how much more hard ones are violated."""
    d, v, n = instance.document[cell], instance.word[cell], instance.tokens[cell]
    topics, documents, least = state.document_topics[d], state.topic_documents, instance.min_documents
    leaves_document = 1 if state.by_document[d, source] == n else 0
    word_cost, word_violation = 0.0, 0.0
    if state.by_word[v, source] == n:
        word_cost, word_violation = _word_penalty(instance, state, v, source)
    excess = max(topics - instance.max_topics, 0)
    missing = max(least - documents[source] + leaves_document, 0) - max(least - documents[source], 0)
    for k in range(instance.n_topics):
        violations[k] = 0.0
        if k == source:
            continue
        arrives = 1 if state.by_document[d, k] == 0 else 0
        more = max(topics - leaves_document + arrives - instance.max_topics, 0) - excess
        less = missing + max(least - documents[k] - arrives, 0) - max(least - documents[k], 0)
        for units, weight in ((more, instance.max_topics_weight), (less, instance.min_documents_weight)):
            if units != 0 and weight == math.inf:
                violations[k] += units
            elif units != 0:
                gains[k] -= weight * units
        gains[k] += word_cost
        violations[k] -= word_violation
        if state.by_word[v, k] == 0:
            cost, violation = _word_penalty(instance, state, v, k)
            gains[k] -= cost
            violations[k] += violation
    item = instance.cell_item[cell]
    for q in range(instance.wish_start[item], instance.wish_start[item + 1]):
        if instance.wish_topics[q] == source:
            gains -= instance.wish_costs[q]
            gains[source] += instance.wish_costs[q]
        else:
            gains[instance.wish_topics[q]] += instance.wish_costs[q]


@kernel
def _word_penalty(instance: Instance, state: State, v: int, k: int) -> tuple[float, float]:
    """What soft and hard links charge for the presence of word v in topic k."""
    cost, violation = 0.0, 0.0
    for q in range(instance.conflict_start[v], instance.conflict_start[v + 1]):
        if state.by_word[instance.conflict_words[q], k] > 0:
            violation += 1.0
    for q in range(instance.pair_start[v], instance.pair_start[v + 1]):
        # A soft must-link charges a topic once for both words, a soft cannot-link only where both are.
        if (state.by_word[instance.pair_words[q], k] > 0) != instance.pair_together[q]:
            cost += instance.pair_weights[q]
    return cost, violation


@kernel
def better(value: float, violation: float, than_value: float, than_violation: float) -> bool:
    """Fewer violations, or as many and a value that is larger beyond rounding."""
    if violation != than_violation:
        return violation < than_violation
    return value > than_value + LEAST_GAIN
