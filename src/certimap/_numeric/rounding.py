"""Outward rounding for bounds computed in float64.

A sum of n terms evaluated in any order differs from the exact sum by at most gamma_n * sum |terms|, with
gamma_n = n u / (1 - n u) and u = 2^-53 (each product adds one more rounding). Bounds add that margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-53


def gamma(n: int) -> float:
    """Relative error bound of n successive roundings."""
    return n * UNIT / (1.0 - n * UNIT)


def raised(value: NDArray[np.float64], scale: NDArray[np.float64], roundings: int) -> Any:
    """`value` plus the error bound of `roundings` operations on numbers of total magnitude `scale`."""
    return value + 2.0 * gamma(roundings + 2) * scale
