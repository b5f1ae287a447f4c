"""Sets of items as bits, and lists of boxes as the C structures that borrow them."""

import numpy as np
from numpy.typing import NDArray

from certimap.mixture.kernel.boxes import BoxList
from certimap.mixture.kernel.library import OpenList


def pack_masks(mask: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of items as words of 64 bits."""
    padded = np.zeros((len(mask), 64 * ((mask.shape[1] + 63) // 64)), dtype=np.bool_)
    padded[:, : mask.shape[1]] = mask
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack_words(words: NDArray[np.generic], items: int) -> NDArray[np.bool_]:
    """Rows of items from rows of words of 32 or 64 bits."""
    little = np.ascontiguousarray(words.astype(words.dtype.newbyteorder("<")))
    return np.unpackbits(little.view(np.uint8), axis=1, bitorder="little")[:, :items].astype(np.bool_)


def open_list(boxes: BoxList) -> tuple[OpenList, tuple[NDArray[np.generic], ...]]:
    """The C structure of boxes, and the arrays that it borrows."""
    arrays = (
        np.ascontiguousarray(boxes.lo),
        np.ascontiguousarray(boxes.hi),
        np.ascontiguousarray(boxes.bound),
        pack_masks(boxes.inside),
        pack_masks(boxes.free),
        np.ascontiguousarray(boxes.origin, dtype=np.int32),
    )
    return OpenList(len(boxes), *(a.ctypes.data for a in arrays)), arrays
