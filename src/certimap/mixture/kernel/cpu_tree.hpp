// Depth-first search of one subtree on one thread, resumable: what is left open comes back as a list of nodes.
#pragma once
#include <chrono>
#include <memory>

#include "cpu_items.hpp"

namespace certimap {

template <class S>
struct OpenNode {
    Node<S> x;
    std::vector<uint64_t> inside, free;  // bit sets over items
    int32_t origin;                      // position in the record of the opening splits
    int64_t serial;
};

struct Found {
    double bound;  // closed form and its rounding
    std::vector<uint64_t> inside;
};

struct StopSignal {
    const volatile int* interrupt;
    std::chrono::steady_clock::time_point deadline;
    bool has_deadline;

    bool raised() const {
        return (interrupt && *interrupt) || (has_deadline && std::chrono::steady_clock::now() >= deadline);
    }
};

template <class S>
struct TaskResult {
    std::vector<OpenNode<S>> open;
    std::vector<Found> found;
    int64_t nodes = 0;
};

template <class S, bool GROUPS>
struct Instance {
    Problem<S> problem;
    Columns<S, GROUPS> all;
    int items;
    Inside<S> prior;  // statistics of the empty set
    Conflicts conflicts;
};

template <class S, bool GROUPS>
class Tree {
  public:

    explicit Tree(const Instance<S, GROUPS>& instance)
        : P(instance.problem), instance_(instance), words_((instance.items + 63) / 64), scratch_(instance.all.rows) {}

    int words() const { return words_; }

    // `keep_going`: a set above the target does not end the search.
    void search(const OpenNode<S>& start, int64_t quantum, const StopSignal& stop, bool keep_going, int64_t max_found,
                TaskResult<S>& result) {
        reset(start);
        int depth = 0;
        bool fresh = true;
        while (depth >= 0) {
            Frame& f = frame(depth);
            if (fresh) {
                if (result.nodes >= quantum || ((result.nodes & 255) == 0 && stop.raised())) {
                    f.pending = 2;
                    break;
                }
                const Verdict verdict = process(f, result);
                f.pending = verdict == BRANCH ? 0 : 3;
                if (verdict == LEAF && (!keep_going || (int64_t)result.found.size() >= max_found)) break;
            }
            if (f.pending <= 1) {
                child(f, f.pending, frame(depth + 1));
                f.pending = f.pending == 0 ? 1 : 3;
                depth++;
                fresh = true;
            } else {
                depth--;
                fresh = false;
            }
        }
        collect(depth, start.origin, result);
    }

    // One node only: the children it leaves.
    Verdict expand(const OpenNode<S>& start, TaskResult<S>& result, Split& split) {
        reset(start);
        Frame& f = frame(0);
        const Verdict verdict = process(f, result);
        f.pending = verdict == BRANCH ? 0 : 3;
        split = f.split;
        if (verdict == BRANCH && split.coordinate < 0) split.item = f.items.data().id[split.item];
        collect(0, start.origin, result);
        return verdict;
    }

  private:
    struct Frame {
        Node<S> x;
        Inside<S> in;
        FreeItems<S, GROUPS> items;
        Columns<S, GROUPS> columns;
        std::vector<uint64_t> bits;
        Split split;
        int pending;  // child to enter next, 2: the node itself is open, 3: done
    };

    Frame& frame(int depth) {
        while ((int)frames_.size() <= depth) {
            frames_.emplace_back(new Frame);
            Frame& f = *frames_.back();
            f.columns.allocate(instance_.items);
            f.bits.assign(words_, 0);
            f.items.bind(&f.columns, scratch_.data(), f.bits.data(), instance_.conflicts);
        }
        return *frames_[depth];
    }

    void reset(const OpenNode<S>& start) {
        Frame& f = frame(0);
        f.x = start.x;
        f.in = instance_.prior;
        f.bits = start.inside;
        f.items.bind(&f.columns, scratch_.data(), f.bits.data(), instance_.conflicts);
        int kept = 0;
        double weight = 0.0;
        for (int i = 0; i < instance_.items; i++) {
            const uint64_t bit = (uint64_t)1 << (i & 63);
            if (start.inside[i >> 6] & bit) take_inside(instance_.all, i, f.in);
            if (!(start.free[i >> 6] & bit)) continue;
            for (int k = 0; k < Columns<S, GROUPS>::COUNT; k++) f.columns.column(k)[kept] = instance_.all.column(k)[i];
            f.columns.id[kept++] = i;
            weight += GROUPS ? instance_.all.column(Columns<S, GROUPS>::WEIGHT)[i] : 1.0;
        }
        f.items.inherit(&f.columns, kept, weight);
    }

    Verdict process(Frame& f, TaskResult<S>& result) {
        result.nodes++;
        Round<S, GROUPS, FreeItems<S, GROUPS>> step(P, f.items, f.in, f.x);
        Verdict verdict = AGAIN;
        for (int round = 0; verdict == AGAIN; round++) verdict = step.run(round);
        f.split = step.split;
        if (verdict == LEAF) result.found.push_back({f.x.bound, f.bits});
        return verdict;
    }

    void child(const Frame& parent, int side, Frame& f) {
        f.x = parent.x;
        f.in = parent.in;
        f.bits = parent.bits;
        f.items.inherit(&parent.items.data(), parent.items.count(), parent.items.weight());
        if (parent.split.coordinate >= 0) {
            cut_box(P, parent.split, side, f.x);
            return;
        }
        const double chosen = side == 0 ? IN : OUT;
        const int item = parent.split.item, at = item / LANES * LANES;
        f.items.partition(
            [&](const Item<S, GROUPS, Pack>&, int slot) {
                Pack v = spread<Pack>(FREE);
                if (slot == at) v[item - at] = chosen;
                return v;
            },
            f.in);
    }

    void collect(int depth, int32_t origin, TaskResult<S>& result) {
        for (int k = depth; k >= 0; k--) {
            Frame& f = frame(k);
            if (f.pending == 2) push(f, origin, result);
            for (int side = f.pending; side <= 1; side++) {
                child(f, side, frame(k + 1));
                push(frame(k + 1), origin, result);
            }
        }
    }

    void push(const Frame& f, int32_t origin, TaskResult<S>& result) {
        OpenNode<S> node = {f.x, f.bits, std::vector<uint64_t>(words_, 0), origin, 0};
        for (int i = 0; i < f.items.count(); i++) {
            const int32_t id = f.items.data().id[i];
            node.free[id >> 6] |= (uint64_t)1 << (id & 63);
        }
        result.open.push_back(node);
    }

    const Problem<S>& P;
    const Instance<S, GROUPS>& instance_;
    int words_;
    std::vector<double> scratch_;
    std::vector<std::unique_ptr<Frame>> frames_;
};

}  // namespace certimap
