"""Topics against variational Bayes and collapsed Gibbs sampling in MAP values and scale, against SCIP in proofs.

All values are of one objective, the joint log-posterior with optimal Theta and beta for the labels that a method ends
with. Seconds are of the processor, but for limits. `topics_perplexity` compares predictions.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable

import numpy as np
import tomotopy
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.decomposition import LatentDirichletAllocation

from benchmarks import newsgroups
from certimap import LatentDirichletMAP, verify
from certimap.baselines.gibbs_topics import gibbs_topics_best, gibbs_topics_mode, topic_chain
from certimap.baselines.scip_topics import scip_topics
from certimap.baselines.topic_posterior import token_objective
from certimap.baselines.variational_topics import variational_topics
from certimap.topics.factor import topic_model
from certimap.topics.objective import TopicObjective
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem
from certimap.topics.solve import solve_topics

CORPORA = [(20, 15, 3, 0), (30, 15, 4, 0), (50, 25, 5, 0), (50, 25, 5, 1), (100, 50, 5, 0), (300, 150, 5, 0)]
PRIORS = [(1.1, 1.1), (1.5, 1.1), (1.02, 1.02), (2.0, 1.5)]
# Documents, words, topics, seed, relative gap to reach, seconds for it.
PROOFS = [
    (20, 15, 3, 0, 1e-3, 10.0),
    (20, 15, 3, 1, 1e-3, 10.0),
    (30, 15, 4, 0, 1e-3, 60.0),
    (30, 15, 4, 1, 1e-3, 60.0),
    (50, 25, 5, 0, 5e-3, 600.0),
    (50, 25, 5, 1, 1.5e-2, 600.0),
]
PEER_SECONDS = 30.0  # of SCIP for a proof
SCALE_WORDS, SCALE_TOPICS = 10_000, 20
# So many that the peers take about as long as the search.
VARIATIONAL_RUNS = 15
GIBBS_CHAINS = 20
TOMOTOPY_SWEEPS = 1000
Ints = NDArray[np.int64]


def map_values() -> Iterable[str]:
    """Every corpus with every prior; a lead is (ours - peer's) / |ours|."""
    _compile()
    leads = []
    for n_documents, n_words, n_topics, seed in CORPORA:
        counts = newsgroups.draw(n_documents, n_words, seed)
        for alpha, eta in PRIORS:
            problem = TopicProblem.from_counts(counts, TopicPrior(alpha, eta), n_topics)
            ours, seconds = _timed(lambda p=problem: solve_topics(p, algorithm="local-search").log_map)
            vb, vb_seconds = _timed(lambda p=problem: _best_variational(p))
            gibbs, gibbs_seconds = _timed(lambda p=problem: _best_gibbs(p))
            lead = (ours - max(vb, gibbs)) / abs(ours)
            leads.append(lead)
            yield (
                f"topics MAP {n_documents}x{n_words}x{n_topics} seed {seed} alpha {alpha:g} eta {eta:g}: "
                f"{ours:.4f} {seconds:.2f} s | variational Bayes {vb:.4f} {vb_seconds:.2f} s | Gibbs {gibbs:.4f} "
                f"{gibbs_seconds:.2f} s | lead {100 * lead:.2f} %, time ratio {vb_seconds / seconds:.1f}, "
                f"{gibbs_seconds / seconds:.1f}"
            )
    yield f"topics MAP: above both peers on {sum(lead > 0 for lead in leads)} of {len(leads)}"


def proofs() -> Iterable[str]:
    """Certified gaps, with the time limit of each; every certificate is verified, long ones by a sample."""
    _compile()
    for n_documents, n_words, n_topics, seed, gap, limit in PROOFS:
        problem = TopicProblem.from_counts(newsgroups.draw(n_documents, n_words, seed), TopicPrior(1.1, 1.1), n_topics)
        started = time.process_time()
        ours = solve_topics(problem, tol=gap, time_limit=limit)
        seconds = time.process_time() - started
        verify(ours.certificate, topic_model(problem))
        peer = scip_topics(problem, time_limit=PEER_SECONDS).returned
        yield (
            f"topics proof {n_documents}x{n_words}x{n_topics} seed {seed}, wanted {100 * gap:g} % in {limit:g} s: "
            f"{ours.log_map:.4f} bound {ours.upper_bound:.4f} gap {100 * ours.relative_gap:.3f} % {ours.status.name} "
            f"{ours.statistics['nodes']} nodes {seconds:.1f} s | SCIP {peer.log_map:.4f} bound {peer.upper_bound:.4f} "
            f"gap {100 * peer.relative_gap:.1f} % {PEER_SECONDS:g} s | "
            f"gap ratio {peer.relative_gap / ours.relative_gap:.0f}"
        )


def scale() -> Iterable[str]:
    """All of 20 Newsgroups, one start of each method, one thread."""
    _compile()
    counts = newsgroups.whole(SCALE_WORDS)
    problem = TopicProblem.from_counts(counts, TopicPrior(1.1, 1.1), SCALE_TOPICS)
    ours, seconds = _timed(lambda: LatentDirichletMAP(SCALE_TOPICS, n_init=1, random_state=0).fit(counts).log_map_)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes on Linux, with the corpus and numba
    vb, vb_seconds = _timed(lambda: _variational(counts, problem))
    gibbs, gibbs_seconds = _timed(lambda: _tomotopy(counts, problem))
    yield (
        f"topics scale {counts.shape[0]} documents, {counts.shape[1]} words, {SCALE_TOPICS} topics: {ours:.0f} "
        f"{seconds:.1f} s, at most {memory:.1f} GB in use | scikit-learn {vb:.0f} {vb_seconds:.1f} s | "
        f"tomotopy {TOMOTOPY_SWEEPS} sweeps {gibbs:.0f} "
        f"{gibbs_seconds:.1f} s | time ratio {vb_seconds / seconds:.1f}, {gibbs_seconds / seconds:.1f}"
    )


def _best_variational(problem: TopicProblem) -> float:
    """The best value over single runs, rather than the value of the run with the best evidence bound."""
    runs = (variational_topics(problem, n_init=1, max_iter=100, seed=seed) for seed in range(VARIATIONAL_RUNS))
    return max(run.refitted.log_map for run in runs)


def _best_gibbs(problem: TopicProblem) -> float:
    """The best of the modes and best samples of several chains of 1,000 sweeps."""
    return max(_gibbs(problem, seed) for seed in range(GIBBS_CHAINS))


def _gibbs(problem: TopicProblem, seed: int) -> float:
    chain = topic_chain(problem, seed=seed)
    return max(run(problem, chain).refitted.log_map for run in (gibbs_topics_mode, gibbs_topics_best))


def _variational(counts: csr_array, problem: TopicProblem) -> float:
    """scikit-learn's defaults but for the prior; every cell in its most probable topic."""
    model = LatentDirichletAllocation(
        problem.n_topics, doc_topic_prior=problem.prior.alpha, topic_word_prior=problem.prior.eta, random_state=0
    )
    with config_context(skip_parameter_validation=True):
        theta = model.fit_transform(counts.astype(np.float64))
    beta = model.components_ / model.components_.sum(axis=1, keepdims=True)
    labels = np.empty(len(problem.cells), dtype=np.int64)
    for part in np.array_split(np.arange(len(labels)), 20):
        labels[part] = (theta[problem.cells.document[part]] * beta[:, problem.cells.word[part]].T).argmax(axis=1)
    return problem.objective.partition_value(labels)


def _tomotopy(counts: csr_array, problem: TopicProblem) -> float:
    """The last sample; the prior of its token-wise sampler is the one with the same MAP pseudo-counts."""
    prior = problem.prior
    model = tomotopy.LDAModel(k=problem.n_topics, alpha=prior.a, eta=prior.e, seed=0)
    model.optim_interval = 0  # the prior stays as it is
    for d in range(counts.shape[0]):
        own = slice(counts.indptr[d], counts.indptr[d + 1])
        if own.start < own.stop:
            model.add_doc([str(v) for v in np.repeat(counts.indices[own], counts.data[own])])
    model.train(TOMOTOPY_SWEEPS, workers=1)
    return _value_of_samples(model, problem)


def _value_of_samples(model: tomotopy.LDAModel, problem: TopicProblem) -> float:
    """tomotopy keeps the order of the tokens, which is that of the cells."""
    labels = np.concatenate([np.asarray(document.topics, dtype=np.int64) for document in model.docs])
    objective: TopicObjective = token_objective(problem)
    assert len(labels) == len(objective.cells)
    return objective.partition_value(labels)


def _timed(solve: Callable[[], float]) -> tuple[float, float]:
    started = time.process_time()
    return solve(), time.process_time() - started


def _compile() -> None:
    """Every method once, so that no time is a compiler's."""
    counts = np.random.default_rng(0).poisson(0.5, (20, 10))
    problem = TopicProblem.from_counts(counts, TopicPrior(1.1, 1.1), 2)
    solve_topics(problem)
    _gibbs(problem, 0)
