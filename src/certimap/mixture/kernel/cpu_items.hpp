// Free items of a node on the CPU: structure of arrays, compacted, so that every pass runs over whole packs.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "pricing.hpp"

namespace certimap {

// Columns of item data; rows beyond the items in use are readable padding.
template <class S, bool GROUPS>
struct Columns {
    static constexpr int PRICE = S::D, WEIGHT = S::D + 1, JOIN = S::D + 2, FACTOR = S::D + 3;
    static constexpr int FACTORS = GROUPS ? S::ENTRIES : 0;
    static constexpr int COUNT = GROUPS ? FACTOR + FACTORS : S::D + 1;  // points need y and price only
    std::vector<double> store;
    std::vector<int32_t> id;
    size_t rows = 0;

    void allocate(int n) {
        rows = ((size_t)n + 2 * LANES - 1) / LANES * LANES;
        store.assign(rows * COUNT, 0.0);
        id.assign(rows, 0);
    }
    double* column(int k) { return store.data() + rows * k; }
    const double* column(int k) const { return store.data() + rows * k; }

    CM_FN Item<S, GROUPS, Pack> load(int at, int n) const {
        Item<S, GROUPS, Pack> item;
        for (int d = 0; d < S::D; d++) __builtin_memcpy(&item.y[d], column(d) + at, sizeof(Pack));
        __builtin_memcpy(&item.price, column(PRICE) + at, sizeof(Pack));
        if (GROUPS) __builtin_memcpy(&item.weight, column(WEIGHT) + at, sizeof(Pack));
        if (GROUPS) __builtin_memcpy(&item.free_to_join, column(JOIN) + at, sizeof(Pack));
        for (int k = 0; k < FACTORS; k++) __builtin_memcpy(&item.factor[k], column(FACTOR + k) + at, sizeof(Pack));
        const Pack lane = {0.0, 1.0, 2.0, 3.0};
        const PackMask used = lane < (double)(n - at);
        item.weight = choose(used, GROUPS ? item.weight : spread<Pack>(1.0), spread<Pack>(0.0));
        return item;
    }
};

template <class S, bool GROUPS>
CM_FN void take_inside(const Columns<S, GROUPS>& from, int i, Inside<S>& in) {
    typedef Columns<S, GROUPS> C;
    const double w = GROUPS ? from.column(C::WEIGHT)[i] : 1.0;
    in.size += w;
    in.price += from.column(C::PRICE)[i];
    for (int a = 0; a < S::D; a++) {
        const double wy = w * from.column(a)[i];
        in.sum[a] += wy;
        for (int b = S::first(a); b <= a; b++) {
            double product = wy * from.column(b)[i];
            if (GROUPS)
                for (int k = S::first(b); k <= b; k++)
                    product += from.column(C::FACTOR + entry(a, k))[i] * from.column(C::FACTOR + entry(b, k))[i];
            in.square[entry(a, b)] += product;
        }
    }
}

// Cannot-links as compressed rows: item i excludes items[start[i] .. start[i+1]).
struct Conflicts {
    const int32_t* start = nullptr;
    const int32_t* items = nullptr;
};

template <class S, bool GROUPS>
class FreeItems {
  public:
    typedef Pack V;
    typedef Columns<S, GROUPS> Data;

    // `scratch` holds one double per item and serves one node at a time.
    void bind(Data* own, double* scratch, uint64_t* inside_bits, const Conflicts& conflicts) {
        own_ = own;
        scratch_ = scratch;
        bits_ = inside_bits;
        conflicts_ = conflicts;
    }
    // The next partition reads `from` and leaves the remainder in the own columns.
    void inherit(const Data* from, int count, double weight) {
        from_ = from;
        count_ = count;
        weight_ = weight;
    }

    CM_FN int count() const { return count_; }
    CM_FN double weight() const { return weight_; }
    const Data& data() const { return *from_; }

    template <class F>
    CM_FN void each(F f) const {
        for (int at = 0; at < count_; at += LANES) f(from_->load(at, count_), at);
    }

    template <class F>
    CM_FN bool partition(F f, Inside<S>& in) {
        Pack worst = spread<Pack>(0.0), moved = worst;
        for (int at = 0; at < count_; at += LANES) {
            const Item<S, GROUPS, Pack> item = from_->load(at, count_);
            Pack v = f(item, at);
            v = choose(item.weight > 0.0, v, spread<Pack>(0.0));
            worst = most(worst, v);
            moved = moved + square(v);
            // value(slot) is read before its place is overwritten
            __builtin_memcpy(scratch_ + at, &v, sizeof v);
        }
        for (int k = 0; k < LANES; k++)
            if (worst[k] == CONTRADICTION) return false;
        if (total(moved) == 0.0 && from_ == own_) return true;
        if (GROUPS && conflicts_.start && !exclude()) return false;
        for (int i = 0; i < count_; i++)
            if (scratch_[i] == IN) {
                take_inside(*from_, i, in);
                bits_[from_->id[i] >> 6] |= (uint64_t)1 << (from_->id[i] & 63);
            }
        compact();
        return true;
    }

    CM_FN void refer(const Reference<S>& reference) {
        for (int at = 0; at < count_; at += LANES) {
            const Item<S, GROUPS, Pack> item = from_->load(at, count_);
            const Pack u = choose(item.weight > 0.0, value_at(item, reference), spread<Pack>(-1e300));
            __builtin_memcpy(scratch_ + at, &u, sizeof u);
        }
    }
    CM_FN double hinge(double c, double& positive_weight) const {
        Pack sum = spread<Pack>(0.0), weight = sum;
        for (int at = 0; at < count_; at += LANES) {
            Pack u, w = spread<Pack>(1.0);
            __builtin_memcpy(&u, scratch_ + at, sizeof u);
            if (GROUPS) __builtin_memcpy(&w, from_->column(Data::WEIGHT) + at, sizeof w);
            u = u + w * c;
            sum = sum + most(u, spread<Pack>(0.0));
            weight = weight + choose(u > 0.0, w, spread<Pack>(0.0));
        }
        positive_weight = total(weight);
        return total(sum);
    }
    int strongest(double c, double& largest) const {
        int best = 0;
        largest = -1.0;
        for (int i = 0; i < count_; i++) {
            const double u = magnitude(gain(i, c));
            if (u > largest) {
                largest = u;
                best = i;
            }
        }
        return best;
    }
    int clashing(double c) const {
        int best = -1;
        double overlap = -1e300;
        for (int i = 0; i < count_; i++) {
            const int32_t id = from_->id[i];
            for (int32_t k = conflicts_.start[id]; k < conflicts_.start[id + 1]; k++)
                for (int j = 0; j < i; j++)
                    if (from_->id[j] == conflicts_.items[k]) {
                        const double u = least(gain(i, c), gain(j, c));
                        if (u > overlap) {
                            overlap = u;
                            best = i;
                        }
                    }
        }
        return best;
    }
    CM_FN Pack value(const Item<S, GROUPS, Pack>&, int at) const {
        Pack u;
        __builtin_memcpy(&u, scratch_ + at, sizeof u);
        return u;
    }

  private:
    CM_FN double gain(int i, double c) const {
        return scratch_[i] + (GROUPS ? from_->column(Data::WEIGHT)[i] : 1.0) * c;
    }

    // Free items in conflict with one that moves inside are out; false if the conflict is with another one inside.
    bool exclude() {
        for (int i = 0; i < count_; i++) {
            if (scratch_[i] != IN) continue;
            const int32_t id = from_->id[i];
            for (int32_t k = conflicts_.start[id]; k < conflicts_.start[id + 1]; k++) {
                const int32_t other = conflicts_.items[k];
                if (bits_[other >> 6] >> (other & 63) & 1) return false;
                for (int j = 0; j < count_; j++) {
                    if (from_->id[j] != other) continue;
                    if (scratch_[j] == IN) return false;
                    scratch_[j] = OUT;
                }
            }
        }
        return true;
    }

    void compact() {
        int kept = 0;
        double weight = 0.0;
        for (int i = 0; i < count_; i++) {
            for (int k = 0; k < Data::COUNT; k++) own_->column(k)[kept] = from_->column(k)[i];
            own_->id[kept] = from_->id[i];
            const bool keep = scratch_[i] == FREE;
            if (GROUPS && keep) weight += from_->column(Data::WEIGHT)[i];
            kept += keep;
        }
        from_ = own_;
        count_ = kept;
        weight_ = GROUPS ? weight : (double)kept;
        if (GROUPS && conflicts_.start) release();
    }

    // Items all of whose conflicts are out may join.
    void release() {
        double* join = own_->column(Data::JOIN);
        for (int i = 0; i < count_; i++) {
            if (join[i] > 0.0) continue;
            bool bound = false;
            const int32_t id = own_->id[i];
            for (int32_t k = conflicts_.start[id]; k < conflicts_.start[id + 1]; k++)
                for (int j = 0; j < count_; j++) bound = bound || own_->id[j] == conflicts_.items[k];
            join[i] = bound ? 0.0 : 1.0;
        }
    }

    Data* own_ = nullptr;
    const Data* from_ = nullptr;
    double* scratch_ = nullptr;
    uint64_t* bits_ = nullptr;
    Conflicts conflicts_;
    int count_ = 0;
    double weight_ = 0.0;
};

}  // namespace certimap
