"""`compare`: every method on one data set, measured on one objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console

from certimap.baselines.scip import is_available, solver_packages
from certimap.experiments import prose
from certimap.experiments.comparison import (
    LOG_MAP_HEADS,
    agreement,
    bound_note,
    clusterings,
    distance_table,
    distances,
    figure,
    largest_remark,
    log_map_cells,
)
from certimap.experiments.data import DataSet
from certimap.experiments.figures import convergence_section, trace_section
from certimap.experiments.methods import LABEL, OURS
from certimap.experiments.mixture_tasks import (
    Effort,
    branch_and_bound_task,
    certimap_task,
    gibbs_task,
    records_of,
    variational_task,
)
from certimap.experiments.tasks import Record, run_tasks
from certimap.mixture.kernel.whitening import MAX_DIMENSION
from certimap.mixture.proof import MAX_ITEMS, provable
from certimap.report.document import DataFile, Document, Section, Table
from certimap.report.html import surroundings


@dataclass(frozen=True, eq=False)
class Comparison:
    """What every method found on a data set."""

    data: DataSet
    effort: Effort
    records: Sequence[Record]
    chain: Any  # the result of the Gibbs sampler's task, with its traces

    def table(self) -> Table:
        """One row for each method."""
        heads = [*LOG_MAP_HEADS, "seconds"]
        if self.data.labels is not None:
            heads += ["VoI to labels", "agreement"]
        shown = []
        for cells, record in zip(log_map_cells(self.records, {}), self.records, strict=True):
            ends = [figure(record.seconds, 2)]
            if self.data.labels is not None:
                ends += [figure(value) for value in self._against_labels(record)]
            shown.append((*cells, *ends))
        return Table("comparison", "log MAP of every method, in nats", tuple(heads), tuple(shown))

    def short_rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """What fits on a screen: heads and rows; a claimed bound is starred."""
        heads = ("", "log MAP", "bound", "gap", "seconds")
        labelled = self.data.labels is not None
        rows = []
        for record in self.records:
            star = "*" if record.bound is not None and not record.certified else ""
            cells = (
                figure(record.refitted),
                figure(record.bound) + star,
                figure(record.gap),
                figure(record.seconds, 1),
            )
            ends = tuple(figure(value) for value in self._against_labels(record)) if labelled else ()
            rows.append((record.method, *cells, *ends))
        return (*heads, "VoI", "agreement") if labelled else heads, rows

    def file(self) -> DataFile:
        """The numbers of the table."""
        columns = ("method", "returned", "refitted", "bound", "bound_is", "seconds", "voi_to_labels", "agreement")
        rows = tuple(
            (r.method, r.returned, r.refitted, r.bound, bound_note(r), r.seconds, *self._against_labels(r))
            for r in self.records
        )
        return DataFile("comparison.csv", columns, rows)

    def remarks(self) -> tuple[str, ...]:
        """What the numbers alone do not say."""
        said = [largest_remark({self.data.name: self.records})]
        if not provable(self.data.problem()):
            said.append(
                f"certimap's proofs reach {MAX_DIMENSION} features and {MAX_ITEMS:,} points: there is no bound here; "
                "--columns and --pca leave fewer features."
            )
        return tuple(said)

    def _against_labels(self, record: Record) -> tuple[float | None, float | None]:
        """Variation of information and agreement with the labels."""
        given = clusterings([record], self.data.labels)
        if len(given) < 2:
            return None, None
        return distances(given)[LABEL, record.method], agreement(*given.values())

    def document(self) -> Document:
        """The report."""
        given = clusterings(self.records, self.data.labels)
        apart = distances(given)
        name = self.data.name
        sections = (
            Section("methods", "Methods", (prose.ONE_OBJECTIVE,), (self.table(),), remarks=self.remarks()),
            Section(
                "distances",
                "Distances between the clusterings",
                (prose.DISTANCES,),
                (distance_table("distances-table", "Variation of information (VoI) in nats", given, apart, {}),),
            ),
            convergence_section({name: self.records}, self.effort.tol),
            trace_section({name: self.chain}, {name: self.data}),
        )
        n, d = self.data.points.shape
        prior = self.data.problem().prior
        facts = (
            ("data", f"{n} points, {d} features ({', '.join(self.data.feature_names)}), {self.data.preparation}"),
            ("clusters", f"at most {self.data.n_clusters}"),
            (
                "prior",
                f"a0 = {prior.weight_concentration:g}, b0 = {prior.mean_precision:g}, m0 = the mean, "
                f"nu0 = {prior.degrees_of_freedom:g}, inverse W0 = the covariance of the points",
            ),
            ("labels", self._labels()),
            ("limit", f"{self.effort.seconds:g} s each for certimap and for branch and bound"),
            ("starts", f"{self.effort.starts} of certimap's search"),
            ("tolerance", f"{100.0 * self.effort.tol:g} %"),
            *surroundings(self.effort.seed, *solver_packages()),
        )
        without_files = tuple(Section(s.id, s.title, s.paragraphs, s.parts, remarks=s.remarks) for s in sections)
        return Document(f"Methods compared on {name}", (), facts, without_files)

    def _labels(self) -> str:
        """How many classes there are, and for how many points they are unknown."""
        if self.data.labels is None:
            return "none"
        known = self.data.labels >= 0
        missing = f", unknown for {int((~known).sum())} of {len(known)} points" if not known.all() else ""
        return f"{len(np.unique(self.data.labels[known]))} classes that no method sees{missing}"


def compare(data: DataSet, effort: Effort, console: Console) -> Comparison:
    """Run variational Bayes, the Gibbs sampler, branch and bound if it is installed, and certimap."""
    tasks = {"variational": variational_task(data, effort), "gibbs": gibbs_task(data, effort)}
    if is_available():
        tasks["scip"] = branch_and_bound_task(data, effort)
    tasks[OURS] = certimap_task(data, effort)
    results = run_tasks(tasks.values(), console)
    records = [record for task in tasks.values() for record in records_of(results[task.key])]
    return Comparison(data, effort, records, results[tasks["gibbs"].key])
