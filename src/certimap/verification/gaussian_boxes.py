"""Boxes of cluster parameters, the boxes that hold every set, and the cuts that a certificate makes.

Every nonempty set S has its own parameters theta(S): its weight n, the mean mu = (b0 o + sum w y)/(b0+n) with the
prior's point o, and Lambda = nu M_S^-1 by the regression of each coordinate on those before it,

    e_d = y_d - mu_d - sum_{j<d} b_dj (y_j - mu_j)   of variance 1/tau_d.

Of kind diag, Lambda = diag(tau) with tau_d = nu/M_dd; of kind spherical all tau_d are nu D/tr M_S; a known precision is
whitened to tau_d = 1. These have no slopes.

A box bounds the coordinates (n, mu, tau, b) of theta(S) for the sets it stands for; `status` says which groups are in
all of these sets, in none, or in some.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError
from certimap.verification.gaussian_cloud import Cloud
from certimap.verification.gaussian_values import Kind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FREE, IN, OUT = 0, 1, 2
WIDER = 1.0 + 1e-9


@dataclass(frozen=True)
class Layout:
    """Where the coordinates of a box stand; slopes that a kind does not have are 0."""

    dimension: int
    kind: Kind

    @property
    def mean(self) -> slice:
        return slice(1, 1 + self.dimension)

    @property
    def tau(self) -> slice:
        return slice(1 + self.dimension, 1 + 2 * self.dimension)

    @property
    def slopes(self) -> slice:
        return slice(1 + 2 * self.dimension, self.size)

    @property
    def size(self) -> int:
        return 1 + 2 * self.dimension + self.dimension * (self.dimension - 1) // 2

    @property
    def free_tau(self) -> range:
        """The d of all tau_d that are free; the first stands for all of a spherical kind."""
        return range({Kind.KNOWN: 0, Kind.SPHERICAL: 1}.get(self.kind, self.dimension))

    def may_cut(self, coordinate: int) -> bool:
        """Whether a recorded tree may cut this coordinate."""
        if coordinate >= self.slopes.start:
            return self.kind is Kind.FULL and coordinate < self.size
        return coordinate < self.tau.start or coordinate - self.tau.start in self.free_tau

    def join_tau(self, rows: Floats) -> None:
        """Carry the first tau over to the others of a spherical kind, in place."""
        if self.kind is Kind.SPHERICAL:
            rows[self.tau] = rows[self.tau.start]


def slope(d: int, j: int) -> int:
    """Position of b_dj, j < d, among the slopes."""
    return d * (d - 1) // 2 + j


@dataclass(frozen=True, eq=False)
class Boxes:
    """`lo`, `hi` of shape (coordinates, boxes), `status` of shape (groups, boxes)."""

    lo: Floats
    hi: Floats
    status: NDArray[np.int8]

    def __len__(self) -> int:
        return int(self.lo.shape[1])

    def take(self, which: Any) -> Boxes:
        """Some of the boxes, by a mask, positions or a slice."""
        return Boxes(self.lo[:, which], self.hi[:, which], self.status[:, which])

    @staticmethod
    def joined(parts: Sequence[Boxes]) -> Boxes:
        return Boxes(
            np.concatenate([p.lo for p in parts], axis=1),
            np.concatenate([p.hi for p in parts], axis=1),
            np.concatenate([p.status for p in parts], axis=1),
        )


def root_boxes(cloud: Cloud, sizes: Floats) -> Boxes:
    """One box for every range of sizes.

    The mean lies between the extreme points. I <= M_S <= I + all scatter about the origin bounds tau, and
    |b_d|^2 <= b_d' M_<d b_d <= M_dd - 1 the slopes.
    """
    D = cloud.dimension
    layout = Layout(D, cloud.kind)
    everything = cloud.weight @ cloud.y**2 + cloud.b0 * cloud.origin**2 + (cloud.columns**2).sum(axis=(0, 1))
    variance = (1.0 + (everything.mean() if cloud.kind is Kind.SPHERICAL else everything)) * np.full(D, WIDER)
    lo, hi = np.zeros((layout.size, len(sizes))), np.zeros((layout.size, len(sizes)))
    lo[0], hi[0] = np.maximum(sizes[:, 0] - size_room(cloud), 0.0), sizes[:, 1] + size_room(cloud)
    low, high = np.minimum(cloud.y.min(axis=0), cloud.origin), np.maximum(cloud.y.max(axis=0), cloud.origin)
    pad = 1e-9 * np.maximum(np.abs(low), np.abs(high))
    lo[layout.mean], hi[layout.mean] = (low - pad)[:, None], (high + pad)[:, None]
    if cloud.kind is Kind.KNOWN:
        lo[layout.tau] = hi[layout.tau] = 1.0
    else:
        lo[layout.tau] = (cloud.v + lo[0]) / (variance * WIDER)[:, None]
        hi[layout.tau] = (cloud.v + hi[0]) * WIDER
    for d in range(1, D if cloud.kind is Kind.FULL else 1):
        reach = math.sqrt(variance[d]) * WIDER
        rows = slice(layout.slopes.start + slope(d, 0), layout.slopes.start + slope(d, 0) + d)
        lo[rows], hi[rows] = -reach, reach
    return Boxes(lo, hi, np.full((len(cloud.weight), len(sizes)), FREE, dtype=np.int8))


def check_sizes(sizes: Floats, cloud: Cloud, low: float, high: float) -> None:
    """The ranges of sizes must hold the weight of every nonempty set that has at least `low` and at most `high`."""
    room = size_room(cloud)
    reached, end = max(float(cloud.weight.min()), low), min(float(cloud.weight.sum()), high)
    if cloud.integral:
        reached = math.ceil(reached)
    for first, last in sorted(sizes.tolist()):
        if first - room > reached:
            break
        reached = max(reached, math.floor(last) + 1.0 if cloud.integral else last + room)
    if reached < end or (cloud.integral and reached == end):
        raise CertificateError("the pricing of a leaf leaves sizes of sets out")


def size_room(cloud: Cloud) -> float:
    """By how much ranges of sizes are widened, for the rounding of sums of weights."""
    return 0.0 if cloud.integral else 1e-9 * float(cloud.weight.sum())


def recorded_boxes(record: Mapping[str, Any], cloud: Cloud, low: float, high: float) -> tuple[Boxes, Ints]:
    """The boxes between all recorded cuts, and how many nodes the solver searched in each; they cover every set."""
    try:
        sizes = np.asarray(record["sizes"], dtype=float).reshape(-1, 2)
        parent, side, coordinate, nodes = (
            np.asarray(record[key], dtype=np.int64) for key in ("parent", "side", "coordinate", "nodes")
        )
        cut = np.asarray(record["cut"], dtype=float)
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"the pricing of a leaf is malformed: {error}") from None
    roots, count = len(sizes), len(parent)
    shapes = {a.shape for a in (parent, side, coordinate, nodes, cut)}
    layout = Layout(cloud.dimension, cloud.kind)
    if shapes != {(count,)} or count < roots or not (np.isfinite(sizes).all() and np.isfinite(cut).all()):
        raise CertificateError("the pricing of a leaf is malformed: its arrays do not fit together")
    check_sizes(sizes, cloud, low, high)
    split = coordinate >= 0
    sides: list[list[int]] = [[] for _ in range(count)]
    for k in range(count):
        placed = (parent[k] == -1) == (k < roots) and -1 <= parent[k] < k
        if not placed or not (coordinate[k] < 0 or layout.may_cut(int(coordinate[k]))):
            raise CertificateError(f"entry {k} of a recorded pricing tree is malformed")
        if k >= roots:
            sides[parent[k]].append(int(side[k]))
    if any(sorted(s) != [0, 1] if split[k] else s for k, s in enumerate(sides)):
        raise CertificateError("a recorded pricing tree does not cover its boxes")
    top = root_boxes(cloud, sizes)
    lo, hi = np.zeros((count, layout.size)), np.zeros((count, layout.size))
    lo[:roots], hi[:roots] = top.lo.T, top.hi.T
    for k in range(roots, count):
        p = parent[k]
        lo[k], hi[k] = lo[p], hi[p]
        c, whole = coordinate[p], cloud.integral and coordinate[p] == 0
        if side[k] == 0:
            hi[k, c] = min(hi[k, c], math.floor(cut[p]) if whole else cut[p])
        else:
            lo[k, c] = max(lo[k, c], math.floor(cut[p]) + 1.0 if whole else cut[p])
        layout.join_tau(lo[k])
        layout.join_tau(hi[k])
    leaves = ~split
    leaves[leaves] = (lo[leaves] <= hi[leaves]).all(axis=1)  # a cut outside its box leaves one side empty
    status = np.full((len(cloud.weight), int(leaves.sum())), FREE, dtype=np.int8)
    return Boxes(lo[leaves].T.copy(), hi[leaves].T.copy(), status), nodes[leaves]
