"""Tables: delimiters, headers, and errors that name the line and the column."""

from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

from certimap.io.delimited import read_delimited
from certimap.model.errors import ModelError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", ", "])
def test_header(tmp_path: Path, delimiter: str) -> None:
    text = "\ufeffwidth|name|height\n1|a|2.5\n\n-3e2|b|4\n".replace("|", delimiter)
    table = read_delimited(write(tmp_path, text))
    assert table.has_header
    assert table.names == ("width", "name", "height")
    assert table.column("name") == ("a", "b")
    assert table.lines == (2, 4)
    assert_array_equal(table.numbers(["height", "width"]), [[2.5, 1.0], [4.0, -300.0]])


def test_no_header(tmp_path: Path) -> None:
    table = read_delimited(write(tmp_path, "5.1,3.5,setosa\n4.9,3.0,setosa\n"))
    assert not table.has_header
    assert table.names == ("1", "2", "3")
    assert_array_equal(table.numbers(["1", "2"]), [[5.1, 3.5], [4.9, 3.0]])


def test_optional_last_column(tmp_path: Path) -> None:
    table = read_delimited(write(tmp_path, "0,1\n2,3,0.5\n"), optional=1)
    assert table.rows == (("0", "1", ""), ("2", "3", "0.5"))


def test_quoted_cells(tmp_path: Path) -> None:
    table = read_delimited(write(tmp_path, '"length, cm",kind\n1.5,"a ""b"""\n'))
    assert table.names == ("length, cm", "kind")
    assert table.column("kind") == ('a "b"',)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the table is empty"),
        ("a,b\n", "no rows below the header"),
        ("a,a\n1,2\n", "line 1, two columns are named 'a'"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, expected 2"),
        ("a,b\n1,2\n\n1,x\n", "line 4, column 'b': expected a finite number, got 'x'"),
        ("a,b\n1,\n", "line 2, column 'b': expected a finite number, got ''"),
        ("a,b\n1,nan\n", "expected a finite number, got 'nan'"),
        ("a,c\n1,2\n", "no column 'b'; the columns are a, c"),
    ],
)
def test_wrong_tables(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ModelError) as caught:
        read_delimited(path).numbers(["a", "b"])
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="not a text file"):
        read_delimited(path)
