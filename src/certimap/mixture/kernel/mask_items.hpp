// Free items of a node as bit masks over a shared table: one double per lane, no storage of its own.
//
// The form for one thread per node, on the GPU and in its CPU build alike. Masks are strided, so that the threads of a
// block interleave theirs. u' is recomputed wherever it is needed. Conflicts between items are not known here.
#pragma once
#include "pricing.hpp"

namespace certimap {

// One record per item: y, price and, with GROUPS, weight and scatter factor.
template <class S, bool GROUPS>
struct ItemTable {
    static constexpr int PRICE = S::D, WEIGHT = S::D + 1, FACTOR = S::D + 2;
    static constexpr int RECORD = GROUPS ? FACTOR + S::ENTRIES : S::D + 1;
    const double* data;
    int words;  // of 32 bits

    CM_FN Item<S, GROUPS, double> load(int i) const {
        const double* r = data + i * RECORD;
        Item<S, GROUPS, double> item;
        for (int d = 0; d < S::D; d++) item.y[d] = r[d];
        item.price = r[PRICE];
        item.weight = GROUPS ? r[WEIGHT] : 1.0;
        item.free_to_join = 1.0;
        if (GROUPS)
            for (int k = 0; k < S::ENTRIES; k++) item.factor[k] = r[FACTOR + k];
        return item;
    }
};

template <class S, bool GROUPS>
CM_FN void take_item(const Item<S, GROUPS, double>& item, Inside<S>& in) {
    in.size += item.weight;
    in.price += item.price;
    for (int a = 0; a < S::D; a++) {
        const double wy = item.weight * item.y[a];
        in.sum[a] += wy;
        for (int b = S::first(a); b <= a; b++) {
            double product = wy * item.y[b];
            if (GROUPS)
                for (int k = S::first(b); k <= b; k++) product += item.factor[entry(a, k)] * item.factor[entry(b, k)];
            in.square[entry(a, b)] += product;
        }
    }
}

CM_FN int lowest_bit(unsigned w) {
#if defined(__CUDACC__)
    return __ffs((int)w) - 1;
#else
    return __builtin_ctz(w);
#endif
}

template <class S, bool GROUPS>
class MaskItems {
  public:
    typedef double V;

    CM_FN MaskItems(const ItemTable<S, GROUPS>& table, unsigned* inside, unsigned* free, int stride)
        : table_(table), inside_(inside), free_(free), stride_(stride), reference_(nullptr) {
        count_free();
    }

    CM_FN int count() const { return count_; }
    CM_FN double weight() const { return weight_; }

    template <class F>
    CM_FN void each(F f) const {
        for (int c = 0; c < table_.words; c++)
            for (unsigned w = free_[c * stride_]; w; w &= w - 1) {
                const int i = 32 * c + lowest_bit(w);
                f(table_.load(i), i);
            }
    }

    template <class F>
    CM_FN bool partition(F f, Inside<S>& in) {
        bool moved = false;
        for (int c = 0; c < table_.words; c++) {
            const unsigned before = free_[c * stride_];
            unsigned keep = before, enter = 0;
            for (unsigned w = before; w; w &= w - 1) {
                const int bit = lowest_bit(w);
                const Item<S, GROUPS, double> item = table_.load(32 * c + bit);
                const double v = f(item, 32 * c + bit);
                if (v == CONTRADICTION) return false;
                if (v == FREE) continue;
                keep &= ~(1u << bit);
                if (v == IN) {
                    enter |= 1u << bit;
                    take_item(item, in);
                }
            }
            if (keep == before) continue;
            free_[c * stride_] = keep;
            inside_[c * stride_] |= enter;
            moved = true;
        }
        if (moved) count_free();
        return true;
    }

    CM_FN void refer(const Reference<S>& reference) { reference_ = &reference; }
    CM_FN double value(const Item<S, GROUPS, double>& item, int) const { return value_at(item, *reference_); }
    CM_FN double hinge(double c, double& positive_weight) const {
        double sum = 0.0;
        positive_weight = 0.0;
        each([&](const Item<S, GROUPS, double>& item, int) {
            const double u = value_at(item, *reference_) + (GROUPS ? item.weight * c : c);
            sum += most(u, 0.0);
            positive_weight += u > 0.0 ? item.weight : 0.0;
        });
        return sum;
    }
    CM_FN int strongest(double c, double& largest) const {
        int best = 0;
        double most_yet = -1.0;
        each([&](const Item<S, GROUPS, double>& item, int i) {
            const double u = magnitude(value_at(item, *reference_) + (GROUPS ? item.weight * c : c));
            if (u > most_yet) {
                most_yet = u;
                best = i;
            }
        });
        largest = most_yet;
        return best;
    }
    CM_FN int clashing(double) const { return -1; }

  private:
    CM_FN void count_free() {
        count_ = 0;
        weight_ = 0.0;
        for (int c = 0; c < table_.words; c++) {
#if defined(__CUDACC__)
            count_ += __popc(free_[c * stride_]);
#else
            count_ += __builtin_popcount(free_[c * stride_]);
#endif
        }
        if (GROUPS)
            each([&](const Item<S, GROUPS, double>& item, int) { weight_ += item.weight; });
        else
            weight_ = (double)count_;
    }

    const ItemTable<S, GROUPS>& table_;
    unsigned *inside_, *free_;
    int stride_;
    const Reference<S>* reference_;
    int count_;
    double weight_;
};

}  // namespace certimap
