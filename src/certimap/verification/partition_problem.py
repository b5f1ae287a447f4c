"""The partition problem of a model, read for verification: items, rules and soft links, in exact numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from certimap.certificate import CertificateError
from certimap.model.expressions import Constraint, Variable
from certimap.model.factors import Potts
from certimap.model.model import Model
from certimap.model.partition import Partition
from certimap.verification.subsets import GroupRules

Pair = tuple[int, int]


@dataclass(frozen=True)
class PartitionProblem:
    """maximise  offset + sum_k c(S_k) + soft links, over partitions of the items that respect the rules."""

    factor: Partition
    n_items: int
    n_clusters: int
    together: tuple[Pair, ...]
    apart: tuple[Pair, ...]
    low: int
    high: int
    rewards: tuple[tuple[int, int, float], ...]
    offset: Fraction
    labelled: frozenset[int]  # items whose cluster is given

    def rules(self, together: Iterable[Pair], apart: Iterable[Pair]) -> GroupRules:
        """Close the ties transitively and carry the other pairs over to the groups."""
        leader = list(range(self.n_items))

        def find(i: int) -> int:
            while leader[i] != i:
                leader[i] = leader[leader[i]]
                i = leader[i]
            return i

        for i, j in (*self.together, *together):
            leader[find(i)] = find(j)
        members: dict[int, list[int]] = {}
        for i in range(self.n_items):
            members.setdefault(find(i), []).append(i)
        number = {root: g for g, root in enumerate(members)}
        pairs = {tuple(sorted((number[find(i)], number[find(j)]))) for i, j in (*self.apart, *apart)}
        return GroupRules(
            tuple(tuple(g) for g in members.values()), tuple(sorted((a, b) for a, b in pairs)), self.low, self.high
        )


def restate_partition(model: Model) -> PartitionProblem:
    """Read the model; whatever could make clusters unequal is refused."""
    partitions = [f for f in model.factors if isinstance(f, Partition)]
    links = [f for f in model.factors if isinstance(f, Potts)]
    if len(partitions) != 1 or len(partitions) + len(links) != len(model.factors) or model.linear.terms:
        raise CertificateError("the model is not one partition with soft links")
    factor = partitions[0]
    position = {z: i for i, z in enumerate(factor.items)}
    if set(model.variables.values()) != set(position):
        raise CertificateError("the model has variables outside its partition")
    rewards = [(position[f.scope[0]], position[f.scope[1]], f.weight) for f in links]
    offset = Fraction(model.linear.constant)
    for s in model.softs:
        if len(s.constraint.links) != 1:
            raise CertificateError(f"soft {s.constraint.name} is not a soft link")
        ((a, b, sign),) = s.constraint.links
        # -weight where violated: for a must-link that is -weight + weight [together].
        rewards.append((position[a], position[b], sign * s.weight))
        offset -= Fraction(s.weight) if sign > 0 else 0
    reader = _Reader(position, factor.n_clusters)
    for constraint in model.constraints.values():
        reader.read(constraint)
    low, high = reader.limits()
    return PartitionProblem(
        factor,
        len(position),
        factor.n_clusters,
        tuple(reader.together),
        tuple(reader.apart),
        low,
        high,
        tuple(rewards),
        offset,
        reader.labelled(),
    )


class _Reader:
    """Links, size limits, and labels (which tie equal ones and part different ones: clusters can be renamed)."""

    def __init__(self, position: dict[Variable, int], n_clusters: int) -> None:
        self._position = position
        self._sizes = {k: (0, len(position)) for k in range(n_clusters)}
        self._labels: list[tuple[int, int]] = []
        self.together: list[Pair] = []
        self.apart: list[Pair] = []

    def read(self, constraint: Constraint) -> None:
        for a, b, sign in constraint.links:
            (self.together if sign > 0 else self.apart).append((self._position[a], self._position[b]))
        if constraint.links:
            return
        for row in constraint.rows:
            states = {a.key for a, _ in row.terms}
            plain = all(c == 1.0 and a.is_indicator for a, c in row.terms)
            variables = {a.variable for a, _ in row.terms}
            if not plain or len(states) != 1 or len(variables) != len(row.terms):
                raise CertificateError(f"constraint {constraint.name} is not one of partitions")
            k = int(states.pop() or 0)
            if len(variables) == 1 and row.lower == row.upper == 1.0:
                self._label(self._position[variables.pop()], k)
            elif variables == set(self._position):
                low, high = self._sizes[k]
                self._sizes[k] = (
                    max(low, math.ceil(max(row.lower, 0.0))),
                    min(high, math.floor(min(row.upper, float(high)))),
                )
            else:
                raise CertificateError(f"constraint {constraint.name} counts some of the items only")

    def labelled(self) -> frozenset[int]:
        return frozenset(item for item, _ in self._labels)

    def limits(self) -> Pair:
        if len(set(self._sizes.values())) != 1:
            raise CertificateError("the clusters have different size limits")
        return self._sizes[0]

    def _label(self, item: int, k: int) -> None:
        for other, label in self._labels:
            (self.together if label == k else self.apart).append((other, item))
        self._labels.append((item, k))
