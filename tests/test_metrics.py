"""Metrics against values worked out by hand, and against other formulas for the same number."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.optimize import minimize
from sklearn.metrics import mutual_info_score

from certimap.metrics import (
    contingency,
    fold_in,
    halves,
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


@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_against_entropies_and_permutations(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(k, size=n), rng.integers(4, size=n)
    entropies = stats.entropy(np.unique(a, return_counts=True)[1]) + stats.entropy(np.unique(b, return_counts=True)[1])
    assert variation_of_information(a, b) == pytest.approx(entropies - 2 * mutual_info_score(a, b), abs=1e-9)
    renamed = (np.array(names)[a] for names in permutations(range(max(k, 4)), k))
    assert matched_agreement(a, b) == pytest.approx(max(float((z == b).mean()) for z in renamed))


def test_clusterings_at_the_extremes() -> None:
    assert variation_of_information(np.zeros(8), np.arange(8)) == pytest.approx(np.log(8))
    assert variation_of_information([3], [7]) == 0.0 and matched_agreement([3], [7]) == 1.0
    grid = np.arange(16)
    assert variation_of_information(grid // 4, grid % 4) == pytest.approx(2 * np.log(4))  # the largest for 4 clusters


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


@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_topics_are_matched_as_well_as_by_any_permutation(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.dirichlet(np.ones(6), size=k), rng.dirichlet(np.ones(6), size=k)
    matched = match_topics(first, second)
    assert sorted(matched) == list(range(k))
    best = max(np.minimum(first, second[list(order)]).sum() for order in permutations(range(k)))
    assert np.minimum(first, second[matched]).sum() == pytest.approx(best)


def test_top_words_of_equal_probability() -> None:
    assert top_words([[0.2, 0.4, 0.4, 0.0]], ["d", "c", "b", "a"], 9) == [["c", "b", "d", "a"]]


@pytest.mark.parametrize("prior", [1.0, 1.1, 3.0])
def test_folded_in_mixtures_are_optimal(prior: float) -> None:
    """Against a general solver on the simplex."""
    rng = np.random.default_rng(2)
    beta, counts = rng.dirichlet(np.full(7, 0.5), size=3), rng.integers(0, 5, size=(4, 7))

    def value(share: np.ndarray, n: np.ndarray) -> float:
        return float(n @ np.log(share @ beta) + (prior - 1.0) * np.log(share).sum())

    theta = fold_in(sparse.csr_array(counts), beta, prior, sweeps=100_000, tolerance=1e-12)
    assert np.allclose(theta.sum(axis=1), 1.0) and np.array_equal(theta, fold_in(counts, beta, prior, 100_000, 1e-12))
    for n, share in zip(counts, theta, strict=True):
        found = minimize(
            lambda x, n=n: -value(np.exp(x) / np.exp(x).sum(), n), np.zeros(3), method="BFGS", options={"gtol": 1e-9}
        )
        assert value(np.maximum(share, 1e-300), n) >= -found.fun - 1e-8


def test_documents_without_known_words_stay_uniform() -> None:
    beta = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert fold_in([[0, 0, 0], [0, 0, 2]], beta, 1.0).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert fold_in([[4, 0, 0]], beta, 1.0) == pytest.approx(np.array([[1.0, 0.0]]), abs=1e-5)
    with pytest.raises(ValueError, match=r"at least 1, got 0\.5"):
        fold_in([[1, 0, 0]], beta, 0.5)
    with pytest.raises(ValueError, match="each of the 3 words, got 2"):
        fold_in([[1, 0]], beta, 1.1)


def test_halves_share_the_tokens_at_random() -> None:
    counts = np.array([[5, 0, 2], [1, 0, 0], [0, 0, 0], [4, 4, 0]])
    means = np.zeros((4, 3))
    for seed in range(300):
        first, second = (half.toarray() for half in halves(counts, seed))
        assert np.array_equal(first + second, counts) and (first >= 0).all() and (second >= 0).all()
        assert first.sum(axis=1).tolist() == [4, 1, 0, 4]
        means += first / 300
    expected = counts * np.array([4 / 7, 1.0, 0.0, 0.5])[:, None]  # every token equally likely
    assert np.abs(means - expected).max() < 0.15
    assert np.array_equal(halves(counts, 3)[0].toarray(), halves(counts, 3)[0].toarray())


def test_likelihood_is_the_dense_formula() -> None:
    rng = np.random.default_rng(0)
    theta, beta = rng.dirichlet(np.ones(3), size=2100), rng.dirichlet(np.ones(5), size=3)  # more than one batch
    counts = rng.poisson(0.7, size=(2100, 5))
    dense = float((counts * np.log(theta @ beta)).sum())
    assert held_out_log_likelihood(sparse.csr_array(counts), theta, beta) == pytest.approx(dense)
    assert perplexity(counts, theta, beta) == pytest.approx(np.exp(-dense / counts.sum()))
