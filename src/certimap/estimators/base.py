"""What all estimators have in common: checked parameters, the seed, the result as attributes, the gap badge."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from certimap.report.badge import gap_badge
from certimap.results import Result

LARGEST_SEED = 2**31 - 1


class CertifiedEstimator(BaseEstimator):
    """A scikit-learn estimator whose fit is a solve; subclasses call `_store_result` at the end of `fit`."""

    random_state: int | np.random.RandomState | None

    def _check_integers(self, *names: str, optional: tuple[str, ...] = ()) -> None:
        """The parameters are integers >= 1; the optional ones may be None."""
        for name in (*names, *optional):
            value = getattr(self, name)
            if name in optional and value is None:
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                allowed = "an integer >= 1" + (" or None" if name in optional else "")
                raise ValueError(f"{name} must be {allowed}, got {value!r}.")

    def _check_numbers(self, *names: str, optional: tuple[str, ...] = ()) -> None:
        """The parameters are real numbers; the optional ones may be None."""
        for name in (*names, *optional):
            value = getattr(self, name)
            if name in optional and value is None:
                continue
            if not isinstance(value, Real) or isinstance(value, bool):
                raise ValueError(f"{name} must be a number{' or None' if name in optional else ''}, got {value!r}.")

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral) and self.random_state >= 0:
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _store_result(self, result: Result) -> None:
        self.log_map_ = result.log_map
        self.upper_bound_ = result.upper_bound
        self.gap_ = result.gap
        self.status_ = result.status
        self.stop_reason_ = result.stop_reason
        self.certificate_ = result.certificate
        self.history_ = result.history
        self.result_ = result

    # ------------------------------------------------------------------------------------------------------ display
    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_  # no attribute where scikit-learn is set to display text
        return lambda: self._badge() + diagram()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._badge() + bundle["text/html"]
        return bundle

    def _badge(self) -> str:
        return gap_badge(self.result_) if hasattr(self, "result_") else ""
