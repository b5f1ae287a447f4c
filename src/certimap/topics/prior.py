"""The prior of the topic model, checked before anything is computed from it."""

import math
from dataclasses import dataclass
from numbers import Real


@dataclass(frozen=True)
class TopicPrior:
    """Theta_d ~ Dirichlet(alpha, ..., alpha) for every document, beta_k ~ Dirichlet(eta, ..., eta) for every topic.

    Both are at least 1. Below 1 the factor (alpha - 1) log Theta_dk grows without limit as Theta_dk goes to 0, which
    nothing stops where document d has no token of topic k: the posterior density is unbounded and no MAP exists.

    Attributes:
        alpha: concentration of the topics of a document.
        eta: concentration of the words of a topic.
    """

    alpha: float
    eta: float

    def __post_init__(self) -> None:
        for name, value, vanishing in (
            ("doc_topic_prior", self.alpha, "the share of a topic that a document does not use"),
            ("topic_word_prior", self.eta, "the probability of a word that a topic does not use"),
        ):
            if isinstance(value, bool) or not isinstance(value, Real) or not 1.0 <= value < math.inf:
                raise ValueError(
                    f"{name} must be a finite number >= 1, got {value!r}; below 1 the posterior density is unbounded "
                    f"where {vanishing} goes to 0, so that no MAP exists."
                )

    @property
    def a(self) -> float:
        """alpha - 1: pseudo-tokens of every topic in a document."""
        return float(self.alpha) - 1.0

    @property
    def e(self) -> float:
        """eta - 1: pseudo-tokens of every word in a topic."""
        return float(self.eta) - 1.0
