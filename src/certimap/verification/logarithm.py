"""Natural logarithms of arrays with a proved error, from the four operations alone.

x = 2^k f with f in [sqrt(1/2), sqrt(2)], and log f = 2 atanh(s), s = (f-1)/(f+1), |s| < 0.1716, is the sum of
2 s^(2j+1)/(2j+1) for j = 0 .. 10 with a remainder below 1e-18 |s|. f-1 is exact; each coefficient is rounded once, so
that the sum has a relative error below 10 units (2^-53) of |log f| < 0.35, and k log 2 and the last sum add 3 units of
|k| log 2 <= |log x| + 0.35.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certimap.verification.intervals import UNIT

Floats = NDArray[np.float64]

_LOG_2 = 0.6931471805599453  # correctly rounded
_ODD = [1.0 / (2 * j + 1) for j in range(11)]


def log_error(values: Floats) -> Floats:
    """Bound on the error of `logarithm`, given its results."""
    return 10.0 * UNIT * (1.0 + np.abs(values))


def logarithm(x: Floats) -> Floats:
    """log x of positive numbers, within `log_error` of the exact value."""
    f, k = np.frexp(x)
    small = f < 0.7071067811865476
    f = np.where(small, 2.0 * f, f)
    exponent = k - small
    s = (f - 1.0) / (f + 1.0)
    z = s * s
    series = np.full_like(z, _ODD[-1])
    for coefficient in reversed(_ODD[:-1]):
        series = series * z + coefficient
    return np.asarray(exponent * _LOG_2 + 2.0 * s * series)
