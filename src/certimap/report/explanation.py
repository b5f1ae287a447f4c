"""What a clustering's status proves and what it does not, in plain sentences."""

from __future__ import annotations

from certimap.report.text import number, percent
from certimap.results import Result, Status

_VALUE = "The constraints were checked point by point and the value of this clustering was computed in closed form."


def proved(result: Result) -> str:
    """What is known for certain."""
    value, bound = number(result.log_map), number(result.upper_bound)
    if result.status is Status.OPTIMAL:
        return (
            f"This clustering has the log-posterior {value}, and no clustering that satisfies the constraints has more "
            f"than {bound}: it is optimal up to a relative gap of {percent(result.relative_gap)}. {_VALUE}"
        )
    if result.status is Status.INFEASIBLE:
        return f"No clustering satisfies the constraints. These exclude each other: {'; '.join(result.conflict)}."
    if result.status is Status.UNKNOWN:
        return "Nothing: the search stopped before it found a clustering that satisfies the constraints."
    sentence = f"This clustering has the log-posterior {value}. {_VALUE}"
    if result.status is Status.LOCALLY_OPTIMAL:
        sentence += f" No clustering within this neighbourhood is better: {result.neighbourhood}."
    if result.gap < float("inf"):
        sentence += f" No clustering that satisfies the constraints has a log-posterior of more than {bound}."
    return sentence


def not_proved(result: Result) -> str:
    """What a reader might take for proved, and is not."""
    if result.status is Status.OPTIMAL:
        return (
            "That other clusterings are much worse: some may lie within the gap. And nothing here says that the model "
            "suits the data; the proof is about the posterior of this model."
        )
    if result.status is Status.INFEASIBLE:
        return "Which of the conflicting constraints is wrong."
    if result.status is Status.UNKNOWN:
        return "That there is no such clustering: a longer search may find one."
    if result.gap < float("inf"):
        return (
            f"That it is the best: a better one may exist, by at most {number(result.gap)} in log-posterior "
            f"({percent(result.relative_gap)})."
        )
    return "That it is the best: it is the best of many local searches, and how much better others may be is open."
