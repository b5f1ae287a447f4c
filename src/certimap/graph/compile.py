"""From a model to a factor graph: columns, rows, blocks and batches, all read-only."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from certimap.graph.blocks import Spectral, merge
from certimap.graph.columns import Columns, lay_out
from certimap.graph.graph import FactorBatch, FactorGraph, Rows, read_only, stack
from certimap.model.domains import Categorical, Integer, PositiveDefinite
from certimap.model.errors import ModelError
from certimap.model.expressions import TOLERANCE, Atom, Row, Variable
from certimap.model.factors import Factor, Potts, Table
from certimap.model.model import Model
from certimap.model.soft import Soft

MORE = 1.001  # on the tolerance, for the rounding of what is compared with it
_RowTerms = tuple[dict[int, float], float, float, int, float]  # terms, lower, upper, owner, scale of a violation


def compile_model(model: Model) -> FactorGraph:
    """Compile; equal models give equal graphs, so that a certificate can refer to columns, rows and blocks."""
    soft_factors, counted_softs, lost = _split_softs(model.softs)
    factors = [*model.factors, *soft_factors, *_domain_factors(model)]
    columns = lay_out(model, _mentioned_atoms(model, factors))
    for atom, c in model.linear.terms.items():
        columns.cost[columns.column_of[atom]].append(c)
    rows = _constraint_rows(model, columns)
    auxiliary = {}
    for s in counted_softs:
        violated = columns.add_auxiliary(-s.weight)
        auxiliary[violated] = s.constraint
        rows.extend(r for row in s.constraint.rows for r in _relaxed(row, columns, violated))
    in_user_block = {id(f) for block in model.blocks for f in block.factors}
    kept: list[int] = []
    for i, f in enumerate(factors):
        if isinstance(f, Table) and len(f.scope) == 1 and id(f) not in in_user_block:
            _absorb_unary(f, columns, rows)
        else:
            kept.append(i)
    blocks, private = _blocks(model, factors, kept)
    graph = FactorGraph(
        model=model,
        column_of=columns.column_of,
        atoms=tuple(columns.atoms),
        lower=read_only(np.array(columns.lower)),
        upper=read_only(np.array(columns.upper)),
        cost=read_only(np.array([math.fsum(parts) for parts in columns.cost])),
        offset=math.fsum([model.linear.constant, *lost]),
        integer=read_only(np.array(columns.integer, dtype=bool)),
        groups=tuple(read_only(g) for g in columns.groups),
        group_of=read_only(_group_of(columns)),
        rows=_pack_rows(rows, columns),
        factors=tuple(factors),
        blocks=(),
        private=(),
        batches=(),
        auxiliary=auxiliary,
    )
    return with_blocks(graph, blocks, private)


def with_blocks(
    graph: FactorGraph, blocks: Sequence[tuple[int, ...]], private: Sequence[tuple[str, ...]] | None = None
) -> FactorGraph:
    """The same problem under another grouping of its factors; columns and rows stay as they are."""
    hidden = private if private is not None else [()] * len(blocks)
    merged = [
        merge([graph.factors[i] for i in members], [graph.model.variables[n] for n in names])
        for members, names in zip(blocks, hidden, strict=True)
    ]
    return replace(graph, blocks=tuple(blocks), private=tuple(hidden), batches=_batch(merged, graph))


def _batch(merged: Sequence[Factor], graph: FactorGraph) -> tuple[FactorBatch, ...]:
    by_shape: dict[tuple[str, object], list[int]] = defaultdict(list)
    for b, f in enumerate(merged):
        by_shape[f.kind, f.signature].append(b)
    batches = []
    for (kind, _), members in by_shape.items():
        terms = tuple(merged[b] for b in members)
        scope = np.array([[graph.column_of[a] for a in f.atoms] for f in terms], dtype=np.int64)
        batches.append(FactorBatch(kind, read_only(scope), terms, stack(terms), read_only(np.array(members))))
    return tuple(batches)


def _mentioned_atoms(model: Model, factors: Iterable[Factor]) -> Iterable[Atom]:
    yield from model.linear.terms
    for f in factors:
        yield from f.atoms
    for c in (*model.constraints.values(), *(s.constraint for s in model.softs)):
        for row in c.rows:
            for atom, _ in row.terms:
                yield atom


def _split_softs(softs: Iterable[Soft]) -> tuple[list[Factor], list[Soft], list[float]]:
    """Soft links are Potts factors (a tight envelope); every other soft constraint gets a 0/1 violation column.

    A link that rewards equality loses its weight beforehand: the third part adds up to what is lost.
    """
    factors: list[Factor] = []
    counted: list[Soft] = []
    lost: list[float] = []
    for s in softs:
        links = s.constraint.links
        if len(links) == 1 and _same_states(*links[0][:2]):
            a, b, sign = links[0]
            factors.append(Potts((a, b), sign * s.weight, f"soft {s.constraint.name}"))
            lost.extend([-s.weight] if sign > 0 else [])
        else:
            counted.append(s)
    return factors, counted, lost


def _same_states(a: Variable, b: Variable) -> bool:
    discrete = isinstance(a.domain, Categorical | Integer) and isinstance(b.domain, Categorical | Integer)
    return a is not b and discrete and a.states == b.states


def _domain_factors(model: Model) -> list[Factor]:
    return [
        Spectral(v, f"eigenvalues({v.name})")
        for v in model.variables.values()
        if isinstance(v.domain, PositiveDefinite) and v.domain.order > 1
    ]


def _absorb_unary(f: Table, columns: Columns, rows: list[_RowTerms]) -> None:
    """Values are costs, exclusions bounds; an exclusion of a fixed state is a row, so that no interval is inverted."""
    for atom, value in zip(f.atoms, f.log_values.tolist(), strict=True):
        column = columns.column_of[atom]
        if value == -math.inf and columns.lower[column] > 0.0:
            rows.append(({column: 1.0}, -math.inf, 0.0, -1, 1.0))
        elif value == -math.inf:
            columns.upper[column] = 0.0
        else:
            columns.cost[column].append(value)


def _blocks(
    model: Model, factors: list[Factor], kept: list[int]
) -> tuple[list[tuple[int, ...]], list[tuple[str, ...]]]:
    position = {id(f): i for i, f in enumerate(factors)}
    blocks = [tuple(position[id(f)] for f in block.factors) for block in model.blocks]
    private = [tuple(v.name for v in block.private) for block in model.blocks]
    grouped = {i for members in blocks for i in members}
    _check_private(model, factors, blocks, private)
    for i in kept:
        if i not in grouped:
            blocks.append((i,))
            private.append(())
    return blocks, private


def _check_private(
    model: Model, factors: list[Factor], blocks: list[tuple[int, ...]], private: list[tuple[str, ...]]
) -> None:
    constrained = {a.variable.name for a in model.linear.terms}
    for c in (*model.constraints.values(), *(s.constraint for s in model.softs)):
        constrained.update(v.name for v in c.variables())
    for members, names in zip(blocks, private, strict=True):
        for name in names:
            outside = [
                f.label() for i, f in enumerate(factors) if i not in members and name in {v.name for v in f.variables()}
            ]
            if outside or name in constrained:
                where = outside[0] if outside else "a linear term or a constraint"
                raise ModelError(f"block: {name} cannot be private, it also occurs in {where}")


def _constraint_rows(model: Model, columns: Columns) -> list[_RowTerms]:
    rows: list[_RowTerms] = [(terms, low, high, -1, 1.0) for terms, low, high in columns.structure]
    for owner, constraint in enumerate(model.constraints.values()):
        for row in constraint.rows:
            terms = _columns_of(row, columns)
            if not _absorb_bound(terms, row, columns):
                rows.append((terms, row.lower, row.upper, owner, row.scale))
    return rows


def _columns_of(row: Row, columns: Columns) -> dict[int, float]:
    terms: dict[int, float] = defaultdict(float)
    for atom, c in row.terms:
        terms[columns.column_of[atom]] += c
    return {j: c for j, c in terms.items() if c != 0.0}


def _absorb_bound(terms: dict[int, float], row: Row, columns: Columns) -> bool:
    """A row over one 0/1 column is a bound, unless it contradicts one: then it stays a row and the conflict visible."""
    if len(terms) != 1:
        return False
    ((column, c),) = terms.items()
    if not columns.integer[column] or (columns.lower[column], columns.upper[column]) != (0.0, 1.0) or c != 1.0:
        return False
    slack = MORE * TOLERANCE * row.scale
    low, high = math.ceil(max(0.0, row.lower - slack)), math.floor(min(1.0, row.upper + slack))
    if low > high:
        return False
    columns.lower[column], columns.upper[column] = float(low), float(high)
    return True


def _relaxed(row: Row, columns: Columns, violated: int) -> Iterable[_RowTerms]:
    """Rows that hold always when the violation column is 1 (big-M from the row's own activity bounds)."""
    low, high = row.activity_bounds()
    terms = _columns_of(row, columns)
    if high > row.upper:
        yield {**terms, violated: row.upper - high}, -math.inf, row.upper, -1, row.scale
    if low < row.lower:
        yield {**terms, violated: row.lower - low}, row.lower, math.inf, -1, row.scale


def _group_of(columns: Columns) -> np.ndarray:
    group_of = np.full(len(columns.atoms), -1, dtype=np.int64)
    for g, members in enumerate(columns.groups):
        group_of[members] = g
    return group_of


def _pack_rows(rows: list[_RowTerms], columns: Columns) -> Rows:
    starts = np.cumsum([0, *(len(terms) for terms, *_ in rows)])
    index = np.array([j for terms, *_ in rows for j in terms], dtype=np.int64)
    value = np.array([c for terms, *_ in rows for c in terms.values()], dtype=float)
    matrix = sparse.csr_array((value, index, starts), shape=(len(rows), len(columns.atoms)))
    lower, upper, owner, scale = (np.array([r[k] for r in rows], dtype=float) for k in range(1, 5))
    slack = MORE * TOLERANCE * scale
    reach = abs(matrix) @ np.maximum(np.abs(columns.lower), np.abs(columns.upper))
    whole = _whole(matrix, columns) & (reach < 2.0**53)  # such an activity is computed without rounding
    return Rows(
        matrix,
        read_only(np.where(whole, np.ceil(lower - slack), lower)),
        read_only(np.where(whole, np.floor(upper + slack), upper)),
        read_only(owner.astype(np.int64)),
        read_only(np.where(whole, 0.0, slack + 2.0**-50 * reach)),
    )


def _whole(matrix: sparse.csr_array, columns: Columns) -> np.ndarray:
    """Rows whose activity is a whole number, so that their sides can be rounded."""
    integer = np.array(columns.integer, dtype=bool)
    broken = ~integer[matrix.indices] | (matrix.data != np.rint(matrix.data))
    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.asarray(np.bincount(owner, broken, matrix.shape[0]) == 0.0)
