"""The batch on an NVIDIA GPU through CuPy: the headers of this folder, compiled at run time for the card found."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from certimap.mixture.kernel.batch import Batch

DeviceChoice: TypeAlias = Literal["auto", "cpu", "gpu"]

THREADS = 128  # as in gpu.cu
BLOCKS_PER_PROCESSOR = 32


class GpuDevice:
    """One CUDA device; ImportError without CuPy, RuntimeError without a usable card."""

    def __init__(self) -> None:
        import cupy

        try:
            if not cupy.cuda.runtime.getDeviceCount():
                raise RuntimeError("no CUDA device was found")
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise RuntimeError(f"no CUDA device was found: {error}") from None
        self.arrays = cupy
        self._kernels: dict[tuple[int, bool, bool], Any] = {}

    def free_bytes(self) -> int:
        # What the last problem left in CuPy's pool serves the next one, at no cost if the sizes are equal.
        cached = self.arrays.get_default_memory_pool().free_bytes()
        return int(self.arrays.cuda.runtime.memGetInfo()[0]) + int(cached)

    def launch(self, batch: Batch, offset: int, count: int) -> None:
        kernel = self._kernel(batch.dimension, batch.form, batch.groups)
        shared = 8 * batch.table.size + 8 * batch.words * THREADS
        kernel.max_dynamic_shared_size_bytes = shared
        processors = self.arrays.cuda.Device().attributes["MultiProcessorCount"]
        blocks = min((count + THREADS - 1) // THREADS, processors * BLOCKS_PER_PROCESSOR)
        pool, slots = batch.pool, batch.slots
        arguments = (
            *(batch.problem, batch.table, np.int32(batch.items), np.int32(batch.words)),
            *(*pool.parts(), np.int64(pool.capacity), np.int64(offset), np.int64(count)),
            *(*slots.parts(), np.int64(slots.capacity), batch.nodes),
        )
        kernel((blocks,), (THREADS,), arguments, shared_mem=shared)

    def to_host(self, array: Any) -> NDArray[Any]:
        return np.asarray(self.arrays.asnumpy(array))

    def _kernel(self, dimension: int, form: int, groups: int) -> Any:
        key = (dimension, form == 0, bool(groups))
        if key not in self._kernels:
            sloped, grouped = (str(flag).lower() for flag in key[1:])
            name = f"certimap::batch<certimap::Shape<{dimension}, {sloped}>, {grouped}>"
            folder = Path(__file__).parent
            # No fused multiply-add: the CPU build has to give the same bits.
            module = self.arrays.RawModule(
                code=(folder / "gpu.cu").read_text(),
                options=("-std=c++17", "--fmad=false", f"-I{folder}"),
                name_expressions=(name,),
            )
            self._kernels[key] = module.get_function(name)
        return self._kernels[key]


@cache
def find_gpu() -> GpuDevice | None:
    """The GPU, if this machine has one that CuPy can use."""
    try:
        return GpuDevice()
    except (ImportError, RuntimeError):
        return None


def device_finder(choice: DeviceChoice) -> Callable[[], GpuDevice | None] | None:
    """How to find the device that was chosen; ValueError if it is none of the choices or not there."""
    if choice not in get_args(DeviceChoice):
        raise ValueError(f"device must be one of {', '.join(get_args(DeviceChoice))}, got {choice!r}.")
    if choice == "gpu":
        try:
            GpuDevice()
        except (ImportError, RuntimeError) as error:
            raise ValueError(
                f"device must be 'auto' or 'cpu' on this machine, got 'gpu': {error}. "
                "The extra certimap[gpu] installs CuPy."
            ) from None
    return None if choice == "cpu" else find_gpu
