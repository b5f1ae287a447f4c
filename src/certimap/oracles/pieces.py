"""Cutting the ranges of univariate functions into concave and convex pieces, by interval bounds of the curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.oracles.cuts import Floats, Ints
from certimap.oracles.univariate import Curve

LOSS = 1e-14  # relative loss accepted on a piece whose curvature has no certain sign
HALVINGS = 60


@dataclass(frozen=True)
class Pieces:
    """`ends[i, k]` to `ends[i, k + 1]` is piece k of function i, g'' <= loss if concave, g'' >= -loss if not.

    Padding has width zero.
    """

    ends: Floats
    concave: NDArray[np.bool_]
    loss: Floats

    def rows(self, index: Ints) -> Pieces:
        return Pieces(self.ends[index], self.concave[index], self.loss[index])


def cut_by_curvature(curve: Curve, low: Floats, high: Floats) -> Pieces:
    """Halve the ranges until the sign of g'' is certain, or does not matter, on every piece."""
    if curve.concave:
        one = np.ones((len(curve), 1), dtype=bool)
        return Pieces(np.stack([low, high], axis=1), one, np.zeros(one.shape))
    seeds = np.concatenate([curve.kinks(), curve.inflections()], axis=1)
    seeds = np.clip(seeds, low[:, None], high[:, None])
    stops = np.sort(np.concatenate([low[:, None], seeds, high[:, None]], axis=1), axis=1)
    term = np.repeat(np.arange(len(curve)), stops.shape[1] - 1)
    left, right = stops[:, :-1].ravel(), stops[:, 1:].ravel()
    accepted = LOSS * (1.0 + np.abs(curve.value(stops)).max(axis=1))
    found = []
    for halving in range(HALVINGS + 1):
        least, most = (c[:, 0] for c in curve.rows(term).curvature(left[:, None], right[:, None]))
        excess, deficit = np.maximum(most, 0.0), np.maximum(-least, 0.0)
        concave = 4.0 * excess <= deficit  # the smaller loss of the two
        loss = np.where(concave, excess, deficit)
        middle = 0.5 * (left + right)
        done = loss * np.where(concave, 0.5, 0.125) * (right - left) ** 2 <= accepted[term]
        done |= (middle <= left) | (middle >= right) | (halving == HALVINGS)
        found.append(_Stretches(term[done], left[done], right[done], concave[done], loss[done]))
        if done.all():
            break
        again = ~done
        term = np.concatenate([term[again], term[again]])
        left, right = (
            np.concatenate([left[again], middle[again]]),
            np.concatenate([middle[again], right[again]]),
        )
    return _arrange(len(curve), curve.kinks(), found)


@dataclass(frozen=True)
class _Stretches:
    term: Ints
    left: Floats
    right: Floats
    concave: NDArray[np.bool_]
    loss: Floats


def _arrange(count: int, kinks: Floats, found: list[_Stretches]) -> Pieces:
    """Sort the stretches, join neighbours of one sort, and pad to rectangles."""
    term = np.concatenate([part.term for part in found])
    left = np.concatenate([part.left for part in found])
    right = np.concatenate([part.right for part in found])
    concave = np.concatenate([part.concave for part in found])
    loss = np.concatenate([part.loss for part in found])
    order = np.lexsort((right, left, term))
    term, left, right, concave, loss = term[order], left[order], right[order], concave[order], loss[order]
    at_kink = (left[:, None] == kinks[term]).any(axis=1)
    joins = (term[1:] == term[:-1]) & (concave[1:] == concave[:-1]) & (loss[1:] == 0.0) & (loss[:-1] == 0.0)
    # A kink ends a convex stretch (the slope drops there) but not a concave one.
    joins &= concave[1:] | ~at_kink[1:]
    first = np.flatnonzero(np.append(True, ~joins))
    last = np.append(first[1:], len(term)) - 1
    owner = term[first]
    position = np.arange(len(first)) - np.searchsorted(owner, owner)
    width = int(position.max()) + 1
    range_end = right[np.searchsorted(term, np.arange(count), side="right") - 1]
    ends = np.repeat(range_end[:, None], width + 1, axis=1)
    ends[owner, position] = left[first]
    ends[owner, position + 1] = right[last]
    is_concave = np.zeros((count, width), dtype=bool)
    is_concave[owner, position] = concave[first]
    losses = np.zeros((count, width))
    losses[owner, position] = loss[first]
    return Pieces(ends, is_concave, losses)
