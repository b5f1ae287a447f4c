"""Concave factors written as CVXPY expressions. CVXPY is an optional extra: it is imported when `concave` is called."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certimap.model.domains import Categorical, PositiveDefinite, Simplex, triangle_index
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, Variable, as_variables
from certimap.model.factors import Factor

# Attributes of a CVXPY variable that its rules may use to prove concavity; each is checked against the model's bounds.
_SIGNS = {"nonneg": 1.0, "pos": 1.0, "nonpos": -1.0, "neg": -1.0}
_MATRIX = {"symmetric", "PSD"}
_HARMLESS = {"integer", "boolean"}


@dataclass(eq=False)
class Concave(Factor):
    """The value of a CVXPY expression that CVXPY's rules prove concave.

    `arguments` pairs each CVXPY variable with the positions of its entries among the atoms.
    """

    kind: ClassVar[str] = "concave"
    expression: Any
    arguments: tuple[tuple[Any, NDArray[np.int64]], ...]
    atoms: tuple[Atom, ...]
    name: str = ""

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        numbers = {variable: i for i, (variable, _) in enumerate(self.arguments)}
        _describe(self.expression, numbers, digest)
        for _, positions in self.arguments:
            digest.update(str((positions.shape, positions.ravel().tolist())).encode())
        self._digest = np.frombuffer(digest.digest(), dtype=np.uint8)

    @property
    def signature(self) -> Hashable:
        return len(self.atoms)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"digest": self._digest}

    def value(self, y: NDArray[np.float64]) -> float:
        self._set(y)
        with np.errstate(all="ignore"):
            value = self.expression.value
        return -math.inf if value is None or np.isnan(value) else float(value)

    def gradient(self, y: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """A supergradient with respect to the atoms; None where CVXPY knows none (outside the domain, say)."""
        self._set(y)
        try:
            with np.errstate(all="ignore"):
                parts = self.expression.grad
        except TypeError:  # CVXPY adds the terms' gradients even where one of them is None
            return None
        gradient = np.zeros(len(self.atoms))
        for variable, positions in self.arguments:
            if (part := parts[variable]) is None:
                return None
            entries = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
            # An atom at two places (a symmetric entry) collects both.
            np.add.at(gradient, positions.ravel(order="F"), entries.ravel(order="F"))
        return gradient if np.isfinite(gradient).all() else None

    def _set(self, y: NDArray[np.float64]) -> None:
        for variable, positions in self.arguments:
            variable.save_value(y[positions])


def concave(expression: Any, variables: Mapping[Any, Any], *, name: str = "") -> Concave:
    """A factor from a concave, scalar CVXPY expression.

    `variables` maps every CVXPY variable in the expression to what it stands for in the model: a scalar to a real,
    integer or binary, a vector to a simplex, a categorical (its indicators) or an array of scalars, a square matrix to
    a positive_definite variable or an array of scalars.
    """
    label = name or "concave"
    try:
        import cvxpy
    except ImportError:
        raise ModelError(f'{label}: CVXPY is not installed; it is an extra: pip install "certimap[convex]"') from None
    if not isinstance(expression, cvxpy.Expression):
        raise ModelError(f"{label}: expected a CVXPY expression, got {expression!r}")
    if not expression.is_scalar() or expression.is_complex():
        raise ModelError(f"{label}: the expression must be one real number, its shape is {expression.shape}")
    if not expression.is_concave():
        raise ModelError(f"{label}: expression is not concave by CVXPY's rules (curvature {expression.curvature})")
    for parameter in expression.parameters():
        if parameter.value is None:
            raise ModelError(f"{label}: CVXPY parameter {parameter.name()} has no value")
    used = expression.variables()
    for v in used:
        if not any(v is key for key in variables):
            raise ModelError(f"{label}: CVXPY variable {v.name()} is not mapped to a variable of the model")
    atoms: dict[Atom, int] = {}
    arguments = []
    for v, target in variables.items():
        if not any(v is other for other in used):
            raise ModelError(f"{label}: {v!r} does not occur in the expression")
        entries = _entries(target)
        if entries.shape != tuple(v.shape):
            raise ModelError(
                f"{label}: CVXPY variable {v.name()} has shape {tuple(v.shape)}, "
                f"what it is mapped to has shape {entries.shape}"
            )
        _check_attributes(label, v, entries, target)
        positions = np.array([atoms.setdefault(a, len(atoms)) for a in entries.ravel()], dtype=np.int64)
        arguments.append((v, positions.reshape(entries.shape)))
    if not atoms:
        raise ModelError(f"{label}: the expression contains no variable")
    return Concave(expression, tuple(arguments), tuple(atoms), name)


def _entries(target: Any) -> NDArray[Any]:
    """The atoms that a CVXPY variable stands for, in its shape."""
    if isinstance(target, Variable):
        atoms = target.coordinates()
        match target.domain:
            case PositiveDefinite(order=d):
                return _array([atoms[triangle_index(i, j)] for i in range(d) for j in range(d)], (d, d))
            case Categorical() | Simplex():
                return _array(atoms, (len(atoms),))
        return _array(atoms, ())
    scalars = [v.numeric() for v in as_variables(target)]
    return _array(scalars, target.shape if isinstance(target, np.ndarray) else (len(scalars),))


def _array(atoms: Sequence[Atom], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(len(atoms), dtype=object)
    array[:] = atoms
    return array.reshape(shape)


def _check_attributes(label: str, v: Any, entries: NDArray[Any], target: Any) -> None:
    """What CVXPY assumes of a variable must be true of the model's."""
    stated = {key for key, given in v.attributes.items() if given is not None and given is not False}
    low = min(a.bounds()[0] for a in entries.ravel())
    high = max(a.bounds()[1] for a in entries.ravel())
    matrix = isinstance(target, Variable) and isinstance(target.domain, PositiveDefinite)
    for key in sorted(stated):
        if key in _SIGNS:
            true = low >= 0.0 if _SIGNS[key] > 0.0 else high <= 0.0
        elif key in _MATRIX:
            true = matrix
        elif key in _HARMLESS:
            true = key == "integer" or (low >= 0.0 and high <= 1.0)
        else:
            true = False
        if not true:
            raise ModelError(
                f"{label}: CVXPY variable {v.name()} is declared {key}, which is not known of what it is mapped to "
                f"(entries in [{low:g}, {high:g}])"
            )


def _describe(node: Any, numbers: Mapping[Any, int], digest: Any) -> None:
    """Feed an expression tree to a hash: operations, their data, constants; variables by number, not by their names."""
    if node in numbers:
        digest.update(f"variable {numbers[node]} ".encode())
        return
    digest.update(f"({type(node).__name__} {node.shape} ".encode())
    if not node.args:  # a constant or a parameter
        value = node.value.toarray() if hasattr(node.value, "toarray") else np.asarray(node.value)
        digest.update(np.ascontiguousarray(value, dtype="<f8").tobytes())
    else:
        digest.update(repr(node.get_data()).encode())
    for child in node.args:
        _describe(child, numbers, digest)
    digest.update(b")")
