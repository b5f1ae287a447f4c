"""`LatentDirichletMAP`: constrained, certified topics by latent Dirichlet allocation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from rich.console import Console
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from certimap.estimators.base import CertifiedEstimator
from certimap.estimators.errors import NoFeasiblePointError, named_caller
from certimap.metrics import fold_in, halves, held_out_log_likelihood, perplexity, top_words
from certimap.model.model import Model
from certimap.report.log import LogTable
from certimap.report.topics import describe_topics
from certimap.results import Result
from certimap.topics.constraints import Entries, Limit, Seeds, TopicConstraints
from certimap.topics.factor import topic_model
from certimap.topics.objective import FloatArray, IntArray, normalised
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem
from certimap.topics.solve import TopicAlgorithm, solve_topics

COUNTS = (np.float64, np.float32, np.int64, np.int32)  # what whole numbers come as
# Names of this class for what the problem calls otherwise.
NAMES = {"counts": "X", "max_topics": "max_topics_per_document", "min_documents": "min_documents_per_topic"}


class LatentDirichletMAP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CertifiedEstimator):
    """Maximum a-posteriori topics by latent Dirichlet allocation, with a bound on every other assignment.

    The posterior over the topics z of all tokens, the topics Theta_d of every document and the words beta_k of every
    topic is maximised jointly:

        Theta_d ~ Dirichlet(alpha),  beta_k ~ Dirichlet(eta),  z_di ~ Theta_d,  w_di | z_di = k ~ beta_k.

    All tokens of a word in a document share a topic; without `min_documents_per_topic` nothing is lost by that.
    Topics may stay empty where the posterior wants fewer than `n_components` of them.

    Parameters
    ----------
    n_components : int
        K, the largest number of topics.
    doc_topic_prior : float, default=1.1
        alpha >= 1. Below 1 the posterior density is unbounded, and no MAP exists.
    topic_word_prior : float, default=1.1
        eta >= 1, likewise.
    doc_topic_smoothing : float, default=None
        Pseudo-tokens of every topic in a new document (`transform`, `perplexity`); None: alpha, as in the posterior
        mean.
    topic_word_smoothing : float, default=None
        Pseudo-tokens of every word in a topic when documents are folded in; None: eta, likewise.
    tol : float, default=1e-3
        Relative gap (upper_bound_ - log_map_) / max(1, |log_map_|) at which the answer counts as OPTIMAL.
    max_nodes : int, default=100_000
        Nodes after which the proof stops with the bound it has; None: no limit.
    time_limit : float, default=None
        Seconds after which the fit stops with what it has. Answers are reproducible without it.
    n_init : int, default=10
        Starts of the local search.
    random_state : int, RandomState instance or None, default=None
        Seed of the local search; an int makes the answer reproducible.
    n_jobs : int, default=None
        Threads; None is 1, -1 all cores. The answer does not depend on it.
    algorithm : {"auto", "local-search"}, default="auto"
        "local-search" leaves the proof out; so does "auto" for corpora that are beyond it.
    verbose : int, default=0
        1 prints the log table.

    Attributes
    ----------
    assignments_ : array of shape (n_cells,)
        The topic of every nonzero count, by document and then word; satisfies every hard constraint.
    components_ : array of shape (n_components, n_features)
        beta: the words of every topic, optimal for the assignments; rows sum to one.
    doc_topic_ : array of shape (n_samples, n_components)
        Theta: the topics of every document, optimal for the assignments; rows sum to one.
    topic_word_counts_ : array of shape (n_components, n_features)
        Tokens of every word in every topic.
    log_map_ : float
        Log-posterior density of assignments and parameters, in closed form, without the constants of the model.
    upper_bound_ : float
        No assignment that satisfies the constraints is worth more; inf if nothing was proved.
    gap_ : float
        upper_bound_ - log_map_.
    status_ : certimap.Status
        What is proved.
    stop_reason_ : certimap.StopReason
        Why the fit ended.
    certificate_ : certimap.Certificate or None
        The proof; it speaks about `model()`.
    history_ : tuple of certimap.IterationRecord
    result_ : certimap.Result
        All of these in one.
    constraints_ : TopicConstraints
        The constraints of the fit, checked.
    problem_ : TopicProblem
        What was maximised.
    vocabulary_ : tuple of str or None
        Names of the words, where they are known.
    seed_ : int
        The seed that was used.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from certimap import LatentDirichletMAP
    >>> X = [[3, 2, 0, 0], [2, 4, 1, 0], [0, 0, 3, 2], [0, 1, 2, 3]]
    >>> words = ["goal", "match", "vote", "party"]
    >>> model = LatentDirichletMAP(2, random_state=0).fit(X, vocabulary=words, seed_words={0: ["vote"]})
    >>> model.top_words(n=2)
    [['vote', 'party'], ['match', 'goal']]
    """

    def __init__(
        self,
        n_components: int,
        *,
        doc_topic_prior: float = 1.1,
        topic_word_prior: float = 1.1,
        doc_topic_smoothing: float | None = None,
        topic_word_smoothing: float | None = None,
        tol: float = 1e-3,
        max_nodes: int | None = 100_000,
        time_limit: float | None = None,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        algorithm: TopicAlgorithm = "auto",
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.doc_topic_smoothing = doc_topic_smoothing
        self.topic_word_smoothing = topic_word_smoothing
        self.tol = tol
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.algorithm = algorithm
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        vocabulary: Sequence[str] | None = None,
        must_link_words: Entries | None = None,
        cannot_link_words: Entries | None = None,
        seed_words: Seeds | None = None,
        fixed_tokens: Entries | None = None,
        max_topics_per_document: Limit | None = None,
        min_documents_per_topic: Limit | None = None,
    ) -> Self:
        """Find the assignment of largest posterior density under the constraints, and bound all others.

        Words are columns of X by number, or by name where the names are known. A weight makes a constraint soft:
        violating it costs that much log-density for every topic, token or document too many or missing.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Tokens of every word in every document, whole numbers.
        y : ignored
        vocabulary : names of the columns, default=None
            None: the column names of a data frame.
        must_link_words : rows (word, word) or (word, word, weight), default=None
            All tokens of both words are in one topic.
        cannot_link_words : rows (word, word) or (word, word, weight), default=None
            No topic has tokens of both words.
        seed_words : mapping from topics to words, or rows (word, topic) or (word, topic, weight), default=None
            All tokens of the word are in the topic.
        fixed_tokens : rows (document, word, topic) or (document, word, topic, weight), default=None
            The tokens of the word in the document are in the topic.
        max_topics_per_document : int or (int, weight), default=None
            Most topics that the tokens of a document may be in.
        min_documents_per_topic : int or (int, weight), default=None
            Least number of documents in which every topic has tokens.

        Raises
        ------
        ValueError
            For a wrong argument, and for constraints that no assignment satisfies (NoFeasiblePointError, which names
            the conflict).
        """
        caller = f"{type(self).__name__}.fit"
        data = validate_data(self, X, accept_sparse="csr", dtype=COUNTS, ensure_non_negative=True)
        names = getattr(self, "feature_names_in_", None) if vocabulary is None else vocabulary
        with named_caller(caller, NAMES):
            self._check_parameters()
            constraints = TopicConstraints.from_arguments(
                data.shape,
                int(self.n_components),
                word_names=names,
                must_link_words=must_link_words,
                cannot_link_words=cannot_link_words,
                seed_words=seed_words,
                fixed_tokens=fixed_tokens,
                max_topics_per_document=max_topics_per_document,
                min_documents_per_topic=min_documents_per_topic,
            )
            prior = TopicPrior(self.doc_topic_prior, self.topic_word_prior)
            problem = constraints.problem(data, prior, int(self.n_components))
            seed = self._seed()
            result = self._solve(problem, constraints, seed)
        if result.assignment is None:
            raise NoFeasiblePointError(caller, result, "topic assignment")
        self.constraints_, self.problem_, self.seed_ = constraints, problem, seed
        self.vocabulary_ = constraints.word_names
        self._store(result)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Topics of documents, shape (n_samples, n_components), rows sum to one; no constraint binds new documents.

        The topics of the tokens are summed out, which predicts better than assigning each token to one topic; so the
        rows of the documents of the fit are not `doc_topic_`.
        """
        return self._fold_in(self._counts(X))

    def perplexity(self, X: Any, completion: Any = None) -> float:
        """exp(-log p / tokens) of the second halves of documents, predicted from the first halves; lower is better.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Whole documents, whose tokens are dealt into two halves at random with the seed of the fit; or their first
            parts, where `completion` holds the rest.
        completion : like X, default=None
        """
        first, second = self._parts(X, completion)
        return perplexity(second, self._fold_in(first), self._smoothed_components())

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-probability of a token in the second halves of the documents, given the first; y is ignored."""
        first, second = self._parts(X, None)
        value = held_out_log_likelihood(second, self._fold_in(first), self._smoothed_components())
        return value / max(1.0, float(second.sum()))

    def top_words(self, vocabulary: Sequence[str] | None = None, n: int = 10) -> list[list[str]]:
        """The `n` most probable words of every topic; `vocabulary` as in `fit`, which may have seen it already."""
        check_is_fitted(self)
        names = self.vocabulary_ if vocabulary is None else vocabulary
        if names is None:
            raise ValueError(
                f"{type(self).__name__}.top_words: vocabulary must be given, as the fit was without names of the words."
            )
        return top_words(self.components_, list(names), n)

    def model(self) -> Model:
        """The factor graph that the certificate speaks about: `verify(lda.certificate_, lda.model())`."""
        check_is_fitted(self)
        return topic_model(self.problem_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    # ------------------------------------------------------------------------------------------------------ the fit
    def _check_parameters(self) -> None:
        self._check_integers("n_components", "n_init", optional=("max_nodes",))
        smoothing = ("doc_topic_smoothing", "topic_word_smoothing")
        self._check_numbers("doc_topic_prior", "topic_word_prior", "tol", optional=smoothing)
        for name in smoothing:
            value = getattr(self, name)
            if value is not None and not 0.0 <= value < np.inf:
                raise ValueError(f"{name} must be a finite number >= 0 or None, got {value!r}.")

    def _solve(self, problem: TopicProblem, constraints: TopicConstraints, seed: int) -> Result:
        heading = describe_topics(problem, constraints)
        with LogTable(Console(quiet=not self.verbose), heading=heading, gap=self.tol, seed=seed) as log:
            result = solve_topics(
                problem,
                tol=self.tol,
                max_nodes=self.max_nodes,
                time_limit=self.time_limit,
                n_init=int(self.n_init),
                seed=seed,
                n_jobs=self.n_jobs,
                algorithm=self.algorithm,
                callback=log,
            )
            log.finish(result)
        return result

    def _store(self, result: Result) -> None:
        assert result.assignment is not None
        point = result.assignment
        self.assignments_: IntArray = point["z"]
        self.doc_topic_: FloatArray = point["Theta"]
        self.components_: FloatArray = point["beta"]
        self.topic_word_counts_: IntArray = self.problem_.objective.token_counts(self.assignments_)[1]
        self._store_result(result)

    # --------------------------------------------------------------------------------------------------- prediction
    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _counts(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=COUNTS, ensure_non_negative=True, reset=False)

    def _parts(self, X: Any, completion: Any) -> tuple[Any, Any]:
        """What topics are inferred from, and what is predicted."""
        counts = self._counts(X)
        return halves(counts, self.seed_) if completion is None else (counts, self._counts(completion))

    def _fold_in(self, counts: Any) -> FloatArray:
        smoothing = self.doc_topic_prior if self.doc_topic_smoothing is None else self.doc_topic_smoothing
        return fold_in(counts, self._smoothed_components(), 1.0 + smoothing)

    def _smoothed_components(self) -> FloatArray:
        smoothing = self.topic_word_prior if self.topic_word_smoothing is None else self.topic_word_smoothing
        return normalised(self.topic_word_counts_.astype(np.float64) + smoothing)
