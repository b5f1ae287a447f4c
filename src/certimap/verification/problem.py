"""The problem that a certificate speaks about, restated from the model: exact objective, checked blocks.

The columns and rows are those of `compile_model`; costs and the offset are summed again without rounding. The entries
of merged tables are rounded up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import Certificate, CertificateError
from certimap.graph.compile import compile_model, with_blocks
from certimap.graph.graph import FactorGraph
from certimap.model.errors import ModelError
from certimap.model.factors import Factor, Potts, Table
from certimap.model.model import Model


@dataclass(frozen=True)
class Problem:
    """maximise  offset + costs.y + sum of block terms  over the graph's box and rows.

    The term of block b is `terms[b]` on the columns `scopes[b]`, nowhere below the exact sum of the block's factors.
    """

    graph: FactorGraph
    offset: Fraction
    costs: tuple[Fraction, ...]
    terms: tuple[Factor, ...]
    scopes: tuple[NDArray[np.int64], ...]


def restate(certificate: Certificate, model: Model) -> Problem:
    """Compile the model, check the certificate's blocks and regroup the factors by them."""
    compiled = compile_model(model)
    blocks = certificate.blocks
    private = certificate.private or ((),) * len(blocks)
    _check_partition(compiled, blocks)
    _check_private(compiled, blocks, private)
    try:
        graph = with_blocks(compiled, blocks, private)
    except ModelError as error:
        raise CertificateError(f"the certificate's blocks do not fit the model: {error}") from None
    terms: dict[int, Factor] = {}
    scopes: dict[int, NDArray[np.int64]] = {}
    for batch in graph.batches:
        for block, term, scope in zip(batch.blocks.tolist(), batch.factors, batch.scope, strict=True):
            terms[block], scopes[block] = term, scope
    order = range(len(blocks))
    offset, costs = _exact_objective(compiled)
    return Problem(graph, offset, costs, tuple(terms[b] for b in order), tuple(scopes[b] for b in order))


def _check_partition(graph: FactorGraph, blocks: Iterable[tuple[int, ...]]) -> None:
    """Every factor that is not part of the costs is in exactly one block."""
    given = Counter(i for members in blocks for i in members)
    wanted = {i for members in graph.blocks for i in members}
    for i in sorted(wanted - given.keys()):
        raise CertificateError(f"factor {graph.factors[i].label()} is in none of the certificate's blocks")
    for i, count in given.items():
        if i not in wanted or not isinstance(i, int):
            raise CertificateError(f"a block of the certificate names factor {i!r}, which the model does not have")
        if count > 1:
            raise CertificateError(f"factor {graph.factors[i].label()} is in several blocks of the certificate")


def _check_private(
    graph: FactorGraph, blocks: tuple[tuple[int, ...], ...], private: tuple[tuple[str, ...], ...]
) -> None:
    """A variable can be maximised out in a block only if nothing else depends on it."""
    if len(private) != len(blocks):
        raise CertificateError(f"the certificate lists private variables for {len(private)} of {len(blocks)} blocks")
    hidden = {name for names in private for name in names}
    if not hidden:
        return
    model = graph.model
    shared = {a.variable.name for a in model.linear.terms}
    for constraint in (*model.constraints.values(), *(s.constraint for s in model.softs)):
        shared.update(v.name for v in constraint.variables())
    for members, names in zip(blocks, private, strict=True):
        if not names:
            continue
        inside, own = set(members), {v.name for i in members for v in graph.factors[i].variables()}
        outside = {v.name for i, f in enumerate(graph.factors) if i not in inside for v in f.variables()}
        for name in names:
            if name not in own or name in shared or name in outside:
                raise CertificateError(f"{name!r} is private to a block of the certificate, but not to its factors")


def _exact_objective(graph: FactorGraph) -> tuple[Fraction, tuple[Fraction, ...]]:
    """Offset and costs: the linear part, unary tables outside blocks, and the weights of soft constraints."""
    model = graph.model
    costs = [Fraction(0)] * graph.n_columns
    for atom, c in model.linear.terms.items():
        costs[graph.column_of[atom]] += Fraction(c)
    in_blocks = {i for members in graph.blocks for i in members}
    for i, f in enumerate(graph.factors):
        if i not in in_blocks and isinstance(f, Table):
            for atom, value in zip(f.atoms, f.log_values.tolist(), strict=True):
                costs[graph.column_of[atom]] += Fraction(value) if np.isfinite(value) else 0  # -inf became a bound
    for column in graph.auxiliary:
        costs[column] = Fraction(float(graph.cost[column]))
    offset = Fraction(model.linear.constant)
    for f in graph.factors[len(model.factors) :]:
        if isinstance(f, Potts) and f.weight > 0.0:  # soft equality: a reward for equal states, less the weight
            offset -= Fraction(f.weight)
    return offset, tuple(costs)
