// What a caller hands over, and the problem it describes.
#pragma once
#include <cstddef>
#include <cstdint>

#include "node.hpp"

namespace certimap {

// A shape and the kind of items, as a type.
template <class SHAPE, bool WITH_GROUPS>
struct Kind {
    typedef SHAPE S;
    static constexpr bool GROUPS = WITH_GROUPS;
};

template <int D, class F>
auto with_dimension(bool sloped, bool groups, F f) {
    if (sloped) return groups ? f(Kind<Shape<D, true>, true>()) : f(Kind<Shape<D, true>, false>());
    return groups ? f(Kind<Shape<D, false>, true>()) : f(Kind<Shape<D, false>, false>());
}

// f(Kind) for what a problem has; at most six dimensions.
template <class F>
auto dispatch(int dimension, int form, int groups, F f) {
    switch (dimension) {
        case 1: return with_dimension<1>(form == FULL, groups, f);
        case 2: return with_dimension<2>(form == FULL, groups, f);
        case 3: return with_dimension<3>(form == FULL, groups, f);
        case 4: return with_dimension<4>(form == FULL, groups, f);
        case 5: return with_dimension<5>(form == FULL, groups, f);
        default: return with_dimension<6>(form == FULL, groups, f);
    }
}

struct PricingInput {
    int32_t dimension, form, items, groups, integral, flips, max_rounds;
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

template <class S>
Problem<S> read_problem(const PricingInput& in) {
    Problem<S> P;
    P.a0 = in.a0;
    P.b0 = in.b0;
    P.v = in.v;
    P.Nt = in.Nt;
    P.target = in.target;
    P.slack = in.slack;
    P.rounding = rounding_of(in.items);
    P.size_min = in.size_min;
    P.size_max = in.size_max;
    P.form = in.form;
    P.items = in.items;
    P.integral = in.integral;
    P.conflicts = in.conflict_start != nullptr;
    P.flips = in.flips;
    P.max_rounds = in.max_rounds;
    P.largest_price = P.heaviest = 0.0;
    for (int d = 0; d < S::D; d++) P.reach[d] = magnitude(in.prior_mean[d]);
    for (int i = 0; i < in.items; i++) {
        for (int d = 0; d < S::D; d++) P.reach[d] = most(P.reach[d], magnitude(in.y[(size_t)d * in.items + i]));
        P.largest_price = most(P.largest_price, magnitude(in.price[i]) / in.weight[i]);
        P.heaviest = most(P.heaviest, in.weight[i]);
    }
    return P;
}

// Statistics of the empty set; W0 = I, which a known precision has no use for.
template <class S>
Inside<S> read_prior(const PricingInput& in) {
    Inside<S> prior = {};
    for (int d = 0; d < S::D; d++) {
        prior.sum[d] = in.b0 * in.prior_mean[d];
        for (int j = 0; j <= d; j++)
            prior.square[entry(d, j)] = (d == j && in.form != KNOWN ? 1.0 : 0.0) + in.b0 * in.prior_mean[d] * in.prior_mean[j];
    }
    return prior;
}

// Root r with the middle of its mean box as a first guess of the thresholds.
template <class S>
Node<S> read_root(const OpenList& roots, int64_t r) {
    constexpr int C = S::COORDINATES;
    Node<S> x;
    for (int k = 0; k < C; k++) {
        x.lo[k] = roots.lo[r * C + k];
        x.hi[k] = roots.hi[r * C + k];
    }
    for (int d = 0; d < S::D; d++)
        x.hint[2 * d] = x.hint[2 * d + 1] = 0.5 * (x.lo[S::MEAN + d] + x.hi[S::MEAN + d]);
    x.bound = roots.bound[r];
    return x;
}

}  // namespace certimap
