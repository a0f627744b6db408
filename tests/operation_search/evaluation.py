"""How well operations are found, and how well it is recognised that none does a task.

    python -m tests.operation_search.evaluation [--misses] [--split SPLIT] [QUESTIONS.jsonl …]

Without paths the questions beside this file are asked. A line holds a `question` and in `gold` all operations that a
competent person would accept as the first call, none where no operation does it; `style` and `split`, where they are
given, are reported separately. Phrases and weights are tuned on some questions and measured on others, which nobody who
tunes may read: `GATEWAY_FIND_QUESTIONS` names a file of such ones for the benchmark.
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

from gateway.operation_search.index import OperationIndex
from tests.harness.catalog import shipped_catalog

_HERE = Path(__file__).parent
OWN, UNSEEN, NOTHING = (_HERE / name for name in ("questions.jsonl", "unseen.jsonl", "nothing.jsonl"))
#: written from names, params and effects alone; split `a` was tuned on, `b` was not
FRESH = _HERE / "fresh.jsonl"
_LIMIT = 10
#: the kinds that the questions were written for: connected here, so that kinds which came later rank behind them
KINDS = frozenset(
    [
        "crm-query", "crm-records", "incident-management", "support-desk", "team-chat", "work-management",
        "workspace-notes",
    ]
)  # fmt: skip
#: that a common tokenizer makes one token of, on average
CHARACTERS_OF_A_TOKEN = 4

#: the names of operations that do a task, best first; none where no operation does it
Search = Callable[[str], Sequence[str]]


@dataclass
class Evaluation:
    """What came of asking questions."""

    #: of each question with an answer, the rank of the first right one, or None
    ranks: list[int | None] = field(default_factory=list)
    #: how many questions with an answer, and how many without, were answered by nothing
    false_nothing: int = 0
    right_nothing: int = 0
    #: how many questions have no answer
    unanswerable: int = 0
    #: milliseconds of the processor for each search
    times: list[float] = field(default_factory=list)
    #: questions whose first answer is not right: the right one's rank, and what came first
    misses: list[tuple[str, int | None, Sequence[str]]] = field(default_factory=list)

    def hits(self, places: int) -> float:
        """The share of questions whose right answer is among the first."""
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


@cache
def shipped_index() -> OperationIndex:
    """The index of the shipped kinds, made when a test first asks it."""
    return OperationIndex(shipped_catalog())


def evaluated(search: Search, questions: Iterable[Mapping[str, Any]]) -> Evaluation:
    """Ask each question once."""
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
            # An operation of a later kind may well do it.
            evaluation.right_nothing += not found or found[0].split(".")[0] not in KINDS
        if rank != 1 and (each["gold"] or found):
            evaluation.misses.append((each["question"], rank, found[:3]))
    return evaluation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[OWN, UNSEEN, NOTHING, FRESH])
    parser.add_argument("--misses", action="store_true", help="print the questions whose first answer is not right")
    parser.add_argument("--split", help="ask only the questions of this split")
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
    """All questions, and those of each style where there are several."""
    yield name, questions
    styles: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in questions:
        styles[each.get("style", "")].append(each)
    if len(styles) > 1:
        yield from ((f"  {style}", part) for style, part in styles.items())


if __name__ == "__main__":
    main()
