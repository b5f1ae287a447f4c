"""What the status of an answer proves and what it does not, in plain sentences; `noun` is what the answer is."""

from __future__ import annotations

from certimap.report.text import number, percent
from certimap.results import Result, Status


def proved(result: Result, noun: str = "clustering") -> str:
    """What is known for certain."""
    value, bound = number(result.log_map), number(result.upper_bound)
    checked = f"The constraints were checked one by one and the value of this {noun} was computed in closed form."
    if result.status is Status.OPTIMAL:
        return (
            f"This {noun} has the log-posterior {value}, and no {noun} that satisfies the constraints has more "
            f"than {bound}: it is optimal up to a relative gap of {percent(result.relative_gap)}. {checked}"
        )
    if result.status is Status.INFEASIBLE:
        return f"No {noun} satisfies the constraints. These exclude each other: {'; '.join(result.conflict)}."
    if result.status is Status.UNKNOWN:
        return f"Nothing: the search stopped before it found a {noun} that satisfies the constraints."
    sentence = f"This {noun} has the log-posterior {value}. {checked}"
    if result.neighbourhood:
        sentence += f" No {noun} within this neighbourhood is better: {result.neighbourhood}."
    if result.gap < float("inf"):
        sentence += f" No {noun} that satisfies the constraints has a log-posterior of more than {bound}."
    return sentence


def not_proved(result: Result, noun: str = "clustering") -> str:
    """What a reader might take for proved, and is not."""
    if result.status is Status.OPTIMAL:
        return (
            f"That other {noun}s are much worse: some may lie within the gap. And nothing here says that the model "
            "suits the data; the proof is about the posterior of this model."
        )
    if result.status is Status.INFEASIBLE:
        return "Which of the conflicting constraints is wrong."
    if result.status is Status.UNKNOWN:
        return f"That there is no such {noun}: a longer search may find one."
    if result.gap < float("inf"):
        return (
            f"That it is the best: a better one may exist, by at most {number(result.gap)} in log-posterior "
            f"({percent(result.relative_gap)})."
        )
    return "That it is the best: it is the best of many local searches, and how much better others may be is open."
