// C interface of the batch: its set-up for every device, and its CPU build, which the tests run.
#include <cstring>
#include <vector>

#include "batch.hpp"
#include "instance.hpp"

using namespace certimap;

namespace {

// Sizes that the caller allocates by.
struct BatchShape {
    int32_t problem_bytes, real_rows, record;
};

template <class S, bool GROUPS>
struct Batch {
    typedef ItemTable<S, GROUPS> Table;

    static BatchShape shape() { return {(int32_t)sizeof(Problem<S>), PoolRows<S>::COUNT, Table::RECORD}; }

    static void describe(const PricingInput& in, void* problem, double* table) {
        const Problem<S> P = read_problem<S>(in);
        std::memcpy(problem, &P, sizeof P);
        for (int i = 0; i < in.items; i++) {
            double* record = table + (size_t)i * Table::RECORD;
            for (int d = 0; d < S::D; d++) record[d] = in.y[(size_t)d * in.items + i];
            record[Table::PRICE] = in.price[i];
            if (!GROUPS) continue;
            record[Table::WEIGHT] = in.weight[i];
            for (int k = 0; k < S::ENTRIES; k++) record[Table::FACTOR + k] = in.factor[(size_t)k * in.items + i];
        }
    }

    static void load(const PricingInput& in, const OpenList& roots, const double* data, const Pool& pool) {
        const Table table = {data, (in.items + 31) / 32};
        const int words = (in.items + 63) / 64;
        for (int64_t r = 0; r < roots.count; r++) {
            Inside<S> inside = read_prior<S>(in);
            for (int i = 0; i < in.items; i++)
                if (roots.inside[r * words + i / 64] >> (i & 63) & 1) take_item(table.load(i), inside);
            write_node(pool, r, read_root<S>(roots, r), inside);
            for (int c = 0; c < table.words; c++) {
                const int shift = 32 * (c & 1);
                pool.word[c * pool.capacity + r] = (unsigned)(roots.inside[r * words + c / 2] >> shift);
                pool.word[(table.words + c) * pool.capacity + r] = (unsigned)(roots.free[r * words + c / 2] >> shift);
            }
            pool.mark[r] = 0;
            pool.mark[pool.capacity + r] = roots.origin[r];
        }
    }

    static void step(const void* problem, const double* data, int items, const Pool& from, int64_t offset,
                     int64_t count, const Pool& to, uint64_t* nodes) {
        const Table table = {data, (items + 31) / 32};
        std::vector<unsigned> inside((size_t)table.words), free((size_t)table.words);
        for (int64_t k = 0; k < count; k++)
            if (batch_step(*(const Problem<S>*)problem, table, from, offset + k, to, k, to.capacity / 2, inside.data(),
                           free.data(), 1))
                nodes[from.mark[from.capacity + offset + k]]++;
    }
};

template <class KIND>
using BatchOf = Batch<typename KIND::S, KIND::GROUPS>;

}  // namespace

extern "C" {

void certimap_batch_shape(int32_t dimension, int32_t form, int32_t groups, BatchShape* out) {
    *out = dispatch(dimension, form, groups, [](auto kind) { return BatchOf<decltype(kind)>::shape(); });
}
void certimap_batch_describe(const PricingInput* in, void* problem, double* table) {
    dispatch(in->dimension, in->form, in->groups,
             [&](auto kind) { BatchOf<decltype(kind)>::describe(*in, problem, table); });
}
void certimap_batch_load(const PricingInput* in, const OpenList* roots, const double* table, const Pool* pool) {
    dispatch(in->dimension, in->form, in->groups,
             [&](auto kind) { BatchOf<decltype(kind)>::load(*in, *roots, table, *pool); });
}
void certimap_batch_step(int32_t dimension, int32_t form, int32_t groups, const void* problem, const double* table,
                         int32_t items, const Pool* from, int64_t offset, int64_t count, const Pool* to,
                         uint64_t* nodes) {
    dispatch(dimension, form, groups, [&](auto kind) {
        BatchOf<decltype(kind)>::step(problem, table, items, *from, offset, count, *to, nodes);
    });
}
}
