"""c(S) of topics from the factor's data: exact but for logarithms, which have 36 digits.

With phi(x) = x log x, a = alpha-1, e = eta-1 and the tokens n_d, n_v and n of S in document d, of word v and in all,

    c(S) = sum_v phi(n_v + e) - phi(n + V e) + sum_d phi(n_d + a),

summed over all documents and words; -inf where S has tokens in fewer than `min_documents` documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
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
            by_document[self.document[i]] += self.count[i]
            by_word[self.word[i]] += self.count[i]
        if len(by_document) < self.min_documents:
            return EXCLUDED, EXCLUDED
        n = sum(by_word.values())
        value = sum((phi(count + self.a) for count in by_document.values()), Fraction(0))
        value += sum((phi(count + self.e) for count in by_word.values()), Fraction(0))
        value += (self.n_documents - len(by_document)) * phi(self.a) + (self.n_words - len(by_word)) * phi(self.e)
        value -= phi(n + self.mass)
        radius = (3 * n + self.n_documents * self.a + 2 * self.mass) * LOG_ERROR
        return value - radius, value + radius


@cache
def phi(x: Fraction) -> Fraction:
    """x log x within x LOG_ERROR; 0 at 0."""
    return x * log_of(x) if x > 0 else Fraction(0)
