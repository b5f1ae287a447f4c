"""What `certimap topics` reads: texts or counts, and constraints on their words; and the model of a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import mmread
from scipy.sparse import csr_array, load_npz
from sklearn.feature_extraction.text import CountVectorizer

from certimap.io.delimited import read_delimited
from certimap.io.source import read_text
from certimap.model.errors import ModelError
from certimap.model.model import Model
from certimap.report.text import plural
from certimap.report.topics import describe_topics
from certimap.topics.constraints import TopicConstraints
from certimap.topics.factor import topic_model
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem

MATRICES = (".csv", ".tsv", ".mtx", ".npz")
CORPUS = "corpus"  # where a certificate says how its model comes from texts or counts
TOKEN = r"(?u)\b\w\w+\b"


@dataclass(frozen=True)
class Counting:
    """How texts become counts; `vocabulary` is the file with the names of a matrix's columns."""

    stop_words: str | None = None
    max_words: int | None = None
    least_documents: int = 1
    vocabulary: str | None = None


@dataclass(frozen=True, eq=False)
class CountedCorpus:
    """Tokens of words in documents.

    Attributes:
        counts: shape (documents, words).
        words: names of the columns, or None.
        documents: names of the rows: files of a folder, else numbers from 0.
        description: how the counts came about.
    """

    counts: csr_array
    words: tuple[str, ...] | None
    documents: tuple[str, ...]
    description: str

    @property
    def word_names(self) -> tuple[str, ...]:
        """The words, or their numbers."""
        return tuple(str(v) for v in range(self.counts.shape[1])) if self.words is None else self.words


def read_corpus(path: Path, counting: Counting) -> CountedCorpus:
    """A folder of texts, a file with a document per line, or a matrix of counts (by its ending)."""
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file() and not f.name.startswith("."))
        if not files:
            raise ModelError(f"{path}: the folder holds no files")
        names = tuple(f.relative_to(path).as_posix() for f in files)
        return _count([read_text(f) for f in files], names, counting, path, "text files")
    if path.suffix.lower() in MATRICES:
        return _read_matrix(path, counting)
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        raise ModelError(f"{path}: the file is empty")
    return _count(lines, tuple(str(d) for d in range(len(lines))), counting, path, "lines")


def _count(texts: Sequence[str], names: tuple[str, ...], counting: Counting, path: Path, source: str) -> CountedCorpus:
    if counting.vocabulary is not None:
        raise ModelError(f"--vocabulary names the columns of a matrix of counts; {path} holds texts")
    vectorizer = CountVectorizer(
        stop_words=counting.stop_words,
        max_features=counting.max_words,
        min_df=counting.least_documents,
        token_pattern=TOKEN,
    )
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError as error:
        raise ModelError(f"{path}: {error}") from None
    words = tuple(str(word) for word in vectorizer.get_feature_names_out())
    steps = [f"{len(texts)} {source}", "words of two or more letters or digits, in lower case"]
    if counting.stop_words is not None:
        steps.append(f"{counting.stop_words} stop words left out")
    if counting.least_documents > 1:
        steps.append(f"words in at least {counting.least_documents} documents")
    if counting.max_words is not None:
        steps.append(f"the {len(words)} most frequent words")
    return CountedCorpus(csr_array(counts), words, names, ", ".join(steps))


def _read_matrix(path: Path, counting: Counting) -> CountedCorpus:
    ending = path.suffix.lower()
    words: tuple[str, ...] | None = None
    if ending in (".csv", ".tsv"):
        table = read_delimited(path)
        counts: Any = csr_array(table.numbers(table.names))
        words = table.names if table.has_header else None
    else:
        try:
            counts = csr_array(mmread(path) if ending == ".mtx" else load_npz(path))
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"{path}: cannot be read as a matrix ({error})") from None
    if counting.vocabulary is not None:
        words = tuple(line.strip() for line in read_text(counting.vocabulary).splitlines() if line.strip())
        if len(words) != counts.shape[1]:
            raise ModelError(
                f"{counting.vocabulary}: {plural(len(words), 'word')}, but {path} has {counts.shape[1]} columns"
            )
    names = tuple(str(d) for d in range(counts.shape[0]))
    return CountedCorpus(counts, words, names, "counts as given")


def read_word_rows(path: Path | None, corpus: CountedCorpus, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of words, topics and documents, with a weight at the end of soft ones; the file has no header.

    Words are given by name, or by number where the corpus has no names; documents by their name.
    """
    if path is None:
        return []
    table = read_delimited(path, optional=1, header=False)
    width = len(columns)
    if len(table.names) not in (width, width + 1):
        shape = ", ".join(columns)
        raise ModelError(f"{path}: expected the columns {shape}, or these and a weight; got {len(table.names)}")
    number = {name: d for d, name in enumerate(corpus.documents)}
    rows: list[tuple[Any, ...]] = []
    for i, cells in enumerate(table.rows):
        row: list[Any] = []
        for column, cell in zip((*columns, "weight"), cells, strict=False):
            if column == "weight" and not cell:
                continue
            if column == "word" and corpus.words is not None:
                row.append(cell)
            elif column == "document":
                if cell not in number:
                    raise table.error(i, f"there is no document {cell!r}")
                row.append(number[cell])
            else:
                row.append(_number(cell))
                if row[-1] is None:
                    raise table.error(i, f"expected a number for the {column}, got {cell!r}")
        rows.append(tuple(row))
    return rows


def proof_details(problem: TopicProblem, constraints: TopicConstraints, counting: Counting) -> dict[str, Any]:
    """What a certificate says about its model, so that this can be built again from the corpus."""
    restrictions = {name: value for name, value in asdict(constraints).items() if name != "word_names"}
    prior = problem.prior
    return {
        "topics": problem.n_topics,
        "prior": [prior.alpha, prior.eta],
        "counting": asdict(counting),
        "constraints": restrictions,
    }


def model_of_proof(path: Path, details: Mapping[str, Any]) -> tuple[Model, str]:
    """The model that `proof_details` describes, of the corpus at the path; and what it is, in one line."""
    try:
        counting = dict(details["counting"])
        if counting["vocabulary"] is not None:
            counting["vocabulary"] = str(path.parent / counting["vocabulary"])
        corpus = read_corpus(path, Counting(**counting))
        constraints = TopicConstraints(word_names=corpus.words, **details["constraints"])
        problem = constraints.problem(corpus.counts, TopicPrior(*details["prior"]), details["topics"])
        return topic_model(
            problem
        ), f"{path}: {corpus.description}\n            {describe_topics(problem, constraints)}"
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the certificate's description of its model does not fit {path}: {error}") from None


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
