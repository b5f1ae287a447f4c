"""Partitions for the incumbent: greedy construction under the rules, then single-group moves. Never part of a proof."""

from __future__ import annotations

import numpy as np

from certimap.oracles.partition import ColumnRules, Floats, Ints, Masks, PartitionBlock

MAX_SWEEPS = 50


class PartitionSearch:
    """Local search over labels of groups."""

    def __init__(self, block: PartitionBlock, rules: ColumnRules, n_clusters: int) -> None:
        self._block = block
        self._rules = rules
        self._clusters = n_clusters
        self._foes: list[list[int]] = [[] for _ in range(rules.n_groups)]
        for a, b in rules.apart.tolist():
            self._foes[a].append(b)
            self._foes[b].append(a)

    def improve(self, items: Ints, rng: np.random.Generator) -> Ints | None:
        """Labels of the items after repair and local search, starting from labels that need not be feasible."""
        labels = self._construct(items[self._rules.representative], rng)
        return None if labels is None else self._climb(labels, rng)[self._rules.group]

    def neighbours(self, items: Ints, limit: int) -> Masks:
        """The clusters of a partition and those that differ from one by a single group, where the rules allow them."""
        rules = self._rules
        clusters = items[None, :] == np.arange(self._clusters)[:, None]
        flipped = np.repeat(clusters, rules.n_groups, axis=0)
        if len(flipped) <= limit:
            members = np.arange(rules.n_groups)[:, None] == rules.group[None, :]
            clusters = np.concatenate([clusters, flipped ^ np.tile(members, (self._clusters, 1))])
        return np.asarray(clusters[rules.admits(clusters) & clusters.any(axis=1)])

    def marginals(self, items: Ints) -> tuple[Floats, Floats]:
        """Per group: what it adds to its own cluster, and the most it would add to another one."""
        rules, value = self._rules, self._block.value
        clusters = items[None, :] == np.arange(self._clusters)[:, None]
        worth = [value(mask) for mask in clusters]
        own, other = np.zeros(rules.n_groups), np.full(rules.n_groups, -np.inf)
        for g in range(rules.n_groups):
            member = rules.group == g
            home = items[rules.representative[g]]
            own[g] = worth[home] - value(clusters[home] & ~member)
            for k in range(self._clusters):
                if k != home:
                    other[g] = max(other[g], value(clusters[k] | member) - worth[k])
        return own, np.where(np.isfinite(other), other, own)

    # ------------------------------------------------------------------------------------------------------- internal
    def _construct(self, preferred: Ints, rng: np.random.Generator) -> Ints | None:
        """Groups with many foes first, each to its preferred cluster if the rules allow, else to the smallest one."""
        rules = self._rules
        degree = np.array([len(f) for f in self._foes])
        order = np.lexsort((rng.random(rules.n_groups), -rules.sizes, -degree))
        labels = np.full(rules.n_groups, -1, dtype=np.int64)
        count = np.zeros(self._clusters, dtype=np.int64)
        for g in order:
            choices = [int(preferred[g]), *np.argsort(count, kind="stable").tolist()]
            for k in choices:
                if count[k] + rules.sizes[g] <= rules.max_size and self._fits(labels, int(g), k):
                    labels[g] = k
                    count[k] += rules.sizes[g]
                    break
            else:
                return None
        return labels if self._fill_up(labels, count, rng) else None

    def _fill_up(self, labels: Ints, count: Ints, rng: np.random.Generator) -> bool:
        """Move groups into clusters that are too small."""
        rules = self._rules
        for k in np.flatnonzero(count < rules.min_size):
            for g in rng.permutation(rules.n_groups):
                home = labels[g]
                spare = count[home] - rules.sizes[g] >= rules.min_size
                room = count[k] + rules.sizes[g] <= rules.max_size
                if home != k and spare and room and self._fits(labels, int(g), int(k)):
                    labels[g] = k
                    count[home] -= rules.sizes[g]
                    count[k] += rules.sizes[g]
                if count[k] >= rules.min_size:
                    break
        return bool((count >= rules.min_size).all())

    def _climb(self, labels: Ints, rng: np.random.Generator) -> Ints:
        """First-improvement moves of single groups until none is left."""
        rules, value = self._rules, self._block.value
        clusters = labels[rules.group][None, :] == np.arange(self._clusters)[:, None]
        worth = [value(mask) for mask in clusters]
        count = clusters.sum(axis=1)
        for _ in range(MAX_SWEEPS):
            moved = False
            for g in rng.permutation(rules.n_groups):
                home, size = int(labels[g]), rules.sizes[g]
                if count[home] - size < rules.min_size:
                    continue
                member = rules.group == g
                without = value(clusters[home] & ~member)
                for k in range(self._clusters):
                    if k == home or count[k] + size > rules.max_size or not self._fits(labels, int(g), k):
                        continue
                    joined = value(clusters[k] | member)
                    if without + joined > worth[home] + worth[k] + 1e-12 * (1.0 + abs(worth[home] + worth[k])):
                        clusters[home] &= ~member
                        clusters[k] |= member
                        worth[home], worth[k] = without, joined
                        count[home] -= size
                        count[k] += size
                        labels[g], moved = k, True
                        break
            if not moved:
                break
        return labels

    def _fits(self, labels: Ints, g: int, k: int) -> bool:
        return all(labels[f] != k for f in self._foes[g])
