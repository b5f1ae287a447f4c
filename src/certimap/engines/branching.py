"""Choosing where to split a box: blame for the gap, weighted by fraction or width, checked by probing near the root."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.engines.cut_master import CutMaster
from certimap.oracles.protocol import Box

Floats = NDArray[np.float64]

INTEGRALITY = 1e-6
NARROW = 1e-9  # a continuous column narrower than this share of its root width is not split further
PROBED_DEPTH = 2
CANDIDATES = 4  # probed of each sort, integer and continuous
PROBE_ITERATIONS = 40


@dataclass(frozen=True)
class Split:
    """Two intervals of one column that cover its interval in the parent (up to the gap between two integers)."""

    column: int
    down: tuple[float, float]
    up: tuple[float, float]


def choose_split(master: CutMaster, y: Floats, t: Floats, bound: float, depth: int) -> Split | None:
    """The split for the node's LP point; None when no column is left to split."""
    box, graph = master.box, master.graph
    blame, envelopes = _blame(master, y, t)
    whole = graph.integer
    fraction = np.where(whole & ~graph.hidden, np.abs(y - np.round(y)), 0.0)
    width = np.where(whole, 0.0, box.upper - box.lower)
    root_width = np.maximum(graph.upper - graph.lower, 1e-300)
    splittable = ~whole & (width > NARROW * root_width)
    scores = {
        "integer": np.where(fraction > INTEGRALITY, fraction * (blame + 1e-9), 0.0),
        "continuous": np.where(splittable, envelopes * np.sqrt(width / root_width), 0.0),
    }
    shortlists = {sort: _top(score) for sort, score in scores.items()}
    candidates = [j for columns in shortlists.values() for j in columns]
    if not candidates:
        return _last_resort(box, whole & ~graph.hidden, splittable, blame)
    if depth <= PROBED_DEPTH and len(candidates) > 1:
        basis = master.basis()
        gains = [_probe(master, split_at(box, j, y[j], bool(whole[j])), bound) for j in candidates]
        master.restore(basis)
        chosen = candidates[int(np.argmax(gains))]
    else:
        chosen = (shortlists["integer"] or shortlists["continuous"])[0]
        continuous = shortlists["continuous"]
        if continuous and width[continuous[0]] > 0.2 * root_width[continuous[0]]:
            chosen = max((chosen, continuous[0]), key=lambda j: blame[j])
    return split_at(box, chosen, float(y[chosen]), bool(whole[chosen]))


def split_at(box: Box, column: int, value: float, whole: bool) -> Split:
    """Split an integer column between two integers, a continuous one between the LP value and the middle."""
    low, high = float(box.lower[column]), float(box.upper[column])
    if whole:
        below = float(np.clip(np.floor(value + INTEGRALITY), low, high - 1.0))
        return Split(column, (low, below), (below + 1.0, high))
    middle = 0.5 * (low + high)
    point = float(np.clip(0.5 * (value + middle), low + 0.15 * (high - low), high - 0.15 * (high - low)))
    return Split(column, (low, point), (point, high))


def _blame(master: CutMaster, y: Floats, t: Floats) -> tuple[Floats, Floats]:
    """How much each column contributes to the difference between the relaxation and the factors' values.

    The second part leaves out the factors whose cuts do not depend on the box (concave ones, say): there the difference
    is one of missing cuts, which no split of a continuous column makes smaller.
    """
    blame, envelopes = np.zeros(master.graph.n_columns), np.zeros(master.graph.n_columns)
    for oracle in master.oracles:
        value = oracle.value(y)
        gap = np.where(np.isfinite(value), t[oracle.batch.blocks] - value, 1.0)
        scores = oracle.branch_scores(y, np.maximum(gap, 0.0))
        for total in (blame,) if oracle.global_cuts else (blame, envelopes):
            np.add.at(total, oracle.scope, scores)
    return blame, envelopes


def _top(score: Floats) -> list[int]:
    order = np.argsort(-score, kind="stable")[:CANDIDATES]
    return [int(j) for j in order if score[j] > 0.0]


def _probe(master: CutMaster, split: Split, bound: float) -> float:
    """Product of the two bound improvements: both children should get better."""
    gains = [bound - master.probe(split.column, *side, PROBE_ITERATIONS) for side in (split.down, split.up)]
    return float(np.prod([min(max(g, 1e-9), 1e9) for g in gains]))


def _last_resort(box: Box, whole: NDArray[np.bool_], splittable: NDArray[np.bool_], blame: Floats) -> Split | None:
    """The LP point blames no column: split any integer column that is not fixed, else the widest continuous one."""
    open_integer = np.flatnonzero(whole & (box.upper > box.lower))
    if len(open_integer):
        j = int(open_integer[np.argmax(blame[open_integer])])
        return split_at(box, j, 0.5 * (box.lower[j] + box.upper[j]), whole=True)
    wide = np.flatnonzero(splittable)
    if len(wide):
        j = int(wide[np.argmax((box.upper - box.lower)[wide])])
        return split_at(box, j, 0.5 * (box.lower[j] + box.upper[j]), whole=False)
    return None
