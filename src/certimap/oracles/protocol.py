"""What a factor family offers the engines.

An oracle serves one batch of terms. Its cuts are certified: for every returned cut
    theta_i(x) <= u.x + h   for all x in dom theta_i within the cut's box,
where h already includes the floating-point margin. Nothing else an oracle does can make a bound wrong.

A family is one file with one subclass and one registration line:

    @register("my_family")
    class MyOracle(Oracle):
        def value(self, y): ...
        def upper(self, box): ...
        def conjugate(self, i, u, box): ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.model.errors import ModelError
from certimap.oracles.cuts import Box, Cuts, Floats, Ints
from certimap.oracles.envelope import envelope_cut

__all__ = ["Box", "Cuts", "Floats", "Ints", "Oracle", "oracles_for", "register", "registered_kinds"]


class Oracle(ABC):
    """Values, certified bounds and cuts for the terms of one batch. `m` terms, `w` scope columns each."""

    exact_at_integers = True  # cuts are tight at every feasible point whose integer columns are whole
    global_cuts = True  # conjugates over the whole domain, whatever the box
    box_bounds = True  # a verifier finds bounds as good as those of `upper` by itself

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        self.batch = batch
        self.scope = batch.scope
        self.graph = graph

    @abstractmethod
    def value(self, y: Floats) -> Floats:
        """(m,) theta_i at y; -inf outside the domain. At fractional y any finite or -inf value is allowed."""

    @abstractmethod
    def upper(self, box: Box) -> Floats:
        """(m,) certified upper bounds of theta_i over the box, < inf; -inf only where the box excludes every point."""

    @abstractmethod
    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        """A certified upper bound on max over dom and box of theta_i(x) - u.x, and a point x that nearly attains it."""

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        """Cuts violated at (y, t): terms with t_i > envelope of theta_i at y + tolerance, as tight at y as can be had.

        The default minimises u.y + conjugate(u) by cutting planes; families with a closed form override it.
        """
        parts = [
            cut
            for i in range(len(self.batch))
            if (cut := envelope_cut(self, i, y[self.scope[i]], float(t[i]), box, tolerance)) is not None
        ]
        return Cuts.join(parts, self.scope.shape[1])

    def proposals(self, box: Box) -> Cuts:
        """Cuts worth having before the first LP; the default is the constant bound of every term."""
        m, w = self.scope.shape
        # A global cut has to hold outside this box too.
        where = Box(self.graph.lower, self.graph.upper) if self.global_cuts else box
        return Cuts.of(np.arange(m), np.zeros((m, w)), self.upper(where), local=not self.global_cuts)

    def branch_scores(self, y: Floats, gap: Floats) -> Floats:
        """(m, w) how much each scope column is to blame for the gaps (m,) between t and the value at y."""
        return np.repeat(np.maximum(gap, 0.0)[:, None], self.scope.shape[1], axis=1)


OracleClass = Callable[[FactorBatch, FactorGraph], Oracle]
_REGISTRY: dict[str, OracleClass] = {}


def register(kind: str) -> Callable[[OracleClass], OracleClass]:
    """Class decorator: the oracle of all factors of this kind."""

    def remember(oracle: OracleClass) -> OracleClass:
        _REGISTRY[kind] = oracle
        return oracle

    return remember


def registered_kinds() -> list[str]:
    """The kinds of factors that have an oracle."""
    return sorted(_REGISTRY)


def oracles_for(graph: FactorGraph) -> list[Oracle]:
    """One oracle per batch of the graph."""
    missing = sorted({b.kind for b in graph.batches} - set(_REGISTRY))
    if missing:
        raise ModelError(f"no oracle is registered for factors of kind {', '.join(missing)}")
    return [_REGISTRY[b.kind](b, graph) for b in graph.batches]
