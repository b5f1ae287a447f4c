"""Bayesian networks in the interchange format."""

import math
from pathlib import Path

import numpy as np
import pytest

from certimap import ModelError
from certimap.io import read_bif
from certimap.io.states import read_states, write_states

GARDEN = Path(__file__).parents[1] / "data" / "garden.bif"


def probability(season: int, sprinkler: int, rain: int, grass: int) -> float:
    p_season = [0.6, 0.4][season]
    p_sprinkler = [[0.3, 0.7], [0.9, 0.1]][season][sprinkler]
    p_rain = [[0.8, 0.15, 0.05], [0.2, 0.3, 0.5]][season][rain]
    wet = {(0, 0): 0.05, (0, 1): 0.8, (1, 0): 0.9}.get((sprinkler, rain), 1.0)
    return p_season * p_sprinkler * p_rain * [1 - wet, wet][grass]


def test_network_is_its_joint_distribution() -> None:
    model = read_bif(GARDEN)
    assert list(model.variables) == ["season", "sprinkler", "rain", "grass"]
    assert model.variables["rain"].domain.labels == ("none", "<5mm", ">=5mm")
    total = 0.0
    for point in np.ndindex(2, 2, 3, 2):
        value = model.value(dict(zip(model.variables, point, strict=True)))
        p = probability(*point)
        assert value == pytest.approx(math.log(p)) if p else value == -math.inf
        total += math.exp(value)
    assert total == pytest.approx(1.0)


def test_evidence_by_label_number_and_file(tmp_path: Path) -> None:
    path = tmp_path / "observed.txt"
    path.write_text("# seen today\nrain = >=5mm\n\ngrass=wet\n")
    assert list(read_bif(GARDEN, path).constraints) == ["evidence rain = >=5mm", "evidence grass = wet"]
    model = read_bif(GARDEN, {"rain": 2, "grass": "wet"})
    assert model.value({"season": 0, "sprinkler": 0, "rain": 0, "grass": 1}) == -math.inf
    assert model.value({"season": 0, "sprinkler": 0, "rain": 2, "grass": 1}) == pytest.approx(
        math.log(0.6 * 0.3 * 0.05)
    )


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"snow": "wet"}, "no variable is called 'snow'"),
        ({"grass": "damp"}, "grass has no state 'damp'; its states are dry, wet"),
        ({"grass": 2}, "grass is a categorical"),
    ],
)
def test_wrong_evidence(evidence: dict[str, str | int], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_bif(GARDEN, evidence)


def test_states_by_name(tmp_path: Path) -> None:
    model = read_bif(GARDEN)
    path = tmp_path / "states.txt"
    write_states(model, {"season": 0, "sprinkler": 1, "rain": 2, "grass": 0}, path)
    assert read_states(path) == {"season": "dry", "sprinkler": "on", "rain": ">=5mm", "grass": "dry"}
    for text, message in [("a", "line 1: expected 'variable = state'"), ("a=1\na=2", "line 2: 'a' is given twice")]:
        path.write_text(text)
        with pytest.raises(ModelError, match=message):
            read_states(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("network garden", "net garden", "line 2: expected 'network', 'variable' or 'probability', got 'net'"),
        ("(on, none) 0.1, 0.9;\n}", "property x }", "line 33: the property does not end with ';'"),
        ("[ 2 ] { dry, wet }", "[ 3 ] { dry, wet }", "line 6: 3 states are announced, 2 are listed"),
        ("{ dry, wet }", "{ dry, dry }", "line 6: a state occurs twice"),
        ("type discrete [ 3 ] { none, <5mm, >=5mm };", "", "line 12: variable 'rain' has no type"),
        ("type discrete [ 3 ]", "kind discrete [ 3 ]", "line 13: expected 'type', 'property' or '}', got 'kind'"),
        ("type discrete [ 3 ]", "type real [ 3 ]", "line 13: expected 'discrete', got 'real'"),
        ('variable "sprinkler"', "variable season", "line 8: variable 'season' is declared twice"),
        ("( season ) {", "( month ) {", "line 17: no variable is called 'month'"),
        ("( season ) {", "( rain ) {", "line 17: the entries of P.* needed|line 18: 3 numbers are needed, got 2"),
        ("rain | season", "rain | rain", "line 26: a variable occurs twice in the block of 'rain'"),
        ("rain | season", "season | rain", "line 26: 'season' has two probability blocks"),
        ("(wet) 0.9", "(damp) 0.9", "line 22: 'season' has no state 'damp'"),
        ("(wet) 0.9", "(dry) 0.9", "line 22: these states of the parents are listed twice"),
        ("(wet) 0.9", "(wet, wet) 0.9", "line 22: 2 states are given for 1 parents"),
        ("  (wet) 0.9, 0.1;\n", "", r"line 20: P\(sprinkler \| season = wet\) is not given"),
        ("0.9, 0.1;", "0.9;", "line 22: 2 numbers are needed, got 1"),
        ("0.9, 0.1;", "0.9, -0.1;", "line 22: a probability must be finite and >= 0, got -0.1"),
        ("0.9, 0.1;", "0.9, many;", "line 22: expected a number, got 'many'"),
        ("0.9, 0.1;", "0.9, (;", r"line 22: expected a number, got '\('"),
        ("0.9, 0.1;", "0.9, 0.9;", r"line 20: the entries of P\(sprinkler \| season = wet\) sum to 1.8, not to 1"),
        ("table 0.8 0.2  0.15", "table 0.8 0.15  0.2", r"line 26: the entries of P\(rain \| season = "),
        ("probability ( season ) {\n  table 0.6, 0.4;\n}\n", "", "variable 'season' has no probability block"),
        ("(on, none) 0.1, 0.9;\n}", "(on, none) 0.1, 0.9;\n", "line 35: expected entries.*got the end of the file"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = GARDEN.read_text()
    assert old in text
    path = tmp_path / "garden.bif"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ModelError, match=message):
        read_bif(path)


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.bif"
    path.write_text("// nothing\n")
    with pytest.raises(ModelError, match="declares no variable"):
        read_bif(path)
