"""Measures how often the search finds the right operation, and how often it recognises that no operation does a task.

    python -m tests.kinds.find.evaluation [--misses] [--split SPLIT] [QUESTIONS.jsonl …]

Without paths the questions beside this file are used. Each line has a `question`, and in `gold` all operations that an
expert would accept as the first call; it is empty if no operation does the task. Results are reported for each `style`.
Phrases and weights are tuned on some questions and measured on others, which those who tune must not read:
`GATEWAY_FIND_QUESTIONS` is the path of a file with such questions, for the benchmark.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gateway.kinds.find.index import OperationIndex, index_of
from tests.harness.catalog import shipped_catalog

_HERE = Path(__file__).parent
OWN, UNSEEN, NOTHING = (_HERE / name for name in ("questions.jsonl", "unseen.jsonl", "nothing.jsonl"))
#: questions written only from names, params and effects; split `a` was used for tuning, `b` was not
FRESH = _HERE / "fresh.jsonl"
_LIMIT = 10
#: the kinds that the questions were written for; here they are connected, so that later kinds rank after them
KINDS = frozenset(
    [
        "crm-query", "crm-records", "incident-management", "support-desk", "team-chat", "work-management",
        "workspace-notes",
    ]
)  # fmt: skip
#: average number of characters of a token of common tokenizers
CHARACTERS_OF_A_TOKEN = 4

#: returns the names of operations that do a task, best first
Search = Callable[[str], Sequence[str]]


@dataclass
class Evaluation:
    """The results for a set of questions."""

    #: for each question with an answer, the rank of the first right operation, or None
    ranks: list[int | None] = field(default_factory=list)
    #: number of questions with an answer for which nothing was found
    false_nothing: int = 0
    #: number of questions without an answer for which nothing was found
    right_nothing: int = 0
    #: number of questions without an answer
    unanswerable: int = 0
    #: milliseconds of processor time of each search
    times: list[float] = field(default_factory=list)
    #: questions whose first result is wrong, with the rank of the first right operation, and the first results
    misses: list[tuple[str, int | None, Sequence[str]]] = field(default_factory=list)

    def hits(self, places: int) -> float:
        """The share of questions with a right operation among the first `places`."""
        return sum(rank is not None and rank <= places for rank in self.ranks) / max(len(self.ranks), 1)

    @property
    def mrr(self) -> float:
        return sum(1 / rank for rank in self.ranks if rank) / max(len(self.ranks), 1)

    @property
    def nothing(self) -> float:
        """The share of questions without an answer for which nothing was found."""
        return self.right_nothing / max(self.unanswerable, 1)

    @property
    def refused(self) -> float:
        """The share of questions with an answer for which nothing was found."""
        return self.false_nothing / max(len(self.ranks), 1)

    def percentile(self, share: float) -> float:
        times = sorted(self.times)
        return times[min(len(times) - 1, int(len(times) * share))]

    def __str__(self) -> str:
        found = f"hit@1 {self.hits(1):.3f}, hit@5 {self.hits(5):.3f}, MRR {self.mrr:.3f}, refused {self.refused:.3f}"
        parts = [f"{len(self.ranks)} with an answer: {found}"] if self.ranks else []
        if self.unanswerable:
            parts.append(f"{self.unanswerable} without: recognised {self.nothing:.3f}")
        return "; ".join([*parts, f"p50 {self.percentile(0.5):.2f} ms, p99 {self.percentile(0.99):.2f} ms"])


def questions_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def searching(index: OperationIndex) -> Search:
    return lambda question: [m.entry.name for m in index.search(question, limit=_LIMIT, connected=KINDS).data]


def offering(index: OperationIndex) -> Search:
    """The operations that a search names, whether or not it says that one of them does the task."""

    def search(question: str) -> list[str]:
        found = index.search(question, limit=_LIMIT, connected=KINDS)
        return [match.entry.name for match in found.data or found.closest]

    return search


@cache
def shipped_index() -> OperationIndex:
    """The index of the shipped kinds, which compares words and, with the extra `semantic`, their meanings."""
    return index_of(shipped_catalog())


@cache
def index_of_words() -> OperationIndex:
    """The index of the shipped kinds that compares words alone."""
    return OperationIndex(shipped_catalog())


def evaluated(search: Search, questions: Iterable[Mapping[str, Any]]) -> Evaluation:
    """Search once for each question."""
    evaluation = Evaluation()
    for each in questions:
        started = time.thread_time()
        found = search(each["question"])
        evaluation.times.append((time.thread_time() - started) * 1000)
        rank = next((place for place, name in enumerate(found, start=1) if name in each["gold"]), None)
        if each["gold"]:
            evaluation.ranks.append(rank)
            evaluation.false_nothing += not found
        else:
            evaluation.unanswerable += 1
            # An operation of a later kind may do the task.
            evaluation.right_nothing += not found or found[0].split(".")[0] not in KINDS
        if rank != 1 and (each["gold"] or found):
            evaluation.misses.append((each["question"], rank, found[:3]))
    return evaluation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[OWN, UNSEEN, NOTHING, FRESH])
    parser.add_argument("--misses", action="store_true", help="print the questions whose first result is wrong")
    parser.add_argument("--split", help="use only the questions of this split")
    options = parser.parse_args()
    search = searching(shipped_index())
    for path in options.paths:
        questions = [each for each in questions_in(path) if options.split in (None, each.get("split"))]
        for name, part in _by_style(path.name, questions):
            found = evaluated(search, part)
            print(f"{name}: {found}")
            if options.misses and name == path.name:
                for question, rank, first in found.misses:
                    print(f"{rank or '-':>3}  {question}\n     {', '.join(first) or 'nothing'}")


def _by_style(name: str, questions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """All questions, and those of each style if there are several styles."""
    yield name, questions
    styles: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in questions:
        styles[each.get("style", "")].append(each)
    if len(styles) > 1:
        yield from ((f"  {style}", part) for style, part in styles.items())


if __name__ == "__main__":
    main()
