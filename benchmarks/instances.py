"""Seeded instances, as plain data from which ours and every peer's model is built."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap import Model, at_most, fix, gated, gaussian, linear, logistic, ridge, table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """A pairwise model on a grid: unary (variables, K), pairs as (a, b, table)."""

    name: str
    unary: Floats
    pairs: tuple[tuple[int, int, Floats], ...]

    @property
    def states(self) -> int:
        return self.unary.shape[1]

    def value(self, x: NDArray[np.int64]) -> float:
        return float(self.unary[np.arange(len(x)), x].sum() + sum(t[x[a], x[b]] for a, b, t in self.pairs))

    def model(self) -> Model:
        m = Model()
        z = m.categorical("z", self.states, shape=len(self.unary))
        m.add([table(v, u) for v, u in zip(z, self.unary, strict=True)])
        m.add([table([z[a], z[b]], t) for a, b, t in self.pairs])
        return m


def _edges(size: int) -> list[tuple[int, int]]:
    right = [(i * size + j, i * size + j + 1) for i in range(size) for j in range(size - 1)]
    down = [(i * size + j, (i + 1) * size + j) for i in range(size - 1) for j in range(size)]
    return right + down


def random_grid(size: int, states: int, seed: int) -> Grid:
    """Standard normal fields and tables."""
    rng = np.random.default_rng(seed)
    pairs = tuple((a, b, rng.normal(size=(states, states))) for a, b in _edges(size))
    return Grid(f"random {size}x{size} K{states}", rng.normal(size=(size * size, states)), pairs)


def frustrated_grid(size: int, states: int, seed: int) -> Grid:
    """Couplings of either sign and of nearly equal strength, weak fields: the local polytope has a gap."""
    rng = np.random.default_rng(seed)
    signs = [rng.choice([-1.0, 1.0]) * (1.0 + 0.1 * rng.random()) for _ in _edges(size)]
    pairs = tuple((a, b, s * np.eye(states)) for (a, b), s in zip(_edges(size), signs, strict=True))
    return Grid(f"frustrated {size}x{size} K{states}", 0.3 * rng.normal(size=(size * size, states)), pairs)


def attractive_grid(size: int, states: int, seed: int) -> Grid:
    """Potts couplings of positive weight under random fields."""
    rng = np.random.default_rng(seed)
    pairs = tuple((a, b, rng.random() * np.eye(states)) for a, b in _edges(size))
    return Grid(f"Potts {size}x{size} K{states}", rng.normal(size=(size * size, states)), pairs)


@dataclass(frozen=True)
class SparseLogistic:
    """max sum_i log sigmoid(y_i w.x_i) - |w|^2 / (2 variance), |w_j| <= reach, at most `nonzero` nonzero weights."""

    x: Floats
    y: NDArray[np.int64]
    nonzero: int = 5
    reach: float = 3.0
    variance: float = 4.0

    def model(self) -> Model:
        m = Model()
        n = self.x.shape[1]
        w, z = m.real("w", -self.reach, self.reach, shape=n), m.binary("z", shape=n)
        for row, label in zip(self.x, self.y, strict=True):
            m.add(ridge(linear(zip(w, row.tolist(), strict=True)), logistic(int(label))))
        m.add([ridge(v, gaussian(0.0, self.variance)) for v in w])
        m.constrain([v - self.reach * b <= 0.0 for v, b in zip(w, z, strict=True)])
        m.constrain([v + self.reach * b >= 0.0 for v, b in zip(w, z, strict=True)])
        m.constrain(at_most(self.nonzero, z))
        return m


def sparse_logistic(features: int = 20, data: int = 100, seed: int = 0) -> SparseLogistic:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(data, features))
    w = np.zeros(features)
    w[:4] = [1.5, -2.0, 1.0, 1.5]
    y = np.where(rng.random(data) < 1.0 / (1.0 + np.exp(-x @ w)), 1, -1)
    return SparseLogistic(x, y)


@dataclass(frozen=True)
class SwitchingRegression:
    """Each datum belongs to one of two lines a_k x + b_k with Gaussian noise; the lines are N(0, prior) and bounded."""

    x: Floats
    y: Floats
    variance: float = 0.04
    prior: float = 4.0
    reach: float = 3.0

    def model(self) -> Model:
        m = Model()
        a, b = m.real("a", -self.reach, self.reach, shape=2), m.real("b", -self.reach, self.reach, shape=2)
        z = m.binary("z", shape=len(self.x))
        m.add([ridge(v, gaussian(0.0, self.prior)) for v in (*a, *b)])
        for i, (s, t) in enumerate(zip(self.x.tolist(), self.y.tolist(), strict=True)):
            m.add([gated(z[i].is_(k), s * a[k] + b[k] - t, gaussian(0.0, self.variance)) for k in range(2)])
        m.constrain(fix(z[0], 0))  # the lines are exchangeable
        return m


def switching_regression(data: int = 50, seed: int = 0) -> SwitchingRegression:
    rng = np.random.default_rng(seed)
    x, line = rng.uniform(-1.0, 1.0, data), rng.integers(2, size=data)
    slope, intercept = np.array([1.5, -1.0]), np.array([0.5, -0.5])
    return SwitchingRegression(x, slope[line] * x + intercept[line] + 0.2 * rng.normal(size=data))
