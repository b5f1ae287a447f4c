"""Results by task, so that a long run goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Store:
    """One JSON file per task in a folder, named by the task's key."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def get(self, key: str) -> Any:
        """What is kept under a key; None if nothing is, or if the file is damaged."""
        try:
            return json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))["result"]
        except (FileNotFoundError, json.JSONDecodeError, KeyError):
            return None

    def put(self, key: str, parameters: Any, result: Any) -> None:
        """Keep a result, with what it was computed from; a file is either complete or not there."""
        draft = self.folder / f"{key}.part"
        draft.write_text(json.dumps({"parameters": parameters, "result": result}), encoding="utf-8")
        draft.replace(self.folder / f"{key}.json")
