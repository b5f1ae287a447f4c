// C interface of the CPU kernel, loaded through ctypes (see __init__.py for the matching declarations).
#include <memory>

#include "cpu_driver.hpp"
#include "instance.hpp"

using namespace certimap;

namespace {

struct Summary {
    int32_t status;
    double bound;
    int64_t nodes, open, found, record;
};

struct Search {
    virtual ~Search() = default;
    virtual Summary summary() const = 0;
    virtual void open(OpenList* list) const = 0;
    virtual void found(double* bound, uint64_t* inside) const = 0;
    virtual void record(SplitRecord* out) const = 0;
};

template <class S, bool GROUPS>
struct SearchOf : Search {
    Outcome<S> outcome;
    int words;

    SearchOf(const PricingInput& in, const OpenList& roots, const Limits& limits) : words((in.items + 63) / 64) {
        const Instance<S, GROUPS> instance = read(in);
        std::vector<OpenNode<S>> nodes((size_t)roots.count);
        for (int64_t r = 0; r < roots.count; r++) {
            OpenNode<S>& node = nodes[r];
            node.x = read_root<S>(roots, r);
            node.inside.assign(roots.inside + r * words, roots.inside + (r + 1) * words);
            node.free.assign(roots.free + r * words, roots.free + (r + 1) * words);
        }
        outcome = Driver<S, GROUPS>(instance, limits).run(std::move(nodes));
    }

    static Instance<S, GROUPS> read(const PricingInput& in) {
        typedef Columns<S, GROUPS> Data;
        Instance<S, GROUPS> instance;
        instance.problem = read_problem<S>(in);
        instance.prior = read_prior<S>(in);
        instance.items = in.items;
        instance.conflicts = {in.conflict_start, in.conflict_items};
        Data& all = instance.all;
        all.allocate(in.items);
        for (int i = 0; i < in.items; i++) {
            for (int d = 0; d < S::D; d++) all.column(d)[i] = in.y[(size_t)d * in.items + i];
            all.column(Data::PRICE)[i] = in.price[i];
            if (!GROUPS) continue;
            all.column(Data::WEIGHT)[i] = in.weight[i];
            const bool bound = in.conflict_start && in.conflict_start[i] < in.conflict_start[i + 1];
            all.column(Data::JOIN)[i] = bound ? 0.0 : 1.0;
            for (int k = 0; k < Data::FACTORS; k++)
                all.column(Data::FACTOR + k)[i] = in.factor[(size_t)k * in.items + i];
        }
        return instance;
    }

    Summary summary() const override {
        return {outcome.status, outcome.bound, outcome.nodes, (int64_t)outcome.open.size(),
                (int64_t)outcome.found.size(), (int64_t)outcome.record.size()};
    }
    void open(OpenList* list) const override {
        constexpr int C = S::COORDINATES;
        for (size_t r = 0; r < outcome.open.size(); r++) {
            const OpenNode<S>& node = outcome.open[r];
            std::copy(node.x.lo, node.x.lo + C, list->lo + r * C);
            std::copy(node.x.hi, node.x.hi + C, list->hi + r * C);
            list->bound[r] = node.x.bound;
            list->origin[r] = node.origin;
            std::copy(node.inside.begin(), node.inside.end(), list->inside + r * words);
            std::copy(node.free.begin(), node.free.end(), list->free + r * words);
        }
    }
    void found(double* bound, uint64_t* inside) const override {
        for (size_t k = 0; k < outcome.found.size(); k++) {
            bound[k] = outcome.found[k].bound;
            std::copy(outcome.found[k].inside.begin(), outcome.found[k].inside.end(), inside + k * words);
        }
    }
    void record(SplitRecord* out) const override {
        std::copy(outcome.record.begin(), outcome.record.end(), out);
    }
};

}  // namespace

extern "C" {

Search* certimap_pricing_run(const PricingInput* in, const OpenList* roots, const Limits* limits) {
    return dispatch(in->dimension, in->form, in->groups, [&](auto kind) -> Search* {
        return new SearchOf<typename decltype(kind)::S, decltype(kind)::GROUPS>(*in, *roots, *limits);
    });
}
void certimap_pricing_summary(const Search* search, Summary* out) { *out = search->summary(); }
void certimap_pricing_open(const Search* search, OpenList* out) { search->open(out); }
void certimap_pricing_found(const Search* search, double* bound, uint64_t* inside) { search->found(bound, inside); }
void certimap_pricing_record(const Search* search, SplitRecord* out) { search->record(out); }
void certimap_pricing_free(Search* search) { delete search; }

int32_t certimap_instruction_set(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) return 2;
    if (__builtin_cpu_supports("avx2")) return 1;
#endif
    return 0;
}
}
