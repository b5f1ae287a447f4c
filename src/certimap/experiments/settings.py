"""What a reproduction is asked to do, and what its parts look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certimap.experiments.mixture_tasks import Effort
from certimap.experiments.tasks import Task
from certimap.report.document import Section

QUICK_SECONDS = 2.0
FULL_SECONDS = 600.0  # what the paper gives branch and bound
STARTS = 400
TOLERANCE = 1e-3
QUICK_DRAWS, FULL_DRAWS = 1, 10


@dataclass(frozen=True)
class Settings:
    """What is reproduced, and with how much work.

    Attributes:
        output: folder of the report, the CSV files and, below it, the kept results.
        quick: two minutes instead of hours: short limits.
        seconds: limit of certimap's proof and of branch and bound, for one problem; None: 2 with `quick`, else 600.
        seed: of everything that is random.
        data_home: folder of scikit-learn's data sets; None: its own.
    """

    output: Path
    quick: bool = False
    seconds: float | None = None
    seed: int = 0
    data_home: Path | None = None

    @property
    def effort(self) -> Effort:
        """For one problem."""
        seconds = self.seconds or (QUICK_SECONDS if self.quick else FULL_SECONDS)
        return Effort(seconds, STARTS, TOLERANCE, self.seed)

    @property
    def draws(self) -> int:
        """How often documents are drawn for the perplexity."""
        return QUICK_DRAWS if self.quick else FULL_DRAWS


Results = Mapping[str, Any]  # by the names that a part gives its tasks


@dataclass(frozen=True)
class Part:
    """A table or figure.

    Attributes:
        tasks: what it needs, by names of its own.
        section: what it makes of their results.
        warm_ups: functions that compile what the tasks run.
    """

    tasks: Callable[[Settings], Mapping[str, Task]]
    section: Callable[[Settings, Results], Section]
    warm_ups: tuple[Callable[[], None], ...] = ()
