"""c(S) of topics from the factor's data: exact but for logarithms, which have 36 digits.

With phi(x) = x log x, a = alpha-1, e = eta-1 and the tokens n_d, n_v and n of S in document d, of word v and in all,

    c(S) = sum_v phi(n_v + e) - phi(n + V e) + sum_d phi(n_d + a),

summed over all documents and words, less what S is charged for soft constraints: for must-linked words if it has
tokens of either, for cannot-linked words if of both, for every document with tokens in it, and for every document that
it misses of `min_documents` (-inf where that is not allowed); plus what it gains for an item that is with its anchor.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from certimap.certificate import CertificateError
from certimap.verification.exact_matrices import LOG_ERROR, log_of

EXCLUDED = Fraction(-(10**400))  # stands for -inf: below all numbers that float64 knows


class TopicValues:
    """Encloses c(S) for sets of cells given by their positions."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        """`arrays` as the factor declares them: what the model's fingerprint covers."""
        self.document = [int(d) for d in arrays["document"]]
        self.word = [int(v) for v in arrays["word"]]
        self.count = [int(n) for n in arrays["count"]]
        self.n_documents, self.n_words = (int(size) for size in arrays["shape"])
        self.a, self.e = (Fraction(float(concentration)) - 1 for concentration in arrays["prior"])
        self.min_documents = int(np.asarray(arrays["min_documents"]))
        if min(self.count, default=1) < 1 or self.a < 0 or self.e < 0:
            raise CertificateError("the topics have counts or priors that no topic model has")
        self._read_charges(arrays)
        charges = [*(weight for _, _, weight, _ in self.pairs), *(cost for _, _, cost in self.wishes)]
        limits = [self.max_topics_cost, self.missing_cost]
        if min([self.document_cost, *charges, *(cost for cost in limits if cost is not None)]) < 0:
            raise CertificateError("the topics have soft constraints of negative weight")

    def _read_charges(self, arrays: Mapping[str, Any]) -> None:
        """Costs are exact; None: not allowed at any price. Anchors are numbered after the cells."""
        given = {key: np.asarray(value, dtype=float) for key, value in arrays.items()}
        none = np.zeros(0)
        words = given.get("pair_words", none).reshape(-1, 2).astype(int).tolist()
        weights, together = given.get("pair_weights", none).tolist(), given.get("pair_together", none).tolist()
        self.pairs = [(u, w, Fraction(c), bool(t)) for (u, w), c, t in zip(words, weights, together, strict=True)]
        wished = (given.get(key, none).astype(int).tolist() for key in ("wish_cells", "wish_anchors"))
        costs = given.get("wish_costs", none).tolist()
        cells = len(self.count)
        self.wishes = [(i, cells + k, Fraction(c)) for i, k, c in zip(*wished, costs, strict=True)]
        self.n_anchors = int(given.get("n_anchors", np.zeros(())))
        self.document_cost = Fraction(float(given.get("document_cost", 0.0)))
        self.max_topics = int(given.get("max_topics", 0))
        self.max_topics_cost = _cost(given.get("max_topics_weight", math.inf))
        self.missing_cost = _cost(given.get("min_documents_weight", math.inf))

    @property
    def mass(self) -> Fraction:
        """V e."""
        return self.n_words * self.e

    def value(self, members: Iterable[int]) -> tuple[Fraction, Fraction]:
        """Numbers below and above c(S), some 30 digits apart."""
        chosen = list(members)
        by_document: Counter[int] = Counter()
        by_word: Counter[int] = Counter()
        for i in chosen:
            if i >= len(self.count):
                continue
            by_document[self.document[i]] += self.count[i]
            by_word[self.word[i]] += self.count[i]
        charge = self._charge(set(chosen), by_document, by_word)
        if charge is None:
            return EXCLUDED, EXCLUDED
        n = sum(by_word.values())
        value = sum((phi(count + self.a) for count in by_document.values()), Fraction(0))
        value += sum((phi(count + self.e) for count in by_word.values()), Fraction(0))
        value += (self.n_documents - len(by_document)) * phi(self.a) + (self.n_words - len(by_word)) * phi(self.e)
        value -= phi(n + self.mass) + charge
        radius = (3 * n + self.n_documents * self.a + 2 * self.mass) * LOG_ERROR
        return value - radius, value + radius

    def _charge(
        self, chosen: Collection[int], by_document: Collection[int], by_word: Collection[int]
    ) -> Fraction | None:
        """What a topic is charged; None where it is not allowed."""
        missing = max(0, self.min_documents - len(by_document))
        if missing and self.missing_cost is None:
            return None
        charge = missing * (self.missing_cost or Fraction(0)) + self.document_cost * len(by_document)
        for u, w, weight, together in self.pairs:
            held = (u in by_word) + (w in by_word)
            charge += weight if held == 2 or (together and held) else 0
        return charge - sum((cost for i, k, cost in self.wishes if i in chosen and k in chosen), Fraction(0))

    def excess(self, topics: Sequence[int]) -> Fraction:
        """What an assignment costs beyond its topics: a document in more of them than the limit."""
        if not self.max_topics:
            return Fraction(0)
        used: dict[int, set[int]] = {}
        for d, k in zip(self.document, topics, strict=False):
            used.setdefault(d, set()).add(k)
        beyond = sum(max(0, len(own) - self.max_topics) for own in used.values())
        if beyond and self.max_topics_cost is None:
            raise CertificateError(f"a document is in more than {self.max_topics} topics")
        return beyond * (self.max_topics_cost or Fraction(0))


def _cost(weight: Any) -> Fraction | None:
    return Fraction(float(weight)) if math.isfinite(weight) else None


@cache
def phi(x: Fraction) -> Fraction:
    """x log x within x LOG_ERROR; 0 at 0."""
    return x * log_of(x) if x > 0 else Fraction(0)
