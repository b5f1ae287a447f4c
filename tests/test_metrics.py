"""Metrics against values worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certimap.metrics import (
    contingency,
    held_out_log_likelihood,
    match_topics,
    matched_agreement,
    perplexity,
    top_words,
    variation_of_information,
)

LABELS = st.lists(st.integers(0, 3), min_size=1, max_size=12)


def test_variation_of_information_by_hand() -> None:
    # Halves {0,1},{2,3} against {0,2},{1,3}: independent, so VoI = H + H' = 2 log 2.
    assert variation_of_information([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(2 * np.log(2))
    # {0,1,2,3} against its halves: H = 0, H' = log 2, I = 0.
    assert variation_of_information([5, 5, 5, 5], [1, 1, 2, 2]) == pytest.approx(np.log(2))
    # I = 1/2 log(1/2 / (1/2 3/4)) + 1/4 log(1/4 / (1/2 3/4)) + 1/4 log(1/4 / (1/2 1/4)).
    entropy, other = np.log(2), -0.25 * np.log(0.25) - 0.75 * np.log(0.75)
    mutual = 0.5 * np.log(4 / 3) + 0.25 * np.log(2 / 3) + 0.25 * np.log(2)
    assert variation_of_information([0, 0, 1, 1], [0, 0, 0, 1]) == pytest.approx(entropy + other - 2 * mutual)
    assert variation_of_information([0, 0, 1], ["b", "b", "a"]) == 0.0


@given(LABELS, st.integers(0, 2**32 - 1))
def test_variation_of_information_is_a_metric(labels: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = np.array(labels), rng.integers(3, size=len(labels)), rng.integers(2, size=len(labels))
    assert variation_of_information(a, a) == 0.0
    assert variation_of_information(a, b) == pytest.approx(variation_of_information(b, a), abs=1e-12)
    assert variation_of_information(a, (b + 1) % 3) == pytest.approx(variation_of_information(a, b), abs=1e-12)
    assert variation_of_information(a, c) <= variation_of_information(a, b) + variation_of_information(b, c) + 1e-12


def test_agreement_and_contingency() -> None:
    assert contingency([0, 0, 1, 1, 1], ["x", "y", "y", "y", "x"]).tolist() == [[1, 1], [1, 2]]
    assert matched_agreement([0, 0, 1, 1, 1], ["x", "y", "y", "y", "x"]) == pytest.approx(3 / 5)
    assert matched_agreement([0, 0, 1, 1], [7, 7, 3, 3]) == 1.0
    assert matched_agreement([0, 0, 0, 0], [0, 1, 2, 3]) == 0.25  # one cluster is matched once
    for a, b in (([0, 1], [0]), ([], []), ([[0]], [[0]])):
        with pytest.raises(ValueError, match="label arrays of one length > 0"):
            contingency(a, b)


def test_perplexity_by_hand() -> None:
    theta, beta = [[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    # Document 0: probabilities 1/4, 1/2, 1/4; document 1: 1/2, 1/2, 0.
    counts = [[1, 2, 0], [0, 1, 0]]
    expected = np.log(0.25) + 2 * np.log(0.5) + np.log(0.5)
    assert held_out_log_likelihood(counts, theta, beta) == pytest.approx(expected)
    assert perplexity(counts, theta, beta) == pytest.approx(np.exp(-expected / 4))
    assert perplexity([[3, 4]], [[1.0]], [[0.5, 0.5]]) == pytest.approx(2.0)
    assert perplexity([[3, 0]], [[1.0]], [[1.0, 0.0]]) == 1.0
    assert held_out_log_likelihood([[0, 0, 0], [0, 0, 1]], theta, beta) == -np.inf
    with pytest.raises(ValueError, match=r"the shape \(2, 3\) of Theta @ beta, got \(1, 3\)"):
        held_out_log_likelihood([[1, 0, 0]], theta, beta)
    with pytest.raises(ValueError, match="at least one token"):
        perplexity([[0, 0]], [[1.0]], [[0.5, 0.5]])


def test_topics_by_hand() -> None:
    beta = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.2, 0.6]])
    assert top_words(beta, ["a", "b", "c", "d"], 3) == [["a", "b", "c"], ["d", "c", "a"]]
    assert match_topics(beta, beta[::-1]).tolist() == [1, 0]
    # Overlaps [[.6, .5], [.8, .1]]: greedily .8 + .5 = 1.3 beats .6 + .1.
    first = np.array([[0.5, 0.5, 0.0], [0.1, 0.0, 0.9]])
    second = np.array([[0.3, 0.1, 0.6], [0.5, 0.0, 0.5]])
    overlap = np.array([[0.4, 0.5], [0.7, 0.6]])
    assert np.allclose(np.minimum(first[:, None], second[None]).sum(-1), overlap)
    assert match_topics(first, second).tolist() == [1, 0]
    with pytest.raises(ValueError, match="one column for each of the 2 words"):
        top_words(beta, ["a", "b"])
    with pytest.raises(ValueError, match="equal shapes"):
        match_topics(beta, beta[:, :2])
