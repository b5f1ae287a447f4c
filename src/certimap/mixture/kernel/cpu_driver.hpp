// Waves of subtrees over threads. The result does not depend on the number of threads.
//
// Opening: the open node of largest bound is expanded, one at a time, until there are enough of them; the splits are
// recorded, so that the proof can be replayed box by box. Then waves: the WAVE open nodes of largest bound are searched
// depth first, each up to the same number of nodes, on any thread; what they leave open returns to the list in the
// order of the wave. Stops between waves are functions of the work alone; the clock and the interrupt flag
// may stop inside a wave, and only then the result depends on the machine.
#pragma once
#include <algorithm>
#include <atomic>
#include <thread>

#include "cpu_tree.hpp"

namespace certimap {

struct Limits {
    int64_t max_nodes;  // < 0: none
    double seconds;     // < 0: none
    const volatile int* interrupt;
    int32_t threads;
    int32_t opening;  // open nodes after the opening
    int32_t enumerate;
    int64_t max_found;
};

enum Status { CERTIFIED = 0, VIOLATED = 1, NODE_LIMIT = 2, TIME_LIMIT = 3, INTERRUPTED = 4, FOUND_LIMIT = 5 };

struct SplitRecord {
    int32_t parent, side;  // parent -1: a root
    int32_t coordinate;    // -1: item, -2: never split
    int32_t item;
    double cut;
    int64_t nodes;  // searched below, itself included if it was not split
};

template <class S>
struct Outcome {
    Status status = CERTIFIED;
    double bound = -1e300;  // of every set of the roots, valid at any stop
    int64_t nodes = 0;
    std::vector<OpenNode<S>> open;
    std::vector<Found> found;
    std::vector<SplitRecord> record;
};

template <class S, bool GROUPS>
class Driver {
  public:
    Driver(const Instance<S, GROUPS>& instance, const Limits& limits) : instance_(instance), limits_(limits) {
        stop_.interrupt = limits.interrupt;
        stop_.has_deadline = limits.seconds >= 0.0;
        stop_.deadline = std::chrono::steady_clock::now();
        if (stop_.has_deadline)
            stop_.deadline += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(limits.seconds));
    }

    Outcome<S> run(std::vector<OpenNode<S>> roots) {
        for (auto& root : roots) {
            root.origin = (int32_t)out_.record.size();
            root.serial = serial_++;
            out_.record.push_back({-1, 0, -2, -1, 0.0, 0});
            out_.open.push_back(root);
        }
        open_up();
        while (!out_.open.empty() && !halted()) wave();
        finish();
        return std::move(out_);
    }

  private:
    static constexpr int WAVE = 256;

    static bool larger(const OpenNode<S>& a, const OpenNode<S>& b) {
        return a.x.bound != b.x.bound ? a.x.bound > b.x.bound : a.serial < b.serial;
    }

    bool halted() {
        if (limits_.interrupt && *limits_.interrupt)
            out_.status = INTERRUPTED;
        else if (!limits_.enumerate && !out_.found.empty())
            out_.status = VIOLATED;
        else if ((int64_t)out_.found.size() >= limits_.max_found)
            out_.status = FOUND_LIMIT;
        else if (limits_.max_nodes >= 0 && out_.nodes >= limits_.max_nodes)
            out_.status = NODE_LIMIT;
        else if (stop_.raised())
            out_.status = TIME_LIMIT;
        else
            return false;
        return true;
    }

    void open_up() {
        Tree<S, GROUPS> tree(instance_);
        auto smaller = [](const OpenNode<S>& a, const OpenNode<S>& b) { return larger(b, a); };
        std::make_heap(out_.open.begin(), out_.open.end(), smaller);
        while (!out_.open.empty() && (int)out_.open.size() < limits_.opening && !halted()) {
            std::pop_heap(out_.open.begin(), out_.open.end(), smaller);
            const OpenNode<S> node = out_.open.back();
            out_.open.pop_back();
            TaskResult<S> result;
            Split split;
            if (tree.expand(node, result, split) == BRANCH) {
                SplitRecord& parent = out_.record[node.origin];
                parent.coordinate = split.coordinate;
                parent.item = split.coordinate < 0 ? split.item : -1;
                parent.cut = split.cut;
                for (int side = 0; side < 2; side++) {
                    result.open[side].origin = (int32_t)out_.record.size();
                    out_.record.push_back({node.origin, side, -2, -1, 0.0, 0});
                }
            }
            const size_t before = out_.open.size();
            commit(result, node.origin);
            for (size_t k = before; k < out_.open.size(); k++)
                std::push_heap(out_.open.begin(), out_.open.begin() + (ptrdiff_t)k + 1, smaller);
        }
    }

    void wave() {
        auto& open = out_.open;
        const int tasks = (int)std::min<size_t>(open.size(), WAVE);
        // A long list is worked off rather than refined further: larger pieces, deepest first.
        int64_t quantum = open.size() < 20000 ? 500 : open.size() < 200000 ? 400000 : INT64_MAX;
        if (limits_.max_nodes >= 0)
            quantum = std::min(quantum, std::max<int64_t>(1, (limits_.max_nodes - out_.nodes) / tasks));
        std::partial_sort(open.begin(), open.begin() + tasks, open.end(), larger);
        std::vector<OpenNode<S>> batch(std::make_move_iterator(open.begin()), std::make_move_iterator(open.begin() + tasks));
        open.erase(open.begin(), open.begin() + tasks);
        std::vector<TaskResult<S>> results(batch.size());
        std::atomic<size_t> next(0);
        auto work = [&]() {
            Tree<S, GROUPS> tree(instance_);
            for (size_t k = next++; k < batch.size(); k = next++)
                tree.search(batch[k], quantum, stop_, limits_.enumerate != 0, limits_.max_found, results[k]);
        };
        std::vector<std::thread> helpers;
        for (int k = 1; k < limits_.threads && k < tasks; k++) helpers.emplace_back(work);
        work();
        for (auto& helper : helpers) helper.join();
        for (size_t k = 0; k < batch.size(); k++) commit(results[k], batch[k].origin);
    }

    void commit(TaskResult<S>& result, int32_t origin) {
        out_.nodes += result.nodes;
        out_.record[origin].nodes += result.nodes;
        for (auto& node : result.open) {
            node.serial = serial_++;
            out_.open.push_back(std::move(node));
        }
        for (auto& found : result.found) {
            out_.bound = std::max(out_.bound, found.bound);
            out_.found.push_back(std::move(found));
        }
    }

    void finish() {
        std::sort(out_.open.begin(), out_.open.end(), larger);
        // Sets worth at most the target are dropped one by one too, not only with their box.
        out_.bound = std::max(out_.bound, instance_.problem.target);
        for (const auto& node : out_.open) out_.bound = std::max(out_.bound, node.x.bound);
        if (out_.open.empty() && out_.status != VIOLATED) {
            out_.status = !limits_.enumerate && !out_.found.empty() ? VIOLATED : CERTIFIED;
        }
    }

    const Instance<S, GROUPS>& instance_;
    Limits limits_;
    StopSignal stop_;
    Outcome<S> out_;
    int64_t serial_ = 0;
};

}  // namespace certimap
