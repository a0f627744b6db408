"""The common parts of storms over long work: the report, and the run from the command line."""

import argparse
import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.faults.strikes import Strikes


@dataclass
class LongWorkReport:
    """The result of a storm over long work."""

    #: what was run, such as `20 batches of 400 operations`
    amount: str
    #: kind of work → the number of ends in each state
    ended: dict[str, Counter[str]] = field(default_factory=dict)
    strikes: Counter[str] = field(default_factory=Counter)
    #: further counts by name
    counts: Counter[str] = field(default_factory=Counter)
    #: work without an end or a result, work that was done twice, results that the application denies
    lost: int = 0
    doubled: int = 0
    untrue: int = 0
    #: a line about each that was lost, for people
    details: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.untrue)

    def add_end(self, name: str, state: str) -> None:
        self.ended.setdefault(name, Counter())[state] += 1

    def finish(self, strikes: Strikes, seconds: float) -> "LongWorkReport":
        """The report with the strikes and the duration."""
        self.strikes = Counter(strike.fault.name for strike in strikes.all)
        self.seconds = seconds
        return self

    def table(self) -> str:
        """The report as lines of text."""
        rows = {
            "amount": self.amount,
            "faults": _listed(self.strikes),
            **{f"{name} ended": _listed(states) for name, states in self.ended.items()},
            **{name: str(count) for name, count in self.counts.items()},
            "lost, doubled, untrue": f"{self.lost}, {self.doubled}, {self.untrue}",
            "seconds": f"{self.seconds:.0f}",
        }
        return "\n".join([*(f"{name:<24}{value}" for name, value in rows.items()), *self.details])


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def run_alone(doc: str | None, storm: Callable[..., Coroutine[Any, Any, LongWorkReport]], **sizes: int) -> int:
    """Run one storm with the sizes of the command line, and print its report; the exit code."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {**sizes, "seed": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    report = asyncio.run(storm(**vars(parser.parse_args())))
    print(report.table())
    return 0 if report.is_clean else 1
