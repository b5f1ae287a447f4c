"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

Tolerance = Annotated[float, typer.Option(help="Relative gap that counts as optimal.", min=0.0)]
TimeLimit = Annotated[float | None, typer.Option(help="Stop after this many seconds.")]
Starts = Annotated[int, typer.Option(help="Starts of the local search.", min=1)]
SearchSeed = Annotated[int, typer.Option(help="Seed of the local search.", min=0)]
Seed = Annotated[int, typer.Option(help="Seed of everything that is random.", min=0)]
Jobs = Annotated[int, typer.Option(help="Threads; the answer does not depend on it.", min=1)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML report here.")]
ProofFile = Annotated[Path | None, typer.Option(help="Write the proof here (JSON).")]

Points = Annotated[Path, typer.Argument(help="Table of points, one row each.", exists=True, dir_okay=False)]
Clusters = Annotated[int, typer.Option("--clusters", "-k", help="Largest number of clusters.", min=1)]
Columns = Annotated[str | None, typer.Option(help="Columns to cluster by, as a,b,c; default: all.")]
LabelColumn = Annotated[str | None, typer.Option(help="True classes: left out, and compared at the end.")]
Standardize = Annotated[bool, typer.Option("--standardize", help="Scale columns to variance 1.")]
Components = Annotated[int | None, typer.Option("--pca", help="Reduce to this many principal components.")]
