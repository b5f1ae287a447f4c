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

template <int D, bool GROUPS>
struct Batch {
    typedef ItemTable<D, GROUPS> Table;

    static BatchShape shape() { return {(int32_t)sizeof(Problem<D>), PoolRows<D>::COUNT, Table::RECORD}; }

    static void describe(const PricingInput& in, void* problem, double* table) {
        const Problem<D> P = read_problem<D>(in);
        std::memcpy(problem, &P, sizeof P);
        for (int i = 0; i < in.items; i++) {
            double* record = table + (size_t)i * Table::RECORD;
            for (int d = 0; d < D; d++) record[d] = in.y[(size_t)d * in.items + i];
            record[Table::PRICE] = in.price[i];
            if (!GROUPS) continue;
            record[Table::WEIGHT] = in.weight[i];
            for (int k = 0; k < Shape<D>::ENTRIES; k++) record[Table::FACTOR + k] = in.factor[(size_t)k * in.items + i];
        }
    }

    static void load(const PricingInput& in, const OpenList& roots, const double* data, const Pool& pool) {
        const Table table = {data, (in.items + 31) / 32};
        const int words = (in.items + 63) / 64;
        for (int64_t r = 0; r < roots.count; r++) {
            Inside<D> inside = read_prior<D>(in);
            for (int i = 0; i < in.items; i++)
                if (roots.inside[r * words + i / 64] >> (i & 63) & 1) take_item(table.load(i), inside);
            write_node(pool, r, read_root<D>(roots, r), inside);
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
            if (batch_step(*(const Problem<D>*)problem, table, from, offset + k, to, k, to.capacity / 2, inside.data(),
                           free.data(), 1))
                nodes[from.mark[from.capacity + offset + k]]++;
    }
};

template <class F>
auto dispatch(int dimension, int groups, F f) {
    switch (2 * dimension + (groups ? 1 : 0)) {
        case 2: return f(Batch<1, false>());
        case 3: return f(Batch<1, true>());
        case 4: return f(Batch<2, false>());
        case 5: return f(Batch<2, true>());
        case 6: return f(Batch<3, false>());
        case 7: return f(Batch<3, true>());
        case 8: return f(Batch<4, false>());
        case 9: return f(Batch<4, true>());
        case 10: return f(Batch<5, false>());
        case 11: return f(Batch<5, true>());
        case 12: return f(Batch<6, false>());
        default: return f(Batch<6, true>());
    }
}

}  // namespace

extern "C" {

void certimap_batch_shape(int32_t dimension, int32_t groups, BatchShape* out) {
    *out = dispatch(dimension, groups, [](auto b) { return b.shape(); });
}
void certimap_batch_describe(const PricingInput* in, void* problem, double* table) {
    dispatch(in->dimension, in->groups, [&](auto b) { b.describe(*in, problem, table); });
}
void certimap_batch_load(const PricingInput* in, const OpenList* roots, const double* table, const Pool* pool) {
    dispatch(in->dimension, in->groups, [&](auto b) { b.load(*in, *roots, table, *pool); });
}
void certimap_batch_step(int32_t dimension, int32_t groups, const void* problem, const double* table, int32_t items,
                         const Pool* from, int64_t offset, int64_t count, const Pool* to, uint64_t* nodes) {
    dispatch(dimension, groups, [&](auto b) { b.step(problem, table, items, *from, offset, count, *to, nodes); });
}
}
