"""Word counts as the topic model takes them: whole numbers of tokens, dense or sparse."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from certimap.topics.objective import Cells


def checked_counts(counts: Any) -> csr_array:
    """The counts as sorted rows without zeros, shape (documents, words); ValueError names what is no count."""
    given: Any = counts if issparse(counts) else np.asarray(counts)
    if len(given.shape) != 2:
        raise ValueError(f"counts must have shape (documents, words), got {given.shape}.")
    matrix: Any = csr_array(given, copy=True)
    matrix.sum_duplicates()
    entries = matrix.data
    wrong = ~((entries >= 0) & (entries == np.floor(entries)) & (entries < 2**31))
    if wrong.any():
        raise ValueError(
            f"counts must be whole numbers of tokens >= 0, got {float(entries[wrong][0])!r}; the model assigns tokens "
            "to topics, so that weights such as tf-idf have no meaning in it."
        )
    matrix.eliminate_zeros()
    return csr_array((matrix.data.astype(np.int64), matrix.indices, matrix.indptr), shape=matrix.shape)


def cells_of(matrix: csr_array) -> Cells:
    """The nonzero counts, by document and then word."""
    n_documents, n_words = matrix.shape
    document = np.repeat(np.arange(n_documents, dtype=np.int64), np.diff(matrix.indptr))
    return Cells(document, matrix.indices.astype(np.int64), matrix.data, int(n_documents), int(n_words))
