"""How well operations are found: hit@1, hit@5, the mean reciprocal rank and the time of a search.

    python -m tests.operation_search.evaluation [--misses] [QUESTIONS.jsonl …]

Without paths the questions beside this file are asked: phrases and weights may be tuned on `questions.jsonl`, and never
on `unseen.jsonl`, which tells what tuning is worth. A line holds a `question` and in `gold` all operations that a
competent person would accept as the first call.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.operation_search.index import OperationIndex
from tests.harness.catalog import shipped_catalog

OWN, UNSEEN = (Path(__file__).with_name(name) for name in ("questions.jsonl", "unseen.jsonl"))
_LIMIT = 10
#: that a common tokenizer makes one token of, on average
CHARACTERS_OF_A_TOKEN = 4

#: the names of operations for a question, best first
Search = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Evaluation:
    """What came of asking all questions: shares from 0 to 1, and milliseconds of the processor for one search."""

    hit_1: float
    hit_5: float
    mrr: float
    p50_ms: float
    p99_ms: float
    #: questions whose first answer is not right: the right one's rank or None, and what came first
    misses: list[tuple[str, int | None, Sequence[str]]]


def questions_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def searching(index: OperationIndex) -> Search:
    return lambda question: [match.entry.name for match in index.search(question, limit=_LIMIT)]


def evaluated(search: Search, questions: Iterable[Mapping[str, Any]]) -> Evaluation:
    """Ask each question once."""
    ranks: list[int | None] = []
    times: list[float] = []
    misses = []
    for each in questions:
        started = time.thread_time()
        found = search(each["question"])
        times.append((time.thread_time() - started) * 1000)
        rank = next((place for place, name in enumerate(found, start=1) if name in each["gold"]), None)
        ranks.append(rank)
        if rank != 1:
            misses.append((each["question"], rank, found[:3]))
    times.sort()
    count = len(ranks)
    return Evaluation(
        hit_1=sum(rank == 1 for rank in ranks) / count,
        hit_5=sum(rank is not None and rank <= 5 for rank in ranks) / count,
        mrr=sum(1 / rank for rank in ranks if rank) / count,
        p50_ms=times[count // 2],
        p99_ms=times[min(count - 1, int(count * 0.99))],
        misses=misses,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[OWN, UNSEEN])
    parser.add_argument("--misses", action="store_true", help="print the questions whose first answer is not right")
    options = parser.parse_args()
    search = searching(OperationIndex(shipped_catalog()))
    for path in options.paths:
        found = evaluated(search, questions_in(path))
        if options.misses:
            for question, rank, first in found.misses:
                print(f"{rank or '-':>3}  {question}\n     {', '.join(first)}")
        print(
            f"{path.name}: hit@1 {found.hit_1:.3f}, hit@5 {found.hit_5:.3f}, MRR {found.mrr:.3f}, "
            f"p50 {found.p50_ms:.2f} ms, p99 {found.p99_ms:.2f} ms"
        )


if __name__ == "__main__":
    main()
