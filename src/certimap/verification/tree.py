"""The proof by a tree of boxes: coverage, tightenings, and the bound of every leaf."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np

from certimap.certificate import Certificate, CertificateError, LeafRecord, NodeRecord, Tightening
from certimap.model.model import Model
from certimap.verification.cuts import Box, CutTable
from certimap.verification.intervals import down, margin, up
from certimap.verification.leaves import LeafBounds
from certimap.verification.problem import Problem, restate
from certimap.verification.proof import Proof, allowed

Children = dict[int, list[int]]


def check_tree(certificate: Certificate, model: Model) -> Proof:
    """Walk the tree from the root, re-derive every box and bound every leaf; the largest bound is the proof's."""
    problem = restate(certificate, model)
    nodes = certificate.nodes
    children = _children(nodes, problem)
    records = _leaf_records(certificate.leaves, len(nodes), children)
    cuts = CutTable(certificate.cuts, problem)
    bounds = LeafBounds(problem, cuts)
    tightener = _Tightener(problem)
    limit = allowed(certificate.upper_bound)
    proved = -math.inf
    stack: list[tuple[int, Box | None]] = [(0, Box(problem.graph.lower.copy(), problem.graph.upper.copy()))]
    while stack:
        index, box = stack.pop()
        for step in nodes[index].tightenings:
            if box is not None and not tightener.apply(step, box, index):
                box = None
        if children[index]:
            if box is not None:
                _check_cover(index, [nodes[child] for child in children[index]], box, problem)
            stack.extend((child, _restrict(nodes[child], box, problem)) for child in children[index])
        elif box is not None:
            proved = max(proved, _leaf_bound(records[index], box, bounds, limit, certificate.upper_bound))
    return Proof(proved, len(nodes), len(records), cuts.derived, tuple(sorted(cuts.trusted)))


def _leaf_bound(record: LeafRecord, box: Box, bounds: LeafBounds, limit: float, claimed: float) -> float:
    if record.empty:
        if not bounds.is_empty(record, box):
            raise CertificateError(f"leaf {record.node}: its multipliers do not prove that the box is empty")
        return -math.inf
    bound = bounds.upper_bound(record, box, limit)
    if not bound <= limit:
        raise CertificateError(f"leaf {record.node}: its multipliers prove {bound!r}, claimed is {claimed!r}")
    return bound


# ------------------------------------------------------------------------------------------------ shape of the tree
def _children(nodes: tuple[NodeRecord, ...], problem: Problem) -> Children:
    if not nodes or nodes[0].parent != -1:
        raise CertificateError("the tree has no root: node 0 must exist and have parent -1")
    children: Children = defaultdict(list)
    for index, node in enumerate(nodes[1:], start=1):
        if not isinstance(node.parent, int) or not 0 <= node.parent < index:
            raise CertificateError(f"node {index}: its parent {node.parent!r} does not precede it")
        if not isinstance(node.column, int) or not 0 <= node.column < problem.graph.n_columns:
            raise CertificateError(f"node {index}: there is no column {node.column!r}")
        children[node.parent].append(index)
    return children


def _leaf_records(leaves: tuple[LeafRecord, ...], n_nodes: int, children: Children) -> dict[int, LeafRecord]:
    records: dict[int, LeafRecord] = {}
    for leaf in leaves:
        if not isinstance(leaf.node, int) or not 0 <= leaf.node < n_nodes or children.get(leaf.node):
            raise CertificateError(f"a leaf record names node {leaf.node!r}, which is no leaf of the tree")
        if leaf.node in records:
            raise CertificateError(f"leaf {leaf.node} has two records")
        records[leaf.node] = leaf
    for index in range(n_nodes):
        if not children.get(index) and index not in records:
            raise CertificateError(f"leaf {index} has no proof")
    return records


def _check_cover(index: int, children: list[NodeRecord], box: Box, problem: Problem) -> None:
    """The children restrict one column, and together they leave no point of the parent's interval out."""
    column = children[0].column
    if any(child.column != column for child in children):
        raise CertificateError(f"node {index}: its children restrict different columns")
    reached = float(box.lower[column])  # every point below is covered
    whole = bool(problem.graph.integer[column])
    covered = -math.inf
    for low, high in sorted((_number(c.lower, index), _number(c.upper, index)) for c in children):
        if low <= reached:
            covered = max(covered, high)
            reached = max(reached, math.floor(high) + 1.0 if whole and math.isfinite(high) else high)
    if not (covered >= box.upper[column] or (whole and reached > box.upper[column])):
        raise CertificateError(f"node {index}: its children leave values of column {column} out")


def _restrict(node: NodeRecord, box: Box | None, problem: Problem) -> Box | None:
    """The child's part of its parent's box; None if it is empty."""
    if box is None:
        return None
    part = Box(box.lower.copy(), box.upper.copy())
    return part if _narrow(part, node.column, float(node.lower), float(node.upper), problem) else None


def _narrow(box: Box, column: int, low: float, high: float, problem: Problem) -> bool:
    """Restrict one column of the box, integers rounded inwards; whether anything remains."""
    if problem.graph.integer[column]:
        low = math.ceil(low) if math.isfinite(low) else low
        high = math.floor(high) if math.isfinite(high) else high
    box.lower[column], box.upper[column] = max(low, box.lower[column]), min(high, box.upper[column])
    return bool(box.lower[column] <= box.upper[column])


def _number(value: float, index: int) -> float:
    if not isinstance(value, int | float) or math.isnan(value):
        raise CertificateError(f"node {index}: a child's interval or a tightening is not made of numbers")
    return float(value)


# ------------------------------------------------------------------------------------------------------ tightenings
class _Tightener:
    """Repeats bound tightenings:  a_j y_j <= side - least activity of the row's other columns."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows = problem.graph.rows

    def apply(self, step: Tightening, box: Box, index: int) -> bool:
        """Narrow the box by the step, which the row must imply; whether anything remains."""
        low, high = _number(step.lower, index), _number(step.upper, index)
        if not isinstance(step.row, int) or not 0 <= step.row < len(self.rows):
            raise CertificateError(f"node {index}: a tightening names row {step.row!r}, which does not exist")
        matrix = self.rows.matrix
        span = slice(matrix.indptr[step.row], matrix.indptr[step.row + 1])
        columns, values = matrix.indices[span], matrix.data[span]
        position = np.flatnonzero(columns == step.column)
        if len(position) != 1:
            raise CertificateError(f"node {index}: row {step.row} does not contain column {step.column!r}")
        whole = bool(self.problem.graph.integer[step.column])
        for implied in (self._implied_quickly, self._implied_exactly):
            least, most = implied(step.row, columns, values, int(position[0]), box)
            if whole:
                least = math.ceil(least) if math.isfinite(least) else least
                most = math.floor(most) if math.isfinite(most) else most
            if (low <= box.lower[step.column] or low <= least) and (high >= box.upper[step.column] or high >= most):
                return _narrow(box, step.column, low, high, self.problem)
        raise CertificateError(
            f"node {index}: row {step.row} implies [{float(least)!r}, {float(most)!r}] for column {step.column}, "
            f"claimed is [{low!r}, {high!r}]"
        )

    def _implied_quickly(
        self, row: int, columns: np.ndarray, values: np.ndarray, position: int, box: Box
    ) -> tuple[float | Fraction, float | Fraction]:
        """An outer approximation in float64."""
        low, high = values * box.lower[columns], values * box.upper[columns]
        low, high = np.minimum(low, high), np.maximum(low, high)
        low[position] = high[position] = 0.0
        sides = float(self.rows.widest_lower[row]), float(self.rows.widest_upper[row])
        scale = float(np.maximum(np.abs(low), np.abs(high)).sum()) + max(
            (abs(s) for s in sides if math.isfinite(s)), default=0.0
        )
        error = margin(len(values) + 2, scale)
        above, below = up(sides[1] - float(low.sum()) + error), down(sides[0] - float(high.sum()) - error)
        a = float(values[position])
        ends = (below / a, above / a) if a > 0.0 else (above / a, below / a)
        return down(ends[0]), up(ends[1])

    def _implied_exactly(
        self, row: int, columns: np.ndarray, values: np.ndarray, position: int, box: Box
    ) -> tuple[float | Fraction, float | Fraction]:
        low = high = Fraction(0)
        for k, (j, c) in enumerate(zip(columns.tolist(), values.tolist(), strict=True)):
            if k != position:
                ends = Fraction(c) * Fraction(float(box.lower[j])), Fraction(c) * Fraction(float(box.upper[j]))
                low, high = low + min(ends), high + max(ends)
        side_low, side_high = float(self.rows.widest_lower[row]), float(self.rows.widest_upper[row])
        a = Fraction(float(values[position]))
        above = (Fraction(side_high) - low) / a if math.isfinite(side_high) else math.copysign(math.inf, a)
        below = (Fraction(side_low) - high) / a if math.isfinite(side_low) else math.copysign(math.inf, -a)
        return (below, above) if a > 0 else (above, below)
