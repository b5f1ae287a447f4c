// One round of one node of certified pricing: classify, contract, bound, fix, choose a split.
//
// `Items` is the storage of the free items. It offers
//   V                     the lane type,
//   count(), weight()     how many are free and their total weight,
//   each(f)               f(item, slot) for every free item,
//   partition(f, inside)  v = f(item, slot): IN adds it to `inside`, OUT drops it, FREE keeps it;
//                         false on a CONTRADICTION,
//   refer(r), hinge(c, count), value(item, slot)   u' of every free item at the reference r, kept or recomputed,
//   strongest(c, largest)    the free item of largest |u' + w c|,
//   clashing(c)              of the pairs of free items in conflict one with the largest min(u' + w c); -1: none.
#pragma once
#include "bound.hpp"
#include "sizes.hpp"

namespace certimap {

constexpr double WIDE = 10.0;  // above the target: from here on a box is tried with a blurred reference, too
constexpr int FEW = 6;  // free items: from here on they are decided one by one

template <class S, bool GROUPS, class Items>
struct Round {
    typedef typename Items::V V;
    const Problem<S>& P;
    Items& items;
    Inside<S>& in;
    Node<S>& x;
    Split split;
    double shrink;

    CM_FN Round(const Problem<S>& problem, Items& free_items, Inside<S>& inside, Node<S>& node)
        : P(problem), items(free_items), in(inside), x(node), split{-1, 0, 0.0}, shrink(0.0) {}

    CM_FN double log_size(double n) const { return log_weight(P, n); }

    CM_FN Verdict run(int round) {
        double half_log_lo[S::D], half_log_hi[S::D];
        for (int d = 0; d < S::D; d++) {
            half_log_lo[d] = 0.5 * logarithm(x.lo[S::TAU + d]);
            half_log_hi[d] = 0.5 * logarithm(x.hi[S::TAU + d]);
        }
        shrink = 0.0;
        if (!classify(half_log_lo, half_log_hi)) return PRUNED;
        Spread<S> M;
        if (!contract(M)) return PRUNED;
        for (int d = 0; d < S::D; d++) {
            half_log_lo[d] = 0.5 * logarithm(x.lo[S::TAU + d]);
            half_log_hi[d] = 0.5 * logarithm(x.hi[S::TAU + d]);
        }
        Reference<S> reference;
        Width<S> width;
        Ledger<S> ledger;
        double c;
        take_reference(x, M, half_log_lo, half_log_hi, reference);
        if (x.bound > P.target + WIDE && P.free_tau() > 0) {
            Reference<S> blurred = reference;
            blur_reference(P, x, M, blurred);
            bound_at(blurred, M, half_log_lo, half_log_hi, width, ledger, c);
            if (x.bound <= P.target) return PRUNED;
        }
        const double bound = bound_at(reference, M, half_log_lo, half_log_hi, width, ledger, c);
        if (x.bound <= P.target) return PRUNED;
        const int before = items.count();
        fix(c, bound - P.target + ledger.slack);
        if (items.count() == 0) return before == 0 ? leaf() : AGAIN;
        if ((before - items.count()) * 4 > before) shrink += 0.5;
        if (shrink >= 0.4 && round + 1 < P.max_rounds) return AGAIN;
        if (items.count() > FEW) branch(width);
        if (split.coordinate < 0 || P.slack > 0.0 || P.conflicts)
            branch_on_item(reference, c, bound - P.target, width);
        return BRANCH;
    }

    // The bound at a reference, which the node keeps if it is its best.
    CM_FN double bound_at(const Reference<S>& reference, const Spread<S>& M, const double* half_log_lo,
                          const double* half_log_hi, Width<S>& width, Ledger<S>& ledger, double& c) {
        measure_width(P, x, M, reference, half_log_lo, half_log_hi, width);
        open_ledger(P, x, in, M, reference, width, log_size(x.lo[S::SIZE]), log_size(x.hi[S::SIZE]), items.weight(),
                    ledger);
        const double bound = minimise(reference, ledger, c);
        if (bound < x.bound) x.bound = bound;
        return bound;
    }

    CM_FN bool classify(const double* half_log_lo, const double* half_log_hi) {
        double& n1 = x.lo[S::SIZE];
        double& n2 = x.hi[S::SIZE];
        Classifier<S, GROUPS> rule;
        rule.prepare(P, x, half_log_lo, half_log_hi, log_size(n1), log_size(n2));
        if (!GROUPS && x.lo[S::SHIFT] < x.hi[S::SHIFT]) {
            contract_shift(P, items, rule, most(n1 - in.size, 0.0), most(n2 - in.size, 0.0), x);
            if (x.lo[S::SHIFT] > x.hi[S::SHIFT]) return false;
            rule.prepare(P, x, half_log_lo, half_log_hi, log_size(n1), log_size(n2));
        }
        if (!items.partition([&](const Item<S, GROUPS, V>& item, int) { return rule.verdict(item); }, in)) return false;
        const double fuzz = P.integral ? 0.0 : P.rounding * (in.size + items.weight());
        double room = n2 - in.size + fuzz, spare = in.size + items.weight() - n1 + fuzz;
        if (room < 0.0 || spare < 0.0) return false;
        if (room < P.heaviest || spare < P.heaviest) {
            if (!items.partition(
                    [&](const Item<S, GROUPS, V>& item, int) {
                        const V drop = choose(item.weight > spare, spread<V>(CONTRADICTION), spread<V>(OUT));
                        return choose(item.weight > room, drop,
                                      choose(item.weight > spare, spread<V>(IN), spread<V>(FREE)));
                    },
                    in))
                return false;
            if (in.size - fuzz > n2 || in.size + items.weight() + fuzz < n1) return false;
        }
        shrink += tighten(n1, n2, in.size - fuzz, in.size + items.weight() + fuzz);
        return true;
    }

    CM_FN bool contract(Spread<S>& M) {
        const double k1 = most(x.lo[S::SIZE] - in.size, 0.0), k2 = most(x.hi[S::SIZE] - in.size, 0.0);
        if (!contract_mean<S, GROUPS>(P, items, in, x, k1, k2, 2, shrink)) return false;
        spread_bounds<S, GROUPS>(P, items, in, x, items.weight(), M);
        return contract_spread(P, M, x, shrink);
    }

    CM_FN double minimise(const Reference<S>& reference, const Ledger<S>& L, double& best_c) {
        items.refer(reference);
        // Where the lines of n1 and n2 cross, or the stationary level if there is one size only.
        double c = L.n2 > L.n1 ? (L.phi2 - L.phi1) / (L.n2 - L.n1) : 1.0 + log_size(L.n2);
        double best = 1e300;
        best_c = c;
        for (int step = 0; step < 3; step++) {
            double count;
            const double hinge = items.hinge(c, count), bound = L.at(c, hinge) + L.slack;
            if (bound < best) {
                best = bound;
                best_c = c;
            }
            const double room = count > L.n2 - L.inside ? L.n2 - L.inside : L.n1 - L.inside;
            if (bound <= P.target || (count >= L.n1 - L.inside && count <= L.n2 - L.inside)) break;
            // The excess over 0 is taken as exponentially distributed.
            const double excess = count > 0.0 ? hinge / count : 1.0;
            c += count > room ? -excess * logarithm(count / most(room, 0.5)) : excess * (room - count) / (count + 1.0);
        }
        return best;
    }

    // Free items whose u' alone outweighs what the bound has left; valid for every set of the node.
    CM_FN void fix(double c, double left) {
        items.partition(
            [&](const Item<S, GROUPS, V>& item, int slot) {
                const V u = items.value(item, slot) + (GROUPS ? item.weight * c : spread<V>(c));
                return choose(u >= left, spread<V>(IN), choose(u <= -left, spread<V>(OUT), spread<V>(FREE)));
            },
            in);
    }

    CM_FN Verdict leaf() {
        double M[S::ENTRIES], pivot[S::D], log_det = 0.0;
        const double weight = P.b0 + in.size, m = in.size + P.a0 - 1.0, nu = P.v + in.size;
        for (int a = 0; a < S::D; a++)
            for (int b = S::first(a); b <= a; b++) M[entry(a, b)] = in.square[entry(a, b)] - in.sum[a] * in.sum[b] / weight;
        pivots(P, M, pivot);
        double value = 0.5 * S::D * logarithm(P.b0) - in.price;
        if (m > 0.0) value += m * logarithm(m / P.Nt);
        if (P.free_tau() == 0) {
            for (int d = 0; d < S::D; d++) value -= 0.5 * pivot[d];
        } else {
            for (int d = 0; d < S::D; d++) log_det += logarithm(most(pivot[d], 1.0));
            value -= 0.5 * nu * log_det;
            if (nu > 0.0) value += 0.5 * S::D * nu * (logarithm(nu) - 1.0);
        }
        double largest = 1.0;
        for (int d = 0; d < S::D; d++) largest = most(largest, in.square[entry(d, d)]);
        const double slack = P.rounding * (4.0 * S::D * S::D * nu * largest + weight * (P.largest_price + 40.0) + m + nu);
        if (value + slack < x.bound) x.bound = value + slack;
        return value + slack <= P.target ? PRUNED : LEAF;
    }

    CM_FN void branch(const Width<S>& width) {
        double best = -1.0;
        split.coordinate = -1;
        split.item = 0;
        for (int k = 0; k < S::COORDINATES; k++) {
            const double lo = x.lo[k], hi = x.hi[k];
            const bool wide = k == S::SIZE                       ? hi > lo
                              : k >= S::TAU && k < S::SLOPE      ? hi > lo * (1.0 + 1e-9)
                                                                 : hi - lo > 1e-9;
            if (wide && width.part[k] > best) {
                best = width.part[k];
                split.coordinate = k;
            }
        }
        if (best < 1e-7) split.coordinate = -1;
        const int k = split.coordinate;
        if (k < 0) return;
        const double lo = x.lo[k], hi = x.hi[k];
        split.cut = 0.5 * (lo + hi);
        if (k == S::SIZE) {
            split.cut = root(lo * hi);
            if (P.integral) split.cut = most(lo, least(hi - 1.0, round_down(split.cut)));
        } else if (k >= S::TAU && k < S::SLOPE) {
            split.cut = root(lo * hi);
        }
    }

    // Few free items have few subsets, however wide the box. Near one theta the box no longer matters either: the item of
    // largest |u'| decides most, or one of a pair in conflict, which the hinge counts both. Otherwise a box cut stays the choice while the box costs more than half of what is at stake.
    CM_FN void branch_on_item(const Reference<S>& reference, double c, double left, const Width<S>& width) {
        items.refer(reference);
        double weight = left;
        int item = P.conflicts ? items.clashing(c) : -1;
        if (item < 0) item = items.strongest(c, weight);
        const double cost =
            0.5 * (P.v + x.hi[S::SIZE]) * width.A + 0.5 * (P.b0 + x.hi[S::SIZE]) * width.C + width.part[S::SIZE];
        if (split.coordinate >= 0 && cost >= 0.5 * weight) return;
        split.coordinate = -1;
        split.item = item;
    }
};

// The child on the lower (0) or upper (1) side of a split of the box.
template <class S>
CM_FN void cut_box(const Problem<S>& P, const Split& split, int side, Node<S>& x) {
    if (split.coordinate < 0) return;
    if (side == 0)
        x.hi[split.coordinate] = split.cut;
    else
        x.lo[split.coordinate] = split.cut + (split.coordinate == S::SIZE && P.integral ? 1.0 : 0.0);
    share_tau(P, x);
}

}  // namespace certimap
