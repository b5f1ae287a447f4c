"""`certimap topics`: texts or counts in, topics, reports, certificates and exit codes out."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import save_npz
from tests.corpus import COUNTS, TEXTS, WORDS
from tests.report.pages import Page
from typer.testing import CliRunner

from certimap import Certificate
from certimap.cli.main import app

RUN = CliRunner()
FAST = ["--starts", "6"]
COUNTING = ["--min-word-documents", "2"]
SMALL = ("sail wind sail", "wind sail", "bread salt", "salt bread bread")


@pytest.fixture
def unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every corpus is too large for a proof."""
    monkeypatch.setattr("certimap.topics.proof.MAX_CELLS", 0)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A document per line, and lines without any."""
    path = tmp_path_factory.mktemp("data") / "texts.txt"
    path.write_text("\n\n".join(TEXTS) + "\n")
    return path


@pytest.fixture
def proved(tmp_path: Path) -> Path:
    """A folder with a small folder of texts and the certificate of its topics."""
    texts = tmp_path / "home" / "texts"
    (texts / "more").mkdir(parents=True)
    for name, text in zip(("a.txt", "b.txt", "more/c.txt", "more/d.txt"), SMALL, strict=True):
        (texts / name).write_text(text)
    (texts / ".hidden").write_text("not a document")
    links = tmp_path / "links.csv"
    links.write_text("sail,wind\n")
    proof = tmp_path / "home" / "proof.json"
    options = ["--must-link", str(links), "--certificate", str(proof), "--starts", "3", "-q"]
    run = RUN.invoke(app, ["topics", str(texts), "-k", "2", *options])
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("status      OPTIMAL")
    assert f"verify: certimap verify {proof}" in run.stdout
    return tmp_path / "home"


def shares_in(path: Path) -> tuple[list[str], np.ndarray]:
    with path.open() as file:
        header, *rows = csv.reader(file)
    assert header[:2] == ["document", "topic 0"]
    return [row[0] for row in rows], np.array([[float(cell) for cell in row[1:]] for row in rows])


@pytest.mark.usefixtures("unproved")
def test_constrained_topics(lines: Path, tmp_path: Path) -> None:
    names = ("must", "cannot", "seed", "fixed")
    together, apart, seeds, tokens = (tmp_path / f"{name}.csv" for name in names)
    together.write_text("bread,ship\nsoil,salt,0.5\n")
    apart.write_text("butter;flour\n")
    seeds.write_text("rope,2\nsoil,0\n")
    tokens.write_text("0,garden,1,0.25\n")
    page, shares = tmp_path / "r.html", tmp_path / "d.csv"
    options = ["--must-link", str(together), "--cannot-link", str(apart), "--seed-words", str(seeds)]
    options += ["--fixed-tokens", str(tokens), "--max-topics", "2", "--min-documents", "4"]
    options += ["--report", str(page), "--output", str(shares), "--certificate", str(tmp_path / "c.json")]
    run = RUN.invoke(app, ["topics", str(lines), "-k", "3", *COUNTING, *FAST, *options])
    assert run.exit_code == 0, run.output
    assert f"{lines}: 24 documents, 24 words; 24 lines, words of two or more letters or digits" in run.stdout
    heading = "1 must-link, 1 cannot-link, 2 seed, 1 soft must-link, 1 soft fixed, topics per document <= 2, documents"
    assert f"topics  D=24 V=24 K=3  128 tokens  alpha 1.1 eta 1.1 | {heading}" in run.stdout
    assert "topic  tokens  documents  most probable words" in run.stdout
    assert "constraints 6 of 6 hard constraints satisfied; " in run.stdout
    assert "no certificate written: no upper bound was proved" in run.stdout
    names_of_documents, theta = shares_in(shares)
    assert names_of_documents == [str(d) for d in range(24)]
    assert np.allclose(theta.sum(axis=1), 1.0, atol=1e-5)
    report = Page(page.read_text())
    assert [row[0] for row in report.tables["topics"]] == ["topic", "0", "1", "2"]
    assert "rope" in report.tables["topics"][3][3]
    assert ["must-link", "'bread', 'ship'", "yes"] in report.tables["constraints"]
    assert ["constraints", heading + " per topic >= 4"] in report.tables["problem"]
    assert set(report.images) == {"convergence"}
    assert "This topic assignment has the log-posterior" in report.text
    assert "No proof was saved with this report." in report.text


@pytest.mark.usefixtures("unproved")
@pytest.mark.parametrize("ending", ["csv", "mtx", "npz"])
def test_counts_in_every_format(lines: Path, tmp_path: Path, ending: str) -> None:
    path, words = tmp_path / f"counts.{ending}", tmp_path / "words.txt"
    words.write_text("\n".join(WORDS) + "\n")
    if ending == "csv":
        path.write_text("\n".join([",".join(WORDS), *(",".join(map(str, row)) for row in COUNTS.toarray())]) + "\n")
    elif ending == "mtx":
        mmwrite(path, COUNTS)
    else:
        save_npz(path, COUNTS)
    named = [] if ending == "csv" else ["--vocabulary", str(words)]
    runs = [
        RUN.invoke(app, ["topics", str(source), "-k", "3", "-q", *FAST, *options])
        for source, options in ((lines, COUNTING), (path, named))
    ]
    assert [run.exit_code for run in runs] == [0, 0], runs[1].output
    assert runs[0].stdout == runs[1].stdout
    if not named:
        return
    links = tmp_path / "links.csv"
    links.write_text("0,5\n")
    run = RUN.invoke(app, ["topics", str(path), "-k", "2", *FAST, "--must-link", str(links)])
    assert run.exit_code == 0, run.output
    assert "24 words; counts as given" in run.stdout
    assert "1 of 1 hard constraint satisfied" in run.stdout


def test_certificate_is_verified_from_the_corpus(proved: Path, tmp_path: Path) -> None:
    moved = proved.rename(tmp_path / "elsewhere")
    run = RUN.invoke(app, ["verify", str(moved / "proof.json")])
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith(f"model       {moved / 'texts'}: 4 text files, words of two or more letters")
    assert "topics  D=4 V=4 K=2  10 tokens  alpha 1.1 eta 1.1 | 1 must-link" in run.stdout
    assert "VERIFIED    OPTIMAL" in run.stdout


def test_other_corpus_or_false_claim_is_rejected(proved: Path) -> None:
    path = proved / "proof.json"
    proof = Certificate.load(path)
    changed = {**proof.details["corpus"], "constraints": {**proof.details["corpus"]["constraints"], "min_documents": 1}}
    for false in (
        replace(proof, upper_bound=proof.upper_bound - 0.5),
        replace(proof, details={**proof.details, "corpus": changed}),
    ):
        false.save(path)
        run = RUN.invoke(app, ["verify", str(path)])
        assert run.exit_code == 1, run.output
        assert "REJECTED" in run.stdout
    proof.save(path)
    (proved / "texts" / "a.txt").write_text("sail wind wind")
    run = RUN.invoke(app, ["verify", str(path)])
    assert run.exit_code == 1
    assert "made for another model" in run.stdout
    replace(proof, details={**proof.details, "corpus": {"counting": {}}}).save(path)
    run = RUN.invoke(app, ["verify", str(path)])
    assert run.exit_code == 2
    assert "the certificate's description of its model does not fit" in run.stderr


def test_infeasible_constraints_are_named(lines: Path, tmp_path: Path) -> None:
    apart = tmp_path / "cl.csv"
    apart.write_text("soil,water\nwater,root\nsoil,root\n")
    run = RUN.invoke(app, ["topics", str(lines), "-k", "2", *COUNTING, "--cannot-link", str(apart), "-q"])
    assert run.exit_code == 3
    assert "no topic assignment satisfies the constraints. These exclude each other: cannot_link_words" in run.stderr
    assert "Traceback" not in run.stderr


def test_wrong_usage(lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, empty = tmp_path / "rows.csv", tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "bad.mtx").write_text("no matrix")
    (tmp_path / "half.csv").write_text("a,b\n1,0.5\n")
    (tmp_path / "blank.txt").write_text("\n\n")
    (tmp_path / "the.txt").write_text("the\nof the\n")
    for corpus, content, options, message in [
        (lines, "bread,stone", ["--must-link", str(rows)], "'stone' is not in the vocabulary"),
        (lines, "bread", ["--must-link", str(rows)], "expected the columns word, word, or these and a weight; got 1"),
        (lines, "bread,one", ["--seed-words", str(rows)], "line 1, expected a number for the topic, got 'one'"),
        (lines, "bread,7", ["--seed-words", str(rows)], "a topic is one of 0..1"),
        (lines, "99,bread,0", ["--fixed-tokens", str(rows)], "line 1, there is no document '99'"),
        (lines, "", ["--vocabulary", str(rows)], "--vocabulary names the columns of a matrix of counts"),
        (lines, "", ["--alpha", "0.5"], "doc_topic_prior must be a finite number >= 1, got 0.5"),
        (lines, "", ["--report", str(tmp_path / "none" / "r.html")], "does not exist"),
        (lines, "", ["--output", str(tmp_path)], "Is a directory"),
        (empty, "", [], "the folder holds no files"),
        (tmp_path / "bad.mtx", "", [], "cannot be read as a matrix"),
        (tmp_path / "half.csv", "", [], "X must be whole numbers of tokens >= 0, got 0.5"),
        (tmp_path / "half.csv", "a", ["--vocabulary", str(rows)], "1 word, but"),
        (tmp_path / "blank.txt", "", [], "the file is empty"),
        (tmp_path / "the.txt", "", [], "empty vocabulary"),
    ]:
        rows.write_text(content)
        counting = COUNTING if corpus is lines else []
        run = RUN.invoke(app, ["topics", str(corpus), "-k", "2", *counting, *options, *FAST])
        assert run.exit_code == 2, (options, run.output)
        assert message in run.stderr, run.stderr
        assert "Traceback" not in run.stderr
    monkeypatch.setattr("certimap.report.html.find_spec", lambda name: None)
    run = RUN.invoke(app, ["topics", str(lines), "-k", "2", "--report", str(tmp_path / "r.html")])
    assert (run.exit_code, run.stdout) == (2, "")
    assert "pip install 'certimap[report]'" in run.stderr
