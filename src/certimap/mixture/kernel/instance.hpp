// What a caller hands over, and the problem it describes.
#pragma once
#include <cstddef>
#include <cstdint>

#include "node.hpp"

namespace certimap {

struct PricingInput {
    int32_t dimension, items, groups, integral, flips, max_rounds;
    double a0, b0, v, Nt, target, slack, size_min, size_max;
    const double* y;       // dimension x items
    const double* price;   // items
    const double* weight;  // items
    const double* factor;  // entries x items, read with groups
    const double* prior_mean;
    const int32_t* conflict_start;  // items + 1, null without conflicts; read with groups
    const int32_t* conflict_items;
};

struct OpenList {
    int64_t count;
    double* lo;    // count x coordinates
    double* hi;    // count x coordinates
    double* bound; // count
    uint64_t* inside;  // count x words
    uint64_t* free;    // count x words
    int32_t* origin;   // count: entry of the record; read by the batch only
};

// Relative error of a sum of `terms` rounded terms, each of a few operations.
inline double rounding_of(int terms) { return 4.0 * (terms + 64) * 1.1102230246251565e-16; }

template <int D>
Problem<D> read_problem(const PricingInput& in) {
    Problem<D> P;
    P.a0 = in.a0;
    P.b0 = in.b0;
    P.v = in.v;
    P.Nt = in.Nt;
    P.target = in.target;
    P.slack = in.slack;
    P.rounding = rounding_of(in.items);
    P.size_min = in.size_min;
    P.size_max = in.size_max;
    P.items = in.items;
    P.integral = in.integral;
    P.conflicts = in.conflict_start != nullptr;
    P.flips = in.flips;
    P.max_rounds = in.max_rounds;
    P.largest_price = P.heaviest = 0.0;
    for (int d = 0; d < D; d++) P.reach[d] = magnitude(in.prior_mean[d]);
    for (int i = 0; i < in.items; i++) {
        for (int d = 0; d < D; d++) P.reach[d] = most(P.reach[d], magnitude(in.y[(size_t)d * in.items + i]));
        P.largest_price = most(P.largest_price, magnitude(in.price[i]) / in.weight[i]);
        P.heaviest = most(P.heaviest, in.weight[i]);
    }
    return P;
}

// Statistics of the empty set.
template <int D>
Inside<D> read_prior(const PricingInput& in) {
    Inside<D> prior = {};
    for (int d = 0; d < D; d++) {
        prior.sum[d] = in.b0 * in.prior_mean[d];
        for (int j = 0; j <= d; j++)
            prior.square[entry(d, j)] = (d == j ? 1.0 : 0.0) + in.b0 * in.prior_mean[d] * in.prior_mean[j];
    }
    return prior;
}

// Root r with the middle of its mean box as a first guess of the thresholds.
template <int D>
Node<D> read_root(const OpenList& roots, int64_t r) {
    constexpr int C = Shape<D>::COORDINATES;
    Node<D> x;
    for (int k = 0; k < C; k++) {
        x.lo[k] = roots.lo[r * C + k];
        x.hi[k] = roots.hi[r * C + k];
    }
    for (int d = 0; d < D; d++)
        x.hint[2 * d] = x.hint[2 * d + 1] = 0.5 * (x.lo[Shape<D>::MEAN + d] + x.hi[Shape<D>::MEAN + d]);
    x.bound = roots.bound[r];
    return x;
}

}  // namespace certimap
