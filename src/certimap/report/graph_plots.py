"""Factor graphs and graphical models, drawn from a `Model`: nothing in them is placed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from certimap.model.factors import Factor
from certimap.model.model import Model
from certimap.report.plots import COLOURS, LINE_STYLES, figure_of, png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

GREEK = {"pi": "π", "mu": "μ", "Lambda": "Λ", "beta": "β", "Theta": "Θ", "theta": "θ"}
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
RADIUS = 0.28
PLATE_ROW = 2.4  # height of a row of nodes in a graphical model


@dataclass(frozen=True)
class Structure:
    """What a factor graph does not say about the model it comes from.

    Attributes:
        parents: on what each variable, by declared name, is conditioned; every variable of the graph has an entry.
        plates: labels of the plates that a variable is in, the outermost first.
        observed: variables that are data; they are in no domain of the model.
    """

    parents: Mapping[str, tuple[str, ...]]
    plates: Mapping[str, tuple[str, ...]]
    observed: tuple[str, ...]


def group_of(variable: str) -> str:
    """The name that a variable was declared with."""
    return variable.partition("[")[0]


def factor_groups(model: Model) -> dict[str, list[Factor]]:
    """Factors by the part of their name before the index, in order of first appearance."""
    groups: dict[str, list[Factor]] = {}
    for name, factor in zip(model.factor_names(), model.factors, strict=True):
        groups.setdefault(group_of(name), []).append(factor)
    return groups


def factor_graph_plot(model: Model) -> bytes:
    """Circles for variables, squares for factors, a line where a factor depends on a variable.

    Each declared name and each kind of factor has a column; columns of factors lie between those that they connect.
    Factors of one variable stand beside it.
    """
    columns = _columns(model)
    position = _positions(model, columns)
    width = 1.15 * len(columns)
    height = 0.7 + 0.62 * max(len(entries) for entries in columns.values())
    figure = figure_of(width, height)
    panel = figure.subplots()
    for number, (group, factors) in enumerate(factor_groups(model).items()):
        colour, style = COLOURS[number % len(COLOURS)], LINE_STYLES[number % len(LINE_STYLES)]
        for factor in factors:
            x, y = position[factor.label()]
            for variable in factor.variables():
                u, v = position[variable.name]
                panel.plot([x, u], [y, v], color=colour, linestyle=style, linewidth=0.8, zorder=1)
            panel.plot([x], [y], marker="s", markersize=8, color=colour, zorder=3)
            size = 7 if group in columns else 6
            text = panel.annotate(_pretty(factor.label()), (x, y + 0.17), ha="center", fontsize=size, zorder=4)
            text.set_bbox({"facecolor": "#ffffff", "edgecolor": "none", "alpha": 0.75, "pad": 0.3})
    for name in model.variables:
        _node(panel, position[name], _pretty(name))
    _frame(panel)
    return png_of(figure)


def graphical_model_plot(model: Model, structure: Structure) -> bytes:
    """Arrows from parents to children, shaded nodes for data, plates with the number of their copies."""
    check_structure(model, structure)
    place = _layers(structure)
    figure = figure_of(1.6 + 2.0 * max(x for x, _ in place.values()), 4.6)
    panel = figure.subplots()
    for plate, (low, high, label) in _plates(place, structure).items():
        level = plate.count("/")
        depth = 0.25 * level
        corner = (low[0] + depth, low[1] + depth)
        size = (high[0] - low[0] - 2 * depth, high[1] - low[1] - 2 * depth)
        panel.add_patch(_rounded(corner, size))
        side = (corner[0] + 0.1, "left") if level == 0 else (corner[0] + size[0] - 0.1, "right")
        panel.annotate(label, (side[0], corner[1] + 0.08), ha=side[1], fontsize=9)
    for child, parents in structure.parents.items():
        for parent in parents:
            _arrow(panel, place[parent], place[child])
    for name in structure.parents:
        shaded = name in structure.observed
        _node(panel, place[name], GREEK.get(name, name), shaded=shaded, radius=1.5 * RADIUS)
    _frame(panel)
    return png_of(figure)


def check_structure(model: Model, structure: Structure) -> None:
    """Refuse arrows that the factors do not bear out.

    Each set of a variable and its parents, data left out, has to be what some kind of factor is about, and together
    they have to cover what every factor is about.
    """
    families = {frozenset({child, *parents} - set(structure.observed)) for child, parents in structure.parents.items()}
    scopes = {
        frozenset(group_of(v.name) for f in group for v in f.variables()) for group in factor_groups(model).values()
    }
    unexplained = [sorted(scope) for scope in scopes if not any(scope <= family for family in families)]
    unsupported = [sorted(family) for family in families if not any(family <= scope for scope in scopes)]
    if unexplained or unsupported:
        raise ValueError(
            f"the structure does not belong to the model: factors over {unexplained} have no arrows, "
            f"arrows over {unsupported} no factor."
        )


# ------------------------------------------------------------------------------------------------- factor graphs
def _columns(model: Model) -> dict[str, list[str]]:
    """Names of the nodes in each column, left to right."""
    order = {name: float(i) for i, name in enumerate(model.shapes)}
    entries: dict[str, list[str]] = {name: [] for name in model.shapes}
    for name in model.variables:
        entries[group_of(name)].append(name)
    for group, factors in factor_groups(model).items():
        scopes = [sorted({group_of(v.name) for v in factor.variables()}) for factor in factors]
        if all(len(factor.variables()) > 1 for factor in factors):
            # A shade to the right, so that a column of factors never falls on one of variables.
            order[group] = float(np.mean([np.mean([order[name] for name in scope]) for scope in scopes])) + 0.01
            entries[group] = [factor.label() for factor in factors]
    return {name: entries[name] for name in sorted(entries, key=lambda name: order[name])}


def _positions(model: Model, columns: Mapping[str, Sequence[str]]) -> dict[str, tuple[float, float]]:
    tallest = max(len(names) for names in columns.values())
    position: dict[str, tuple[float, float]] = {}
    lifted = 0
    for x, (column, names) in enumerate(columns.items()):
        step = tallest / len(names)
        lift = 0.0
        if column not in model.shapes:  # at different heights, so that no line runs through another's square
            lift, lifted = (0.2, -0.2)[lifted % 2], lifted + 1
        for row, name in enumerate(names):
            position[name] = (1.6 * x, tallest - (row + 0.5) * step + lift)
    single: dict[str, list[str]] = {}
    for factor in model.factors:
        if factor.label() not in position:
            single.setdefault(factor.variables()[0].name, []).append(factor.label())
    for owner, names in single.items():
        u, y = position[owner]
        for rank, name in enumerate(names):
            position[name] = (u + 0.45 * (rank - 0.5 * (len(names) - 1)), y + 0.62)
    return position


# ---------------------------------------------------------------------------------------------- graphical models
def _layers(structure: Structure) -> dict[str, tuple[float, float]]:
    """Columns by the longest way from a root, moved as far right as children allow; rows by the outermost plate."""
    depth: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((depth_of(parent) for parent in structure.parents[name]), default=-1)
        return depth[name]

    for name in structure.parents:
        depth_of(name)
    children = {name: [c for c, parents in structure.parents.items() if name in parents] for name in structure.parents}
    rows: dict[str, float] = {}
    place: dict[str, tuple[float, float]] = {}
    for name in sorted(structure.parents, key=lambda n: -depth[n]):
        plates = structure.plates.get(name, ())
        row = rows.setdefault(plates[0], -PLATE_ROW * len(rows)) if plates else place[children[name][0]][1]
        place[name] = (2.0 * depth[name], row)
    return place


def _plates(
    place: Mapping[str, tuple[float, float]], structure: Structure
) -> dict[str, tuple[tuple[float, float], tuple[float, float], str]]:
    """Lower left and upper right corner and label of every plate, keyed by its path from the outermost."""
    members: dict[str, list[tuple[float, float]]] = {}
    for name, plates in structure.plates.items():
        for level in range(1, len(plates) + 1):
            members.setdefault("/".join(plates[:level]), []).append(place[name])
    return {
        path: (
            (min(x for x, _ in nodes) - 1.0, min(y for _, y in nodes) - 1.1),
            (max(x for x, _ in nodes) + 1.0, max(y for _, y in nodes) + 1.0),
            path.rpartition("/")[2],
        )
        for path, nodes in members.items()
    }


# ------------------------------------------------------------------------------------------------------- drawing
def _node(panel: Axes, centre: tuple[float, float], text: str, *, shaded: bool = False, radius: float = RADIUS) -> None:
    from matplotlib.patches import Circle

    fill = "#d0d0d0" if shaded else "#ffffff"
    panel.add_patch(Circle(centre, radius, facecolor=fill, edgecolor="#000000", linewidth=1.0, zorder=5))
    panel.annotate(text, centre, ha="center", va="center", fontsize=8 if radius == RADIUS else 13, zorder=6)


def _arrow(panel: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "-|>", "color": "#000000", "shrinkA": 0.0, "shrinkB": 0.0, "linewidth": 1.2}
    a, b = np.array(start), np.array(end)
    step = 1.5 * RADIUS * (b - a) / np.linalg.norm(b - a)
    panel.annotate("", tuple(b - step), tuple(a + step), arrowprops=style, zorder=4)


def _rounded(corner: tuple[float, float], size: tuple[float, float]) -> Patch:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(corner, *size, boxstyle="round,pad=0,rounding_size=0.15", fill=False, linewidth=1.0)


def _frame(panel: Axes) -> None:
    panel.set_aspect("equal")
    panel.set_axis_off()
    panel.autoscale_view()
    panel.margins(0.04)


def _pretty(name: str) -> str:
    """`z[0,1]` as z with subscripts; indices start at 1 for readers."""
    head, _, index = name.partition("[")
    shown = "".join(GREEK.get(part, part) for part in head.split("_"))
    if not index:
        return shown
    numbers = [str(int(i) + 1) for i in index.rstrip("]").split(",")]
    separator = "" if all(len(number) == 1 for number in numbers) else ","
    return shown + separator.join(numbers).translate(SUBSCRIPTS)
