"""Results by task, so that a long run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from certimap._version import __version__

FORMAT = 1  # of what tasks store


class Store:
    """One JSON file per task in a folder, named by the task and a hash of everything its result depends on."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def path(self, task: str, parameters: Mapping[str, Any]) -> Path:
        """Where the result of a task is kept; another version of certimap does not find it."""
        key = {"task": task, "parameters": parameters, "version": __version__, "format": FORMAT}
        digest = hashlib.sha256(json.dumps(key, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        return self.folder / f"{task}-{digest[:20]}.json"

    def get(self, task: str, parameters: Mapping[str, Any]) -> Any:
        """What is kept of a task; None if nothing is, or if the file is cut off."""
        try:
            return json.loads(self.path(task, parameters).read_text(encoding="utf-8"))["result"]
        except (FileNotFoundError, json.JSONDecodeError, KeyError):
            return None

    def put(self, task: str, parameters: Mapping[str, Any], result: Any) -> None:
        """Keep a result; a file is either complete or not there."""
        path = self.path(task, parameters)
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps({"task": task, "parameters": parameters, "result": result}), encoding="utf-8")
        draft.replace(path)
