"""UAI files: networks, evidence, solutions, and errors that say where."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certimap import Model, ModelError, at_most, cannot_link, gated, linear, parity, polynomial, potts, soft, table
from certimap.io import read_uai, write_uai
from certimap.io.uai import read_solution, write_solution

NETWORK = """MARKOV
3
2 1 3
3
1 0
3 0 1 2
0

2
 0.25 0.75
6
 1 2 0
 4 5 6.5e0
1
 2
"""


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "model.uai"
    path.write_text(NETWORK)
    return path


def states_of(model: Model) -> list[dict[str, int]]:
    names = list(model.variables)
    return [
        dict(zip(names, states, strict=True))
        for states in itertools.product(*(v.states for v in model.variables.values()))
    ]


def test_network_is_the_product_of_its_tables(network: Path) -> None:
    model = read_uai(network)
    assert list(model.variables) == ["x0", "x1", "x2"]
    assert model.value({"x0": 1, "x1": 0, "x2": 2}) == pytest.approx(math.log(0.75 * 6.5 * 2))
    assert model.value({"x0": 0, "x1": 0, "x2": 2}) == -math.inf


def test_bayes_networks_are_read_alike(network: Path) -> None:
    network.write_text(NETWORK.replace("MARKOV", "BAYES"))
    assert read_uai(network).value({"x0": 0, "x1": 0, "x2": 1}) == pytest.approx(math.log(0.25 * 2 * 2))


@pytest.mark.parametrize("text", ["1 2 1", "1\n1 2 1", "2 2 1 0 0", "1 2 2 1 0 0"])
def test_both_variants_of_evidence(network: Path, tmp_path: Path, text: str) -> None:
    evidence = tmp_path / "e.evid"
    evidence.write_text(text)
    model = read_uai(network, evidence)
    assert "evidence x2 = 1" in model.constraints
    assert model.value({"x0": 0, "x1": 0, "x2": 1}) > -math.inf
    assert model.value({"x0": 0, "x1": 0, "x2": 0}) == -math.inf


@pytest.mark.parametrize("text", ["", "0", "1 0"])
def test_empty_evidence(network: Path, tmp_path: Path, text: str) -> None:
    evidence = tmp_path / "e.evid"
    evidence.write_text(text)
    assert not read_uai(network, evidence).constraints


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3 0 0 0", "3 evidence samples"),
        ("1 2 3", "x2 is a categorical with values 0..2; got 3"),
        ("1 7 0", "no variable is called 'x7'"),
        ("1 2 0.5", "expected a whole number >= 0, got 0.5"),
        ("2 0 1 0 0", "observed twice"),
        ("1 0 1 2 1", "2 numbers more"),
        ("1 2 a", "line 1, word 3 of the file: expected a number, got 'a'"),
    ],
)
def test_wrong_evidence(network: Path, tmp_path: Path, text: str, message: str) -> None:
    evidence = tmp_path / "e.evid"
    evidence.write_text(text)
    with pytest.raises(ModelError, match=message):
        read_uai(network, evidence)


def test_evidence_as_mapping(network: Path) -> None:
    assert list(read_uai(network, {"x0": 1}).constraints) == ["evidence x0 = 1"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MARKOV", "FACTORS", "line 1: expected MARKOV or BAYES, got 'FACTORS'"),
        ("2 1 3", "2 0 3", "line 3, word 4 of the file: the sizes of the variables: .* >= 1, got 0"),
        ("3 0 1 2", "3 0 1 3", r"line 6, .*table 1: expected a whole number in 0\.\.2, got 3"),
        ("3 0 1 2", "3 0 2 2", "line 6, .*occurs twice in the scope of table 1"),
        ("6\n", "5\n", r"line 11, .*table 1 over \(2, 1, 3\) states has 6 entries; 5 are declared"),
        ("4 5", "-4 5", "line 13, .*table 1: an entry must be finite and >= 0, got -4"),
        ("4 5", "nan 5", "line 13, .*finite and >= 0, got nan"),
        ("4 5", "inf 5", "line 13, .*finite and >= 0, got inf"),
        ("0.25 0.75", "0 0", "line 10, .*table 0: every entry is 0"),
        ("0.25", "0,25", "line 10, .*expected a number, got '0,25'"),
        ("1\n 2\n", "1\n", "at the end: the file ends; table 2 needs 1 more numbers, 0 are left"),
        ("1\n 2\n", "1\n 2\n3", "line 16, .*1 numbers more than the 3 tables need"),
    ],
)
def test_errors_name_the_place(network: Path, old: str, new: str, message: str) -> None:
    network.write_text(NETWORK.replace(old, new, 1))
    with pytest.raises(ModelError, match=message):
        read_uai(network)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.uai: cannot be read \(No such file"):
        read_uai(tmp_path / "none.uai")


def test_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="not a text file"):
        read_uai(path)


@given(st.data())
@settings(max_examples=40)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    model = Model()
    variables = [model.categorical(f"v{i}", size) for i, size in enumerate(sizes)]
    for _ in range(data.draw(st.integers(0, 4))):
        scope = data.draw(st.lists(st.sampled_from(variables), max_size=3, unique=True))
        entry = st.one_of(st.just(-math.inf), st.floats(-600, 600))
        shape = tuple(len(v.states) for v in scope)
        values = np.array([data.draw(entry) for _ in range(math.prod(shape))]).reshape(shape)
        if scope and np.isfinite(values).any():
            model.add(table(scope, values))
    path = tmp_path_factory.mktemp("uai") / "m.uai"
    write_uai(model, path)
    again = read_uai(path)
    for point in states_of(model):
        renamed = {f"x{i}": state for i, state in enumerate(point.values())}
        assert again.value(renamed) == pytest.approx(model.value(point), rel=1e-12, abs=1e-12)


def test_every_discrete_part_becomes_a_table(tmp_path: Path) -> None:
    model = Model()
    a, b = model.categorical("a", 3), model.categorical("b", 3)
    n = model.integer("n", -1, 2)
    z = model.binary("z", shape=3)
    model.add(potts(a, b, 0.5), parity(z), gated(z[0], n, polynomial([0.0, 1.0, -0.5])))
    model.add(linear({n: 0.25}, 1.5), table([a, n], {(0, -1): 0.5, (1, 2): 0.25, (2, 0): -1.0}))
    model.add(soft(cannot_link(a, b), weight=0.75))
    model.constrain(at_most(2, z), n + a.is_(1) <= 1)
    path = tmp_path / "m.uai"
    write_uai(model, path)
    again = read_uai(path)
    points = states_of(model)
    assert len(points) == 3 * 3 * 4 * 8
    for point in points:
        renamed = {f"x{i}": v.states.index(point[name]) for i, (name, v) in enumerate(model.variables.items())}
        assert again.value(renamed) == pytest.approx(model.value(point), rel=1e-12, abs=1e-12)


def test_models_that_the_format_cannot_hold(tmp_path: Path) -> None:
    real = Model()
    real.real("r", 0, 1)
    with pytest.raises(ModelError, match="r is a real in"):
        write_uai(real, tmp_path / "m.uai")
    wide = Model()
    wide.constrain(at_most(1, wide.binary("z", shape=30)))
    with pytest.raises(ModelError, match=r"at_most.* has 1073741824 entries, at most 1000000"):
        write_uai(wide, tmp_path / "m.uai")
    steep = Model()
    steep.add(table([steep.categorical("a", 2)], [0.0, -1000.0]))
    with pytest.raises(ModelError, match=r"log-values span \[-1000, 0\]"):
        write_uai(steep, tmp_path / "m.uai")


def test_solution_files(network: Path, tmp_path: Path) -> None:
    model = read_uai(network)
    point = {"x0": 1, "x1": 0, "x2": 2}
    path = tmp_path / "m.sol"
    write_solution(model, point, path)
    assert path.read_text() == "1 0 2\n"
    assert read_solution(path, model) == point
    path.write_text("MPE\n3 1 0 2\n")
    assert read_solution(path, model) == point
    path.write_text("1 0 3\n")
    with pytest.raises(ModelError, match="x2 has 3 states"):
        read_solution(path, model)
    path.write_text("1 0\n")
    with pytest.raises(ModelError, match="the file ends"):
        read_solution(path, model)
