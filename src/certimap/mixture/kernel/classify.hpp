// Step 1: which items must be inside, which outside, for every maximiser of the node.
//
// u_i = l_i - lambda_i over the box. A maximiser S satisfies S = {u_i >= shift} at its own theta, where the size
// multiplier `shift` is 0 unless |S| sits at a limit of the admitted sizes (see sizes.hpp). Single-flip rules sharpen
// this: removing i from S of size n must not gain, so u_i >= dp(n, r), adding it must not gain, so u_i <= -dm(n, r),
//   r  = sum_d tau_d e_d^2 = nu d,   d = (y - mu)' M^-1 (y - mu),   m = n+a0-1, nu = v+n,
//   dp = (m-1) log((m-1)/m) + 1 + D/2 [(nu-1) log((nu-1)/nu) + 1] - (nu-1)/2 log(1 - d (b0+n)/(b0+n-1)) - nu d/2,
//   dm = (m+1) log((m+1)/m) - 1 + D/2 [(nu+1) log((nu+1)/nu) - 1] - (nu+1)/2 log(1 + d (b0+n)/(b0+n+1)) + nu d/2.
// Both are >= 0, grow with r and, for v >= b0, fall with n at fixed r: the least r and the largest n of the box bound
// them from below. Logarithms are replaced by rational bounds on the safe side.
#pragma once
#include "node.hpp"

namespace certimap {

template <class S, bool GROUPS>
struct Classifier {
    double mean_lo[S::D], mean_hi[S::D], slope_lo[S::SLOPES + 1], slope_hi[S::SLOPES + 1], tau_lo[S::D];
    // max over tau of (log tau - tau x)/2 as the largest of four lines in x, min as the smaller of two
    double above[S::D][4], steep[S::D][4];
    double base_hi, base_lo, margin;
    double plus_constant = 0.0, plus_factor = 0.0, minus_constant = 0.0, minus_factor = 0.0, nu = 0.0;
    bool flips, removable, joint;  // one tau stands for all
    double slack, spare_below, spare_above, shift_lo, shift_hi;

    CM_FN void prepare(const Problem<S>& P, const Node<S>& x, const double* half_log_lo, const double* half_log_hi,
                       double log_p_lo, double log_p_hi) {
        double scale = magnitude(log_p_lo) + magnitude(log_p_hi) + P.largest_price + 1.0;
        for (int d = 0; d < S::D; d++) {
            double e = P.reach[d];
            for (int j = S::first(d); j < d; j++) {
                const int k = slope(d, j);
                slope_lo[k] = x.lo[S::SLOPE + k];
                slope_hi[k] = x.hi[S::SLOPE + k];
                e += most(magnitude(slope_lo[k]), magnitude(slope_hi[k])) * P.reach[j];
            }
            // Widening the mean covers the rounding of the residual.
            mean_lo[d] = x.lo[S::MEAN + d] - P.rounding * e;
            mean_hi[d] = x.hi[S::MEAN + d] + P.rounding * e;
            tau_lo[d] = x.lo[S::TAU + d];
            lines(d, x.lo[S::TAU + d], x.hi[S::TAU + d], half_log_lo[d], half_log_hi[d]);
            scale += magnitude(half_log_lo[d]) + magnitude(half_log_hi[d]);
        }
        margin = P.rounding * scale;
        joint = !S::SLOPED && P.form == SPHERICAL;
        slack = P.slack;
        base_hi = log_p_hi + 1.0 + margin + (GROUPS ? 0.0 : slack);
        base_lo = log_p_lo + 1.0 - margin - (GROUPS ? 0.0 : slack);
        spare_below = x.lo[S::SIZE] - P.size_min;
        spare_above = P.size_max - x.hi[S::SIZE];
        shift_lo = x.lo[S::SHIFT];
        shift_hi = x.hi[S::SHIFT];
        removable = false;
        flips = !GROUPS && P.flips && shift_lo == 0.0 && shift_hi == 0.0;
        if (flips) flip_constants(P, x.lo[S::SIZE], x.hi[S::SIZE]);
    }

    CM_FN void lines(int d, double lo, double hi, double log_lo, double log_hi) {
        above[d][0] = log_hi;
        steep[d][0] = 0.5 * hi;
        above[d][1] = log_lo;
        steep[d][1] = 0.5 * lo;
        for (int k = 2; k < 4; k++) {
            above[d][k] = log_hi;
            steep[d][k] = 0.5 * lo;
        }
        if (hi > lo * (1.0 + 1e-6)) {  // two chords of -(log x + 1)/2 between 1/hi and 1/lo
            const double log_mid = 0.5 * (log_lo + log_hi), x0 = 1.0 / hi, x2 = 1.0 / lo, x1 = root(x0 * x2);
            steep[d][2] = (log_hi - log_mid) / (x1 - x0);
            above[d][2] = log_hi - 0.5 + steep[d][2] * x0;
            steep[d][3] = (log_mid - log_lo) / (x2 - x1);
            above[d][3] = log_lo - 0.5 + steep[d][3] * x2;
        }
    }

    CM_FN void flip_constants(const Problem<S>& P, double least_size, double n) {
        const double m = n + P.a0 - 1.0, k = P.b0 + n;
        nu = P.v + n;
        removable = least_size >= 2.0;
        minus_factor = k / ((k + 1.0) * nu);
        minus_constant = (m + 1.0) * logarithm((m + 1.0) / m) - 1.0 +
                         0.5 * S::D * ((nu + 1.0) * logarithm((nu + 1.0) / nu) - 1.0);
        plus_factor = removable ? k / ((k - 1.0) * nu) : 0.0;
        plus_constant = 0.0;
        if (removable)
            plus_constant = (m - 1.0) * logarithm((m - 1.0) / m) + 1.0 +
                            0.5 * S::D * ((nu - 1.0) * logarithm((nu - 1.0) / nu) + 1.0);
        // (m+-1) log(1 +- 1/m) cancels its constant.
        minus_constant -= margin;
        plus_constant -= margin;
    }

    // Bounds of u over the box, slack and margin included, and the least sum_d tau_d e_d^2.
    template <class V>
    CM_FN void interval(const Item<S, GROUPS, V>& item, V& low, V& high, V& least_r) const {
        V left[S::D], right[S::D];
        high = GROUPS ? item.weight * base_hi + slack - item.price : base_hi - item.price;
        low = GROUPS ? item.weight * base_lo - slack - item.price : base_lo - item.price;
        least_r = spread<V>(0.0);
        V tops[4], bottoms[2];
        for (int k = 0; k < 4; k++) tops[k] = bottoms[k / 2] = spread<V>(0.0);
        for (int d = 0; d < S::D; d++) {
            left[d] = item.y[d] - mean_hi[d];
            right[d] = item.y[d] - mean_lo[d];
            V smallest, largest;
            residual(d, left, right, smallest, largest);
            if (GROUPS) {
                smallest = smallest * item.weight;
                largest = largest * item.weight;
                for (int k = S::first(d); k <= d; k++) {
                    V column[S::D], a, b;
                    for (int j = S::first(d); j <= d; j++) column[j] = j < k ? spread<V>(0.0) : item.factor[entry(j, k)];
                    residual(d, column, column, a, b);
                    smallest = smallest + a;
                    largest = largest + b;
                }
            }
            const V w = GROUPS ? item.weight : spread<V>(1.0);
            least_r = least_r + smallest * tau_lo[d];
            for (int k = 0; k < 4; k++) tops[k] = tops[k] + (w * above[d][k] - smallest * steep[d][k]);
            for (int k = 0; k < 2; k++) bottoms[k] = bottoms[k] + (w * above[d][k] - largest * steep[d][k]);
            if (joint && d + 1 < S::D) continue;
            high = high + most(most(tops[0], tops[1]), most(tops[2], tops[3]));
            low = low + least(bottoms[0], bottoms[1]);
            for (int k = 0; k < 4; k++) tops[k] = bottoms[k / 2] = spread<V>(0.0);
        }
    }

    // Range of e_d^2, e_d = t_d - b_d.t_<d with t between left and right.
    template <class V>
    CM_FN void residual(int d, const V* left, const V* right, V& smallest, V& largest) const {
        V e_lo = left[d], e_hi = right[d];
        for (int j = S::first(d); j < d; j++) {
            const int k = slope(d, j);
            const V a = left[j] * slope_lo[k], b = right[j] * slope_lo[k];
            const V c = left[j] * slope_hi[k], e = right[j] * slope_hi[k];
            e_lo = e_lo - most(most(a, b), most(c, e));
            e_hi = e_hi - least(least(a, b), least(c, e));
        }
        largest = square(most(e_hi, spread<V>(0.0) - e_lo));
        smallest = square(most(spread<V>(0.0), most(e_lo, spread<V>(0.0) - e_hi)));
    }

    template <class V>
    CM_FN V verdict(const Item<S, GROUPS, V>& item) const {
        V low, high, r;
        interval(item, low, high, r);
        const V none = spread<V>(FREE), inside = spread<V>(IN), outside = spread<V>(OUT);
        if (GROUPS) {  // only a move that keeps the set admissible tells against the set without it
            const V leaves = choose(item.weight <= spare_below, outside, none);
            const V joins = choose(item.weight <= spare_above * item.free_to_join, inside, none);
            return choose(high <= 0.0, leaves, choose(low >= 0.0, joins, none));
        }
        if (!flips) return choose(high <= shift_lo, outside, choose(low >= shift_hi, inside, none));
        const V q = least(r * plus_factor, spread<V>(1.0)), t = q / (2.0 - q), y = r * minus_factor;
        const V gain_out =
            most(spread<V>(0.0), plus_constant + (nu - 1.0) * t * (1.0 + t * t * (1.0 / 3.0)) - 0.5 * r);
        const V gain_in = most(spread<V>(0.0), minus_constant - (0.5 * (nu + 1.0)) * (y * (6.0 + y) / (6.0 + 4.0 * y)) +
                                                   0.5 * r);
        const V removal = removable ? gain_out : spread<V>(0.0);
        return choose(high >= removal, choose(low <= spread<V>(0.0) - gain_in, none, inside),
                      choose(low <= spread<V>(0.0) - gain_in, outside, spread<V>(CONTRADICTION)));
    }
};

}  // namespace certimap
