// Step 2: shrink the box by stationarity. Every set S of the node is looked at at its own theta(S) only, hence
//   mean    mu = (b0 m0 + sum y)/(b0+n): the largest mean over at most k2 free items is at most, for any threshold t,
//           max over k in {k1, k2} of (s_I + k t + sum_F w (y - t)^+) / (b0 + n_I + k)
//           (Lagrangian of the size; exact at the right t, which is searched for and handed to the children);
//   tau     M_I <= M_S <= M_{I+F} and s_d(M) = nu/tau_d, s_d the d-th pivot (Schur complement), monotone in M;
//   b       s_j b_dj = r_j.M_{.,d} - sum_{j<k<d} b_dk (r_j.M_{.,k}), r_j = e_j - b_j, by intervals, last column first.
#pragma once
#include "node.hpp"

namespace certimap {

struct Interval {
    double lo, hi;
};
CM_FN Interval times(Interval a, Interval b) {
    const double p = a.lo * b.lo, q = a.lo * b.hi, r = a.hi * b.lo, s = a.hi * b.hi;
    return {least(least(p, q), least(r, s)), most(most(p, q), most(r, s))};
}
CM_FN Interval over(Interval a, double lo, double hi) {  // 0 < lo <= hi
    return {a.lo / (a.lo >= 0.0 ? hi : lo), a.hi / (a.hi >= 0.0 ? lo : hi)};
}
CM_FN double size_of(Interval a) { return most(magnitude(a.lo), magnitude(a.hi)); }

// Share of the old width that was cut off; counted by the caller to decide whether another round pays.
CM_FN double tighten(double& lo, double& hi, double new_lo, double new_hi) {
    const double before = hi - lo;
    lo = most(lo, new_lo);
    hi = least(hi, new_hi);
    return before > 1e-12 ? 1.0 - (hi - lo) / before : 0.0;
}

// The diagonal of a matrix; where all tau are equal, its mean for every entry.
template <class S>
CM_FN void diagonal(const Problem<S>& P, const double* M, double* out) {
    double sum = 0.0;
    for (int d = 0; d < S::D; d++) sum += out[d] = M[entry(d, d)];
    if (!S::SLOPED && P.form == SPHERICAL)
        for (int d = 0; d < S::D; d++) out[d] = sum / S::D;
}

// nu/tau(S) of M_S: the pivots of its Cholesky factorisation, or, without slopes, its diagonal.
template <class S>
CM_FN void pivots(const Problem<S>& P, const double* M, double* pivot) {
    if (!S::SLOPED) return diagonal(P, M, pivot);
    double L[S::ENTRIES];
    for (int i = 0; i < S::D; i++)
        for (int j = 0; j <= i; j++) {
            double s = M[entry(i, j)];
            for (int k = 0; k < j; k++) s -= L[entry(i, k)] * L[entry(j, k)] * pivot[k];
            if (i == j)
                pivot[i] = most(s, 0.0);
            else
                L[entry(i, j)] = s / pivot[j];
        }
}

// Both contractions return false if nothing is left, and add to `shrink` the shares of the widths they cut off.
template <class S, bool GROUPS, class Items>
CM_FN bool contract_mean(const Problem<S>& P, const Items& items, const Inside<S>& in, Node<S>& x, double k1,
                         double k2, int passes, double& shrink) {
    typedef typename Items::V V;
    const double c = P.b0 + in.size;
    double before[S::D];
    for (int d = 0; d < S::D; d++) before[d] = x.hi[S::MEAN + d] - x.lo[S::MEAN + d];
    for (int pass = 0; pass < passes; pass++) {
        V excess[S::D], lack[S::D], above[S::D], below[S::D];
        const V zero = spread<V>(0.0);
        for (int d = 0; d < S::D; d++) excess[d] = lack[d] = above[d] = below[d] = zero;
        items.each([&](const Item<S, GROUPS, V>& item, int) {
            for (int d = 0; d < S::D; d++) {
                const V up = item.y[d] - x.hint[2 * d], down = x.hint[2 * d + 1] - item.y[d];
                excess[d] = excess[d] + item.weight * most(up, zero);
                above[d] = above[d] + choose(up > 0.0, item.weight, zero);
                lack[d] = lack[d] + item.weight * most(down, zero);
                below[d] = below[d] + choose(down > 0.0, item.weight, zero);
            }
        });
        for (int d = 0; d < S::D; d++) {
            const double pad = P.rounding * 8.0 * P.reach[d];
            for (int side = 0; side < 2; side++) {
                // The lower side is the upper side of -y.
                const double sign = side ? -1.0 : 1.0, t = sign * x.hint[2 * d + side], s = sign * in.sum[d];
                const double gain = side ? total(lack[d]) : total(excess[d]);
                const double count = side ? total(below[d]) : total(above[d]);
                const double mean = most((s + k1 * t + gain) / (c + k1), (s + k2 * t + gain) / (c + k2));
                if (side)
                    x.lo[S::MEAN + d] = most(x.lo[S::MEAN + d], -(mean + pad));
                else
                    x.hi[S::MEAN + d] = least(x.hi[S::MEAN + d], mean + pad);
                double next = mean;
                if (count > k2)
                    next = t + gain / count * (count - k2) / count;
                else if (count < k1)
                    next = t - (count > 0.0 ? gain / count : 0.1) * (k1 - count) / (count + 1.0);
                x.hint[2 * d + side] = sign * next;
            }
        }
    }
    for (int d = 0; d < S::D; d++) {
        const double after = x.hi[S::MEAN + d] - x.lo[S::MEAN + d];
        if (after < 0.0) return false;
        if (before[d] > 1e-12) shrink += 1.0 - after / before[d];
    }
    return true;
}

// Bounds of M_S over the node, taken about the centre of the mean box, and its pivots over I and over I + F.
template <class S>
struct Spread {
    double centre[S::D];
    double inner[S::ENTRIES];  // I, the prior and W0 about the centre
    double error;                     // of any entry of `inner`
    double lo[S::ENTRIES], hi[S::ENTRIES];
    double pivot_lo[S::D], pivot_hi[S::D];
};

template <class S, bool GROUPS, class Items>
CM_FN void spread_bounds(const Problem<S>& P, const Items& items, const Inside<S>& in, const Node<S>& x,
                         double free_weight, Spread<S>& M) {
    typedef typename Items::V V;
    const double weight = P.b0 + in.size;
    double offset[S::D], M_in[S::ENTRIES], M_all[S::ENTRIES], largest = 0.0;
    for (int a = 0; a < S::D; a++) M.centre[a] = 0.5 * (x.lo[S::MEAN + a] + x.hi[S::MEAN + a]);
    for (int a = 0; a < S::D; a++) {
        offset[a] = in.sum[a] - weight * M.centre[a];
        for (int b = S::first(a); b <= a; b++)
            M.inner[entry(a, b)] = in.square[entry(a, b)] - in.sum[a] * M.centre[b] - in.sum[b] * M.centre[a] +
                                   weight * M.centre[a] * M.centre[b];
        largest = most(largest, in.square[entry(a, a)] + weight * square(M.centre[a]));
    }
    M.error = 8.0 * P.rounding * largest;
    if (P.free_tau() == 0) return;
    V up[S::ENTRIES], down[S::ENTRIES], first[S::D];
    const V zero = spread<V>(0.0);
    for (int k = 0; k < S::ENTRIES; k++) up[k] = down[k] = zero;
    for (int d = 0; d < S::D; d++) first[d] = zero;
    items.each([&](const Item<S, GROUPS, V>& item, int) {
        V y[S::D], wy[S::D];
        for (int a = 0; a < S::D; a++) {
            y[a] = item.y[a] - M.centre[a];
            wy[a] = y[a] * item.weight;
            first[a] = first[a] + wy[a];
            for (int b = S::first(a); b <= a; b++) {
                V product = wy[a] * y[b];
                if (GROUPS)
                    for (int k = S::first(b); k <= b; k++)
                        product = product + item.factor[entry(a, k)] * item.factor[entry(b, k)];
                if (a == b)
                    up[entry(a, a)] = up[entry(a, a)] + product;
                else {
                    up[entry(a, b)] = up[entry(a, b)] + most(product, zero);
                    down[entry(a, b)] = down[entry(a, b)] + least(product, zero);
                }
            }
        }
    });
    for (int a = 0; a < S::D; a++) largest = most(largest, total(up[entry(a, a)]));
    const double error = 8.0 * P.rounding * largest + M.error, blur = 2.0 * S::D * error + P.rounding;
    for (int a = 0; a < S::D; a++)
        for (int b = S::first(a); b <= a; b++) {
            const int k = entry(a, b);
            const double plus = total(up[k]), minus = total(down[k]);
            const double shift = (P.b0 + x.hi[S::SIZE]) * 0.25 * (x.hi[S::MEAN + a] - x.lo[S::MEAN + a]) *
                                 (x.hi[S::MEAN + b] - x.lo[S::MEAN + b]);
            M.lo[k] = M.inner[k] + minus - shift - error;
            M.hi[k] = M.inner[k] + plus + (a == b ? 0.0 : shift) + error;
            M_in[k] = M.inner[k] - offset[a] * offset[b] / weight;
            M_all[k] = M.inner[k] + plus + minus -
                       (offset[a] + total(first[a])) * (offset[b] + total(first[b])) / (weight + free_weight);
        }
    double least_diagonal[S::D], largest_diagonal[S::D];
    diagonal(P, M.lo, least_diagonal);
    diagonal(P, M.hi, largest_diagonal);
    pivots(P, M_in, M.pivot_lo);
    pivots(P, M_all, M.pivot_hi);
    // M >= I, so an error of size `blur` in M is a relative one (and NaN loses every comparison).
    for (int d = 0; d < S::D; d++) {
        M.pivot_lo[d] = most(M.pivot_lo[d] * (1.0 - blur), 1.0);
        M.pivot_hi[d] = blur < 0.5 ? least(M.pivot_hi[d] / (1.0 - blur), largest_diagonal[d]) : largest_diagonal[d];
    }
    M.pivot_lo[0] = most(M.pivot_lo[0], least_diagonal[0]);
}

// Where one precision stands for all, its box does.
template <class S>
CM_FN void share_tau(const Problem<S>& P, Node<S>& x) {
    if (S::SLOPED || P.form != SPHERICAL) return;
    for (int d = 1; d < S::D; d++) {
        x.lo[S::TAU + d] = x.lo[S::TAU];
        x.hi[S::TAU + d] = x.hi[S::TAU];
    }
}

template <class S>
CM_FN bool contract_spread(const Problem<S>& P, const Spread<S>& M, Node<S>& x, double& shrink) {
    const double out = 1.0 + P.rounding;
    double& n1 = x.lo[S::SIZE];
    double& n2 = x.hi[S::SIZE];
    for (int d = 0; d < P.free_tau(); d++) {
        double& lo = x.lo[S::TAU + d];
        double& hi = x.hi[S::TAU + d];
        // log(hi/lo) measures a precision box; its linear stand-in is enough to count progress.
        const double before = (hi - lo) / (hi + lo);
        hi = least(hi, (P.v + n2) / M.pivot_lo[d] * out);
        lo = most(lo, (P.v + n1) / (M.pivot_hi[d] * out));
        if (lo > hi) return false;
        if (before > 1e-12) shrink += 1.0 - (hi - lo) / (hi + lo) / before;
        const double most_n = hi * M.pivot_hi[d] * out - P.v + P.rounding * P.v;
        const double least_n = lo * M.pivot_lo[d] / out - P.v - P.rounding * P.v;
        n1 = most(n1, P.integral ? round_up(least_n) : least_n);
        n2 = least(n2, P.integral ? round_down(most_n) : most_n);
        if (n1 > n2) return false;
    }
    share_tau(P, x);
    Interval cross[S::SLOPES + 1];  // r_j.M_{.,d} for d > j
    for (int d = 1; d < S::D; d++)
        for (int j = S::first(d); j < d; j++) {
            Interval c = {M.lo[entry(d, j)], M.hi[entry(d, j)]};
            double scale = size_of(c);
            for (int i = 0; i < j; i++) {
                const Interval b = {x.lo[S::SLOPE + slope(j, i)], x.hi[S::SLOPE + slope(j, i)]};
                const Interval p = times(b, {M.lo[entry(d, i)], M.hi[entry(d, i)]});
                scale += size_of(p);
                c.lo -= p.hi;
                c.hi -= p.lo;
            }
            cross[slope(d, j)] = {c.lo - P.rounding * scale, c.hi + P.rounding * scale};
        }
    for (int d = 1; d < S::D; d++)
        for (int j = d - 1; j >= S::first(d); j--) {
            Interval c = cross[slope(d, j)];
            double scale = size_of(c);
            for (int k = j + 1; k < d; k++) {
                const Interval b = {x.lo[S::SLOPE + slope(d, k)], x.hi[S::SLOPE + slope(d, k)]};
                const Interval p = times(b, cross[slope(k, j)]);
                scale += size_of(p);
                c.lo -= p.hi;
                c.hi -= p.lo;
            }
            double lo = most((P.v + n1) / (x.hi[S::TAU + j] * out), M.pivot_lo[j]);
            double hi = least((P.v + n2) / x.lo[S::TAU + j] * out, M.pivot_hi[j]);
            if (lo > hi) return false;
            const double pad = P.rounding * scale;
            const Interval b = over({c.lo - pad, c.hi + pad}, lo, hi);
            double& b_lo = x.lo[S::SLOPE + slope(d, j)];
            double& b_hi = x.hi[S::SLOPE + slope(d, j)];
            const double blur = P.rounding * size_of(b);
            shrink += tighten(b_lo, b_hi, b.lo - blur, b.hi + blur);
            if (b_lo > b_hi) return false;
        }
    return true;
}

}  // namespace certimap
