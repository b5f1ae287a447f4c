"""The console that commands print to, and what they print alike."""

from collections.abc import Sequence

from rich.console import Console

from certimap.report.answer import AnswerReport, constraint_summary
from certimap.results import Result


def plain_console() -> Console:
    """Prints text as it is: file names and labels are not markup, and lines are not broken in pipes."""
    return Console(markup=False, highlight=False, soft_wrap=True)


def bounds_of(result: Result) -> list[str]:
    """A line for the value, a line for the bound."""
    return [f"log_map     {result.log_map:.10g}", f"upper bound {result.upper_bound:.10g}"]


def print_answer(console: Console, summary: AnswerReport, table: Sequence[str]) -> None:
    """Value and bound, a table of the answer, and how the constraints fared."""
    lines = [*bounds_of(summary.result), "", *table]
    checks = summary.checks()
    if checks:
        lines += ["", f"constraints {constraint_summary(checks)}"]
    lines += [f"{name}: {value:.4f}" for name, value in summary.agreement.items()]
    console.print("\n".join(lines))
