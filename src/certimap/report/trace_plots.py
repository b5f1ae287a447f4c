"""Figures of the reproduction: traces of a sampler, and how gaps close."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certimap.report.plots import COLOURS, LINE_STYLES, MARKERS, figure_of, literal, png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Trace:
    """Sampled weights (T, K) and means (T, K, D) of one data set, and the sweeps that are left out."""

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    burn_in: int
    feature_names: tuple[str, ...]


@dataclass(frozen=True)
class Convergence:
    """(seconds, bound, value) of a search, its tolerance in nats, and other bounds' gaps by name."""

    history: Sequence[Sequence[float]]
    tolerance: float
    others: Mapping[str, float]


def weight_traces(traces: Mapping[str, Trace]) -> bytes:
    """Mixture weights over the sweeps, a panel for each data set."""
    figure = figure_of(_width(len(traces)), 3.0)
    panels = figure.subplots(1, len(traces), squeeze=False, sharey=True)[0]
    for panel, (name, trace) in zip(panels, traces.items(), strict=True):
        _lines(panel, trace.weights, trace.burn_in)
        panel.set_title(literal(name))
        panel.set_xlabel("sweep")
    panels[0].set_ylabel("weight")
    panels[0].set_ylim(0.0, 1.0)
    largest = max(panels, key=lambda panel: len(panel.get_legend_handles_labels()[0]))
    figure.legend(*largest.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return png_of(figure)


def mean_traces(trace: Trace) -> bytes:
    """Every coordinate of the means over the sweeps."""
    names = trace.feature_names
    columns = min(len(names), 3)
    rows = -(-len(names) // columns)
    figure = figure_of(_width(columns), 0.5 + 2.4 * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for d, (panel, name) in enumerate(zip(panels, names, strict=False)):
        _lines(panel, trace.means[:, :, d], trace.burn_in)
        panel.set_title(literal(name), fontsize=10)
        if d >= len(names) - columns:
            panel.set_xlabel("sweep")
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return png_of(figure)


def gap_plot(searches: Mapping[str, Convergence]) -> bytes:
    """Distance from the best value to the bound over time, on a logarithmic axis, a panel for each search.

    Distances below a hundredth of the tolerance, 0 among them, are drawn there.
    """
    columns = 2 if len(searches) == 4 else min(len(searches), 3)
    rows = -(-len(searches) // columns)
    figure = figure_of(_width(columns), 0.5 + 2.9 * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    panels = grid.ravel()[: len(searches)]
    for panel in grid.ravel()[len(searches) :]:
        panel.set_axis_off()
    for panel, (name, search) in zip(panels, searches.items(), strict=True):
        least = 0.01 * search.tolerance
        finite = [(s, max(bound - value, least)) for s, bound, value in search.history if math.isfinite(bound - value)]
        seconds, gaps = [s for s, _ in finite], [gap for _, gap in finite]
        panel.step(seconds, gaps, where="post", color=COLOURS[0], marker="o", markersize=3.5, label="certimap")
        if not finite:
            panel.annotate("certimap: no bound", (0.5, 0.5), xycoords="axes fraction", ha="center")
        for number, (other, gap) in enumerate(search.others.items(), start=1):
            style = LINE_STYLES[number % len(LINE_STYLES)]
            panel.axhline(gap, color=COLOURS[number], linestyle=style, label=f"{other}, at its end")
        panel.axhline(search.tolerance, color="#000000", linestyle=":", label="tolerance")
        panel.set_xlim(0.0, 1.05 * max(s for s, _, _ in search.history) if search.history else 1.0)
        panel.set_yscale("log")
        panel.set_title(literal(name))
        panel.set_xlabel("seconds")
    for panel in grid[:, 0]:
        panel.set_ylabel("upper bound − best value (nats)")
    largest = max(panels, key=lambda panel: len(panel.get_legend_handles_labels()[0]))
    figure.legend(*largest.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return png_of(figure)


def _width(panels: int) -> float:
    """In inches, with room for the legend above a single panel."""
    return max(7.0, 3.6 * panels)


def _lines(panel: Axes, samples: NDArray[np.float64], burn_in: int) -> None:
    """A line for each cluster; markers now and then tell them apart without colour."""
    every = max(1, len(samples) // 8)
    for k in range(samples.shape[1]):
        panel.plot(
            samples[:, k],
            color=COLOURS[k % len(COLOURS)],
            linestyle=LINE_STYLES[k % len(LINE_STYLES)],
            linewidth=0.7,
            marker=MARKERS[k % len(MARKERS)],
            markevery=(every // 2, every),
            markersize=5,
            markeredgecolor="#000000",
            markeredgewidth=0.6,
            zorder=3,
            label=f"cluster {k + 1}",
        )
    panel.axvspan(0, burn_in, color="#bbbbbb", alpha=0.4, linewidth=0, label="burn-in", hatch="//", fill=True)
