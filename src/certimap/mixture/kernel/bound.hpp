// Step 3: the upper bound. For any reference theta0 = (mu0, tau0, b0) and level c, and every S of the node,
//   c(S) - lambda(S) = G(theta0; S) - lambda(S) + [c(S) - G(theta0; S)]
// where G is the joint density at theta0 and the bracket a Bregman divergence that depends on theta(S) and n only:
//   bound(c) = (D/2) log b0 + (v + n_I)/2 log det Lambda0 - tr Lambda0 M_I(mu0)/2 - lambda(I)
//            + max over n in {n1, n2} of [phi(n) - (n - n_I) c]  + sum_F max(0, u'_i + w_i c),
//   phi(n)   = m log(m/Nt) + (v+n)/2 A + (b0+n)/2 C                             (convex in n: its ends suffice),
//   A        = sum_d max (rho - log rho - 1) + tau0_d max Db' Sigma_<d Db,   rho = tau0_d/tau_d,
//   C        = max Dmu' Lambda0 Dmu (at a corner of the mean box),
//   u'_i     = (w_i log det Lambda0 - sum_d tau0_d e_d^2)/2 - lambda_i.
// c = 1 + log p0 is the multiplier of the size: bound(c) is convex and piecewise linear in it, so that c is improved by
// a few steps on stored u'. mu0 and b0 are box centres, tau0 the point where both ends of a precision box lose the same.
#pragma once
#include "contract.hpp"

namespace certimap {

template <class S>
struct Reference {
    double mean[S::D], tau[S::D], slope[S::SLOPES + 1];
    double half_log_det;
};

// What the box adds to the bound, by coordinate (`part`), and the sums A and C.
template <class S>
struct Width {
    double part[S::COORDINATES];
    double A, C;
};

template <class S>
CM_FN void take_reference(const Node<S>& x, const Spread<S>& M, const double* half_log_lo,
                          const double* half_log_hi, Reference<S>& r) {
    r.half_log_det = 0.0;
    for (int d = 0; d < S::D; d++) {
        const double lo = x.lo[S::TAU + d], hi = x.hi[S::TAU + d];
        r.mean[d] = M.centre[d];
        r.tau[d] = 2.0 * lo * hi / (lo + hi);
        if (hi > lo * (1.0 + 1e-4)) r.tau[d] = 2.0 * (half_log_hi[d] - half_log_lo[d]) / (1.0 / lo - 1.0 / hi);
        r.half_log_det += 0.5 * logarithm(r.tau[d]);
    }
    for (int k = 0; k < S::SLOPES; k++) r.slope[k] = 0.5 * (x.lo[S::SLOPE + k] + x.hi[S::SLOPE + k]);
}

// A wide box blurs the residuals: what slopes and mean may be off adds to the variance that a precision stands for. In
// wide boxes this reference gives far better bounds; in small ones the ends of the precision box matter more. Where one
// tau stands for all, the reference has to have one, too.
template <class S>
CM_FN void blur_reference(const Problem<S>& P, const Node<S>& x, const Spread<S>& M, Reference<S>& r) {
    const double nu = P.v + x.hi[S::SIZE], weight = P.b0 + x.hi[S::SIZE];
    double deviation[S::D], blur[S::D], sum = 0.0;
    for (int d = 0; d < S::D; d++) {
        double off = 0.5 * (x.hi[S::MEAN + d] - x.lo[S::MEAN + d]), turned = 0.0, reach = 0.0;
        for (int j = S::first(d); j < d; j++) {
            const int k = S::SLOPE + slope(d, j);
            off += magnitude(r.slope[slope(d, j)]) * 0.5 * (x.hi[S::MEAN + j] - x.lo[S::MEAN + j]);
            turned += 0.5 * (x.hi[k] - x.lo[k]) * deviation[j];
            reach += most(magnitude(x.lo[k]), magnitude(x.hi[k])) * deviation[j];
        }
        const double variance = M.hi[entry(d, d)] / (P.v + x.lo[S::SIZE]);
        deviation[d] = root(least(1.0 / x.lo[S::TAU + d] + square(reach), variance));
        blur[d] = square(turned) + weight / nu * square(off);
        sum += blur[d];
    }
    r.half_log_det = 0.0;
    for (int d = 0; d < S::D; d++) {
        r.tau[d] = 1.0 / (1.0 / r.tau[d] + (P.free_tau() == 1 && !S::SLOPED ? sum / S::D : blur[d]));
        r.half_log_det += 0.5 * logarithm(r.tau[d]);
    }
}

template <class S>
CM_FN void measure_width(const Problem<S>& P, const Node<S>& x, const Spread<S>& M, const Reference<S>& r,
                         const double* half_log_lo, const double* half_log_hi, Width<S>& w) {
    const double nu = P.v + x.hi[S::SIZE], weight = P.b0 + x.hi[S::SIZE];
    double deviation[S::D], half[S::D];
    for (int k = 0; k < S::COORDINATES; k++) w.part[k] = 0.0;
    w.A = 0.0;
    for (int d = 0; d < S::D; d++) {
        const double lo = x.lo[S::TAU + d], hi = x.hi[S::TAU + d], half_log = 0.5 * logarithm(r.tau[d]);
        const double a = r.tau[d] / lo, b = r.tau[d] / hi;
        const double spread = most(a - 2.0 * (half_log - half_log_lo[d]) - 1.0, b - 2.0 * (half_log - half_log_hi[d]) - 1.0);
        w.part[S::TAU + d] = 0.5 * nu * spread;
        w.A += most(spread, 0.0);
        // Db' Sigma_<d Db: by standard deviations, and by the independent residuals e_j of variance 1/tau_j.
        double by_deviation = 0.0, by_residual = 0.0, reach = 0.0;
        Interval weight_of[S::D];
        for (int j = d - 1; j >= S::first(d); j--) {
            const int k = S::SLOPE + slope(d, j);
            const double h = 0.5 * (x.hi[k] - x.lo[k]);
            by_deviation += h * deviation[j];
            reach += most(magnitude(x.lo[k]), magnitude(x.hi[k])) * deviation[j];
            w.part[k] = 0.5 * nu * r.tau[d] * square(h * deviation[j]);
            weight_of[j] = {-h, h};
            for (int i = j + 1; i < d; i++) {
                const Interval p =
                    times(weight_of[i], {x.lo[S::SLOPE + slope(i, j)], x.hi[S::SLOPE + slope(i, j)]});
                weight_of[j].lo += p.lo;
                weight_of[j].hi += p.hi;
            }
            by_residual += square(size_of(weight_of[j])) / x.lo[S::TAU + j];
        }
        w.A += r.tau[d] * least(square(by_deviation), by_residual);
        deviation[d] = root(least(1.0 / lo + square(reach), M.hi[entry(d, d)] / (P.v + x.lo[S::SIZE])));
        half[d] = 0.5 * (x.hi[S::MEAN + d] - x.lo[S::MEAN + d]);
    }
    w.C = 0.0;
    for (int signs = 0; signs < (S::SLOPED ? 1 << (S::D - 1) : 1); signs++) {
        double corner[S::D], value = 0.0;
        for (int d = 0; d < S::D; d++) {
            corner[d] = d > 0 && (signs >> (d - 1) & 1) ? -half[d] : half[d];
            double e = corner[d];
            for (int j = S::first(d); j < d; j++) e -= r.slope[slope(d, j)] * corner[j];
            value += r.tau[d] * square(e);
        }
        w.C = most(w.C, value);
    }
    for (int d = 0; d < S::D; d++)
        for (int j = S::first(d); j <= d; j++)
            w.part[S::MEAN + j] += 0.5 * weight * r.tau[d] * square((j == d ? 1.0 : r.slope[slope(d, j)]) * half[j]);
    if (P.free_tau() == 1)
        for (int d = 1; d < S::D; d++) {
            w.part[S::TAU] += w.part[S::TAU + d];
            w.part[S::TAU + d] = 0.0;
        }
    w.part[S::SIZE] = 0.125 * square(x.hi[S::SIZE] - x.lo[S::SIZE]) / (0.5 * (x.hi[S::SIZE] + x.lo[S::SIZE]) + P.a0 - 1.0);
}

// u' of one item (or LANES of them) at the reference.
template <class S, bool GROUPS, class V>
CM_FN V value_at(const Item<S, GROUPS, V>& item, const Reference<S>& r) {
    V y[S::D], u = GROUPS ? item.weight * r.half_log_det - item.price : r.half_log_det - item.price;
    for (int d = 0; d < S::D; d++) {
        y[d] = item.y[d] - r.mean[d];
        V e = y[d];
        for (int j = S::first(d); j < d; j++) e = e - y[j] * r.slope[slope(d, j)];
        V quadratic = square(e);
        if (GROUPS) {
            quadratic = quadratic * item.weight;
            for (int k = S::first(d); k <= d; k++) {
                V a = item.factor[entry(d, k)];
                for (int j = k; j < d; j++) a = a - item.factor[entry(j, k)] * r.slope[slope(d, j)];
                quadratic = quadratic + square(a);
            }
        }
        u = u - quadratic * (0.5 * r.tau[d]);
    }
    return u;
}

// The bound as a function of c: everything but the free items.
template <class S>
struct Ledger {
    double constant, phi1, phi2, n1, n2, inside;
    double slack;  // rounding of everything

    CM_FN double at(double c, double hinge) const {
        return constant + most(phi1 - (n1 - inside) * c, phi2 - (n2 - inside) * c) + hinge;
    }
};

template <class S>
CM_FN double log_weight(const Problem<S>& P, double n) {  // log(m/Nt), and a stand-in for m = 0
    const double m = n + P.a0 - 1.0;
    return m > 0.0 ? logarithm(m / P.Nt) : -1e3;
}

template <class S>
CM_FN void open_ledger(const Problem<S>& P, const Node<S>& x, const Inside<S>& in, const Spread<S>& M,
                       const Reference<S>& r, const Width<S>& w, double log_p1, double log_p2, double free_weight,
                       Ledger<S>& L) {
    double trace = 0.0, gross = 0.0, residual = 0.0, level = magnitude(log_p1) + magnitude(log_p2) + P.largest_price + 1.0;
    for (int d = 0; d < S::D; d++) {
        double row[S::D], value = 0.0, norm = 0.0;
        for (int j = S::first(d); j < d; j++) row[j] = -r.slope[slope(d, j)];
        row[d] = 1.0;
        for (int a = S::first(d); a <= d; a++) {
            norm += magnitude(row[a]);
            value += square(row[a]) * M.inner[entry(a, a)];
            for (int b = S::first(a); b < a; b++) value += 2.0 * row[a] * row[b] * M.inner[entry(a, b)];
        }
        trace += r.tau[d] * value;
        gross += r.tau[d] * square(norm) * M.error;
        level += magnitude(logarithm(r.tau[d]));
    }
    for (int d = 0; d < S::D; d++) {
        double e = P.reach[d];
        for (int j = S::first(d); j < d; j++) e += magnitude(r.slope[slope(d, j)]) * P.reach[j];
        e *= P.rounding;
        residual += e * root(2.0 * r.tau[d] * level) + r.tau[d] * e * e;
    }
    const double m1 = x.lo[S::SIZE] + P.a0 - 1.0, m2 = x.hi[S::SIZE] + P.a0 - 1.0;
    const double nu = P.v + x.hi[S::SIZE], weight = P.b0 + x.hi[S::SIZE];
    L.n1 = x.lo[S::SIZE];
    L.n2 = x.hi[S::SIZE];
    L.inside = in.size;
    L.constant = 0.5 * S::D * logarithm(P.b0) + (P.v + in.size) * r.half_log_det - 0.5 * trace - in.price;
    L.phi1 = (m1 > 0.0 ? m1 * log_p1 : 0.0) + 0.5 * (P.v + L.n1) * w.A + 0.5 * (P.b0 + L.n1) * w.C;
    L.phi2 = m2 * log_p2 + 0.5 * nu * w.A + 0.5 * weight * w.C;
    L.slack = gross + free_weight * residual +
              P.rounding * ((nu + weight + m2 + free_weight + S::D) * level + nu * w.A + weight * w.C + trace);
}

}  // namespace certimap
