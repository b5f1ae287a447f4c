"""The certificate: a proof of an upper bound, as data.

A proof is a tree of boxes. Every leaf bounds its box by a combination of cuts and rows (linear programming duality):

    UB(leaf) = offset + sum_cuts w h + sum_rows q rhs(q)
             + sum_j max over the box of (cost + sum_cuts w u - sum_rows q A)_j y_j

with weights w >= 0 that sum to one over the cuts of every block, and row multipliers q whose sign selects the side of
the row (q > 0: upper). A block without a cut counts with its largest value in the box. A leaf without points is proved
empty by a combination with a negative bound, made of rows and feasibility cuts only (cost, offset and block terms left
out), or by a block without any point in the box. The constants h are not trusted: whoever verifies re-derives each from
the model.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = "certimap-certificate"
VERSION = 1


@dataclass(frozen=True)
class CutRecord:
    """theta_block(x) <= u.x + h on `box` (None: everywhere); a feasibility cut says 0 <= u.x + h on the block's domain.

    `columns` are the block's scope. `h` is the solver's claim and is recomputed. `lower`/`upper` bound the scope.
    `witness` is the point whose tangent the cut is, for factors known by their gradients only.
    """

    block: int
    columns: NDArray[np.int64]
    u: NDArray[np.float64]
    h: float
    feasibility: bool = False
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None
    witness: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Tightening:
    """Within a node, row `row` and the current box imply lower <= y_column <= upper."""

    column: int
    lower: float
    upper: float
    row: int


@dataclass(frozen=True)
class NodeRecord:
    """A box of the tree: the parent's box with one column restricted, then tightened step by step."""

    parent: int  # -1 for the root
    column: int  # branching column, -1 for the root
    lower: float
    upper: float
    tightenings: tuple[Tightening, ...] = ()


@dataclass(frozen=True)
class LeafRecord:
    """Multipliers that bound node `node` (or, if `empty`, prove that it has no point).

    A node emptied by its tightenings alone needs no multipliers.
    """

    node: int
    empty: bool
    cuts: NDArray[np.int64]
    cut_weights: NDArray[np.float64]
    rows: NDArray[np.int64]
    row_weights: NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """See the module's docstring; `proof` of other algorithms (branch-and-price) travels in `details`."""

    algorithm: str
    model: str  # fingerprint
    log_map: float
    upper_bound: float
    tolerance: float
    status: str
    assignment: Mapping[str, Any] | None
    blocks: tuple[tuple[int, ...], ...] = ()
    private: tuple[tuple[str, ...], ...] = ()
    cuts: tuple[CutRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    leaves: tuple[LeafRecord, ...] = ()
    conflict: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None  # the file the model was read from, so that the command line can re-read it

    def save(self, path: str | Path) -> None:
        """Write as JSON; arrays are compressed."""
        document = {"format": FORMAT, "version": VERSION, **{k: _pack(v) for k, v in asdict(self).items()}}
        Path(path).write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")

    @staticmethod
    def load(path: str | Path) -> Certificate:
        """Read a certificate; a file of another format or version is refused."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise CertificateError(f"{path}: not a JSON document ({error})") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise CertificateError(f"{path}: not a {FORMAT} file")
        if document.get("version") != VERSION:
            raise CertificateError(f"{path}: version {document.get('version')!r}; this reader knows version {VERSION}")
        try:
            fields = {k: _unpack(v) for k, v in document.items() if k not in ("format", "version")}
            fields["cuts"] = tuple(CutRecord(**c) for c in fields["cuts"])
            fields["nodes"] = tuple(
                NodeRecord(**{**n, "tightenings": tuple(Tightening(**t) for t in n["tightenings"])})
                for n in fields["nodes"]
            )
            fields["leaves"] = tuple(LeafRecord(**leaf) for leaf in fields["leaves"])
            for key in ("blocks", "private"):
                fields[key] = tuple(tuple(members) for members in fields[key])
            fields["conflict"] = tuple(fields["conflict"])
            return Certificate(**fields)
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise CertificateError(f"{path}: malformed certificate ({error})") from None


class CertificateError(ValueError):
    """A certificate that cannot be read, does not fit the model, or claims more than it proves."""


def _pack(value: Any) -> Any:
    """JSON form: arrays as compressed base64, non-finite floats as strings."""
    if isinstance(value, np.ndarray):
        kind = "<i8" if value.dtype.kind in "iub" else "<f8"
        data = zlib.compress(np.ascontiguousarray(value, dtype=kind).tobytes(), 6)
        return {"dtype": kind, "shape": list(value.shape), "data": base64.b64encode(data).decode("ascii")}
    if isinstance(value, np.generic):
        return _pack(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, Mapping):
        return {k: _pack(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_pack(v) for v in value]
    return value


def _unpack(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"dtype", "shape", "data"}:
            raw = zlib.decompress(base64.b64decode(value["data"], validate=True))
            return np.frombuffer(raw, dtype=value["dtype"]).reshape(value["shape"])
        if set(value) == {"float"}:
            return float(value["float"])
        return {k: _unpack(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_unpack(v) for v in value]
    return value
