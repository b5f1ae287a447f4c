"""The parts of the reproduction that are about the mixture, and the figures of both models."""

from __future__ import annotations

from certimap.baselines.scip import is_available
from certimap.experiments.data import DATA_SETS, DataSet, iris
from certimap.experiments.figures import convergence_section, graph_section, trace_section
from certimap.experiments.mixture_sections import log_map_section, must_link_section, running_time_section, voi_section
from certimap.experiments.mixture_tasks import (
    branch_and_bound_task,
    certimap_task,
    gibbs_task,
    records_of,
    variational_task,
    warm_up,
)
from certimap.experiments.printed import MUST_LINK
from certimap.experiments.settings import TOLERANCE, Part, Results, Settings
from certimap.experiments.tasks import Record, Task
from certimap.experiments.topic_parts import topic_method_tasks
from certimap.experiments.topic_tasks import warm_up as topic_warm_up
from certimap.report.document import Section


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
    return log_map_section(_records(results), _data())


def _must_link(settings: Settings, results: Results) -> Section:
    return must_link_section({int(links): records for links, records in _records(results).items()})


def _running_time(settings: Settings, results: Results) -> Section:
    return running_time_section(_records(results))


def _trace_tasks(settings: Settings) -> dict[str, Task]:
    return {name: gibbs_task(data, settings.effort) for name, data in _data().items()}


def _traces(settings: Settings, results: Results) -> Section:
    return trace_section(results, _data())


def _convergence_tasks(settings: Settings) -> dict[str, Task]:
    plane = iris(2)  # small enough for a proof within seconds
    small = {f"{plane.name}/certimap": certimap_task(plane, settings.effort)}
    if is_available():
        small[f"{plane.name}/scip"] = branch_and_bound_task(plane, settings.effort)
    topics = {f"topics/{method}": task for method, task in topic_method_tasks(settings).items()}
    return {**_method_tasks(settings), **topics, **small}


def _convergence(settings: Settings, results: Results) -> Section:
    return convergence_section(_records(results), TOLERANCE)


def _graphs(settings: Settings, results: Results) -> Section:
    return graph_section()


MIXTURE_PARTS: dict[str, Part] = {
    "log-map": Part(_method_tasks, _log_map, (warm_up,)),
    "voi": Part(_method_tasks, _voi, (warm_up,)),
    "must-link": Part(_link_tasks, _must_link, (warm_up,)),
    "running-time": Part(_method_tasks, _running_time, (warm_up,)),
    "convergence": Part(_convergence_tasks, _convergence, (warm_up, topic_warm_up)),
    "traces": Part(_trace_tasks, _traces),
    "graphs": Part(lambda settings: {}, _graphs),
}
