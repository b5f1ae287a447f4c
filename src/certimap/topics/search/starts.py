"""Labels a search begins with: random ones that respect the constraints as far as a greedy construction can."""

import numpy as np
from numpy.typing import NDArray

from certimap._numeric.jit import entry, kernel
from certimap.topics.objective import IntArray
from certimap.topics.search.arrays import Instance


@entry
def initial_labels(
    instance: Instance, rng: np.random.Generator, whole_words: bool, topics_per_document: int
) -> IntArray:
    """Fixed items, then the words with cannot-links each in one topic, then every document within its topics.

    A document gets up to so many topics, in which its cells are random; `whole_words`: all cells of a word are in one
    topic. Where the greedy choice fails the ascent has to repair: it counts violations first.
    """
    K = instance.n_topics
    labels = instance.fixed.copy()
    if len(instance.conflict_words) > 0:
        _separate_words(instance, rng, labels)
    for i in range(len(labels)):
        if labels[i] < 0 and instance.item_start[i + 1] > instance.item_start[i] + 1:
            labels[i] = int(rng.random() * K)
    if whole_words:
        _label_words(instance, rng, labels)
    chosen = np.empty(K, dtype=np.int64)
    for d in range(len(instance.document_start) - 1):
        n_chosen = _topics_for_document(instance, rng, labels, d, topics_per_document, chosen)
        for c in range(instance.document_start[d], instance.document_start[d + 1]):
            if labels[instance.cell_item[c]] < 0:
                labels[instance.cell_item[c]] = chosen[int(rng.random() * n_chosen)]
    return labels


@kernel
def _label_words(instance: Instance, rng: np.random.Generator, labels: IntArray) -> None:
    for v in range(len(instance.word_start) - 1):
        k = int(rng.random() * instance.n_topics)
        for q in range(instance.word_start[v], instance.word_start[v + 1]):
            item = instance.cell_item[instance.word_cells[q]]
            if labels[item] < 0:
                labels[item] = k


@kernel
def _topics_for_document(
    instance: Instance, rng: np.random.Generator, labels: IntArray, d: int, most: int, chosen: IntArray
) -> int:
    """Random topics up to `most`, those that the document has already first; their number."""
    K = instance.n_topics
    taken = np.zeros(K, dtype=np.bool_)
    n_chosen = 0
    for c in range(instance.document_start[d], instance.document_start[d + 1]):
        k = labels[instance.cell_item[c]]
        if k >= 0 and not taken[k]:
            taken[k] = True
            chosen[n_chosen] = k
            n_chosen += 1
    if n_chosen < most:
        for k in rng.permutation(K):
            if not taken[k] and n_chosen < most:
                chosen[n_chosen] = k
                n_chosen += 1
    return n_chosen


@kernel
def _separate_words(instance: Instance, rng: np.random.Generator, labels: IntArray) -> None:
    """Every word with cannot-links into one topic that has no word it may not meet; most links first."""
    n_words, K = len(instance.word_start) - 1, instance.n_topics
    present = np.zeros((n_words, K), dtype=np.bool_)
    for c in range(len(instance.word)):
        if labels[instance.cell_item[c]] >= 0:
            present[instance.word[c], labels[instance.cell_item[c]]] = True
    priority = np.empty(n_words)
    for v in range(n_words):
        priority[v] = rng.random() - (instance.conflict_start[v + 1] - instance.conflict_start[v])
    for v in np.argsort(priority):
        start, end = instance.word_start[v], instance.word_start[v + 1]
        if instance.conflict_start[v] == instance.conflict_start[v + 1] or start == end:
            continue
        k = _free_topic(instance, rng, present, v)
        for q in range(start, end):
            item = instance.cell_item[instance.word_cells[q]]
            if labels[item] < 0:
                labels[item] = k
            present[v, labels[item]] = True


@kernel
def _free_topic(instance: Instance, rng: np.random.Generator, present: NDArray[np.bool_], v: int) -> int:
    """A random topic without words that v may not meet; any topic if there is none."""
    found, seen = int(rng.random() * instance.n_topics), 0.0
    for k in range(instance.n_topics):
        free = True
        for q in range(instance.conflict_start[v], instance.conflict_start[v + 1]):
            free = free and not present[instance.conflict_words[q], k]
        if free:
            seen += 1.0
            if rng.random() * seen < 1.0:
                found = k
    return found
