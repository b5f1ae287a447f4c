"""What `certimap cluster` and `certimap compare` read: points, links between them, known clusters and classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from certimap.io.delimited import DelimitedTable, read_delimited
from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import CovarianceType, FloatArray, NormalWishartPrior
from certimap.model.errors import ModelError

UNKNOWN = ("", "-1", "?")  # a known cluster
MISSING = ("", "?")  # a class, of which -1 is an ordinary name


@dataclass(frozen=True, eq=False)
class PreparedData:
    """Points ready for clustering, and in words how they were prepared, without and with the columns."""

    points: FloatArray
    names: tuple[str, ...]
    preparation: str
    description: str


def prepare(table: DelimitedTable, columns: list[str], standardize: bool, components: int | None) -> PreparedData:
    """Numbers of the columns, standardised and reduced to principal components where asked for."""
    points = table.numbers(columns)
    names, steps = tuple(columns), []
    if standardize:
        deviation = points.std(axis=0)
        if not deviation.all():
            constant = columns[int(np.argmin(deviation))]
            raise ModelError(f"{table.path}: column {constant!r} is constant and cannot be standardized")
        points = (points - points.mean(axis=0)) / deviation
        steps.append("standardized")
    if components is not None:
        most = min(points.shape)
        if not 1 <= components <= most:
            raise ModelError(
                f"--pca must be in 1..{most}, got {components}: {table.path} has {points.shape[1]} columns"
            )
        reduction = PCA(components, svd_solver="full")
        points = np.asarray(reduction.fit_transform(points), dtype=np.float64)
        names = tuple(f"PC {j + 1}" for j in range(components))
        share = 100.0 * float(reduction.explained_variance_ratio_.sum())
        steps.append(f"{components} principal components ({share:.1f} % of the variance)")
    preparation = ", ".join(steps) or "as given"
    return PreparedData(points, names, preparation, f"{', '.join(columns)}: {preparation}")


def check_spread(prepared: PreparedData, covariance_type: CovarianceType, path: Path) -> None:
    """Refuse points whose covariance cannot be the default prior's, by the names of their columns."""
    points = prepared.points
    if len(points) < 2:
        raise ModelError(f"{path}: expected at least two rows, got {len(points)}")
    try:
        NormalWishartPrior.from_data(points, covariance_type)
    except ValueError as error:
        constant = [name for name, spread in zip(prepared.names, np.ptp(points, axis=0), strict=True) if spread == 0.0]
        if constant:
            raise ModelError(f"{path}: constant in {', '.join(constant)}: choose others by --columns") from error
        raise ModelError(
            f"{path}: {', '.join(prepared.names)} are linearly dependent on the {len(points)} rows: choose fewer by "
            "--columns, or reduce them by --pca"
        ) from error


def chosen_columns(table: DelimitedTable, columns: str | None, set_aside: tuple[str | None, ...]) -> list[str]:
    """The columns to cluster by."""
    if columns is not None:
        chosen = [name.strip() for name in columns.split(",")]
        for name in chosen:
            if name in set_aside:
                raise ModelError(f"--columns must not name {name!r}: it holds labels")
        return chosen
    rest = [name for name in table.names if name not in set_aside]
    if not rest:
        raise ModelError(f"{table.path}: no column is left to cluster by")
    return rest


def read_links(path: Path | None, n_points: int) -> list[tuple[int, int] | tuple[int, int, float]]:
    """Pairs of rows, counted from 0, with a weight in the third column for soft links."""
    if path is None:
        return []
    table = read_delimited(path, optional=1)
    if len(table.names) not in (2, 3):
        raise ModelError(f"{path}: links have two columns, or three with a weight; got {len(table.names)}")
    links: list[tuple[int, int] | tuple[int, int, float]] = []
    ends = table.numbers(table.names[:2])
    for row, (i, j) in enumerate(ends):
        if i != int(i) or j != int(j) or not (0 <= i < n_points and 0 <= j < n_points) or i == j:
            raise table.error(row, f"expected two different rows of the data, 0..{n_points - 1}, got {i:g} and {j:g}")
        weight = table.rows[row][2] if len(table.names) == 3 else ""
        if not weight:
            links.append((int(i), int(j)))
            continue
        cost = _weight(weight)
        if cost is None:
            raise table.error(row, f"expected a weight >= 0 or nothing in the third column, got {weight!r}")
        links.append((int(i), int(j), cost))
    return links


def known_clusters(table: DelimitedTable, column: str, n_clusters: int) -> IntArray:
    """Known cluster of every row, -1 where the cell is empty, -1 or ?.

    Numbers 0..K-1 are clusters. Other entries are names, given to clusters in alphabetical order.
    """
    cells = table.column(column)
    names = sorted({cell for cell in cells if cell not in UNKNOWN})
    numbers = {str(k): k for k in range(n_clusters)}
    if not set(names) <= numbers.keys():
        numbers = {name: k for k, name in enumerate(names)}
    if len(names) > n_clusters:
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise ModelError(
            f"{table.path}: column {column!r} names {len(names)} clusters ({shown}), -k allows {n_clusters}"
        )
    return np.array([numbers.get(cell, -1) for cell in cells], dtype=np.int64)


def classes(table: DelimitedTable, column: str) -> IntArray:
    """The class of every row by number, -1 where the cell is empty or ?."""
    cells = table.column(column)
    numbers = {name: k for k, name in enumerate(sorted(set(cells) - set(MISSING)))}
    if not numbers:
        raise ModelError(f"{table.path}: column {column!r} has no class in any row")
    return np.array([numbers.get(cell, -1) for cell in cells], dtype=np.int64)


def _weight(cell: str) -> float | None:
    try:
        weight = float(cell)
    except ValueError:
        return None
    return weight if 0.0 <= weight < float("inf") else None
