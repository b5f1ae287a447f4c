"""Why no assignment exists: an irreducible conflicting set of constraints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from certimap._numeric.links import compressed_links
from certimap.engines.conflict import minimal_subset
from certimap.topics.problem import TopicProblem
from certimap.topics.search.feasibility import find_feasible


@dataclass(frozen=True)
class _Constraint:
    kind: str  # apart (words), fixed (item), most or least
    first: int = -1
    second: int = -1


def conflicting_constraints(problem: TopicProblem) -> tuple[str, ...]:
    """Names of constraints that exclude each other, given the must-links; () if that is not proved.

    Irreducible as far as the feasibility tests within their node limit can tell.
    """
    constraints = _constraints(problem)
    if not _conflicting(problem, constraints):
        return ()
    needed = minimal_subset(constraints, lambda chosen: _conflicting(problem, chosen))
    return tuple([_name(problem, constraint) for constraint in needed] + _linked_groups(problem, needed))


def _constraints(problem: TopicProblem) -> list[_Constraint]:
    found = []
    if problem.min_documents > 0 and math.isinf(problem.min_documents_weight):
        found.append(_Constraint("least"))
    if problem.max_topics < problem.n_topics and math.isinf(problem.max_topics_weight):
        found.append(_Constraint("most"))
    found += [_Constraint("fixed", int(i)) for i in np.flatnonzero(problem.fixed >= 0)]
    rows = np.repeat(np.arange(problem.cells.n_words), np.diff(problem.conflict_start))
    pairs = zip(rows, problem.conflict_words, strict=True)
    return found + [_Constraint("apart", int(u), int(w)) for u, w in pairs if u < w]


def _conflicting(problem: TopicProblem, constraints: Sequence[_Constraint]) -> bool:
    kinds = {constraint.kind for constraint in constraints}
    fixed = np.full_like(problem.fixed, -1)
    kept = [constraint.first for constraint in constraints if constraint.kind == "fixed"]
    fixed[kept] = problem.fixed[kept]
    links = np.array([(c.first, c.second) for c in constraints if c.kind == "apart"], dtype=np.int64).reshape(-1, 2)
    start, neighbours = compressed_links(links, problem.cells.n_words)
    relaxed = replace(
        problem,
        fixed=fixed,
        conflict_start=start,
        conflict_words=neighbours,
        min_documents=problem.min_documents if "least" in kinds else 0,
        max_topics=problem.max_topics if "most" in kinds else problem.n_topics,
    )
    return find_feasible(relaxed, seed=0).proved_infeasible


def _name(problem: TopicProblem, constraint: _Constraint) -> str:
    if constraint.kind == "least":
        return f"at least {problem.min_documents} documents a topic"
    if constraint.kind == "most":
        return f"at most {problem.max_topics} topics a document"
    if constraint.kind == "apart":
        return f"cannot_link_words ({problem.word_name(constraint.first)}, {problem.word_name(constraint.second)})"
    cell = int(np.flatnonzero(problem.cell_item == constraint.first)[0])
    word = problem.word_name(problem.cells.word[cell])
    return f"topic {problem.fixed[constraint.first]} of {word} in document {problem.cells.document[cell]}"


def _linked_groups(problem: TopicProblem, constraints: Sequence[_Constraint]) -> list[str]:
    """The must-linked words that play a part: those of items and words that are named, all of them under limits."""
    words = set(problem.must_links.ravel().tolist())
    if not any(c.kind in ("least", "most") for c in constraints):
        named = {word for c in constraints if c.kind == "apart" for word in (c.first, c.second)}
        items = [c.first for c in constraints if c.kind == "fixed"]
        named.update(problem.cells.word[np.isin(problem.cell_item, items)].tolist())
        words &= named
    pairs = [(u, w) for u, w in problem.must_links.tolist() if u in words or w in words]
    return [f"must_link_words ({problem.word_name(u)}, {problem.word_name(w)})" for u, w in pairs]
