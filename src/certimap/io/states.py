"""Files of states by name, one `variable = state` per line: evidence and solutions of networks with named states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from certimap.io.source import read_text
from certimap.model.domains import Categorical
from certimap.model.errors import ModelError
from certimap.model.expressions import Variable
from certimap.model.model import Model


def read_states(path: str | Path) -> dict[str, str]:
    """Variable names and their states; `#` starts a comment line."""
    states: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, state = (part.strip() for part in line.partition("="))
        if not (name and separator and state):
            raise ModelError(f"{path}: line {number}: expected 'variable = state', got {line.strip()!r}")
        if name in states:
            raise ModelError(f"{path}: line {number}: {name!r} is given twice")
        states[name] = state
    return states


def write_states(model: Model, assignment: Mapping[str, Any], path: str | Path) -> None:
    """Write every variable's state, by its label where it has one; `read_states` reads it back."""
    values = model.flatten(assignment)
    lines = [f"{name} = {state_label(v, values[name])}" for name, v in model.variables.items()]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def state_label(variable: Variable, value: Any) -> str:
    """How a value is written: the state's label, or the value itself."""
    domain = variable.domain
    return domain.labels[int(value)] if isinstance(domain, Categorical) and domain.labels else str(value)


def state_index(variable: Variable, state: str | int) -> int:
    """The state's number, from its label or from the number itself."""
    labels = variable.domain.labels if isinstance(variable.domain, Categorical) else None
    if not isinstance(state, str):
        return state
    if labels is None or state not in labels:
        raise ModelError(f"{variable.name} has no state {state!r}; its states are {', '.join(labels or ())}")
    return labels.index(state)
