"""LatentDirichletMAP: parameters, constraints, fitted attributes, prediction, and life in scikit-learn."""

import math
import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_matrix, csr_array
from scipy.special import xlogy
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from tests.corpus import COUNTS, SUBJECTS, TEXTS, WORDS
from tests.helpers import assert_solved

from certimap import LatentDirichletMAP, Status, StopReason
from certimap.estimators.errors import NoFeasiblePointError
from certimap.metrics import fold_in

K = len(SUBJECTS)
DENSE = COUNTS.toarray()


def fitted(X: Any = COUNTS, n_topics: int = K, **constraints: Any) -> LatentDirichletMAP:
    model = LatentDirichletMAP(n_topics, n_init=6, random_state=0, algorithm="local-search")
    return model.fit(X, vocabulary=WORDS, **constraints)


def topics_of(model: LatentDirichletMAP, word: str) -> set[int]:
    """The topics that have tokens of a word."""
    return set(np.flatnonzero(model.topic_word_counts_[:, WORDS.index(word)]).tolist())


@pytest.fixture(scope="module")
def plain() -> LatentDirichletMAP:
    return fitted()


def test_subjects_are_found(plain: LatentDirichletMAP) -> None:
    subject = np.repeat(np.arange(K), len(TEXTS) // K)
    topic = plain.doc_topic_.argmax(axis=1)
    assert len(set(zip(subject, topic, strict=True))) == K
    assert {"ship", "harbour", "captain"} <= set(plain.top_words(n=6)[topic[-1 - len(TEXTS) // K]])
    assert plain.top_words(list(reversed(WORDS)), 1) != plain.top_words(n=1)


def test_fitted_attributes(plain: LatentDirichletMAP) -> None:
    D, V = DENSE.shape
    assert plain.assignments_.shape == (COUNTS.nnz,)
    assert plain.components_.shape == (K, V)
    assert plain.doc_topic_.shape == (D, K)
    assert_allclose(plain.components_.sum(axis=1), 1.0)
    assert_allclose(plain.doc_topic_.sum(axis=1), 1.0)
    # The four terms of the posterior at the returned point, topics of the cells in the order of the nonzero counts.
    d, v = np.nonzero(DENSE)
    z, n = plain.assignments_, DENSE[d, v]
    value = float(n @ (np.log(plain.doc_topic_[d, z]) + np.log(plain.components_[z, v])))
    value += 0.1 * float(np.log(plain.doc_topic_).sum() + np.log(plain.components_).sum())
    assert plain.log_map_ == pytest.approx(value, rel=1e-12)
    assert_array_equal(plain.topic_word_counts_.sum(axis=0), DENSE.sum(axis=0))
    assert plain.status_ is Status.FEASIBLE
    assert plain.stop_reason_ is StopReason.ITERATIONS
    assert plain.upper_bound_ == plain.gap_ == math.inf
    assert plain.history_[-1].incumbent == plain.log_map_
    assert (plain.seed_, plain.vocabulary_, plain.n_features_in_) == (0, WORDS, V)
    assert plain.certificate_ is None


def test_certified_small_corpus() -> None:
    X = [[3, 1, 0], [2, 2, 0], [0, 1, 4]]
    model = LatentDirichletMAP(2, n_init=3, random_state=0, max_nodes=20_000).fit(X, must_link_words=[(0, 1)])
    assert model.status_ is Status.OPTIMAL
    assert model.upper_bound_ >= model.log_map_
    report = assert_solved(model.model(), model.result_, status=Status.OPTIMAL)
    assert report is not None
    assert report.lower_bound == pytest.approx(model.log_map_)


def test_hard_constraints_hold() -> None:
    model = fitted(
        must_link_words=[("bread", "ship"), ("ship", WORDS.index("seed"))],
        cannot_link_words=[("butter", "flour")],
        seed_words={2: ["soil", "water"], 0: "rope"},
        fixed_tokens=[(0, "garden", 1)],
        max_topics_per_document=2,
        min_documents_per_topic=5,
    )
    assert topics_of(model, "bread") == topics_of(model, "ship") == topics_of(model, "seed")
    assert len(topics_of(model, "bread")) == 1
    assert not topics_of(model, "butter") & topics_of(model, "flour")
    assert topics_of(model, "soil") == topics_of(model, "water") == {2}
    assert topics_of(model, "rope") == {0}
    d, v = np.nonzero(DENSE)
    assert model.assignments_[(d == 0) & (v == WORDS.index("garden"))] == 1
    uses = np.zeros((len(DENSE), K), dtype=bool)
    uses[d, model.assignments_] = True
    assert uses.sum(axis=1).max() <= 2
    assert uses.sum(axis=0).min() >= 5
    assert model.log_map_ < fitted().log_map_
    checks = model.constraints_.checks(model.problem_, model.assignments_)
    assert len(checks) == 9
    assert all(check.satisfied and check.hard for check in checks)
    summary = "2 must-link, 1 cannot-link, 3 seed, 1 fixed, topics per document <= 2, documents per topic >= 5"
    assert model.constraints_.summary() == summary


def test_soft_constraints_cost_what_they_say(plain: LatentDirichletMAP) -> None:
    soft = {
        "must_link_words": [("bread", "ship", 0.25)],
        "cannot_link_words": [("butter", "bread", 0.5)],
        "seed_words": [("soil", 1, 0.125), ("soil", 0, 0.0)],
        "fixed_tokens": [(0, "garden", 0, 0.0)],
        "max_topics_per_document": (1, 0.01),
        "min_documents_per_topic": (20, 0.02),
    }
    model = fitted(**soft)
    checks = {check.kind: check for check in model.constraints_.checks(model.problem_, model.assignments_)}
    assert set(checks) == {
        "soft must-link",
        "soft cannot-link",
        "soft seed word",
        "soft fixed tokens",
        "soft topics per document",
        "soft documents per topic",
    }
    cost = sum(c.cost for c in model.constraints_.checks(model.problem_, model.assignments_))
    by_document, by_word = model.problem_.objective.token_counts(model.assignments_)
    shifted = (by_document + 0.1, by_word + 0.1)
    value = sum(float(xlogy(n, n / n.sum(axis=1, keepdims=True)).sum()) for n in shifted)
    assert model.log_map_ == pytest.approx(value - cost, rel=1e-12)
    assert cost > 0.0
    assert model.log_map_ >= plain.log_map_ - cost - 1.0
    heavy = fitted(must_link_words=[("bread", "ship", 1e4)], cannot_link_words=[("soil", "water", 1e4)])
    assert len(topics_of(heavy, "bread") | topics_of(heavy, "ship")) == 1
    assert not topics_of(heavy, "soil") & topics_of(heavy, "water")
    assert "1 soft must-link, 1 soft cannot-link" in heavy.constraints_.summary()


def test_transform_climbs_to_the_posterior_of_new_documents(plain: LatentDirichletMAP) -> None:
    theta = plain.transform(COUNTS)
    assert theta.shape == (len(DENSE), K)
    assert_allclose(theta.sum(axis=1), 1.0)
    assert_array_equal(theta.argmax(axis=1), plain.doc_topic_.argmax(axis=1))
    beta = (plain.topic_word_counts_ + 1.1) / (plain.topic_word_counts_ + 1.1).sum(axis=1, keepdims=True)
    # Stationary: every share is its expected part of the tokens and pseudo-tokens.
    expected = theta * ((DENSE / (theta @ beta)) @ beta.T) + 1.1
    assert_allclose(theta, expected / expected.sum(axis=1, keepdims=True), atol=1e-5)
    assert_allclose(fold_in(DENSE, beta, 2.1), theta)
    assert_allclose(plain.transform(np.zeros((1, len(WORDS)))), 1.0 / K)
    assert_allclose(plain.transform(DENSE[:3]), theta[:3])
    sharper = clone(plain).set_params(doc_topic_smoothing=0.01).fit(COUNTS)
    assert (sharper.transform(COUNTS).max(axis=1) > theta.max(axis=1)).all()
    assert_array_equal(plain.get_feature_names_out(), [f"latentdirichletmap{k}" for k in range(K)])


def test_perplexity_completes_documents(plain: LatentDirichletMAP) -> None:
    given, hidden = np.floor(DENSE / 2), np.ceil(DENSE / 2)
    beta = (plain.topic_word_counts_ + 1.1) / (plain.topic_word_counts_ + 1.1).sum(axis=1, keepdims=True)
    log_likelihood = float(xlogy(hidden, plain.transform(given) @ beta).sum())
    assert plain.perplexity(given, hidden) == pytest.approx(np.exp(-log_likelihood / hidden.sum()))
    assert plain.perplexity(csr_array(given), csr_array(hidden)) == pytest.approx(plain.perplexity(given, hidden))
    assert 1.0 < plain.perplexity(COUNTS) < fitted(n_topics=1).perplexity(COUNTS) < len(WORDS)
    assert plain.score(COUNTS) == pytest.approx(-np.log(plain.perplexity(COUNTS)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"must_link_words": [("bread", "stone")]}, "got ('bread', 'stone'): 'stone' is not in the vocabulary"),
        ({"must_link_words": [(0, 24)]}, "must_link_words must hold rows (i, j), got (0, 24): a word is one of 0..23"),
        ({"must_link_words": ["bread"]}, "must hold rows (i, j) or (i, j, weight), got 'bread'"),
        ({"cannot_link_words": [(0, 1, -1.0)]}, "cannot_link_words must have finite weights >= 0, got (0, 1, -1.0)"),
        ({"cannot_link_words": [(2, 2)]}, "cannot_link_words must hold pairs of different words, got (2, 2)"),
        ({"seed_words": {3: ["bread"]}}, "seed_words must hold rows (word, topic), got ('bread', 3): a topic is one"),
        ({"seed_words": [("bread", 0), ("bread", 1)]}, "seed_words puts 'bread' in topic 0, seed_words puts 'bread'"),
        ({"fixed_tokens": [(24, "bread", 0)]}, "a document is one of 0..23"),
        ({"fixed_tokens": [(0, "bread", 0)]}, "document 0 has none of 'bread'"),
        (
            {"fixed_tokens": [(0, "garden")]},
            "must hold rows (document, word, topic) or (document, word, topic, weight)",
        ),
        ({"max_topics_per_document": 0}, "max_topics_per_document must be None, an integer >= 1, or a pair of one and"),
        ({"max_topics_per_document": (1, 2, 3)}, "max_topics_per_document must be None, an integer >= 1, or a pair"),
        ({"min_documents_per_topic": (1, -2)}, "min_documents_per_topic must have finite weights >= 0, got (1, -2)"),
        ({"min_documents_per_topic": 1000}, "min_documents_per_topic must be at most"),
        (
            {"max_topics_per_document": 1, "seed_words": {0: ["soil"], 1: ["water"]}},
            "max_topics_per_document must be at least 2, got 1: seed_words and fixed_tokens put",
        ),
        (
            {"must_link_words": [("soil", "water"), ("water", "root")], "cannot_link_words": [("soil", "root")]},
            "cannot_link_words must not contradict must_link_words, got the pair ('soil', 'root')",
        ),
    ],
)
def test_wrong_fit_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^LatentDirichletMAP\.fit: .*" + re.escape(message)):
        fitted(**arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"doc_topic_prior": 0.5}, "doc_topic_prior must be a finite number >= 1, got 0.5; below 1 the posterior"),
        ({"topic_word_prior": "1"}, "topic_word_prior must be a number, got '1'"),
        ({"doc_topic_smoothing": -1.0}, "doc_topic_smoothing must be a finite number >= 0 or None, got -1.0"),
        ({"topic_word_smoothing": True}, "topic_word_smoothing must be a number or None, got True"),
        ({"max_nodes": 0}, "max_nodes must be an integer >= 1 or None, got 0"),
        ({"n_init": 0}, "n_init must be an integer >= 1, got 0"),
        ({"algorithm": "magic"}, "algorithm must be one of auto, local-search, got 'magic'"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    model = LatentDirichletMAP(**{"n_components": 3, **parameters})
    with pytest.raises(ValueError, match=r"^LatentDirichletMAP\.fit: " + re.escape(message)):
        model.fit(COUNTS)


def test_wrong_data(plain: LatentDirichletMAP) -> None:
    with pytest.raises(ValueError, match=r"X must be whole numbers of tokens >= 0, got 0\.5; the model assigns tokens"):
        LatentDirichletMAP(2).fit([[0.5, 1.0]])
    with pytest.raises(ValueError, match="Negative values in data passed to X in LatentDirichletMAP"):
        LatentDirichletMAP(2).fit([[-1, 1]])
    with pytest.raises(ValueError, match="vocabulary must name the 24 columns of X, got 2 names"):
        LatentDirichletMAP(2).fit(COUNTS, vocabulary=["a", "b"])
    with pytest.raises(ValueError, match=r"the names of the words are not known: give vocabulary, or numbers 0\.\.23"):
        LatentDirichletMAP(2).fit(COUNTS, seed_words={0: ["bread"]})
    unnamed = LatentDirichletMAP(1, n_init=1, algorithm="local-search").fit(COUNTS)
    with pytest.raises(ValueError, match="vocabulary must be given, as the fit was without names of the words"):
        unnamed.top_words()
    with pytest.raises(NotFittedError):
        LatentDirichletMAP(2).transform(COUNTS)
    with pytest.raises(ValueError, match="X has 3 features, but LatentDirichletMAP is expecting 24"):
        plain.transform([[1, 2, 3]])
    assert_allclose(fitted(np.zeros((3, 24))).doc_topic_, 1.0 / K)  # nothing is known


def test_infeasible_constraints_are_named() -> None:
    apart = [("soil", "water"), ("water", "root"), ("soil", "root"), ("rope", "wind")]
    with pytest.raises(NoFeasiblePointError, match="no topic assignment satisfies the constraints") as caught:
        fitted(n_topics=2, cannot_link_words=apart)
    result = caught.value.result
    assert result.status is Status.INFEASIBLE
    assert set(result.conflict) == {
        "cannot_link_words ('soil', 'water')",
        "cannot_link_words ('root', 'water')",
        "cannot_link_words ('root', 'soil')",
    }


def test_pandas_sparse_and_dtypes(plain: LatentDirichletMAP) -> None:
    frame = pd.DataFrame(DENSE, columns=list(WORDS))
    model = LatentDirichletMAP(K, n_init=6, random_state=0, algorithm="local-search").fit(frame)
    assert model.vocabulary_ == WORDS
    assert_array_equal(model.feature_names_in_, WORDS)
    assert_array_equal(model.assignments_, plain.assignments_)
    for X in (DENSE.astype(np.float32), coo_matrix(DENSE), DENSE.tolist(), csr_array(DENSE.astype(np.int32))):
        again = fitted(X)
        assert_array_equal(again.assignments_, plain.assignments_)
        assert again.transform(X).dtype == np.float64


def test_clone_pickle_pipeline(plain: LatentDirichletMAP) -> None:
    again = pickle.loads(pickle.dumps(plain))
    assert_array_equal(again.transform(COUNTS), plain.transform(COUNTS))
    assert again.status_ is plain.status_
    assert not hasattr(clone(plain), "components_")
    pipeline = make_pipeline(CountVectorizer(stop_words="english", min_df=2), clone(plain))
    topics = pipeline.fit_transform(list(TEXTS), latentdirichletmap__max_topics_per_document=1)
    assert topics.shape == (len(TEXTS), K)
    assert (pipeline[-1].doc_topic_ > 0.05).sum(axis=1).max() == 1
    assert_array_equal(pipeline.transform(list(TEXTS)), topics)
    assert pipeline.score(list(TEXTS)) < 0.0


def test_same_seed_same_answer(plain: LatentDirichletMAP) -> None:
    again = clone(plain).set_params(n_jobs=2).fit(COUNTS)
    assert_array_equal(again.assignments_, plain.assignments_)
    assert [r.incumbent for r in again.history_] == [r.incumbent for r in plain.history_]


def test_better_than_variational_bayes(plain: LatentDirichletMAP) -> None:
    peer = LatentDirichletAllocation(K, doc_topic_prior=1.1, topic_word_prior=1.1, random_state=0)
    with config_context(skip_parameter_validation=True):
        theta = peer.fit_transform(COUNTS)
    d, v = np.nonzero(DENSE)
    labels = (theta[d] * peer.components_[:, v].T).argmax(axis=1)
    assert plain.log_map_ >= plain.problem_.objective.partition_value(labels)


def test_verbose_prints_the_log_table(capsys: pytest.CaptureFixture[str]) -> None:
    model = LatentDirichletMAP(2, n_init=2, random_state=0, algorithm="local-search")
    model.fit(COUNTS, must_link_words=[(0, 3)])
    assert capsys.readouterr().out == ""
    model.set_params(verbose=1).fit(COUNTS, must_link_words=[(0, 3)])
    shown = capsys.readouterr().out
    heading = "topics  D=24 V=24 K=2  128 tokens  alpha 1.1 eta 1.1 | 1 must-link | gap target 0.10 %  seed 0"
    assert heading in shown
    assert "status      FEASIBLE  no finite upper bound" in shown


def test_html_badge(plain: LatentDirichletMAP) -> None:
    assert "FEASIBLE · no upper bound" in plain._repr_html_()
    assert plain._repr_mimebundle_()["text/html"].startswith('<span class="certimap-badge"')
    assert "certimap-badge" not in clone(plain)._repr_html_()
