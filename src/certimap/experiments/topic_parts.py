"""The parts of the reproduction that are about topics."""

from __future__ import annotations

from certimap.baselines.scip import is_available
from certimap.experiments import printed
from certimap.experiments.corpus import Corpus, collection, draw_corpus
from certimap.experiments.held_out import Split, split_corpus, unigram
from certimap.experiments.methods import BRANCH_AND_BOUND, OURS, TOPIC_SAMPLER, VARIATIONAL
from certimap.experiments.mixture_tasks import records_of
from certimap.experiments.settings import Part, Results, Settings
from certimap.experiments.tasks import Task
from certimap.experiments.topic_sections import (
    GIBBS_MEAN,
    MAP_TOPICS,
    SMOOTHED,
    UNIGRAM,
    perplexity_section,
    top_words_section,
    topic_log_map_section,
)
from certimap.experiments.topic_tasks import (
    PRIOR,
    topic_branch_and_bound_task,
    topic_certimap_task,
    topic_gibbs_task,
    topic_variational_task,
    warm_up,
)
from certimap.report.document import Section


def small_corpus(settings: Settings) -> Corpus:
    """What the methods are compared on."""
    documents, words, _ = printed.TOPIC_SIZES
    drawn = collection(settings.data_home)
    return draw_corpus(drawn.texts, documents, words, settings.seed, drawn.name)


def topic_method_tasks(settings: Settings) -> dict[str, Task]:
    """Every method on the small corpus."""
    corpus, n_topics, effort = small_corpus(settings), printed.TOPIC_SIZES[2], settings.effort
    tasks = {
        VARIATIONAL: topic_variational_task(corpus, n_topics, effort),
        TOPIC_SAMPLER: topic_gibbs_task(corpus, n_topics, effort),
    }
    if is_available():
        tasks[BRANCH_AND_BOUND] = topic_branch_and_bound_task(corpus, n_topics, effort)
    return {**tasks, OURS: topic_certimap_task(corpus, n_topics, effort)}


def _log_map(settings: Settings, results: Results) -> Section:
    found = [record for result in results.values() for record in records_of(result)]
    return topic_log_map_section(found, small_corpus(settings), collection(settings.data_home).remark)


def _top_words(settings: Settings, results: Results) -> Section:
    return top_words_section(results, small_corpus(settings), collection(settings.data_home).remark)


def _splits(settings: Settings) -> list[Split]:
    documents, words, _ = printed.PERPLEXITY_SIZES
    drawn = collection(settings.data_home)
    seeds = range(settings.seed, settings.seed + settings.draws)
    corpora = ((draw_corpus(drawn.texts, documents, words, seed, drawn.name), seed) for seed in seeds)
    return [split_corpus(corpus, printed.HELD_OUT, seed) for corpus, seed in corpora]


def _perplexity_tasks(settings: Settings) -> dict[str, Task]:
    n_topics, effort = printed.PERPLEXITY_SIZES[2], settings.effort
    tasks: dict[str, Task] = {}
    for draw, split in enumerate(_splits(settings)):
        tasks[f"{draw}/{VARIATIONAL}"] = topic_variational_task(split.train, n_topics, effort)
        tasks[f"{draw}/{TOPIC_SAMPLER}"] = topic_gibbs_task(split.train, n_topics, effort)
        tasks[f"{draw}/{OURS}"] = topic_certimap_task(split.train, n_topics, effort, "local-search")
    return tasks


def _perplexity(settings: Settings, results: Results) -> Section:
    scores = []
    for draw, split in enumerate(_splits(settings)):
        topics = {
            UNIGRAM: unigram(split.train.counts, PRIOR.eta),
            VARIATIONAL: results[f"{draw}/{VARIATIONAL}"]["topic_word"],
            GIBBS_MEAN: results[f"{draw}/{TOPIC_SAMPLER}"]["topic_word"],
            MAP_TOPICS: results[f"{draw}/{OURS}"]["topic_word"],
            SMOOTHED: results[f"{draw}/{OURS}"]["smoothed"],
        }
        scores.append({method: split.score(beta, PRIOR.alpha) for method, beta in topics.items()})
    documents, words, n_topics = printed.PERPLEXITY_SIZES
    drawn = collection(settings.data_home)
    description = (
        f"{documents} documents of {drawn.name}, {printed.HELD_OUT} held out, {words} words, {n_topics} topics"
    )
    return perplexity_section(scores, description, drawn.remark)


TOPIC_PARTS: dict[str, Part] = {
    "topic-log-map": Part(topic_method_tasks, _log_map, (warm_up,)),
    "top-words": Part(topic_method_tasks, _top_words, (warm_up,)),
    "perplexity": Part(_perplexity_tasks, _perplexity, (warm_up,)),
}
