"""The report of a benchmark: figures, their baselines in the same run, and their targets."""

import argparse
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvloop

from tests.benchmarks.plots import Bars, Plot


@dataclass(frozen=True)
class Figure:
    """One measured value and its baseline; `at_least` and `at_most` bound the ratio of the two."""

    name: str
    value: float
    baseline: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float:
        return self.value / self.baseline if self.baseline else float("inf")

    @property
    def is_reached(self) -> bool:
        """Whether the target holds; a figure without one always does."""
        above = self.at_least is None or self.ratio >= self.at_least
        return above and (self.at_most is None or self.ratio <= self.at_most)

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"


Run = TypeVar("Run")


def paired(ours: Sequence[Run], theirs: Sequence[Run], cost: Callable[[Run], float]) -> tuple[Run, Run]:
    """The round whose ratio of costs is the median: rounds of both sides were taken in turns, and share the machine."""
    rounds = sorted(zip(ours, theirs, strict=True), key=lambda pair: cost(pair[0]) / cost(pair[1]))
    return rounds[len(rounds) // 2]


@dataclass
class Report:
    """The figures of one benchmark, and what to know about how they were taken."""

    title: str
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plots: list[Plot | Bars] = field(default_factory=list)

    @property
    def missed(self) -> list[Figure]:
        return [figure for figure in self.figures if not figure.is_reached]

    def markdown(self) -> str:
        """The report as a Markdown table."""
        rows = [
            f"| {figure.name} | {figure.value:,.4g} {figure.unit} | {figure.baseline:,.4g} {figure.unit} "
            f"| {figure.ratio:.2f} | {figure.target} | {'' if figure.is_reached else 'missed'} |"
            for figure in self.figures
        ]
        head = ["| figure | measured | baseline | ratio | target | |", "|---|---:|---:|---:|---|---|"]
        notes = [f"- {note}" for note in self.notes]
        plots = [f"![{plot.title}](plots/{plot.name}.svg)" for plot in self.plots]
        return "\n".join([f"## {self.title}", "", *head, *rows, "", *notes, "", *plots, ""])


def measured_alone(run: Callable[[bool], Coroutine[Any, Any, Report]], about: str | None) -> None:
    """One benchmark from the command line: prints its report, and ends with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short rounds and small sizes")
    report = uvloop.run(run(parser.parse_args().quick))
    print(report.markdown())
    sys.exit(1 if report.missed else 0)
