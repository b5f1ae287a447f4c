"""The model: variables, factors, constraints and blocks, and the closed-form value of a point."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from certimap.model.arrays import Array
from certimap.model.checks import is_finite, shown
from certimap.model.constraints import check_possible, no_constraint
from certimap.model.domains import Categorical, Domain, Integer, PositiveDefinite, Real, Simplex, is_integer
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, Constraint, LinearExpression, Variable
from certimap.model.factors import Factor
from certimap.model.soft import Soft


@dataclass(frozen=True)
class Block:
    """Factors that are bounded together; variables listed in `private` are maximised out inside the block."""

    factors: tuple[Factor, ...]
    private: tuple[Variable, ...] = ()

    def __init__(self, factors: Iterable[Factor], private: Iterable[Variable] = ()) -> None:
        object.__setattr__(self, "factors", tuple(factors))
        object.__setattr__(self, "private", tuple(private))
        if not self.factors:
            raise ModelError("a block needs at least one factor")


class Model:
    """A Bayesian factor graph under construction.

    maximise  sum of factors  over the variables' domains, subject to the hard constraints.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.shapes: dict[str, tuple[int, ...] | None] = {}  # declared name -> array shape, None for a single variable
        self.linear = LinearExpression({})
        self.factors: list[Factor] = []
        self.blocks: list[Block] = []
        self.constraints: dict[str, Constraint] = {}
        self.softs: list[Soft] = []
        self._added: set[Factor] = set()  # factors compare by identity
        self._grouped: set[Factor] = set()

    # ----------------------------------------------------------------------------------------------------- variables
    def categorical(self, name: str, states: int | Sequence[str], shape: int | tuple[int, ...] | None = None) -> Any:
        """One of `states` unordered values 0 .. states-1 (give a list of labels to name them)."""
        if is_integer(states):
            size, labels = int(cast(int, states)), None
        elif isinstance(states, Iterable) and not isinstance(states, str):
            labels = tuple(str(s) for s in states)
            size = len(labels)
        else:
            raise ModelError(f"categorical {name!r}: needs a number of states or a list of labels, got {states!r}")
        if size < 1:
            raise ModelError(f"categorical {name!r}: needs at least one state, got {states!r}")
        if labels and len(set(labels)) < size:
            raise ModelError(f"categorical {name!r}: labels must differ, got {states!r}")
        return self._declare(name, Categorical(size, labels), shape)

    def binary(self, name: str, shape: int | tuple[int, ...] | None = None) -> Any:
        """0 or 1."""
        return self._declare(name, Integer(0, 1), shape)

    def integer(
        self, name: str, lower: int | None = None, upper: int | None = None, shape: int | tuple[int, ...] | None = None
    ) -> Any:
        """A whole number in lower .. upper."""
        whole = all(is_integer(bound) and is_finite(int(cast(int, bound))) for bound in (lower, upper))
        if lower is None or upper is None or not whole or lower > upper:
            raise ModelError(
                f"integer {name!r}: bounds must be whole numbers with lower <= upper, "
                f"got {shown(lower)}, {shown(upper)}"
            )
        return self._declare(name, Integer(int(lower), int(upper)), shape)

    def real(
        self,
        name: str,
        lower: float | None = None,
        upper: float | None = None,
        shape: int | tuple[int, ...] | None = None,
    ) -> Any:
        """A real number in [lower, upper]. Bounds must be finite: no certified bound exists on an unbounded domain.

        Continuous parameters of many factors (means, precisions) are better projected out inside a block.
        """
        if lower is None or upper is None or not (is_finite(lower) and is_finite(upper) and lower <= upper):
            raise ModelError(
                f"real {name!r}: bounds must be finite with lower <= upper, got {shown(lower)}, {shown(upper)}"
            )
        return self._declare(name, Real(float(lower), float(upper)), shape)

    def simplex(self, name: str, size: int, lower: float = 0.0, shape: int | tuple[int, ...] | None = None) -> Any:
        """`size` numbers of at least `lower` that sum to one.

        Give a positive lower bound where log of a part is taken. High-dimensional simplexes are better projected out.
        """
        if not is_integer(size) or size < 1 or not (is_finite(lower) and 0.0 <= lower <= 1.0 / size):
            raise ModelError(f"simplex {name!r}: needs size >= 1 and 0 <= lower <= 1/size, got {size!r}, {lower!r}")
        return self._declare(name, Simplex(int(size), float(lower)), shape)

    def positive_definite(
        self, name: str, order: int, lower: float, upper: float, shape: int | tuple[int, ...] | None = None
    ) -> Any:
        """A symmetric matrix with all eigenvalues in [lower, upper], 0 < lower.

        Meant for small orders; precision matrices of many data are better projected out inside a block.
        """
        if not is_integer(order) or order < 1 or not (is_finite(lower) and is_finite(upper) and 0.0 < lower <= upper):
            raise ModelError(
                f"positive_definite {name!r}: needs order >= 1 and 0 < lower <= upper < inf, "
                f"got {order!r}, {lower!r}, {upper!r}"
            )
        return self._declare(name, PositiveDefinite(int(order), float(lower), float(upper)), shape)

    # ------------------------------------------------------------------------------------------ factors, constraints
    def add(self, *parts: Any, name: str = "") -> None:
        """Add factors, blocks, linear expressions or soft constraints; nested lists and arrays are flattened."""
        for part in parts:
            if isinstance(part, Factor):
                self._own(part.label(), (a.variable for a in part.atoms))
                if part in self._added:
                    raise ModelError(f"factor {part.label()} is already in the model")
                if name:
                    part.name = name
                self.factors.append(part)
                self._added.add(part)
            elif isinstance(part, Block):
                self._add_block(part)
            elif isinstance(part, LinearExpression):
                self._own(f"linear({part})", (a.variable for a in part.terms))
                self.linear = self.linear + part
            elif isinstance(part, Soft):
                self._own(part.constraint.name, part.constraint.variables())
                self.softs.append(part)
            elif isinstance(part, np.ndarray):
                self.add(*part.ravel().tolist(), name=name)
            elif isinstance(part, list | tuple):
                self.add(*part, name=name)
            else:
                raise ModelError(f"add takes factors, blocks, linear expressions and soft constraints, got {part!r}")

    def constrain(self, *constraints: Any) -> None:
        """Add hard constraints (soft ones go to the objective); nested lists and arrays are flattened."""
        for c in constraints:
            if isinstance(c, Constraint):
                self._own(c.name, c.variables())
                check_possible(c)
                name = _distinct(c.name, self.constraints)
                self.constraints[name] = c.named(name)
            elif isinstance(c, Soft):
                self.add(c)
            elif isinstance(c, np.ndarray):
                self.constrain(*c.ravel().tolist())
            elif isinstance(c, list | tuple):
                self.constrain(*c)
            else:
                raise no_constraint("constrain", c)

    # ---------------------------------------------------------------------------------------------------- evaluation
    def value(self, assignment: Mapping[str, Any]) -> float:
        """The objective at a point, in closed form; -inf where a factor or a hard constraint excludes it."""
        values = self.flatten(assignment)
        if any(not c.satisfied(values) for c in self.constraints.values()):
            return -math.inf
        return self.objective(values)

    def objective(self, values: Mapping[str, Any]) -> float:
        """Sum of all terms at `values` (variable name -> value), whether or not the hard constraints hold."""
        terms = [self.linear.constant]
        terms.extend(c * a.at(values[a.variable.name]) for a, c in self.linear.terms.items())
        terms.extend(f.value_at(values) for f in self.factors)
        terms.extend(0.0 if s.constraint.satisfied(values) else -s.weight for s in self.softs)
        if any(t == -math.inf for t in terms):
            return -math.inf
        return math.fsum(terms)

    def violated(self, assignment: Mapping[str, Any]) -> list[str]:
        """The names of the hard constraints that the point violates."""
        values = self.flatten(assignment)
        return [name for name, c in self.constraints.items() if not c.satisfied(values)]

    def factor_names(self) -> list[str]:
        """A name for every factor, distinct from each other and from those of the constraints."""
        names = dict.fromkeys(self.constraints)
        for f in self.factors:
            names[_distinct(f.label(), names)] = None
        return list(names)[len(self.constraints) :]

    def flatten(self, assignment: Mapping[str, Any]) -> dict[str, Any]:
        """Values per single variable, from an assignment that may hold whole arrays; checks every domain."""
        values: dict[str, Any] = {}
        for name, shape in self.shapes.items():
            if shape is None:
                if name not in assignment:
                    raise ModelError(f"the assignment has no value for {name!r}")
                values[name] = assignment[name]
            elif name in assignment:
                array = np.asarray(assignment[name])
                if array.shape[: len(shape)] != shape:
                    raise ModelError(f"the assignment of {name!r} has shape {array.shape}, declared is {shape}")
                values.update((f"{name}{_subscript(i)}", array[i]) for i in np.ndindex(shape))
            else:
                keys = [f"{name}{_subscript(i)}" for i in np.ndindex(shape)]
                missing = [k for k in keys if k not in assignment]
                if missing:
                    raise ModelError(f"the assignment has no value for {missing[0]!r}")
                values.update((k, assignment[k]) for k in keys)
        for name, value in values.items():
            self.variables[name].check(value)
        return values

    def pack(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The reverse of `flatten`: arrays under the names they were declared with."""
        packed: dict[str, Any] = {}
        for name, shape in self.shapes.items():
            if shape is None:
                packed[name] = values[name]
            else:
                entries = [values[f"{name}{_subscript(i)}"] for i in np.ndindex(shape)]
                packed[name] = np.array(entries).reshape(shape + np.shape(entries[0]) if entries else shape)
        return packed

    def fingerprint(self) -> str:
        """A hash of everything that defines the problem; certificates carry it."""
        digest = hashlib.sha256()

        def feed(*parts: Any) -> None:
            digest.update(json.dumps(parts, default=str, separators=(",", ":")).encode())

        for v in self.variables.values():
            feed("variable", v.name, repr(v.domain))
        feed("linear", self.linear.constant.hex(), _terms(self.linear.terms))
        for f in self.factors:
            feed("factor", f.kind, [str(a) for a in f.atoms], repr(f.signature))
            for key, array in f.arrays().items():
                feed(key, array.shape)
                digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        for name, c in self.constraints.items():
            feed("constraint", name, [(_terms(dict(r.terms)), r.lower.hex(), r.upper.hex()) for r in c.rows])
        for s in self.softs:
            rows = [(_terms(dict(r.terms)), r.lower.hex(), r.upper.hex()) for r in s.constraint.rows]
            feed("soft", s.weight.hex(), rows)
        return digest.hexdigest()

    # ------------------------------------------------------------------------------------------------------ internal
    def _declare(self, name: str, domain: Domain, shape: int | tuple[int, ...] | None) -> Any:
        if not isinstance(name, str) or not name:
            raise ModelError(f"a variable needs a non-empty name, got {name!r}")
        if name in self.shapes or name in self.variables:
            raise ModelError(f"the name {name!r} is already taken")
        if shape is None:
            self.shapes[name] = None
            self.variables[name] = variable = Variable(name, domain, self)
            return variable
        sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        if not all(map(is_integer, sizes)):
            raise ModelError(f"{name!r}: a shape is a whole number or a tuple of them, got {shape!r}")
        dims = tuple(int(d) for d in sizes)
        if any(d < 0 for d in dims):
            raise ModelError(f"{name!r}: a shape has no negative entries, got {shape!r}")
        array = np.empty(dims, dtype=object).view(Array)
        for i in np.ndindex(dims):
            if f"{name}{_subscript(i)}" in self.variables:
                raise ModelError(f"{name!r}: the name {name + _subscript(i)!r} of an entry is already taken")
        self.shapes[name] = dims
        for i in np.ndindex(dims):
            single = f"{name}{_subscript(i)}"
            self.variables[single] = array[i] = Variable(single, domain, self)
        return array

    def _own(self, what: str, variables: Iterable[Variable]) -> None:
        for v in variables:
            if v.owner is not self:
                raise ModelError(f"{what}: variable {v.name!r} does not belong to this model")

    def _add_block(self, block: Block) -> None:
        for f in block.factors:
            if f in self._grouped:
                raise ModelError(f"factor {f.label()} is already in another block")
            if f not in self._added:
                self.add(f)
        touched = {v for f in block.factors for v in f.variables()}
        for v in block.private:
            if v not in touched:
                raise ModelError(f"block: private variable {v.name} occurs in none of the block's factors")
        self.blocks.append(block)
        self._grouped.update(block.factors)


def _distinct(name: str, taken: Mapping[str, Any]) -> str:
    """The name itself, or with a number where it is taken."""
    numbered, copy = name, 2
    while numbered in taken:
        numbered, copy = f"{name} #{copy}", copy + 1
    return numbered


def _subscript(index: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, index)) + "]"


def _terms(terms: Mapping[Atom, float]) -> list[tuple[str, str]]:
    return [(str(a), c.hex()) for a, c in terms.items()]
