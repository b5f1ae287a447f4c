"""`certimap topics`: constrained topics of texts or counts, with a proof."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from certimap.cli.corpora import CORPUS, CountedCorpus, Counting, proof_details, read_corpus, read_word_rows
from certimap.cli.exits import exit_for, fail, usage_errors
from certimap.cli.files import check_folders, relative_to_folder, save_certificate
from certimap.cli.options import Jobs, ProofFile, Quiet, Report, SearchSeed, Starts, TimeLimit, Tolerance
from certimap.cli.output import plain_console, print_answer
from certimap.estimators.errors import NoFeasiblePointError
from certimap.estimators.latent_dirichlet import LatentDirichletMAP
from certimap.report.html import MissingExtraError, require_extra, topics_html
from certimap.report.log import status_line
from certimap.report.text import plural
from certimap.report.topics import TopicReport


def topics_command(
    corpus: Annotated[
        Path,
        typer.Argument(
            help="Folder of texts, file with a document per line, or counts (.csv, .tsv, .mtx, .npz).", exists=True
        ),
    ],
    topics: Annotated[int, typer.Option("--topics", "-k", help="Largest number of topics.", min=1)],
    doc_topic_prior: Annotated[
        float, typer.Option("--alpha", help="Concentration of a document's topics, >= 1.")
    ] = 1.1,
    topic_word_prior: Annotated[float, typer.Option("--eta", help="Concentration of a topic's words, >= 1.")] = 1.1,
    max_words: Annotated[int | None, typer.Option(help="Count only the most frequent words.", min=1)] = None,
    min_word_documents: Annotated[int, typer.Option(help="Count only words of so many documents.", min=1)] = 1,
    stop_words: Annotated[Literal["english", "none"], typer.Option(help="Words to leave out.")] = "english",
    vocabulary: Annotated[
        Path | None, typer.Option(help="Names of a matrix's columns, a line each.", exists=True, dir_okay=False)
    ] = None,
    must_link: Annotated[
        Path | None,
        typer.Option(
            help="Pairs of words to keep in one topic; a third column is the weight of a soft link.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    cannot_link: Annotated[
        Path | None, typer.Option(help="Pairs of words to keep apart, likewise.", exists=True, dir_okay=False)
    ] = None,
    seed_words: Annotated[
        Path | None, typer.Option(help="Words and their topics, likewise.", exists=True, dir_okay=False)
    ] = None,
    fixed_tokens: Annotated[
        Path | None, typer.Option(help="Documents, words and their topics, likewise.", exists=True, dir_okay=False)
    ] = None,
    max_topics: Annotated[int | None, typer.Option(help="Most topics of a document.", min=1)] = None,
    min_documents: Annotated[int | None, typer.Option(help="Least documents of a topic.", min=0)] = None,
    tol: Tolerance = 1e-3,
    time_limit: TimeLimit = None,
    max_nodes: Annotated[int, typer.Option(help="Stop the proof after this many nodes.", min=1)] = 100_000,
    starts: Starts = 10,
    seed: SearchSeed = 0,
    jobs: Jobs = 1,
    report: Report = None,
    certificate: ProofFile = None,
    output: Annotated[Path | None, typer.Option(help="Write the topics of every document here (CSV).")] = None,
    quiet: Quiet = False,
) -> None:
    """Find topics in texts under constraints, with a proof."""
    console = plain_console()
    counting = Counting(
        stop_words=None if stop_words == "none" else stop_words,
        max_words=max_words,
        least_documents=min_word_documents,
        vocabulary=None if vocabulary is None else str(vocabulary),
    )
    try:
        with usage_errors():
            check_folders(report, certificate, output)
            if report is not None:
                require_extra()
            counted = read_corpus(corpus, counting)
            pairs = ("word", "word")
            together, apart = (read_word_rows(path, counted, pairs) for path in (must_link, cannot_link))
            seeds = read_word_rows(seed_words, counted, ("word", "topic"))
            tokens = read_word_rows(fixed_tokens, counted, ("document", "word", "topic"))
        if not quiet:
            size = f"{plural(counted.counts.shape[0], 'document')}, {plural(counted.counts.shape[1], 'word')}"
            console.print(f"data        {corpus}: {size}; {counted.description}")
        model = LatentDirichletMAP(
            topics,
            doc_topic_prior=doc_topic_prior,
            topic_word_prior=topic_word_prior,
            tol=tol,
            max_nodes=max_nodes,
            time_limit=time_limit,
            n_init=starts,
            random_state=seed,
            n_jobs=jobs,
            verbose=0 if quiet else 1,
        ).fit(
            counted.counts,
            vocabulary=counted.words,
            must_link_words=together,
            cannot_link_words=apart,
            seed_words=seeds,
            fixed_tokens=tokens,
            max_topics_per_document=max_topics,
            min_documents_per_topic=min_documents,
        )
    except NoFeasiblePointError as error:
        fail(error, exit_for(error.result))
    except (MissingExtraError, ValueError) as error:
        fail(error)
    summary = TopicReport(
        title=f"Topics of {corpus.name}",
        problem=model.problem_,
        constraints=model.constraints_,
        words=counted.word_names,
        result=model.result_,
        tolerance=tol,
        seed=seed,
        preparation=counted.description,
        certificate_path=None if certificate is None else str(certificate),
    )
    if quiet:
        console.print(status_line(summary.result, tol))
    print_topics(console, summary)
    with usage_errors():
        if certificate is not None:
            if vocabulary is not None:  # as the certificate has to name it
                counting = replace(counting, vocabulary=relative_to_folder(vocabulary, corpus))
            details = {CORPUS: proof_details(summary.problem, summary.constraints, counting)}
            save_certificate(console, summary.result.certificate, certificate, corpus, details)
        if report is not None:
            report.write_text(topics_html(summary), encoding="utf-8")
            console.print(f"report      {report}")
        if output is not None:
            _write_documents(model, counted, output)
    raise typer.Exit(exit_for(summary.result))


def print_topics(console: Console, summary: TopicReport) -> None:
    """Value and bound, the topics, and how the constraints fared."""
    rows = [
        f"{row.topic:5d}  {row.tokens:6d}  {row.documents:9d}  {', '.join(row.words) or 'empty'}"
        for row in summary.topics()
    ]
    print_answer(console, summary, ["topic  tokens  documents  most probable words", *rows])


def _write_documents(model: LatentDirichletMAP, corpus: CountedCorpus, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["document", *(f"topic {k}" for k in range(len(model.components_)))])
        for name, shares in zip(corpus.documents, model.doc_topic_, strict=True):
            writer.writerow([name, *(f"{share:.6g}" for share in shares)])
