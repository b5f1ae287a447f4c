"""`reproduce`: the paper's tables and figures, each from tasks whose results are kept."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from certimap._version import __version__
from certimap.baselines.scip import is_available
from certimap.experiments import prose
from certimap.experiments.mixture_parts import MIXTURE_PARTS
from certimap.experiments.settings import Part, Settings
from certimap.experiments.store import Store
from certimap.experiments.tasks import run_tasks
from certimap.experiments.topic_parts import TOPIC_PARTS
from certimap.report.document import Document, Section, document_html
from certimap.report.html import PACKAGES

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
    for file in (file for section in sections for file in section.files):
        (settings.output / file.name).write_text(file.text(), encoding="utf-8")
    report = settings.output / "report.html"
    report.write_text(document_html(_document(settings, sections)), encoding="utf-8")
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
