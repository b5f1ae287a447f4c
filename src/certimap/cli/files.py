"""Model files by their ending, and where results are written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from certimap.certificate import Certificate
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


def check_folders(*targets: Path | None) -> None:
    """Every file that will be written has a folder; to be called before a long solve."""
    for target in targets:
        if target is not None and not target.resolve().parent.is_dir():
            raise ModelError(f"{target}: the folder {target.resolve().parent} does not exist")


def save_certificate(
    console: Console, proof: Certificate | None, path: Path, data: Path | None, details: Mapping[str, Any] | None = None
) -> None:
    """Save a proof with the name of the data it speaks about; `details` say how the model comes from the data."""
    if proof is None:
        console.print("no certificate written: no upper bound was proved")
        return
    source = None if data is None else relative_to_folder(data, path)
    replace(proof, source=source, details={**proof.details, **(details or {})}).save(path)
    console.print(f"certificate {path}   verify: certimap verify {path}")


def relative_to_folder(path: Path, document: Path) -> str:
    """How `document` should name `path`, so that both can be moved together."""
    return Path(os.path.relpath(path.resolve(), document.resolve().parent)).as_posix()


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in READERS:
        raise ModelError(f"{path}: a model file ends in {' or '.join(READERS)}, got {ending or 'no ending'!r}")
    return ending
