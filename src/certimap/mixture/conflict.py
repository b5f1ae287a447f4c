"""Why no labelling exists: an irreducible conflicting set of constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from certimap._numeric.links import compressed_links
from certimap.engines.conflict import minimal_subset
from certimap.mixture.clusters import IntArray
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.search.feasibility import find_feasible


@dataclass(frozen=True)
class _Constraint:
    kind: str  # apart, fixed, least or most
    item: int = -1
    other: int = -1


def conflicting_constraints(problem: MixtureProblem) -> tuple[str, ...]:
    """Names of constraints that exclude each other, given the must-links; () if that is not proved.

    Irreducible as far as the feasibility tests within their node limit can tell.
    """
    constraints = _constraints(problem)
    if not _conflicting(problem, constraints):
        return ()
    needed = minimal_subset(constraints, lambda chosen: _conflicting(problem, chosen))
    names = [_name(problem, constraint) for constraint in needed]
    tied = _tied_groups(problem, needed)
    return tuple(names + [f"must_link ties points {_listed(_points(problem, item))}" for item in tied])


def _constraints(problem: MixtureProblem) -> list[_Constraint]:
    n_items, n_points = len(problem.items), int(problem.points.sum())
    found = [_Constraint("least")] if problem.min_size > 0 else []
    found += [_Constraint("most")] if problem.max_size < n_points else []
    found += [_Constraint("fixed", int(i)) for i in np.flatnonzero(problem.fixed >= 0)]
    rows = np.repeat(np.arange(n_items), np.diff(problem.conflict_start))
    found += [_Constraint("apart", int(i), int(j)) for i, j in zip(rows, problem.conflict_items, strict=True) if i < j]
    return found


def _conflicting(problem: MixtureProblem, constraints: Sequence[_Constraint]) -> bool:
    kinds = {constraint.kind for constraint in constraints}
    fixed = np.full_like(problem.fixed, -1)
    kept = [constraint.item for constraint in constraints if constraint.kind == "fixed"]
    fixed[kept] = problem.fixed[kept]
    links = [(c.item, c.other) for c in constraints if c.kind == "apart"]
    start, neighbours = compressed_links(np.array(links, dtype=np.int64).reshape(-1, 2), len(problem.items))
    relaxed = replace(
        problem,
        fixed=fixed,
        conflict_start=start,
        conflict_items=neighbours,
        min_size=problem.min_size if "least" in kinds else 0,
        max_size=problem.max_size if "most" in kinds else int(problem.points.sum()),
    )
    return find_feasible(relaxed, seed=0).proved_infeasible


def _name(problem: MixtureProblem, constraint: _Constraint) -> str:
    if constraint.kind == "least":
        return f"minimum cluster size {problem.min_size}"
    if constraint.kind == "most":
        return f"maximum cluster size {problem.max_size}"
    first = _points(problem, constraint.item)[0]
    if constraint.kind == "fixed":
        return f"known label {problem.fixed[constraint.item]} of point {first}"
    return f"cannot_link ({first}, {_points(problem, constraint.other)[0]})"


def _tied_groups(problem: MixtureProblem, constraints: list[_Constraint]) -> list[int]:
    """Items of several points that play a part: those named, and under a size limit the largest ones."""
    items = {item for c in constraints for item in (c.item, c.other) if item >= 0}
    if any(c.kind in ("least", "most") for c in constraints):
        items.update(int(i) for i in np.argsort(-problem.points, kind="stable")[: problem.n_clusters])
    return [item for item in sorted(items) if problem.points[item] > 1]


def _points(problem: MixtureProblem, item: int) -> IntArray:
    return np.flatnonzero(problem.point_item == item)


def _listed(points: IntArray, most: int = 6) -> str:
    shown = ", ".join(str(i) for i in points[:most])
    return shown + (f", ... ({len(points)} in all)" if len(points) > most else "")
