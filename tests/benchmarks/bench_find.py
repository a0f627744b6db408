"""Finding operations by plain words, beside a plain BM25 over names, descriptions and params.

    python -m tests.benchmarks --only find

Targets are shares of the questions in `tests/operation_search/unseen.jsonl`, on which nothing was tuned, and
milliseconds of the processor for one search.
"""

import math
import re
import time
from collections import Counter

from gateway.kinds.loading import load_catalog
from gateway.operation_search.entries import OperationEntry, entries_of
from gateway.operation_search.index import OperationIndex
from tests.benchmarks.report import Figure, Report
from tests.operation_search.evaluation import OWN, UNSEEN, Search, evaluated, questions_in, searching

HIT_1, HIT_5, P99_MS = 0.85, 0.98, 5.0
#: the usual constants of BM25
K1, B = 1.2, 0.75
ROUNDS = 20


async def run(quick: bool) -> Report:
    """Hits against their aims, and the time of a search."""
    catalog = load_catalog()
    started = time.thread_time()
    index = OperationIndex(catalog)
    built = time.thread_time() - started
    unseen, tuned = questions_in(UNSEEN), questions_in(OWN)
    ours, plain = evaluated(searching(index), unseen), evaluated(plain_bm25(list(entries_of(catalog))), unseen)
    timed = evaluated(searching(index), [*unseen, *tuned] * (1 if quick else ROUNDS))
    known = evaluated(searching(index), tuned)
    report = Report("Finding operations")
    report.figures += [
        Figure("hit@1, against its aim", ours.hit_1, HIT_1, "", at_least=1),
        Figure("hit@5, against its aim", ours.hit_5, HIT_5, "", at_least=1),
        Figure("p99 of a search, against its aim", timed.p99_ms, P99_MS, "ms", at_most=1),
        Figure("hit@1, against plain BM25", ours.hit_1, plain.hit_1, ""),
        Figure("hit@5, against plain BM25", ours.hit_5, plain.hit_5, ""),
        Figure("p50 of a search, against plain BM25", timed.p50_ms, plain.p50_ms, "ms"),
    ]
    report.notes += [
        f"{len(unseen)} unseen questions, {len(index.entries)} operations; MRR {ours.mrr:.3f}, plain {plain.mrr:.3f}.",
        f"On the {len(tuned)} questions that phrases and weights were tuned on: hit@1 {known.hit_1:.3f}, hit@5 "
        f"{known.hit_5:.3f}.",
        f"The index is built in {built * 1000:.0f} ms when a process starts.",
    ]
    return report


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
