"""Column layout: which numeric columns represent the variables of a model, with their bounds and structural rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from certimap.model.domains import Categorical, Integer, Simplex
from certimap.model.expressions import Atom, Variable
from certimap.model.model import Model


@dataclass
class Columns:
    """Columns in order of declaration; integers of more than two values are one-hot coded only if something asks."""

    atoms: list[Atom | None] = field(default_factory=list)
    column_of: dict[Atom, int] = field(default_factory=dict)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    cost: list[list[float]] = field(default_factory=list)  # summands, added up at the end without rounding in between
    integer: list[bool] = field(default_factory=list)
    groups: list[np.ndarray] = field(default_factory=list)
    structure: list[tuple[dict[int, float], float, float]] = field(default_factory=list)  # (terms, lower, upper)

    def add_auxiliary(self, cost: float) -> int:
        """A 0/1 column that belongs to no variable."""
        self.atoms.append(None)
        self.lower.append(0.0)
        self.upper.append(1.0)
        self.cost.append([cost])
        self.integer.append(True)
        return len(self.atoms) - 1

    def _add(self, atom: Atom, whole: bool) -> int:
        low, high = atom.bounds()
        column = self.column_of[atom] = len(self.atoms)
        self.atoms.append(atom)
        self.lower.append(low)
        self.upper.append(high)
        self.cost.append([])
        self.integer.append(whole)
        return column

    def _add_group(self, variable: Variable) -> None:
        columns = [self._add(a, whole=True) for a in variable.indicators()]
        self.groups.append(np.array(columns, dtype=np.int64))
        self.structure.append((dict.fromkeys(columns, 1.0), 1.0, 1.0))

    def _add_variable(self, variable: Variable, coded: bool) -> None:
        domain = variable.domain
        if isinstance(domain, Categorical) or domain == Integer(0, 1):
            self._add_group(variable)
            return
        for atom in variable.coordinates():
            self._add(atom, whole=isinstance(domain, Integer))
        if isinstance(domain, Integer) and coded:
            self._add_group(variable)
            terms = {self.column_of[a]: -float(a.key or 0) for a in variable.indicators() if a.key}
            terms[self.column_of[variable.numeric()]] = 1.0
            self.structure.append((terms, 0.0, 0.0))  # value = sum of state * indicator
        if isinstance(domain, Simplex):
            parts = [self.column_of[a] for a in variable.coordinates()]
            self.structure.append((dict.fromkeys(parts, 1.0), 1.0, 1.0))


def lay_out(model: Model, used: Iterable[Atom]) -> Columns:
    """Columns for every variable; `used` are the atoms that factors and constraints mention."""
    coded = {a.variable for a in used if a.is_indicator}
    columns = Columns()
    for variable in model.variables.values():
        columns._add_variable(variable, variable in coded)
    return columns
