"""Model files by their ending, and where results are written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from certimap.io.bif import read_bif
from certimap.io.states import write_states
from certimap.io.uai import read_uai, write_solution
from certimap.model.errors import ModelError
from certimap.model.model import Model

READERS = {".uai": read_uai, ".bif": read_bif}
WRITERS = {".uai": write_solution, ".bif": write_states}


def read_model(path: Path, evidence: Path | None = None) -> Model:
    """The model in a .uai or .bif file, with the evidence in the format that belongs to it."""
    return READERS[_ending(path)](path, evidence)


def write_answer(model: Model, assignment: Mapping[str, Any], path: Path, model_path: Path) -> None:
    """Write an assignment in the format that belongs to the model file."""
    WRITERS[_ending(model_path)](model, assignment, path)


def relative_to_folder(path: Path, document: Path) -> str:
    """How `document` should name `path`, so that both can be moved together."""
    return Path(os.path.relpath(path.resolve(), document.resolve().parent)).as_posix()


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in READERS:
        raise ModelError(f"{path}: a model file ends in {' or '.join(READERS)}, got {ending or 'no ending'!r}")
    return ending
