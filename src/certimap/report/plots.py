"""The figures of a clustering report, as PNG images; needs matplotlib, the `[report]` extra.

Clusters differ in colour, marker and line style, so that they can be told apart in black and white as well.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from certimap.mixture.constraints import HardLink
from certimap.mixture.prior import FloatArray
from certimap.report.clustering import ClusteringReport
from certimap.results import IterationRecord, relative_gap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which stay distinct under every common colour blindness; yellow is left out on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*", "p")
LINE_STYLES = ("-", "--", ":", "-.")
MOST_FEATURES = 4  # six panels
MOST_POINTS = 3000  # drawn, of each cluster in proportion
MOST_LINKS = 100
ELLIPSE = 2.0  # standard deviations
LEGEND_ENTRY = 1.45  # inches, "cannot-link" with its line


def convergence_plot(history: Sequence[IterationRecord], tolerance: float, label: str = "best clustering") -> bytes:
    """Bound and value over time; below them the relative gap, as soon as there is one."""
    finite = [record for record in history if math.isfinite(record.bound) and math.isfinite(record.incumbent)]
    figure = figure_of(7.0, 4.6 if finite else 3.0)
    panels = figure.subplots(2 if finite else 1, 1, squeeze=False, sharex=True)[:, 0]
    seconds = [record.seconds for record in history]
    values = [record.incumbent if math.isfinite(record.incumbent) else math.nan for record in history]
    panels[0].step(seconds, values, where="post", color=COLOURS[0], marker="o", markersize=4, label=label)
    if finite:
        times = [record.seconds for record in finite]
        bounds = [record.bound for record in finite]
        style = {"where": "post", "color": COLOURS[1], "linestyle": "--", "marker": "s", "markersize": 4}
        panels[0].step(times, bounds, label="upper bound", **style)
        gaps = [max(relative_gap(record.incumbent, record.bound), 1e-16) for record in finite]
        panels[1].step(times, gaps, label="relative gap", **style)
        panels[1].axhline(tolerance, color="#000000", linestyle=":", label="tolerance")
        panels[1].set_yscale("log")
        drawn = [gap for gap in (*gaps, tolerance) if gap > 0.0]
        panels[1].set_ylim(0.1 * min(drawn), 10.0 * max(drawn))  # powers of ten at the axis, however close they are
        panels[1].set_ylabel("relative gap")
    else:
        panels[0].set_title("no upper bound: nothing limits how much better others may be", fontsize=9, loc="left")
    panels[0].set_ylabel("log-posterior")
    panels[-1].set_xlabel("seconds")
    panels[-1].set_xlim(left=0.0)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return png_of(figure)


def scatter_plot(report: ClusteringReport) -> bytes:
    """The clusters over every pair of features, with an ellipse of two standard deviations each."""
    dimension = report.data.shape[1]
    if dimension == 1:
        return _strip_plot(report)
    pairs = list(combinations(range(min(dimension, MOST_FEATURES)), 2))
    columns = min(len(pairs), 3)
    rows = -(-len(pairs) // columns)
    figure = figure_of(1.0 + 3.4 * columns, 0.6 + 3.2 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    shown = drawn_points(report)
    for panel, (a, b) in zip(panels, pairs, strict=False):
        _draw_links(panel, report, a, b)
        for k in range(report.n_clusters):
            members = shown[report.labels[shown] == k]
            if len(members):
                _draw_cluster(panel, k, report.data[members][:, [a, b]])
                _draw_ellipse(panel, k, report.means[k, [a, b]], report.covariances[k][np.ix_([a, b], [a, b])])
        panel.set_xlabel(literal(report.feature_names[a]))
        panel.set_ylabel(literal(report.feature_names[b]))
    for panel in panels[len(pairs) :]:
        panel.set_axis_off()
    _legend(figure, panels[0])
    return png_of(figure)


def drawn_points(report: ClusteringReport) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows that are drawn: all of them, or an evenly spread part of a large data set."""
    n = len(report.data)
    return np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(np.int64)


def _strip_plot(report: ClusteringReport) -> bytes:
    """One feature: its value against the row."""
    figure = figure_of(7.0, 3.2)
    panel = figure.subplots()
    shown = drawn_points(report)
    for k in range(report.n_clusters):
        members = shown[report.labels[shown] == k]
        if len(members):
            _draw_cluster(panel, k, np.column_stack([report.data[members, 0], members]))
    panel.set_xlabel(literal(report.feature_names[0]))
    panel.set_ylabel("row")
    _legend(figure, panel)
    return png_of(figure)


def _draw_cluster(panel: Axes, k: int, points: FloatArray) -> None:
    panel.scatter(
        points[:, 0],
        points[:, 1],
        s=22,
        marker=MARKERS[k % len(MARKERS)],
        facecolors="none" if k % 2 else COLOURS[k % len(COLOURS)],
        edgecolors=COLOURS[k % len(COLOURS)],
        linewidths=0.9,
        alpha=0.85,
        label=f"cluster {k}",
        zorder=2,
    )


def _draw_ellipse(panel: Axes, k: int, mean: FloatArray, covariance: FloatArray) -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    x, y = mean[:, None] + ELLIPSE * np.linalg.cholesky(covariance) @ circle
    style = LINE_STYLES[k % len(LINE_STYLES)]
    panel.plot(x, y, color=COLOURS[k % len(COLOURS)], linestyle=style, linewidth=1.3, zorder=3)


def _draw_links(panel: Axes, report: ClusteringReport, a: int, b: int) -> None:
    kinds = ((report.constraints.must_link, "-", "must-link"), (report.constraints.cannot_link, ":", "cannot-link"))
    for links, style, label in kinds:
        for number, (i, j) in enumerate(_shown_links(links)):
            ends = report.data[[i, j]]
            name = label if number == 0 else None
            panel.plot(ends[:, a], ends[:, b], color="#555555", linestyle=style, linewidth=1.0, label=name, zorder=1)


def _shown_links(links: tuple[HardLink, ...]) -> tuple[HardLink, ...]:
    return links if len(links) <= MOST_LINKS else ()


def _legend(figure: Figure, panel: Axes) -> None:
    handles, labels = panel.get_legend_handles_labels()
    fitting = int(figure.get_figwidth() / LEGEND_ENTRY)
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), fitting), frameon=False)


def literal(name: str) -> str:
    """A user's name for a label: without this, text between dollar signs would be read as a formula."""
    return name.replace("$", r"\$")


def figure_of(width: float, height: float) -> Figure:
    """An empty figure of that many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def png_of(figure: Figure) -> bytes:
    """The figure as a PNG image."""
    buffer = io.BytesIO()
    # Without the program's name, which holds an address, equal reports are equal files.
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    return buffer.getvalue()
