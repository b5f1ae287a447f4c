"""Every labelling of a small corpus, valued from the arguments alone, and random constraints of every kind."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import xlogy

from certimap.topics.charges import Charges
from certimap.topics.objective import Cells
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem

KINDS = (
    "must_link_words",
    "cannot_link_words",
    "seed_words",
    "fixed_tokens",
    "max_topics",
    "min_documents",
)
SOFT_KINDS = (
    "soft_must_link_words",
    "soft_cannot_link_words",
    "soft_seed_words",
    "soft_fixed_tokens",
    "soft_max_topics",
    "soft_min_documents",
)


@dataclass(frozen=True)
class Corpus:
    """Counts, a prior and constraints as `TopicProblem.from_counts` takes them."""

    counts: np.ndarray
    n_topics: int
    alpha: float
    eta: float
    constraints: dict[str, Any]

    def problem(self) -> TopicProblem:
        return TopicProblem.from_counts(
            self.counts, TopicPrior(self.alpha, self.eta), self.n_topics, **self.constraints
        )

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """All labellings of the cells, shape (L, C), and their values; -inf where a constraint is violated."""
        document, word = np.nonzero(self.counts)
        count, K = self.counts[document, word], self.n_topics
        labels = np.array(list(itertools.product(range(K), repeat=len(count))), dtype=np.int64).reshape(
            K ** len(count), -1
        )
        tokens = np.zeros((len(labels), *self.counts.shape, K), dtype=np.int64)
        for c, (d, v) in enumerate(zip(document, word, strict=True)):
            tokens[np.arange(len(labels)), d, v, labels[:, c]] = count[c]
        by_document, by_word = tokens.sum(axis=2), tokens.sum(axis=1)
        a, e, V = self.alpha - 1.0, self.eta - 1.0, self.counts.shape[1]
        value = xlogx(by_document + a).sum(axis=(1, 2)) - xlogx(self.counts.sum(axis=1) + K * a).sum()
        value += xlogx(by_word + e).sum(axis=(1, 2)) - xlogx(by_word.sum(axis=1) + V * e).sum(axis=1)
        return labels, value - self._cost(tokens, by_document > 0, by_word > 0)

    def optimum(self) -> float:
        return float(self.values()[1].max())

    def _groups(self) -> list[list[int]]:
        """For every word, itself and the words that hard must-links tie it to."""
        tied = np.eye(self.counts.shape[1], dtype=np.int64)
        for u, w in self.constraints.get("must_link_words", ()):
            tied[u, w] = tied[w, u] = 1
        for _ in range(len(tied)):
            tied = np.minimum(tied @ tied, 1)
        return [np.flatnonzero(row).tolist() for row in tied]

    def _cost(self, tokens: np.ndarray, uses: np.ndarray, holds: np.ndarray) -> np.ndarray:
        """Of the soft constraints, inf where a hard one is violated; `uses` (L, D, K), `holds` (L, V, K)."""
        given, K, groups = self.constraints, self.n_topics, self._groups()
        cost = np.zeros(len(tokens))

        def charge(weight: float, amount: np.ndarray) -> None:
            cost[amount > 0] += weight * amount[amount > 0]

        for group in (group for group in groups if len(group) > 1):
            charge(math.inf, np.maximum(holds[:, group].any(axis=1).sum(axis=1) - 1, 0))
        for u, w in given.get("cannot_link_words", ()):
            if w in groups[u]:
                cost += math.inf
            charge(math.inf, (holds[:, groups[u]].any(axis=1) & holds[:, groups[w]].any(axis=1)).sum(axis=1))
        for v, k in given.get("seed_words", ()):
            charge(
                math.inf, tokens[:, :, groups[v], :].sum(axis=(1, 2, 3)) - tokens[:, :, groups[v], k].sum(axis=(1, 2))
            )
        for u, w, weight in given.get("soft_must_link_words", ()):
            charge(weight, np.maximum((holds[:, u] | holds[:, w]).sum(axis=1) - 1, 0))
        for u, w, weight in given.get("soft_cannot_link_words", ()):
            charge(weight, (holds[:, u] & holds[:, w]).sum(axis=1))
        for v, k, weight in given.get("soft_seed_words", ()):
            charge(weight, tokens[:, :, v, :].sum(axis=(1, 2)) - tokens[:, :, v, k].sum(axis=1))
        for d, v, k, *weight in [*given.get("fixed_tokens", ()), *given.get("soft_fixed_tokens", ())]:
            charge(weight[0] if weight else math.inf, tokens[:, d, v, :].sum(axis=1) - tokens[:, d, v, k])
        most, least = given.get("max_topics") or K, given.get("min_documents") or 0
        excess = np.maximum(uses.sum(axis=2) - most, 0).sum(axis=1)
        charge(given.get("max_topics_weight", math.inf), excess)
        missing = np.maximum(least - uses.sum(axis=1), 0).sum(axis=1)
        charge(given.get("min_documents_weight", math.inf), missing)
        return cost


def xlogx(x: np.ndarray) -> np.ndarray:
    return np.asarray(xlogy(x, x))


def random_counts(rng: np.random.Generator, documents: int, words: int, cells: int) -> np.ndarray:
    """At most so many nonzero counts, some documents and words possibly empty."""
    counts = np.zeros(documents * words, dtype=np.int64)
    chosen = rng.permutation(documents * words)[:cells]
    counts[chosen] = rng.integers(1, 5, size=len(chosen))
    return counts.reshape(documents, words)


def random_constraints(rng: np.random.Generator, counts: np.ndarray, K: int, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Constraints of these kinds; they may contradict each other."""
    D, V = counts.shape
    given: dict[str, Any] = {}
    cells = np.argwhere(counts)
    for kind in kinds:
        soft = kind.startswith("soft_")
        weight = (float(rng.choice([0.3, 1.0, 3.0])),) if soft else ()
        if "link" in kind:
            pairs = [tuple(rng.choice(V, 2, replace=False).tolist()) for _ in range(rng.integers(1, 3))]
            given[kind] = [(*pair, *weight) for pair in pairs]
        elif "seed" in kind:
            given[kind] = [(int(rng.integers(V)), int(rng.integers(K)), *weight)]
        elif "tokens" in kind:
            given[kind] = [(*cells[rng.integers(len(cells))].tolist(), int(rng.integers(K)), *weight)]
        else:
            name = kind.removeprefix("soft_")
            given[name] = int(rng.integers(1, K + 1)) if name == "max_topics" else int(rng.integers(1, D + 1))
            if soft:
                given[f"{name}_weight"] = weight[0]
    return given


def random_corpus(
    rng: np.random.Generator, documents: int, words: int, cells: int, n_topics: int, kinds: tuple[str, ...] = ()
) -> Corpus:
    counts = random_counts(rng, documents, words, cells)
    alpha, eta = rng.choice([1.0, 1.1, 2.0]), rng.choice([1.0, 1.1, 1.5])
    return Corpus(counts, n_topics, float(alpha), float(eta), random_constraints(rng, counts, n_topics, kinds))


def random_charges(rng: np.random.Generator, cells: Cells) -> Charges:
    """Soft constraints of all kinds that single topics are charged for, with two anchors."""
    words = np.unique(cells.word)
    pairs = np.sort([rng.choice(words, 2, replace=False) for _ in range(3)], axis=1)
    wished = rng.choice(len(cells), 3, replace=False)
    return replace(
        Charges.none(int(rng.integers(0, 4))),
        pair_words=pairs,
        pair_weights=rng.choice([0.3, 1.0, 3.0], 3),
        pair_together=np.array([True, False, False]),
        wish_cells=wished,
        wish_anchors=np.array([0, 1, 0]),
        wish_costs=rng.choice([0.5, 2.0], 3),
        anchor_topics=np.array([0, 1]),
        document_cost=float(rng.choice([0.0, 0.7])),
        min_documents_weight=float(rng.choice([0.4, 2.0, math.inf])),
    )
