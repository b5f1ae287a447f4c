"""The model of constrained topics: its value at every labelling, and what its clusters add up to."""

import itertools
import math

import numpy as np
import pytest
from tests.topics.brute import KINDS, SOFT_KINDS, random_corpus

from certimap.topics.factor import TopicClusters, model_labels, topic_model


@pytest.mark.parametrize("kind", [*KINDS, *SOFT_KINDS])
@pytest.mark.parametrize("seed", range(3))
def test_value_of_the_model_is_that_of_the_problem(kind: str, seed: int) -> None:
    rng = np.random.default_rng(100 * seed + (KINDS + SOFT_KINDS).index(kind))
    kinds = (kind, *rng.choice(SOFT_KINDS, 2, replace=False).tolist())
    corpus = random_corpus(rng, 3, 3, 5, 3, kinds)
    labels, values = corpus.values()
    try:
        problem = corpus.problem()
    except ValueError:
        assert values.max() == -math.inf
        return
    model = topic_model(problem)
    (factor,) = model.factors
    assert isinstance(factor, TopicClusters)
    first = np.unique(problem.cell_item, return_index=True)[1]
    met = 0
    for row, value in zip(labels, values, strict=True):
        if (row[first][problem.cell_item] != row).any():
            assert value == -math.inf
            continue
        point = model_labels(problem, row[first])
        if model.violated(point) or model.value(point) == -math.inf:
            assert value == -math.inf
            continue
        met += 1
        assert model.value(point) == pytest.approx(value, abs=1e-9)
        everything = np.concatenate(list(point.values()))
        together = sum(factor.cluster_value(np.flatnonzero(everything == k)) for k in range(3))
        assert together + model.linear.constant >= value - 1e-9
    assert met or values.max() == -math.inf


def test_equal_problems_have_equal_fingerprints() -> None:
    rng = np.random.default_rng(7)
    corpora = [random_corpus(rng, 3, 3, 5, 3, (kind,)) for kind in SOFT_KINDS]
    for corpus, other in itertools.product(corpora, repeat=2):
        same = topic_model(corpus.problem()).fingerprint() == topic_model(other.problem()).fingerprint()
        assert same == (corpus is other)
