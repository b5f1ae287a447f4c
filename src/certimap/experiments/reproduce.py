"""`reproduce`: the paper's tables and figures, each from tasks whose results are kept."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from certimap._version import __version__
from certimap.baselines.scip import is_available
from certimap.experiments import prose
from certimap.experiments.corpus import CorpusUnavailableError
from certimap.experiments.data import DATA_SETS, DataSet
from certimap.experiments.figures import convergence_section, graph_section, trace_section
from certimap.experiments.mixture_sections import log_map_section, must_link_section, running_time_section, voi_section
from certimap.experiments.mixture_tasks import (
    Effort,
    branch_and_bound_task,
    certimap_task,
    gibbs_task,
    records_of,
    variational_task,
)
from certimap.experiments.printed import MUST_LINK
from certimap.experiments.store import Store
from certimap.experiments.tasks import Record, Task, run_tasks
from certimap.report.document import Document, Section, document_html
from certimap.report.html import PACKAGES

QUICK_SECONDS = 4.0
FULL_SECONDS = 600.0  # what the paper gives branch and bound
STARTS = 400
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Settings:
    """What is reproduced, and with how much work.

    Attributes:
        output: folder of the report, the CSV files and, below it, the kept results.
        quick: two minutes instead of hours: short limits.
        seconds: limit of certimap's proof and of branch and bound, for one problem; None: 4 with `quick`, else 600.
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
        """For one mixture problem."""
        seconds = self.seconds or (QUICK_SECONDS if self.quick else FULL_SECONDS)
        return Effort(seconds, STARTS, TOLERANCE, self.seed)


Results = Mapping[str, Any]  # by the names that a part gives its tasks


@dataclass(frozen=True)
class Part:
    """A table or figure: the tasks it needs, by names of its own, and the section it makes of their results."""

    tasks: Callable[[Settings], Mapping[str, Task]]
    section: Callable[[Settings, Results], Section]


def reproduce(settings: Settings, names: Sequence[str], console: Console) -> Path:
    """Run what is missing, write `report.html` and the CSV files, and return the report's path."""
    store = Store(settings.output / "results")
    needed: dict[str, Mapping[str, Task]] = {}
    skipped: dict[str, str] = {}
    for name in names:
        try:
            needed[name] = PARTS[name].tasks(settings)
        except CorpusUnavailableError as error:
            skipped[name] = f"Left out: {error}"
            console.print(f"left out    {name}: {error}")
    results = run_tasks((task for tasks in needed.values() for task in tasks.values()), console, store)
    sections = []
    for name in names:
        if name in skipped:
            sections.append(Section(name, name, paragraphs=(skipped[name],)))
            continue
        own = {key: results[task.key] for key, task in needed[name].items()}
        sections.append(PARTS[name].section(settings, own))
    for section in sections:
        for file in section.files:
            (settings.output / file.name).write_text(file.text(), encoding="utf-8")
    report = settings.output / "report.html"
    report.write_text(document_html(_document(settings, tuple(sections))), encoding="utf-8")
    return report


def _document(settings: Settings, sections: tuple[Section, ...]) -> Document:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    solver = f"pyscipopt {version('pyscipopt')}" if is_available() else "pyscipopt is missing: no branch and bound"
    facts = (
        ("run", "quick" if settings.quick else "full"),
        ("limit", f"{settings.effort.seconds:g} s for each proof and for each branch and bound"),
        ("seed", str(settings.seed)),
        ("certimap", __version__),
        ("Python", platform.python_version()),
        ("packages", f"{packages}; {solver}"),
    )
    return Document("The paper's tables and figures, reproduced", prose.LEAD, facts, sections)


# -------------------------------------------------------------------------------------------------- the mixture
def _data() -> dict[str, DataSet]:
    return {name: load() for name, load in DATA_SETS.items()}


def _method_tasks(settings: Settings) -> dict[str, Task]:
    """Every method on every data set, by "data/method"."""
    tasks: dict[str, Task] = {}
    for name, data in _data().items():
        tasks[f"{name}/variational"] = variational_task(data, settings.effort)
        tasks[f"{name}/gibbs"] = gibbs_task(data, settings.effort)
        if is_available():
            tasks[f"{name}/scip"] = branch_and_bound_task(data, settings.effort)
        tasks[f"{name}/certimap"] = certimap_task(data, settings.effort)
    return tasks


def _records(results: Results) -> dict[str, list[Record]]:
    """Records of `_method_tasks` by data set, in the order of the tasks."""
    found: dict[str, list[Record]] = {}
    for key, result in results.items():
        found.setdefault(key.partition("/")[0], []).extend(records_of(result))
    return found


def _link_tasks(settings: Settings) -> dict[str, Task]:
    data, tasks = DATA_SETS["iris"](), {}
    for links in MUST_LINK:
        tasks[f"{links}/certimap"] = certimap_task(data, settings.effort, links)
        if is_available():
            tasks[f"{links}/scip"] = branch_and_bound_task(data, settings.effort, links)
    return tasks


def _voi(settings: Settings, results: Results) -> Section:
    return voi_section(_records(results), {name: data.labels for name, data in _data().items()})


def _log_map(settings: Settings, results: Results) -> Section:
    return log_map_section(_records(results))


def _must_link(settings: Settings, results: Results) -> Section:
    return must_link_section({int(links): records for links, records in _records(results).items()})


def _running_time(settings: Settings, results: Results) -> Section:
    return running_time_section(_records(results))


def _trace_tasks(settings: Settings) -> dict[str, Task]:
    return {name: gibbs_task(data, settings.effort) for name, data in _data().items()}


def _traces(settings: Settings, results: Results) -> Section:
    return trace_section(results, _data())


def _convergence(settings: Settings, results: Results) -> Section:
    return convergence_section(_records(results), TOLERANCE)


def _graphs(settings: Settings, results: Results) -> Section:
    return graph_section()


PARTS: dict[str, Part] = {
    "log-map": Part(_method_tasks, _log_map),
    "voi": Part(_method_tasks, _voi),
    "must-link": Part(_link_tasks, _must_link),
    "running-time": Part(_method_tasks, _running_time),
    "convergence": Part(_method_tasks, _convergence),
    "traces": Part(_trace_tasks, _traces),
    "graphs": Part(lambda settings: {}, _graphs),
}
