// The size multiplier of rows whose sizes touch a limit of the admitted sizes.
//
// Let S be best among the sets of nmin <= |S| <= nmax points, u_i at theta(S), and g the slack (0 for a maximiser).
// Exchanging i in S for j outside keeps the size and may not gain more than g: u_j <= u_i + g. If |S| > nmin, removing
// i is admissible too: u_i >= -g; if |S| < nmax, adding j: u_j <= g. Hence there is a multiplier `shift` with
//     u_i >= shift - g inside, u_j <= shift + g outside,      shift = 0 if nmin < |S| < nmax,
// and shift <= 0 is possible at |S| = nmin < nmax (shift = min(0, min_S u + g)), shift >= 0 at |S| = nmax > nmin, any
// sign at nmin = nmax. It is one more coordinate of the box, shrunk by counting: with k1 <= |S and F| <= k2,
//     #{F: low_i - g >= t}  > k2  implies shift >= t,       #{F: high_i + g >= t} < k1  implies shift <= t,
// and at a root, where all items are free, it need not leave [min(0, min (low_i - g)), max(0, max (high_i + g))].
// Below a root that would not hold: an item that was put out for another reason can ask for a larger multiplier.
#pragma once
#include "classify.hpp"

namespace certimap {

template <class S, bool GROUPS, class Items>
CM_FN void contract_shift(const Problem<S>& P, const Items& items, const Classifier<S, GROUPS>& rule, double k1,
                          double k2, Node<S>& x) {
    typedef typename Items::V V;
    constexpr int LEVELS = 3;
    double& lo = x.lo[S::SHIFT];
    double& hi = x.hi[S::SHIFT];
    const double step = (hi - lo) / (LEVELS + 1), old_lo = lo;
    V above_low[LEVELS], above_high[LEVELS], smallest = spread<V>(0.0), largest = smallest;
    for (int k = 0; k < LEVELS; k++) above_low[k] = above_high[k] = spread<V>(0.0);
    items.each([&](const Item<S, GROUPS, V>& item, int) {
        V low, high, r;
        rule.interval(item, low, high, r);
        smallest = least(smallest, low * item.weight);
        largest = most(largest, high * item.weight);
        for (int k = 0; k < LEVELS; k++) {
            const double t = old_lo + step * (k + 1);
            above_low[k] = above_low[k] + choose(low >= t, item.weight, spread<V>(0.0));
            above_high[k] = above_high[k] + choose(high >= t, item.weight, spread<V>(0.0));
        }
    });
    if (items.count() == P.items) {
        lo = most(lo, least_lane(smallest));
        hi = least(hi, most_lane(largest));
    }
    for (int k = 0; k < LEVELS; k++) {
        const double t = old_lo + step * (k + 1);
        if (total(above_low[k]) > k2) lo = most(lo, t);
        if (total(above_high[k]) < k1) hi = least(hi, t);
    }
}

}  // namespace certimap
