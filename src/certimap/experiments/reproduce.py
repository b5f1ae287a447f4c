"""`reproduce`: the paper's tables and figures, each from tasks whose results are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from certimap.baselines.scip import is_available, solver_packages
from certimap.experiments import prose
from certimap.experiments.mixture_parts import MIXTURE_PARTS
from certimap.experiments.settings import Part, Settings
from certimap.experiments.store import Store
from certimap.experiments.tasks import run_tasks
from certimap.experiments.topic_parts import TOPIC_PARTS
from certimap.report.document import DataFile, Document, document_html
from certimap.report.html import surroundings

ORDER = (
    "log-map",
    "voi",
    "must-link",
    "running-time",
    "topic-log-map",
    "top-words",
    "perplexity",
    "convergence",
    "traces",
    "graphs",
)
_ALL = {**MIXTURE_PARTS, **TOPIC_PARTS}
PARTS: dict[str, Part] = {name: _ALL[name] for name in ORDER}


def reproduce(settings: Settings, names: Sequence[str], console: Console) -> Path:
    """Run what is missing, write `report.html` and the CSV files, and return the report's path."""
    store = Store(settings.output / "results")
    needed = {name: PARTS[name].tasks(settings) for name in names}
    results = run_tasks((task for tasks in needed.values() for task in tasks.values()), console, store)
    sections = tuple(
        PARTS[name].section(settings, {key: results[task.key] for key, task in needed[name].items()}) for name in names
    )
    facts = _facts(settings, names)
    made = DataFile("run.csv", ("name", "value"), facts)
    for file in (made, *(file for section in sections for file in section.files)):
        (settings.output / file.name).write_text(file.text(), encoding="utf-8")
    report = settings.output / "report.html"
    lead = (*prose.LEAD, f"Limit of this run: {_limit(settings)}. {prose.LIMITS}")
    document = Document("The paper's tables and figures, reproduced", lead, facts, sections)
    report.write_text(document_html(document), encoding="utf-8")
    return report


def _facts(settings: Settings, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    facts = [("command", f"certimap reproduce {_options(settings, names)}".strip()), ("limit", _limit(settings))]
    if not is_available():
        facts.append(("branch and bound", "left out, since pyscipopt is not installed"))
    return (*facts, *surroundings(settings.seed, *solver_packages()))


def _limit(settings: Settings) -> str:
    return f"{settings.effort.seconds:g} s for each proof and for each branch and bound"


def _options(settings: Settings, names: Sequence[str]) -> str:
    """How to ask for the same numbers, wherever they are written to."""
    options = ["--quick"] if settings.quick else []
    options += [f"--table {name}" for name in names] if tuple(names) != ORDER else []
    options += [f"--seconds {settings.seconds:g}"] if settings.seconds else []
    return " ".join(options + ([f"--seed {settings.seed}"] if settings.seed else []))
