"""What reports on one solved problem have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certimap.report.text import plural
from certimap.results import ConstraintCheck, Result


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerReport(ABC):
    """A solved problem.

    Attributes:
        title: heading of the report.
        result: the answer and what is proved about it.
        tolerance: relative gap that counts as optimal.
        seed: of the local search.
        preparation: what was done to the data before.
        certificate_path: where the proof was saved, if it was.
        agreement: comparisons of the answer with what the solve did not see, by name.
    """

    title: str
    result: Result
    tolerance: float
    seed: int
    preparation: str = "as given"
    certificate_path: str | None = None
    agreement: dict[str, float] = field(default_factory=dict)

    @property
    def labels(self) -> NDArray[np.int64]:
        """Cluster of every point, topic of every cell."""
        return np.asarray(self.answer["z"], dtype=np.int64)

    @property
    def answer(self) -> Mapping[str, Any]:
        """The values of the variables."""
        if self.result.assignment is None:
            raise ValueError(f"a report needs an answer, got the status {self.result.status.name}.")
        return self.result.assignment

    @abstractmethod
    def checks(self) -> tuple[ConstraintCheck, ...]:
        """Every constraint compared with the answer."""


def constraint_summary(checks: Sequence[ConstraintCheck]) -> str:
    """How many constraints hold, and what the violated soft ones cost."""
    hard = Counter(check.satisfied for check in checks if check.hard)
    soft = Counter(check.satisfied for check in checks if not check.hard)
    cost = sum(check.cost for check in checks)
    parts = [f"{hard[True]} of {plural(hard.total(), 'hard constraint')} satisfied"] if hard else []
    parts += [f"{soft[True]} of {plural(soft.total(), 'soft constraint')} satisfied, cost {cost:g}"] if soft else []
    return "; ".join(parts)
