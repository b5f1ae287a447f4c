"""`certimap demo`: label the pixels of a noisy picture, with constraints, a proof, and a check of the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from certimap.cli.exits import Exit, exit_for, usage_errors
from certimap.cli.output import plain_console
from certimap.cli.verify import print_report
from certimap.model.constraints import exactly, fix
from certimap.model.constructors import potts, table
from certimap.model.model import Model
from certimap.report.log import LogTable, describe
from certimap.solver import solve
from certimap.verification.checker import verify

SCENE = (
    "........................",
    "......##................",
    ".....####.......oooo....",
    "....######......oooo....",
    "....######......oooo....",
    ".....####.......oooo....",
    "......##........oooo....",
    "........................",
)
LABELS = ".o#"
GREY = np.array([0.0, 0.5, 1.0])  # mean grey level of each label
NOISE = 0.3
SMOOTHNESS = 0.9  # log-odds for equal labels of neighbouring pixels
SEED = 7
GAP = 1e-6


def demo_command(
    output: Annotated[Path, typer.Option(help="Folder for the certificate.", file_okay=False)] = Path("out"),
) -> None:
    """Restore a noisy picture, with a proof."""
    console = plain_console()
    truth = np.array([[LABELS.index(mark) for mark in row] for row in SCENE])
    grey = GREY[truth] + NOISE * np.random.default_rng(SEED).standard_normal(truth.shape)
    model = picture_model(grey, known_size=int((truth == 2).sum()))
    with usage_errors():
        output.mkdir(parents=True, exist_ok=True)
        path = output / "demo.json"
        with LogTable(console, heading=describe(model), gap=GAP, seed=0) as log:
            result = solve(model, gap=GAP, callback=log)
            log.finish(result)
        if result.assignment is None or result.certificate is None:
            raise typer.Exit(exit_for(result))
        result.certificate.save(path)
    nearest = np.abs(grey[..., None] - GREY).argmin(axis=-1)
    restored = result.assignment["pixel"]
    console.print()
    _show_pictures(console, {"nearest grey level": nearest, "most probable": restored, "truth": truth})
    for name, picture in (("nearest grey level", nearest), ("most probable", restored)):
        console.print(f"wrong pixels, {name}: {int((picture != truth).sum())} of {truth.size}")
    console.print(f"\ncertificate written to {path}; checked again by code that shares nothing with the solver:")
    print_report(console, result.certificate, verify(result.certificate, model))
    raise typer.Exit(Exit.INTERRUPTED if exit_for(result) is Exit.INTERRUPTED else Exit.ANSWERED)


def picture_model(grey: NDArray[np.float64], known_size: int) -> Model:
    """Gaussian grey levels per label, a reward for equal neighbours, a dark border and a bright object of known size.

    log p = sum_i -(y_i - g(x_i))^2 / (2 s^2) + w sum_neighbours [x_i = x_j]
    """
    model = Model()
    pixel = model.categorical("pixel", list(LABELS), shape=grey.shape)
    for i in np.ndindex(grey.shape):
        model.add(table([pixel[i]], -((grey[i] - GREY) ** 2) / (2.0 * NOISE**2)))
    model.add(potts(pixel[:, :-1], pixel[:, 1:], SMOOTHNESS), potts(pixel[:-1], pixel[1:], SMOOTHNESS))
    model.constrain(exactly(known_size, pixel, value=2).named("the bright object has its known size"))
    model.constrain(fix(pixel[[0, -1]], 0).named("the upper and lower border are dark"))
    return model


def _show_pictures(console: Console, pictures: dict[str, NDArray[np.int64]]) -> None:
    width = len(SCENE[0])
    console.print("   ".join(name.ljust(width) for name in pictures))
    for row in range(len(SCENE)):
        marks = ("".join(LABELS[int(k)] for k in picture[row]) for picture in pictures.values())
        console.print("   ".join(marks))
