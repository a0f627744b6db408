"""Finding operations by plain words, beside a plain BM25 over names, descriptions and params.

    GATEWAY_FIND_QUESTIONS=QUESTIONS.jsonl python -m tests.benchmarks --only find

The file holds questions that phrases and weights were not tuned on (`tests/kinds/find/evaluation.py` describes
it); of one with splits those of `check` are asked. Targets are shares of these questions, and milliseconds of the
processor for one search. Without the file only the questions of this repository are asked, most of which have been
tuned on.
"""

import math
import os
import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.kinds.find.entries import OperationEntry, entries_of
from gateway.kinds.find.index import index_of
from gateway.kinds.loading import load_catalog
from tests.benchmarks.report import Figure, Report
from tests.kinds.find.evaluation import (
    FRESH,
    NOTHING,
    OWN,
    UNSEEN,
    Search,
    evaluated,
    offering,
    questions_in,
    searching,
)

#: shares of the questions with an answer, of those without for which nothing is found, and of those refused wrongly
HIT_1, HIT_5, RECOGNISED, REFUSED = 0.83, 0.97, 0.8, 0.03
P99_MS = 5.0
#: the usual constants of BM25
K1, B = 1.2, 0.75
ROUNDS = 20
_VARIABLE = "GATEWAY_FIND_QUESTIONS"


async def run(quick: bool) -> Report:
    """Hits against their aims, and the time of a search."""
    catalog = load_catalog()
    started = time.thread_time()
    index = index_of(catalog)
    built = time.thread_time() - started
    own = [each for path in (OWN, UNSEEN, NOTHING) for each in questions_in(path)]
    fresh = [each for each in questions_in(FRESH) if each["split"] == "b"]
    ours, known = searching(index), evaluated(searching(index), own)
    plain = plain_bm25(list(entries_of(catalog)))
    timed, timed_plain = evaluated(ours, own * (1 if quick else ROUNDS)), evaluated(plain, own)
    report = Report("Finding operations")
    report.figures += [
        Figure("p99 of a search, against its aim", timed.percentile(0.99), P99_MS, "ms", at_most=1),
        Figure("p50 of a search, against plain BM25", timed.percentile(0.5), timed_plain.percentile(0.5), "ms"),
    ]
    report.notes += [
        f"{len(index.entries)} operations. The index is built in {built * 1000:.0f} ms, at the first search.",
        f"On the questions of this repository, which were tuned on: {known}.",
        f"On those of it that were not tuned on: {evaluated(ours, fresh)}.",
    ]
    _measure_unseen(report, ours, offering(index), plain)
    return report


def _measure_unseen(report: Report, ours: Search, named: Search, plain: Search) -> None:
    """The figures of questions that were not tuned on, or a note why there are none.

    `named` are the operations that a search names although it says that none of them does the task.
    """
    path = os.environ.get(_VARIABLE)
    if path is None:
        report.notes.append(f"Hits were not measured: {_VARIABLE} names no file of questions that were not tuned on.")
        return
    questions = _unseen(Path(path))
    found, offered, baseline = (evaluated(each, questions) for each in (ours, named, plain))
    report.figures += [
        Figure("hit@1, against its aim", offered.hits(1), HIT_1, "", at_least=1),
        Figure("hit@5, against its aim", offered.hits(5), HIT_5, "", at_least=1),
        Figure(
            "tasks without an operation that are recognised, against its aim", found.nothing, RECOGNISED, "", at_least=1
        ),
        Figure("answerable questions refused, against its aim", found.refused, REFUSED, "", at_most=1),
        Figure("hit@1, against plain BM25", offered.hits(1), baseline.hits(1), ""),
        Figure("hit@5, against plain BM25", offered.hits(5), baseline.hits(5), ""),
    ]
    report.notes.append(f"On {len(questions)} questions that were not tuned on: {found}.")
    report.notes.append("A hit against its aim is one among the operations that a search names, also where it refuses.")


def _unseen(path: Path) -> list[Mapping[str, Any]]:
    return [each for each in questions_in(path) if each.get("split", "check") == "check"]


def plain_bm25(entries: list[OperationEntry]) -> Search:
    """BM25 (Robertson and Zaragoza 2009) over all words, none counting more for its place."""
    texts = [Counter(_words(_text(entry))) for entry in entries]
    mean = sum(text.total() for text in texts) / len(texts)
    having = Counter(word for text in texts for word in text)
    rarity = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in having.items()}

    def score(text: Counter[str], asked: list[str]) -> float:
        norm = K1 * (1 - B + B * text.total() / mean)
        return sum(rarity[word] * text[word] * (K1 + 1) / (text[word] + norm) for word in asked if word in text)

    def search(question: str) -> list[str]:
        asked = _words(question)
        ranked = sorted(zip(entries, texts, strict=True), key=lambda pair: -score(pair[1], asked))
        return [entry.name for entry, _ in ranked[:10]]

    return search


def _text(entry: OperationEntry) -> str:
    params = " ".join(entry.schema.get("properties", {}))
    return f"{entry.name} {entry.title} {entry.entity.description} {entry.description} {params}"


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
