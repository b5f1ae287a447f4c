"""The log table, compared in full with what it must print for given records."""

import io
import math

import pytest
from rich.console import Console

from certimap import IterationRecord, Model, Result, Status, StopReason, at_most, soft
from certimap.certificate import Certificate, LeafRecord
from certimap.report.log import LogTable, describe, status_line

INF = math.inf

RECORDS = [
    IterationRecord("H", 1, 1, 1, INF, -INF, 12, 0, 0.01),
    IterationRecord("H", 1, 1, 1, INF, 73.3432, 12, 0, 0.04),
    IterationRecord("C", 14, 1, 1, 74.912, 73.3432, 311, 0, 0.40),  # held back: too soon
    IterationRecord("C", 15, 1, 1, 74.5, 73.3432, 320, 0, 0.60),
    IterationRecord("B", 15, 3, 2, 74.4, 73.3433, 320, 0, 0.61),
    IterationRecord("C", 40, 9, 0, 73.3434, 73.3433, 400, 0, 0.70),  # held back, then shown as the last
]


def result(
    status: Status,
    log_map: float,
    upper_bound: float,
    stop: StopReason,
    certificate: Certificate | None = None,
    conflict: tuple[str, ...] = (),
    neighbourhood: str | None = None,
    local_bound: float | None = None,
) -> Result:
    return Result(None, log_map, upper_bound, status, stop, certificate, (), conflict, neighbourhood, local_bound)


def certificate(leaves: int) -> Certificate:
    none = RECORDS[:0]
    leaf = LeafRecord(0, True, none, none, none, none)  # type: ignore[arg-type]
    return Certificate("branch-and-cut", "f" * 64, 0.0, 0.0, 1e-6, "OPTIMAL", None, leaves=(leaf,) * leaves)


def printed(
    records: list[IterationRecord], final: Result, path: str | None = None, *, terminal: bool = False, **options: object
) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=60, color_system=None)
    with LogTable(console, heading="3 variables", gap=1e-4, seed=7, **options) as log:  # type: ignore[arg-type]
        for record in records:
            log(record)
        log.finish(final, path)
    return stream.getvalue()


def test_table() -> None:
    final = result(Status.OPTIMAL, 73.3433, 73.3434, StopReason.TOLERANCE, certificate(1))
    assert printed(RECORDS, final, "out.json") == (
        "certimap 0.1.0  3 variables | gap target 0.01 %  seed 7\n"
        "Src: H heuristic  C cut or column  B branching  E elimination\n"
        "Src   Iter   Nodes    Open |        Bound    Incumbent      Gap |    Cuts  Columns | Time(s)\n"
        " H       1       1       1 |          inf            -        - |      12        0 |    0.01\n"
        " H       1       1       1 |          inf      73.3432        - |      12        0 |    0.04\n"
        " C      15       1       1 |      74.5000      73.3432   1.58 % |     320        0 |    0.60\n"
        " B      15       3       2 |      74.4000      73.3433   1.44 % |     320        0 |    0.61\n"
        " C      40       9       0 |      73.3434      73.3433  1e-04 % |     400        0 |    0.70\n"
        "status      OPTIMAL  gap 1e-04 % <= 0.01 %   stopped: tolerance\n"
        "certificate branch-and-cut, 1 leaf   verify: certimap verify out.json\n"
    )


def test_timeless_table_and_repeated_header() -> None:
    records = [IterationRecord("C", i, i, 2, 1e7 - i, -2.5, i, 3, float(i)) for i in range(1, 23)]
    final = result(Status.BOUNDED, -2.5, 1e7, StopReason.NODES, certificate(2))
    lines = printed(records, final, show_time=False).splitlines()
    columns = "Src   Iter   Nodes    Open |        Bound    Incumbent      Gap |    Cuts  Columns"
    assert [i for i, line in enumerate(lines) if line == columns] == [2, 23]
    assert lines[3] == " C       1       1       2 |  1.00000e+07      -2.5000    large |       1        3"
    assert lines[-3].startswith(" C      22 ")
    assert lines[-2:] == [
        "status      BOUNDED  gap large > 0.01 %   stopped: node limit",
        "certificate branch-and-cut, 2 leaves",
    ]


def test_rows_are_throttled() -> None:
    records = [IterationRecord("C", i, 1, 1, 9.0, 1.0, 0, 0, i / 100) for i in range(301)]
    final = result(Status.BOUNDED, 1.0, 9.0, StopReason.TIME)
    rows = [line for line in printed(records, final).splitlines() if line.startswith(" C")]
    assert [float(row.split()[-1]) for row in rows] == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert len([r for r in printed(records, final, interval=0.0).splitlines() if r.startswith(" C")]) == 301


def test_without_a_record_the_header_still_stands() -> None:
    final = result(Status.INFEASIBLE, -INF, -INF, StopReason.EXHAUSTED, conflict=("fix(a, 1)", "a <= 0"))
    assert printed([], final) == (
        "certimap 0.1.0  3 variables | gap target 0.01 %  seed 7\n"
        "Src: H heuristic  C cut or column  B branching  E elimination\n"
        "status      INFEASIBLE  conflict: fix(a, 1); a <= 0   stopped: search space exhausted\n"
        "certificate none\n"
    )


def test_without_settings_the_header_is_short() -> None:
    stream = io.StringIO()
    LogTable(Console(file=stream))(RECORDS[0])
    assert stream.getvalue().splitlines()[0] == "certimap 0.1.0"


def test_terminal_shows_progress_and_the_same_rows() -> None:
    final = result(Status.OPTIMAL, 73.3433, 73.3434, StopReason.TOLERANCE)
    shown = printed(RECORDS, final, terminal=True)
    assert "\x1b" in shown
    for line in printed(RECORDS, final).splitlines():
        assert line in shown


@pytest.mark.parametrize(
    ("final", "line"),
    [
        (result(Status.UNKNOWN, -INF, 3.0, StopReason.TIME), "UNKNOWN  no feasible point found   stopped: time limit"),
        (
            result(Status.FEASIBLE, 1.0, INF, StopReason.MEMORY),
            "FEASIBLE  no finite upper bound   stopped: memory limit",
        ),
        (
            result(Status.FEASIBLE, 1.0, INF, StopReason.STALLED, local_bound=1.5),
            "FEASIBLE  no finite upper bound  local bound 1.5000, no proof   stopped: no progress possible",
        ),
        (
            result(Status.LOCALLY_OPTIMAL, 1.0, 2.0, StopReason.STALLED, neighbourhood="single flips"),
            "LOCALLY_OPTIMAL  gap 100.00 %  none better among single flips   stopped: no progress possible",
        ),
        (
            result(Status.INFEASIBLE, -INF, -INF, StopReason.EXHAUSTED),
            "INFEASIBLE  conflict: the domains alone   stopped: search space exhausted",
        ),
    ],
)
def test_status_lines(final: Result, line: str) -> None:
    assert status_line(final) == f"status      {line}"


def test_describe() -> None:
    model = Model()
    assert describe(model) == "no variables, 0 factors"
    z = model.binary("z", shape=3)
    assert describe(model) == "3 discrete variables, 0 factors"
    model.real("r", 0, 1)
    model.constrain(at_most(2, z))
    model.add(soft(at_most(1, z), weight=1.0))
    assert describe(model) == "3 discrete and 1 continuous variables, 0 factors, 1 constraint, 1 soft constraint"
