// The data of a pricing problem and of one node of its tree.
#pragma once
#include "lanes.hpp"

namespace certimap {

// Coordinates of a box, in this order: size n, size multiplier, mean, conditional precisions tau, slopes b.
// Without slopes, precisions are diagonal in the axes of the box, and only the diagonals of matrices count.
template <int DIMENSION, bool WITH_SLOPES>
struct Shape {
    static constexpr int D = DIMENSION;
    static constexpr bool SLOPED = WITH_SLOPES;
    static constexpr int SLOPES = SLOPED ? D * (D - 1) / 2 : 0;
    static constexpr int ENTRIES = D * (D + 1) / 2;  // of a symmetric matrix, row by row
    static constexpr int SIZE = 0;
    static constexpr int SHIFT = 1;
    static constexpr int MEAN = 2;
    static constexpr int TAU = MEAN + D;
    static constexpr int SLOPE = TAU + D;
    static constexpr int COORDINATES = SLOPE + SLOPES;

    // Where the entries of a row that count begin: slopes, and entries of a matrix.
    CM_FN static constexpr int first(int row) { return SLOPED ? 0 : row; }
};

CM_FN constexpr int entry(int row, int column) {  // row >= column
    return row * (row + 1) / 2 + column;
}
CM_FN constexpr int slope(int row, int column) {  // row > column
    return row * (row - 1) / 2 + column;
}

// The precisions of a cluster: any, diagonal, a multiple of the identity, or the identity itself.
enum Form { FULL, DIAGONAL, SPHERICAL, KNOWN };

// Everything the nodes of one tree share. Sets worth at most `target` are of no interest; `slack` g shifts the
// rules that hold for maximisers so that they hold for every set within g of the maximum.
template <class S>
struct Problem {
    double a0, b0, v, Nt;
    double target;
    double slack;
    double rounding;       // bound on the relative error of any sum the node arithmetic takes
    double largest_price;  // max |lambda_i|
    double reach[S::D];    // max |y_d| over items and prior mean
    double size_min, size_max;  // of a set; -+1e300 where there is no limit
    double heaviest;            // max w_i
    int form;                   // without slopes any but FULL
    int items;
    int integral;               // sizes are whole numbers
    int conflicts;              // some items must not share a set
    int flips;                  // the single-flip rules apply (see classify.hpp)
    int max_rounds;

    // How many of the tau_d are free; where it is one, it stands for all.
    CM_FN int free_tau() const { return S::SLOPED || form == DIAGONAL ? S::D : form == SPHERICAL ? 1 : 0; }
};

// Sufficient statistics of the items inside, together with the prior: the pseudo-point m0 of weight b0 and W0 = I.
template <class S>
struct Inside {
    double size;  // without b0
    double sum[S::D];
    double square[S::ENTRIES];
    double price;
};

template <class S>
struct Node {
    double lo[S::COORDINATES], hi[S::COORDINATES];
    double hint[2 * S::D];  // thresholds of the mean contraction: a guess, any value is valid
    double bound;        // of c(S) - lambda(S) over the node
};

// One item, or LANES of them: a point, or, with GROUPS, a must-link group or weighted point given by its weight, mean
// and scatter factor (columns a_k with a_k[d] = 0 for d < k, stored as entry(d, k)). `free_to_join` is 1 unless a
// cannot-link to a free item may keep it out of a set that it would improve.
template <class S, bool GROUPS, class V>
struct Item {
    V y[S::D];
    V price;
    V weight;
    V free_to_join;
    V factor[GROUPS ? S::ENTRIES : 1];
};

enum Verdict { PRUNED, AGAIN, BRANCH, LEAF };
constexpr double OUT = -1.0, FREE = 0.0, IN = 1.0, CONTRADICTION = 2.0;

struct Split {
    int coordinate;  // -1: an item
    int item;        // position in the free list
    double cut;
};

}  // namespace certimap
