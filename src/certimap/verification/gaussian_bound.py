"""Upper bounds of c(S) - lambda(S) over many boxes at once; arrays are (groups, boxes), by rows of groups.

At a reference theta0 = (mu0, tau0, b0) every set S satisfies

    c(S) - lambda(S) = prior(theta0) + sum_S u_i + phi(n) + (v+n)/2 A_S + (b0+n)/2 C_S,
    u_i   = (w log det Lambda0 - sum_d tau0_d [w e_d(y)^2 + sum_k e_d(column k)^2])/2 - lambda_i,
    prior = (D/2) log b0 + (v log det Lambda0 - tr Lambda0 - b0 sum_d tau0_d e_d(o)^2)/2,   phi(n) = m log(m/Nt),
    A_S   = sum_d (rho_d - log rho_d - 1) + tau0_d Var(db_d.y_<d),   rho_d = tau0_d/tau_d,
    C_S   = dmu' Lambda0 dmu,

because the density at theta0 falls short of that at theta(S) by a divergence; Var is taken under S, and db, dmu are the
differences of S's slopes and mean from the reference. Kinds without slopes have b = 0 throughout; for a spherical kind
all tau_d are equal, and sum_d rho_d = tau0 tr M_S/nu all the same; a known precision has v = 1, A = 0 and no tr Lambda0
in the prior. With bounds A, C over the box this is, for any number c, at most

    bound = prior + sum_I u_i + sum_F max(0, u_i + w_i c) + max over n = n1, n2 of
            [phi(n) - (n - n_I) c + (v+n)/2 A + (b0+n)/2 C]                    (the bracket is convex in n).

Rounding: sums have a relative error of at most RHO times the sum of magnitudes; residuals e are computed within `blur`,
and as (e+x)^2 >= (1-ETA) e^2 - x^2/ETA, quadratic terms taken at a relative 1-ETA, and blur^2/ETA added, are safe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from certimap.verification.gaussian_boxes import FREE, IN, OUT, Boxes, Layout, slope
from certimap.verification.gaussian_cloud import Cloud
from certimap.verification.gaussian_values import Kind
from certimap.verification.intervals import UNIT
from certimap.verification.logarithm import log_error, logarithm

Floats = NDArray[np.float64]
Rows = list[Floats]

OUTWARD = 1.0 + 2.0**-44  # more than a few dozen roundings


class Data:
    """A cloud as columns that broadcast over boxes, and its error constants."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.D = cloud.dimension
        self.kind = cloud.kind
        self.layout = Layout(self.D, self.kind)
        self.y: Rows = [cloud.y[:, d, None] for d in range(self.D)]
        self.weight = cloud.weight[:, None]
        self.price = cloud.price[:, None]
        used = [k for k in range(self.D) if cloud.columns[k].any()]
        self.columns: list[Rows] = [[cloud.columns[k, :, d, None] for d in range(self.D)] for k in used]
        reach = np.maximum(np.abs(cloud.y).max(axis=0), np.abs(cloud.origin))
        self.reach = np.maximum(reach, np.abs(cloud.columns).max(axis=(0, 1))) * (1.0 + 1e-6)
        self.heaviest = float(cloud.weight.max())
        self.dearest = float(np.abs(cloud.price).max())
        self.rho = 4.0 * (len(cloud.weight) + 64) * UNIT
        self.eta = max(2.0**-40, 4.0 * self.rho)
        self.log_total, self.log_b0 = logarithm(np.array([cloud.total, cloud.b0]))


@dataclass(frozen=True, eq=False)
class Frame:
    """The reference of every box, residuals there, and how far the box reaches from it."""

    mean: Rows  # mu0
    half: Rows  # |mu - mu0| over the box
    b: Rows  # b0, by `slope`
    half_b: Rows
    tau: Rows  # tau0
    tau_lo: Rows
    tau_hi: Rows
    log_tau: Rows  # of tau0, tau_lo, tau_hi
    log_lo: Rows
    log_hi: Rows
    offset: Rows  # |y - mu0|, (groups, boxes)
    e: Rows  # e_d at the reference, (groups, boxes)
    e_columns: list[Rows]
    blur: Rows  # bound on the rounding error of e

    def take(self, which: NDArray[np.bool_]) -> Frame:
        """The frames of some of the boxes."""
        rows = {name: [x[..., which] for x in value] for name, value in vars(self).items() if name != "e_columns"}
        return Frame(**rows, e_columns=[[x[..., which] for x in column] for column in self.e_columns])

    def residual(self, d: int, t: Rows) -> Floats:
        """t_d - sum_j b0_dj t_j."""
        e = t[d]
        for j in range(d):
            e = e - self.b[slope(d, j)] * t[j]
        return e


def frame_of(data: Data, boxes: Boxes) -> Frame:
    """mu0 and b0 in the middle; tau0 where both ends of the box lose the same."""
    D, layout = data.D, data.layout
    middle = 0.5 * (boxes.lo + boxes.hi)
    half = np.maximum(boxes.hi - middle, middle - boxes.lo) * OUTWARD
    tau_lo, tau_hi = boxes.lo[layout.tau], boxes.hi[layout.tau]
    log_lo, log_hi = logarithm(tau_lo), logarithm(tau_hi)
    wide = tau_hi > tau_lo * (1.0 + 1e-4)
    gap = np.where(wide, 1.0 / tau_lo - 1.0 / tau_hi, 1.0)
    tau = np.clip(np.where(wide, (log_hi - log_lo) / gap, tau_lo), tau_lo, tau_hi)
    mean, b = list(middle[layout.mean]), list(middle[layout.slopes])
    t = [data.y[d] - mean[d] for d in range(D)]
    frame = Frame(
        mean=mean,
        half=list(half[layout.mean]),
        b=b,
        half_b=list(half[layout.slopes]),
        tau=list(tau),
        tau_lo=list(tau_lo),
        tau_hi=list(tau_hi),
        log_tau=list(logarithm(tau)),
        log_lo=list(log_lo),
        log_hi=list(log_hi),
        offset=[np.abs(x) for x in t[: D - 1]],
        e=[],
        e_columns=[],
        blur=[],
    )
    for d in range(D):
        frame.e.append(frame.residual(d, t))
        reach = 2.0 * data.reach[d] + sum(2.0 * data.reach[j] * np.abs(b[slope(d, j)]) for j in range(d))
        frame.blur.append(16.0 * UNIT * np.asarray(reach * np.ones(len(boxes))))
    for column in data.columns:
        frame.e_columns.append([np.broadcast_to(frame.residual(d, column), t[0].shape) for d in range(D)])
    return frame


def residual_variances(data: Data, boxes: Boxes, frame: Frame) -> Rows:
    """Bounds of Var(e0_d): nu Var is at most the second moments about the reference of all groups that are not out."""
    cloud, present = data.cloud, (boxes.status != OUT).astype(float)
    variances = []
    for d in range(data.D):
        moment = np.einsum("ib,ib->b", data.weight * present, frame.e[d] ** 2)
        for column in frame.e_columns:
            moment = moment + np.einsum("ib,ib->b", present, column[d] ** 2)
        origin = frame.residual(d, [cloud.origin[j] - frame.mean[j] for j in range(data.D)])
        rows = sum((frame.b[slope(d, j)] ** 2 for j in range(d)), np.ones(()))
        moment = moment + cloud.b0 * origin**2 + rows
        blur = (cloud.b0 + float(cloud.weight.sum()) + len(cloud.weight) * data.D) * frame.blur[d] ** 2 / data.eta
        variances.append((moment * (1.0 + 2.0 * data.eta) + 2.0 * blur) / (cloud.v + boxes.lo[0]) * OUTWARD)
    return variances


def blurred(data: Data, boxes: Boxes, frame: Frame, variances: Rows) -> Frame:
    """The frame at smaller tau0, for wide boxes: what mean and slopes may be off adds to the variance 1/tau0.

    Any tau0 > 0 is a reference; where all tau are equal, so must these be.
    """
    n2, D = boxes.hi[0], data.D
    g = relative_slopes(data, frame)
    off, deviation = list[Floats](), list[Floats]()
    for d in range(D):
        turned = sum((g[slope(d, j)] * deviation[j] for j in range(d)), np.zeros(()))
        reach = frame.half[d] + sum((np.abs(frame.b[slope(d, j)]) * frame.half[j] for j in range(d)), np.zeros(()))
        off.append(turned**2 + (data.cloud.b0 + n2) / (data.cloud.v + n2) * reach**2)
        deviation.append(np.sqrt(np.minimum(1.0 / frame.tau_lo[d] + turned**2, variances[d])))
    if data.kind is Kind.SPHERICAL:
        off = [sum(off, np.zeros(())) / D] * D
    tau = np.array([1.0 / (1.0 / frame.tau[d] + off[d]) for d in range(D)])
    return replace(frame, tau=list(tau), log_tau=list(logarithm(tau)))


def values_at(data: Data, frame: Frame) -> tuple[Floats, Floats]:
    """u_i at the reference, rounded up but for what the second number bounds, per box and group."""
    half_log = 0.5 * sum((log + log_error(log) for log in frame.log_tau), np.zeros(()))
    u = data.weight * half_log - data.price
    lost = np.zeros(())
    for d in range(data.D):
        square = data.weight * frame.e[d] ** 2
        for column in frame.e_columns:
            square += column[d] ** 2
        u -= square * (0.5 * (1.0 - data.eta) * frame.tau[d])
        # A group has at most D + 1 residuals.
        lost = lost + frame.tau[d] * (data.heaviest + data.D) * frame.blur[d] ** 2 / data.eta
    positive = data.heaviest * np.abs(half_log) + data.dearest
    return u, lost + 16.0 * UNIT * positive


def prior_value(data: Data, frame: Frame) -> Floats:
    """prior(theta0), rounded up."""
    cloud, D = data.cloud, data.D
    half_log = 0.5 * sum((log + log_error(log) for log in frame.log_tau), np.zeros(()))
    logs = 0.5 * D * data.log_b0 + cloud.v * half_log
    scale = 0.5 * D * (1.0 + abs(data.log_b0)) + cloud.v * np.abs(half_log)
    loss = np.zeros(())
    for d in range(D):
        e = frame.residual(d, [cloud.origin[j] - frame.mean[j] for j in range(D)])
        rows = sum((frame.b[slope(d, j)] ** 2 for j in range(d)), np.zeros(()))
        rows = rows + (data.kind is not Kind.KNOWN)  # of tr Lambda0
        loss = loss + 0.5 * frame.tau[d] * ((1.0 - data.eta) * (rows + cloud.b0 * e**2))
        logs = logs + 0.5 * frame.tau[d] * cloud.b0 * frame.blur[d] ** 2 / data.eta
    return np.asarray(logs - loss + data.rho * scale)


@dataclass(frozen=True, eq=False)
class Width:
    """A and C, and what every coordinate adds to the bound."""

    A: Floats
    C: Floats
    part: Floats


def relative_slopes(data: Data, frame: Frame) -> Rows:
    """Bounds of |g_d|, where e_d = e0_d - g_d.e0_<d: g_d = (b_d - b0_d) (I - B0)^-1."""
    return [
        sum((frame.half_b[slope(d, k)] * entry for k, entry in _inverse_column(frame, d, j)), np.zeros(())) * OUTWARD
        for d in range(1, data.D)
        for j in range(d)
    ]


def _inverse_column(frame: Frame, d: int, j: int) -> list[tuple[int, Floats]]:
    """Bounds of |((I - B0)^-1)_kj| for j <= k < d."""
    entries: list[tuple[int, Floats, Floats]] = [(j, np.ones(()), np.ones(()))]
    for k in range(j + 1, d):
        value = sum((frame.b[slope(k, i)] * x for i, x, _ in entries), np.zeros(()))
        size = sum((np.abs(frame.b[slope(k, i)]) * x for i, _, x in entries), np.zeros(()))
        entries.append((k, np.asarray(value), np.asarray(size)))
    return [(k, np.abs(value) + 64.0 * UNIT * size) for k, value, size in entries]


def width_of(data: Data, frame: Frame, boxes: Boxes, variances: Rows | None = None) -> Width:
    """Bounds of A_S and C_S over the box, rounded up; `variances` bound Var(e0_d) where they may be smaller."""
    D, cloud = data.D, data.cloud
    n1, n2 = boxes.lo[0], boxes.hi[0]
    nu, mass = 0.5 * (cloud.v + n2), 0.5 * (cloud.b0 + n2)
    part = np.zeros_like(boxes.lo)
    part[0] = (n2 - n1) ** 2 / (4.0 * (n1 + n2) + 8.0 * (cloud.a0 - 1.0))
    g = relative_slopes(data, frame)
    A, deviation = np.zeros(len(boxes)), list[Floats]()
    for d in range(D):
        ends = []
        for tau, log in ((frame.tau_lo[d], frame.log_lo[d]), (frame.tau_hi[d], frame.log_hi[d])):
            error = log_error(frame.log_tau[d]) + log_error(log)
            ends.append(frame.tau[d] / tau - (frame.log_tau[d] - log) - 1.0 + error + 8.0 * UNIT * frame.tau[d] / tau)
        spread = np.maximum(np.maximum(*ends), 0.0)
        part[1 + D + d] = nu * spread
        # Var of g_d.e0_<d by deviations of e0_j, or by the independent e_j: e0_k = e_k + sum_j g_kj e0_j.
        by_deviation, by_residual = np.zeros(()), np.zeros(())
        share: Rows = [np.zeros(())] * d
        for j in reversed(range(d)):
            by_deviation = by_deviation + g[slope(d, j)] * deviation[j]
            share[j] = g[slope(d, j)] + sum((share[k] * g[slope(k, j)] for k in range(j + 1, d)), np.zeros(()))
            by_residual = by_residual + share[j] ** 2 / frame.tau_lo[j]
            part[1 + 2 * D + slope(d, j)] = nu * frame.tau[d] * (frame.half_b[slope(d, j)] * deviation[j]) ** 2
        variance = np.minimum(by_deviation**2, by_residual)
        A = A + spread + frame.tau[d] * variance
        own = 1.0 / frame.tau_lo[d] + variance
        deviation.append(np.sqrt(own if variances is None else np.minimum(own, variances[d])) * OUTWARD)
    C = np.zeros(len(boxes))
    for corner in range(1 << (D - 1)):
        sign = [1.0, *(-1.0 if corner >> k & 1 else 1.0 for k in range(D - 1))]
        shift = [s * h for s, h in zip(sign, frame.half, strict=True)]
        value = np.zeros(())
        for d in range(D):
            size = frame.half[d] + sum((np.abs(frame.b[slope(d, j)]) * frame.half[j] for j in range(d)), np.zeros(()))
            value = value + frame.tau[d] * (np.abs(frame.residual(d, shift)) + 16.0 * UNIT * size) ** 2
        C = np.maximum(C, value)
    for d in range(D):
        for j in range(d + 1):
            reach = frame.half[j] * (1.0 if j == d else np.abs(frame.b[slope(d, j)]))
            part[1 + j] += mass * frame.tau[d] * reach**2
    if data.kind is Kind.SPHERICAL:
        part[data.layout.tau.start] = part[data.layout.tau].sum(axis=0)
        part[data.layout.tau.start + 1 : data.layout.tau.stop] = 0.0
    return Width(A * OUTWARD, C * OUTWARD, part)


@dataclass(frozen=True, eq=False)
class Bounds:
    """The bound of every box at its best level c, and u_i + w_i c there, which errs by at most `item_error`."""

    bound: Floats
    gain: Floats
    item_error: Floats


def bound_boxes(data: Data, boxes: Boxes, frame: Frame, width: Width) -> Bounds:
    """Three steps of descent in c; each gives a valid bound."""
    cloud = data.cloud
    n1, n2 = boxes.lo[0], boxes.hi[0]
    u, item_error = values_at(data, frame)
    inside, free = (boxes.status == IN).astype(float), (boxes.status == FREE).astype(float)
    within = np.einsum("ib,ib->b", u, inside)
    n_in = cloud.weight @ inside
    lines = [phi(data, n) + 0.5 * (cloud.v + n) * width.A + 0.5 * (cloud.b0 + n) * width.C for n in (n1, n2)]
    constant = prior_value(data, frame) + within
    # Groups inside: sum |u| <= 2 sum max(0, u) - sum u.
    positive = data.heaviest * sum((np.abs(log) for log in frame.log_tau), np.zeros(())) + 2.0 * data.dearest
    magnitude = 2.0 * np.abs(within) + np.abs(constant) + np.abs(lines[0]) + np.abs(lines[1])
    magnitude += len(cloud.weight) * positive
    whole = n2 > n1
    stationary = 1.0 + np.log(np.maximum(n2 + cloud.a0 - 1.0, 0.1) / cloud.total)
    level = np.where(whole, (lines[1] - lines[0]) / np.where(whole, n2 - n1, 1.0), stationary)
    masked = np.where(free > 0.0, u, -np.inf)
    best, best_level = np.full(len(boxes), np.inf), level
    for _ in range(3):
        gain = masked + data.weight * level
        hinge = np.maximum(gain, 0.0).sum(axis=0)
        count = cloud.weight @ (gain > 0.0)
        line = np.maximum(*(at - (n - n_in) * level for at, n in zip(lines, (n1, n2), strict=True)))
        bound = constant + line + hinge
        bound += data.rho * (magnitude + hinge + (n2 + n_in) * np.abs(level)) + len(cloud.weight) * item_error
        better = bound < best
        best, best_level = np.where(better, bound, best), np.where(better, level, best_level)
        room = np.where(count > n2 - n_in, n2 - n_in, n1 - n_in)
        off = (count > n2 - n_in) | (count < n1 - n_in)
        excess = np.where(count > 0.0, hinge / np.maximum(count, 1e-300), 1.0)
        fall = -excess * np.log(np.maximum(count, 0.5) / np.maximum(room, 0.5))
        level = np.where(off, level + np.where(count > room, fall, excess * (room - count) / (count + 1.0)), level)
    gain = u + data.weight * best_level
    item_error = item_error + 8.0 * UNIT * data.heaviest * np.abs(best_level)
    return Bounds(best, gain, item_error)


def phi(data: Data, n: Floats) -> Floats:
    """m log(m/Nt), rounded up."""
    m = n + data.cloud.a0 - 1.0
    log = logarithm(np.maximum(m, 1e-300))
    error = log_error(log) + log_error(data.log_total) + 8.0 * UNIT * np.abs(log - data.log_total)
    return np.asarray(m * (log - data.log_total + error))
