"""Potts factors w [a = b]: envelope and cuts in closed form.

Given the marginals, the probability that a = b ranges from max(0, max_k (a_k + b_k - 1)) to sum_k min(a_k, b_k).
The upper end gives the envelope for w > 0, the lower end for w < 0. The cuts are its linear pieces:

    w > 0:   theta <= w (sum_{k in A} a_k + sum_{k not in A} b_k),    A = {k : a_k <= b_k},
    w < 0:   theta <= w (a_k + b_k - 1)  for the k of the largest a_k + b_k,  or  theta <= 0.

Their coefficients are w or 0, so they hold exactly, without a floating-point margin.
"""

from __future__ import annotations

import numpy as np

from certimap._numeric.rounding import raised
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.oracles.cuts import Box, Cuts, Floats
from certimap.oracles.discrete import WHOLE, FiniteOracle, allowed_states
from certimap.oracles.protocol import register


@register("potts")
class PottsOracle(FiniteOracle):
    """Potts factors over pairs of variables with equally many states."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        self.weight: Floats = np.asarray(batch.data["weight"], dtype=float)
        self.size = self.sizes[0]

    def value(self, y: Floats) -> Floats:
        """The mean under the product distribution; exact where y is whole."""
        a, b = self._split(self.marginals(y, WHOLE))
        return np.asarray(self.weight * (a * b).sum(axis=1))

    def upper(self, box: Box) -> Floats:
        """w where only equal states are open, else max(w, 0) if some are; -inf if nothing is open."""
        a, b = self._split(allowed_states(box, self.scope, self.starts))
        equal = (a & b).any(axis=1)
        pairs = a.sum(axis=1) * b.sum(axis=1)
        unequal = pairs > (a & b).sum(axis=1)
        best = np.where(equal, self.weight, -np.inf)
        return np.asarray(np.where(unequal, np.maximum(best, 0.0), best))

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        """Over the whole domain; see `FiniteOracle`."""
        a, b = u[: self.size], u[self.size :]
        values = -a[:, None] - b[None, :] + self.weight[i] * np.eye(self.size)
        row, column = np.unravel_index(np.argmax(values), values.shape)
        x = np.zeros(len(u))
        x[row] = x[self.size + column] = 1.0
        return float(self.conjugates_of(u[None], self.weight[i : i + 1])[0]), x

    def conjugates(self, u: Floats) -> Floats:
        return self.conjugates_of(u, self.weight)

    def conjugates_of(self, u: Floats, weight: Floats) -> Floats:
        """Certified max over (k, l) of w [k = l] - u_k - v_l, from the diagonal and the two largest entries."""
        a, b = self._split(-u)
        equal = (a + b).max(axis=1) + weight
        scale = np.abs(weight) + np.abs(a).max(axis=1) + np.abs(b).max(axis=1)
        return np.asarray(raised(np.maximum(equal, _best_unequal(a, b)), scale, 2))

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        """The linear piece of the envelope at y, where t is above it."""
        a, b = self._split(self.marginals(y))
        attractive = self.weight > 0.0
        from_a = a <= b
        reward = np.minimum(a, b).sum(axis=1)
        top = (a + b).argmax(axis=1)
        rows = np.arange(len(top))
        excess = np.maximum(a[rows, top] + b[rows, top] - 1.0, 0.0)
        envelope = self.weight * np.where(attractive, reward, excess)
        term = np.flatnonzero(t > envelope + tolerance)

        chosen = attractive[term]
        w = self.weight[term]
        piece = np.zeros((len(term), 2 * self.size))
        piece[:, : self.size] = chosen[:, None] & from_a[term]
        piece[:, self.size :] = chosen[:, None] & ~from_a[term]
        at = np.flatnonzero(~chosen & (excess[term] > 0.0))
        piece[at, top[term[at]]] = 1.0
        piece[at, self.size + top[term[at]]] = 1.0
        h = np.zeros(len(term))
        h[at] = -w[at]
        return Cuts.of(term, w[:, None] * piece, h)

    def _split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x[:, : self.size], x[:, self.size :]


def _best_unequal(a: Floats, b: Floats) -> Floats:
    """max over k != l of a_k + b_l, row by row; -inf for a single state."""
    if a.shape[1] == 1:
        return np.full(len(a), -np.inf)
    rows = np.arange(len(a))
    first_a, first_b = a.argmax(axis=1), b.argmax(axis=1)
    second_a, second_b = np.partition(a, -2, axis=1)[:, -2], np.partition(b, -2, axis=1)[:, -2]
    top_a, top_b = a[rows, first_a], b[rows, first_b]
    clash = np.maximum(top_a + second_b, second_a + top_b)
    return np.asarray(np.where(first_a == first_b, clash, top_a + top_b))
