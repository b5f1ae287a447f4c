"""Arrays of variables and expressions: numpy arrays whose comparisons give arrays of constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certimap.model.expressions import as_expression

_CONSTRAINTS: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.less_equal: lambda a, b: as_expression(a) <= b,
    np.greater_equal: lambda a, b: as_expression(a) >= b,
    np.equal: lambda a, b: as_expression(a) == b,
}


class Array(np.ndarray[Any, np.dtype[np.object_]]):
    """Behaves like any numpy array of objects, except that `<=`, `>=` and `==` make constraints element by element."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [x.view(np.ndarray) if isinstance(x, Array) else x for x in inputs]
        if method == "__call__" and ufunc in _CONSTRAINTS:
            outcome = np.frompyfunc(_CONSTRAINTS[ufunc], 2, 1)(*plain)
        else:
            outcome = getattr(ufunc, method)(*plain, **options)
        return outcome.view(Array) if isinstance(outcome, np.ndarray) and outcome.dtype == object else outcome
