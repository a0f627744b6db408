"""The report of storms, as a table with a column for each."""

import math
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.faults.followers import FollowersReport

#: seconds from a worker's death within which its jobs are started again, for 99 of 100 of them
TARGET = 15.0
#: how a job ends that kills its workers by itself; storms have none
CRASHED = "worker_crashed"
_HEAD = """# Storms

Written by `make faults` (`python -m tests.faults`). Two front ends, two workers, PostgreSQL and Redis, all of them
real processes; jobs of all kinds are submitted under keys while everything is struck at random: killed with `kill -9`,
frozen with `SIGSTOP` for up to 13 seconds (a lease is 10), Redis flushed, connections cut by the servers.
A storm of full size has 2,000 jobs and 45 faults; the first two lines say how large these were.
"""
_FOOT = f"""
"Started again" is the time until each running job of a dead worker runs again, or has ended because its write was out:
in the second line from the worker's death on, in the first from when PostgreSQL was there too, for which everything
waits. It is struck every few seconds here, and a PostgreSQL that was started again judges no lease for ten seconds, so
that the workers which lived through its absence can say that they are still there. The target is {TARGET:.0f} s at p99
of the first.
"""


@dataclass(frozen=True)
class Recovery:
    """Seconds until a job of a dead worker continued, since its death and since PostgreSQL was available too."""

    since_death: float
    with_postgres: float


@dataclass
class Report:
    """The result of a storm."""

    accepted: int = 0
    #: faults, by name
    strikes: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    #: codes of failed jobs
    errors: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    doubled: int = 0
    #: final states that changed afterwards
    changed: int = 0
    #: writes reported as unknown that nothing struck
    invented: int = 0
    #: creates reported as done that the application never saw, and the other way round
    untrue: int = 0
    recoveries: list[Recovery] = field(default_factory=list)
    #: what clients heard that followed some of the jobs
    followers: FollowersReport = field(default_factory=FollowersReport)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost or reported incorrectly."""
        lies = self.lost or self.doubled or self.changed or self.invented or self.untrue
        return not lies and CRASHED not in self.errors and self.followers.is_clean

    @property
    def is_quick(self) -> bool:
        """Whether the jobs of lost workers continued in time."""
        return percentile([each.with_postgres for each in self.recoveries], 0.99) <= TARGET

    def rows(self) -> list[tuple[str, str]]:
        """The lines of the table."""
        return [
            ("jobs accepted", str(self.accepted)),
            ("faults", f"{self.strikes.total()}: {_listed(self.strikes)}"),
            ("final states", _listed(self.states)),
            ("failed because", _listed(self.errors) or "-"),
            ("lost", str(self.lost)),
            ("creates sent twice", str(self.doubled)),
            ("final states changed", str(self.changed)),
            ("unknown, and nothing was struck", str(self.invented)),
            ("results untrue", str(self.untrue)),
            ("started again, with PostgreSQL", _spread([each.with_postgres for each in self.recoveries])),
            ("started again, since the death", _spread([each.since_death for each in self.recoveries])),
            *_rows_of(self.followers),
            ("took", f"{self.seconds:.0f} s"),
        ]

    def table(self) -> str:
        """The lines as text."""
        return "\n".join(f"{name:<34} {value}" for name, value in self.rows())


def _rows_of(followers: FollowersReport) -> list[tuple[str, str]]:
    """The lines of the clients that follow jobs."""
    return [
        ("jobs followed", str(followers.jobs)),
        ("event streams, broken off", f"{followers.streams}, {followers.broken_off}"),
        ("event streams with a second head", str(followers.corrupted)),
        ("events told twice", str(followers.repeated)),
        ("longest silence of an event stream", f"{followers.longest_silence:.1f} s"),
        ("end heard by events", _spread(followers.events_late)),
        ("tasks denied", str(followers.denied)),
        ("subscriptions, ended early", f"{followers.subscriptions}, {followers.ended_early}"),
        ("end heard by subscription", _spread(followers.subscriptions_late)),
        ("ends told wrong", str(followers.untrue)),
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of all does not exceed; 0 for none."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0.0


def document(reports: Mapping[int, Report]) -> str:
    """The storms by their seeds, in Markdown."""
    names = [name for name, _ in Report().rows()]
    columns = [names, *([value for _, value in each.rows()] for each in reports.values())]
    head = ["| | " + " | ".join(f"seed {seed}" for seed in reports) + " |", "|---" * len(columns) + "|"]
    rows = ["| " + " | ".join(row) + " |" for row in zip(*columns, strict=True)]
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[1]:.1f} at the end."
    return "\n".join([_HEAD, *head, *rows, _FOOT, machine, ""])


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "-"
    return f"{len(seconds)} jobs: p50 {percentile(seconds, 0.5):.1f} s, p99 {percentile(seconds, 0.99):.1f} s"
