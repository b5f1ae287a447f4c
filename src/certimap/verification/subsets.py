"""Exact search over sets of groups with whole-number weights: decides what the pricing proofs rest on.

    sum_{g in S} w_g + sum_{pairs within S} r_p    over sets S of groups that the rules admit

All arithmetic is on Python's integers, so there is nothing to round. Any numbers mu, s give valid bounds:

    r > 0:  r x_a x_b <= (r_a' x_a + r_b' x_b)           with r_a' + r_b' = r
    r < 0:  r x_a x_b <= -mu (x_a + x_b - 1)             with 0 <= mu <= -r
    sizes:  sum w x <= sum max(0, w_g - s n_g) + s low   with s <= 0, or + s high with s >= 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from certimap.certificate import CertificateError

MAX_STEPS = 5_000_000  # group visits in one search; a proof that needs more is refused as too long


@dataclass(frozen=True)
class GroupRules:
    """Sizes of the groups, pairs that must not be together, and how many items a set may have."""

    groups: tuple[tuple[int, ...], ...]  # items of every group
    apart: tuple[tuple[int, int], ...]
    low: int
    high: int
    sizes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(len(g) for g in self.groups))

    def admit(self, chosen: Sequence[bool]) -> bool:
        count = sum(n for n, x in zip(self.sizes, chosen, strict=True) if x)
        return self.low <= count <= self.high and not any(chosen[a] and chosen[b] for a, b in self.apart)


@dataclass(frozen=True)
class Weighted:
    """The weights of one search; `rewards` are soft links (group, group, r) between different groups."""

    rules: GroupRules
    weights: list[int]
    rewards: Sequence[tuple[int, int, int]] = ()

    def value(self, chosen: Sequence[bool]) -> int:
        total = sum(w for w, x in zip(self.weights, chosen, strict=True) if x)
        return total + sum(r for a, b, r in self.rewards if chosen[a] and chosen[b])


@dataclass(frozen=True)
class Linear:
    """value(S) <= constant + sum_{g in S} shifted_g for every admitted S that agrees with the fixed groups."""

    constant: int
    shifted: list[int]
    pairs: list[tuple[int, int, int | None, int]]  # free pairs: groups, reward (None: apart), mu

    @property
    def bound(self) -> int:
        return self.constant + sum(w for w in self.shifted if w > 0)


def linear_bound(problem: Weighted, fixed: Sequence[bool | None]) -> Linear | None:
    """A linear upper bound; the entries of fixed groups are 0. None if the sizes cannot be met."""
    constant, w, pairs = _without_pairs(problem, fixed, 0)
    found = _size_price(problem.rules, w, fixed)
    if found is not None and found[0] != 0:  # now the pairs again, in view of the price of the size limits
        constant, w, pairs = _without_pairs(problem, fixed, found[0])
        found = _size_price(problem.rules, w, fixed)
    if found is None:
        return None
    rate, limit = found
    shifted = [x - rate * n if f is None else 0 for x, n, f in zip(w, problem.rules.sizes, fixed, strict=True)]
    return Linear(constant + rate * limit, shifted, pairs)


def _without_pairs(
    problem: Weighted, fixed: Sequence[bool | None], rate: int
) -> tuple[int, list[int], list[tuple[int, int, int | None, int]]]:
    """Constant, weights and free pairs of the linear relaxation at this value per item."""
    w = list(problem.weights)
    size = problem.rules.sizes
    constant = sum(x for x, f in zip(w, fixed, strict=True) if f)
    for a, b, r in problem.rewards:
        if fixed[a] and fixed[b]:
            constant += r
        elif fixed[a] and fixed[b] is None:
            w[b] += r
        elif fixed[b] and fixed[a] is None:
            w[a] += r
        elif fixed[a] is None and fixed[b] is None and r > 0:
            w[a] += r // 2
            w[b] += r - r // 2
    pairs: list[tuple[int, int, int | None, int]] = []
    for a, b, reward in [*((a, b, None) for a, b in problem.rules.apart), *problem.rewards]:
        if fixed[a] is None and fixed[b] is None:
            mu = 0
            if reward is None or reward < 0:
                mu = max(0, min(w[a] - rate * size[a], w[b] - rate * size[b]))
                mu = mu if reward is None else min(mu, -reward)
                w[a] -= mu
                w[b] -= mu
                constant += mu
            pairs.append((a, b, reward, mu))
    return constant, w, pairs


def _size_price(rules: GroupRules, w: list[int], fixed: Sequence[bool | None]) -> tuple[int, int] | None:
    """(value per item, limit) at which the size limit binds; (0, 0) where none does; None if they cannot be met."""
    free = [g for g, f in enumerate(fixed) if f is None]
    used = sum(n for n, f in zip(rules.sizes, fixed, strict=True) if f)
    low, high = rules.low - used, rules.high - used
    wanted = sum(rules.sizes[g] for g in free if w[g] > 0)
    if high < 0 or sum(rules.sizes[g] for g in free) < low:
        return None
    if low <= wanted <= high:
        return 0, 0
    limit = low if wanted < low else high
    room = limit
    for g in sorted(free, key=lambda g: -(w[g] // rules.sizes[g])):
        room -= rules.sizes[g]
        if room <= 0:
            rate = w[g] // rules.sizes[g]
            return (min(rate, 0) if limit == low else max(rate, 0)), limit
    return 0, 0


def find_heavier(problem: Weighted, threshold: int) -> list[bool] | None:
    """An admitted set of value above the threshold, or None: then there is none."""
    rules = problem.rules
    fixed: list[bool | None] = [None] * len(rules.sizes)
    foes: list[list[int]] = [[] for _ in rules.sizes]
    for a, b in rules.apart:
        foes[a].append(b)
        foes[b].append(a)
    steps = 0
    stack = [fixed]
    while stack:
        fixed = stack.pop()
        steps += len(fixed)
        if steps > MAX_STEPS:
            raise CertificateError("a pricing proof is too long to be checked")
        linear = linear_bound(problem, fixed)
        if linear is None or linear.bound <= threshold:
            continue
        chosen = _rounded(rules, linear, fixed)
        if rules.admit(chosen) and problem.value(chosen) > threshold:
            return chosen
        branch = _branch(linear, fixed, chosen)
        if branch < 0:
            continue
        without, within = list(fixed), list(fixed)
        without[branch] = False
        within[branch] = True
        for foe in foes[branch]:
            within[foe] = False
        stack.append(without)
        if not any(fixed[foe] for foe in foes[branch]):
            stack.append(within)
    return None


def _rounded(rules: GroupRules, linear: Linear, fixed: Sequence[bool | None]) -> list[bool]:
    """What the bound takes; groups of weight 0 fill up to the smallest size."""
    chosen = [bool(f) if f is not None else w > 0 for f, w in zip(fixed, linear.shifted, strict=True)]
    count = sum(n for n, x in zip(rules.sizes, chosen, strict=True) if x)
    for g in sorted(range(len(chosen)), key=lambda g: -linear.shifted[g]):
        if count >= rules.low:
            break
        if fixed[g] is None and not chosen[g]:
            chosen[g] = True
            count += rules.sizes[g]
    return chosen


def _branch(linear: Linear, fixed: Sequence[bool | None], chosen: Sequence[bool]) -> int:
    """A free group of the pair that the bound says least about; without one, the group it is least sure of."""
    worst, group = 0, -1
    for a, b, reward, mu in linear.pairs:
        if reward is not None and reward > 0:
            loss = reward // 2 if chosen[a] != chosen[b] else 0
        elif chosen[a] and chosen[b]:
            loss = mu + 1 if reward is None else -reward - mu
        else:
            loss = 0 if chosen[a] or chosen[b] else mu
        if loss > worst:
            worst, group = loss, a
    free = [g for g, f in enumerate(fixed) if f is None]
    if group >= 0 or not free:
        return group
    return min(free, key=lambda g: (abs(linear.shifted[g]), g))


def sets_above(problem: Weighted, threshold: int) -> Iterator[list[bool]]:
    """All admitted sets of value above the threshold: the best relaxed set with groups flipped in order of cost."""
    fixed: list[bool | None] = [None] * len(problem.weights)
    linear = linear_bound(problem, fixed)
    if linear is None or linear.bound <= threshold:
        return
    chosen = [w > 0 for w in linear.shifted]
    cost = [abs(w) for w in linear.shifted]
    order = sorted(range(len(cost)), key=cost.__getitem__)
    budget = linear.bound - threshold
    path: list[int] = []
    position, steps, fresh = 0, 0, True
    while True:
        steps += 1
        if steps > MAX_STEPS:
            raise CertificateError("a list of columns is too long to be checked")
        if fresh and problem.rules.admit(chosen) and problem.value(chosen) > threshold:
            yield list(chosen)
        fresh = position < len(order) and cost[order[position]] < budget
        if fresh:
            path.append(position)
        elif path:
            position = path.pop()
        else:
            return
        group = order[position]
        chosen[group] = not chosen[group]
        budget += -cost[group] if fresh else cost[group]
        position += 1
