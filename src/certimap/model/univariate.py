"""Named functions of one real number: the scalar part of ridge, separable and gated factors.

They are data (a kind and parameters). Solver and verifier each bring their own arithmetic for every kind;
here stands only the definition, for closed-form values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from certimap.model.checks import finite, not_negative, positive
from certimap.model.errors import ModelError


@dataclass(frozen=True)
class Univariate:
    """g(s), identified by `kind` and `parameters`; see the constructors below for the formulas."""

    kind: str
    parameters: tuple[float, ...]

    def __call__(self, s: float) -> float:
        return _FORMULAS[self.kind](s, self.parameters)

    def domain(self) -> tuple[float, float]:
        """The interval on which g is finite (open at a finite end)."""
        return (0.0, math.inf) if self.kind == "log" else (-math.inf, math.inf)


def gaussian(mean: float, variance: float = 1.0) -> Univariate:
    """g(s) = -(s - mean)^2 / (2 variance), concave."""
    return Univariate("gaussian", (finite("gaussian: mean", mean), positive("gaussian: variance", variance)))


def laplace(location: float, scale: float = 1.0) -> Univariate:
    """g(s) = -|s - location| / scale, concave."""
    return Univariate("laplace", (finite("laplace: location", location), positive("laplace: scale", scale)))


def logistic(label: float) -> Univariate:
    """g(s) = -log(1 + exp(-label s)) with label -1 or +1, concave."""
    if label not in (-1, 1):
        raise ModelError(f"logistic: label must be -1 or +1, got {label!r}")
    return Univariate("logistic", (float(label),))


def poisson(count: float) -> Univariate:
    """g(s) = count s - exp(s), concave."""
    return Univariate("poisson", (not_negative("poisson: count", count),))


def log(weight: float = 1.0) -> Univariate:
    """g(s) = weight log s with weight >= 0 and s > 0, concave; the argument needs a positive lower bound."""
    return Univariate("log", (not_negative("log: weight", weight, " (the function must be concave)"),))


def student_t(location: float, scale: float = 1.0, degrees_of_freedom: float = 3.0) -> Univariate:
    """g(s) = -(nu + 1)/2 log(1 + (s - location)^2 / (nu scale^2)), neither concave nor convex."""
    parameters = (
        finite("student_t: location", location),
        positive("student_t: scale", scale),
        positive("student_t: degrees_of_freedom", degrees_of_freedom),
    )
    return Univariate("student_t", parameters)


def polynomial(coefficients: Sequence[float]) -> Univariate:
    """g(s) = c0 + c1 s + c2 s^2 + ..., of any curvature."""
    if not len(coefficients):
        raise ModelError("polynomial: at least one coefficient is needed")
    return Univariate("polynomial", tuple(finite("polynomial: coefficient", c) for c in coefficients))


def _student_t(s: float, p: tuple[float, ...]) -> float:
    location, scale, nu = p
    return -0.5 * (nu + 1.0) * math.log1p(((s - location) / scale) ** 2 / nu)


def _horner(s: float, coefficients: tuple[float, ...]) -> float:
    total = 0.0
    for c in reversed(coefficients):
        total = total * s + c
    return total


def _log1p_exp(s: float) -> float:
    return max(s, 0.0) + math.log1p(math.exp(-abs(s)))


_FORMULAS: dict[str, Callable[[float, tuple[float, ...]], float]] = {
    "gaussian": lambda s, p: -((s - p[0]) ** 2) / (2.0 * p[1]),
    "laplace": lambda s, p: -abs(s - p[0]) / p[1],
    "logistic": lambda s, p: -_log1p_exp(-p[0] * s),
    "poisson": lambda s, p: p[0] * s - math.exp(s),
    "log": lambda s, p: p[0] * math.log(s) if s > 0 else (0.0 if p[0] == 0.0 else -math.inf),
    "student_t": _student_t,
    "polynomial": _horner,
}
