// One round of one node of a batch: nodes come from a pool and leave up to two nodes in fixed slots of another one, so
// that a batch may be processed in any order, by any number of threads, with the same result.
#pragma once
#include "mask_items.hpp"

namespace certimap {

// Nodes as columns: rows of doubles, rows of mask words, rows of marks (round and origin).
struct Pool {
    double* real;
    unsigned* word;
    int* mark;
    long long capacity;
};

constexpr int EMPTY_SLOT = -1, LEAF_SLOT = -2;  // in place of a round
constexpr int MARKS = 2;

template <class S>
struct PoolRows {
    static constexpr int HI = S::COORDINATES, HINT = 2 * S::COORDINATES, BOUND = HINT + 2 * S::D, SIZE = BOUND + 1;
    static constexpr int SUM = SIZE + 1, SQUARE = SUM + S::D, PRICE = SQUARE + S::ENTRIES, COUNT = PRICE + 1;
};

template <class S>
CM_FN void read_node(const Pool& pool, long long at, Node<S>& x, Inside<S>& in) {
    typedef PoolRows<S> R;
    const double* row = pool.real + at;
    const long long step = pool.capacity;
    for (int k = 0; k < S::COORDINATES; k++) x.lo[k] = row[k * step];
    for (int k = 0; k < S::COORDINATES; k++) x.hi[k] = row[(R::HI + k) * step];
    for (int k = 0; k < 2 * S::D; k++) x.hint[k] = row[(R::HINT + k) * step];
    x.bound = row[R::BOUND * step];
    in.size = row[R::SIZE * step];
    for (int k = 0; k < S::D; k++) in.sum[k] = row[(R::SUM + k) * step];
    for (int k = 0; k < S::ENTRIES; k++) in.square[k] = row[(R::SQUARE + k) * step];
    in.price = row[R::PRICE * step];
}

template <class S>
CM_FN void write_node(const Pool& pool, long long at, const Node<S>& x, const Inside<S>& in) {
    typedef PoolRows<S> R;
    double* row = pool.real + at;
    const long long step = pool.capacity;
    for (int k = 0; k < S::COORDINATES; k++) row[k * step] = x.lo[k];
    for (int k = 0; k < S::COORDINATES; k++) row[(R::HI + k) * step] = x.hi[k];
    for (int k = 0; k < 2 * S::D; k++) row[(R::HINT + k) * step] = x.hint[k];
    row[R::BOUND * step] = x.bound;
    row[R::SIZE * step] = in.size;
    for (int k = 0; k < S::D; k++) row[(R::SUM + k) * step] = in.sum[k];
    for (int k = 0; k < S::ENTRIES; k++) row[(R::SQUARE + k) * step] = in.square[k];
    row[R::PRICE * step] = in.price;
}

// A slot takes the masks as they are; a bit of `item` (if >= 0) is cleared from the free ones and set inside if told so.
template <class S>
CM_FN void write_slot(const Pool& pool, long long at, const Node<S>& x, const Inside<S>& in, const unsigned* inside,
                      const unsigned* free, int stride, int words, int round, int origin, int item, bool enters) {
    write_node(pool, at, x, in);
    for (int c = 0; c < words; c++) {
        const unsigned bit = item >= 0 && item / 32 == c ? 1u << (item & 31) : 0u;
        pool.word[c * pool.capacity + at] = inside[c * stride] | (enters ? bit : 0u);
        pool.word[(words + c) * pool.capacity + at] = free[c * stride] & ~bit;
    }
    pool.mark[at] = round;
    pool.mark[pool.capacity + at] = origin;
}

// Node `from[at]` leaves its successors in `to[slot]` and `to[slot + half]`. Returns 1 if this was its first round.
template <class S, bool GROUPS>
CM_FN int batch_step(const Problem<S>& P, const ItemTable<S, GROUPS>& table, const Pool& from, long long at,
                     const Pool& to, long long slot, long long half, unsigned* inside, unsigned* free, int stride) {
    Node<S> x;
    Inside<S> in;
    read_node(from, at, x, in);
    for (int c = 0; c < table.words; c++) {
        inside[c * stride] = from.word[c * from.capacity + at];
        free[c * stride] = from.word[(table.words + c) * from.capacity + at];
    }
    const int round = from.mark[at], origin = from.mark[from.capacity + at];
    MaskItems<S, GROUPS> items(table, inside, free, stride);
    Round<S, GROUPS, MaskItems<S, GROUPS>> step(P, items, in, x);
    const Verdict verdict = step.run(round);
    to.mark[slot] = to.mark[slot + half] = EMPTY_SLOT;
    if (verdict == AGAIN)
        write_slot(to, slot, x, in, inside, free, stride, table.words, round + 1, origin, -1, false);
    else if (verdict == LEAF)
        write_slot(to, slot, x, in, inside, free, stride, table.words, LEAF_SLOT, origin, -1, false);
    else if (verdict == BRANCH)
        for (int side = 0; side < 2; side++) {
            const int item = step.split.coordinate < 0 ? step.split.item : -1;
            Node<S> child = x;
            Inside<S> taken = in;
            cut_box(P, step.split, side, child);
            if (item >= 0 && side == 0) take_item(table.load(item), taken);
            write_slot(to, slot + side * half, child, taken, inside, free, stride, table.words, 0, origin, item,
                       side == 0);
        }
    return round == 0;
}

}  // namespace certimap
