// The batch on a GPU: one thread per node, item table and masks in shared memory. Compiled at run time by NVRTC.
#include "batch.hpp"

namespace certimap {

constexpr int THREADS = 128;

template <class S, bool GROUPS>
__global__ void __launch_bounds__(THREADS, 4)
    batch(const Problem<S>* problem, const double* data, int items, int words, double* from_real, unsigned* from_word,
          int* from_mark, long long from_capacity, long long offset, long long count, double* to_real,
          unsigned* to_word, int* to_mark, long long to_capacity, unsigned long long* nodes) {
    extern __shared__ double shared[];
    const int size = items * ItemTable<S, GROUPS>::RECORD;
    unsigned* masks = (unsigned*)(shared + size);
    for (int k = threadIdx.x; k < size; k += THREADS) shared[k] = data[k];
    __syncthreads();
    const ItemTable<S, GROUPS> table = {shared, words};
    const Pool from = {from_real, from_word, from_mark, from_capacity};
    const Pool to = {to_real, to_word, to_mark, to_capacity};
    unsigned* inside = masks + threadIdx.x;
    unsigned* free = inside + words * THREADS;
    const long long step = (long long)gridDim.x * THREADS;
    for (long long k = (long long)blockIdx.x * THREADS + threadIdx.x; k < count; k += step) {
        const long long at = offset + k;
        if (batch_step(*problem, table, from, at, to, k, to_capacity / 2, inside, free, THREADS))
            atomicAdd(&nodes[from.mark[from_capacity + at]], 1ull);
    }
}

}  // namespace certimap
