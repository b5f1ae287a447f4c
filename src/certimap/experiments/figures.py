"""The paper's figures: graphs of both models, traces of the sampler, and how the bounds close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from certimap.experiments import prose
from certimap.experiments.data import DataSet
from certimap.experiments.factor_form import FactorForm, mixture_factor_form, topic_factor_form
from certimap.experiments.methods import OURS
from certimap.experiments.tasks import Record
from certimap.mixture.prior import NormalWishartPrior
from certimap.report.document import DataFile, Picture, Section
from certimap.report.graph_plots import factor_graph_plot, graphical_model_plot
from certimap.report.trace_plots import Convergence, Trace, gap_plot, mean_traces, weight_traces
from certimap.topics.prior import TopicPrior

POINTS = np.array([[0.0], [0.4], [3.0]])  # small enough for every factor to be seen
COUNTS = np.array([[2, 1, 0], [0, 1, 2]])


def graph_section() -> Section:
    """Graphical models and factor graphs of both models, drawn from their `Model`s."""
    mixture = mixture_factor_form(POINTS, NormalWishartPrior.from_data(POINTS, weight_concentration_prior=1.5), 2)
    topics = topic_factor_form(COUNTS, TopicPrior(1.1, 1.1), 2)
    return Section(
        id="graphs",
        title="Graphical models and factor graphs",
        paragraphs=(prose.GRAPHS,),
        parts=(
            *_pictures("mixture", "Bayesian Gaussian mixture", mixture, "3 points, 2 clusters, one feature"),
            *_pictures("topics", "latent Dirichlet allocation", topics, "2 documents of 3 tokens, 3 words, 2 topics"),
        ),
    )


def trace_section(results: Mapping[str, Any], data: Mapping[str, DataSet]) -> Section:
    """Weights and means that the Gibbs sampler visits."""
    traces = {
        name: Trace(
            np.array(result["weights"]), np.array(result["means"]), int(result["burn_in"]), data[name].feature_names
        )
        for name, result in results.items()
    }
    pictures = [Picture("traces-weights", "Weights", "Sampled weights over the sweeps", weight_traces(traces))]
    for name, trace in traces.items():
        text = f"Sampled means of {name} over the sweeps"
        components = any(feature.startswith("PC ") for feature in trace.feature_names)
        caption = f"Means, {name}" + ("; PC: principal component" if components else "")
        pictures.append(Picture(f"traces-means-{name}", caption, text, mean_traces(trace)))
    rows: list[tuple[str | float | None, ...]] = [
        (name, t, k, float(trace.weights[t, k]), *(float(mean) for mean in trace.means[t, k]))
        for name, trace in traces.items()
        for t in range(len(trace.weights))
        for k in range(trace.weights.shape[1])
    ]
    width = max(len(row) for row in rows)
    padded = tuple(row + (None,) * (width - len(row)) for row in rows)
    columns = ("data", "sweep", "cluster", "weight", *(f"mean_{d + 1}" for d in range(width - 4)))
    return Section(
        id="traces",
        title="Traces of the Gibbs sampler",
        paragraphs=(prose.TRACES,),
        parts=tuple(pictures),
        files=(DataFile("traces.csv", columns, padded),),
    )


def convergence_section(records: Mapping[str, Sequence[Record]], tol: float) -> Section:
    """How far certimap's bound is from its best value over time, and where others' bounds end."""
    searches, rows = {}, []
    for name, found in records.items():
        ours = next(record for record in found if record.method == OURS)
        others = {r.method: r.bound - ours.refitted for r in found if r.bound is not None and r.method != OURS}
        searches[name] = Convergence(ours.history, tol * max(1.0, abs(ours.refitted)), others)
        rows += [(name, OURS, *(x if np.isfinite(x) else None for x in line)) for line in ours.history]
    return Section(
        id="convergence",
        title="Convergence of the bounds",
        paragraphs=(prose.CONVERGENCE,),
        parts=(
            Picture("convergence-gaps", "Gap over time", "Gap between bound and value over time", gap_plot(searches)),
        ),
        files=(DataFile("convergence.csv", ("data", "method", "seconds", "bound", "value"), tuple(rows)),),
    )


def _pictures(key: str, name: str, form: FactorForm, example: str) -> tuple[Picture, Picture]:
    return (
        Picture(
            f"graphical-model-{key}",
            f"Graphical model of the {name}; data shaded",
            f"Directed graphical model of the {name} with plates",
            graphical_model_plot(form.model, form.structure),
        ),
        Picture(
            f"factor-graph-{key}",
            f"Factor graph of the {name}, the factors named as in the paper; {example}",
            f"Factor graph of the {name}",
            factor_graph_plot(form.model),
        ),
    )
