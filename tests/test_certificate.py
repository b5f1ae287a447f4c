"""The certificate file: what is saved is read back, fits the schema, and nothing else is accepted."""

import json
import math
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from certimap.certificate import (
    FORMAT,
    Certificate,
    CertificateError,
    CutRecord,
    LeafRecord,
    NodeRecord,
    Tightening,
)

SCHEMA = json.loads(resources.files("certimap").joinpath("certificate_schema.json").read_text(encoding="utf-8"))


def sample() -> Certificate:
    columns = np.array([0, 1, 2])
    return Certificate(
        algorithm="branch-and-cut",
        model="ab" * 32,
        log_map=-1.5,
        upper_bound=math.inf,
        tolerance=1e-6,
        status="FEASIBLE",
        assignment={"a": 1, "b": np.array([0.25, 0.75]), "c": np.int64(3), "d": 0.1},
        blocks=((1, 2), (3,)),
        private=(("c",), ()),
        cuts=(
            CutRecord(0, columns, np.array([0.1, -0.2, 1 / 3]), 0.7),
            CutRecord(1, columns, np.zeros(3), math.inf, True, np.zeros(3), np.ones(3), np.full(3, 0.5)),
        ),
        nodes=(NodeRecord(-1, -1, 0.0, 0.0), NodeRecord(0, 2, -math.inf, 1.0, (Tightening(1, 0.0, 1.0, 4),))),
        leaves=(LeafRecord(1, False, np.array([0]), np.array([1.0]), np.zeros(0, dtype=np.int64), np.zeros(0)),),
        conflict=("at_most(2, x)",),
        details={"note": [1, 2.5, None, {"deep": np.arange(3)}]},
        source="model.uai",
    )


def plain(value: Any) -> Any:
    """Nested lists and numbers, for comparison."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return value


def test_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    sample().save(path)
    loaded = Certificate.load(path)
    assert plain(loaded) == plain(sample())
    assert loaded.cuts[0].u.tobytes() == sample().cuts[0].u.tobytes()
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()


def test_saved_certificates_fit_the_schema(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    sample().save(tmp_path / "c.json")
    jsonschema.validate(json.loads((tmp_path / "c.json").read_text()), SCHEMA)


@pytest.mark.parametrize(
    ("record", "definition"),
    [(CutRecord, "cut"), (NodeRecord, "node"), (Tightening, "tightening"), (LeafRecord, "leaf")],
)
def test_the_schema_names_every_field(record: type, definition: str) -> None:
    described = SCHEMA["$defs"][definition]
    assert set(described["properties"]) == set(described["required"]) == {f.name for f in fields(record)}
    assert set(SCHEMA["properties"]) == {f.name for f in fields(Certificate)} | {"format", "version"}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"status": "SOLVED"}, "status"),
        ({"log_map": "1.5"}, "log_map"),
        ({"cuts": [{"block": 0}]}, "cuts"),
        ({"extra": 1}, ""),
        ({"blocks": [[-1]]}, "blocks"),
    ],
)
def test_the_schema_refuses_what_is_wrong(tmp_path: Path, change: dict[str, Any], where: str) -> None:
    sample().save(tmp_path / "c.json")
    document = {**json.loads((tmp_path / "c.json").read_text()), **change}
    with pytest.raises(jsonschema.ValidationError) as caught:
        jsonschema.validate(document, SCHEMA)
    assert where in [*map(str, caught.value.absolute_path), ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "not a JSON document"),
        ("[1, 2]", f"not a {FORMAT} file"),
        ('{"format": "other"}', f"not a {FORMAT} file"),
        (json.dumps({"format": FORMAT, "version": 99}), "this reader knows version 1"),
        (json.dumps({"format": FORMAT, "version": 1}), "malformed certificate"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(CertificateError, match=message) as caught:
        Certificate.load(path)
    assert str(path) in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CertificateError, match="not a JSON document"):
        Certificate.load(path)


def corrupt(document: dict[str, Any], what: str) -> None:
    cut = document["cuts"][0]
    match what:
        case "data":
            cut["u"]["data"] = "AAAA"
        case "alphabet":
            cut["u"]["data"] = "\u00e9"
        case "shape":
            cut["u"]["shape"] = [7]
        case "type":
            cut["u"]["dtype"] = "object"
        case "unknown field":
            cut["colour"] = "red"
        case "missing field":
            del cut["columns"]
        case "cut":
            document["cuts"] = [3]
        case "node":
            document["nodes"] = ["x"]
        case "blocks":
            document["blocks"] = 5
        case "number":
            document["log_map"] = {"float": "many"}
        case "truncated":
            cut["u"]["data"] = cut["u"]["data"][:8]


@pytest.mark.parametrize(
    "what",
    [
        "data",
        "alphabet",
        "shape",
        "type",
        "unknown field",
        "missing field",
        "cut",
        "node",
        "blocks",
        "number",
        "truncated",
    ],
)
def test_corrupted_files_are_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "c.json"
    sample().save(path)
    document = json.loads(path.read_text())
    corrupt(document, what)
    path.write_text(json.dumps(document))
    with pytest.raises(CertificateError, match="malformed certificate"):
        Certificate.load(path)
