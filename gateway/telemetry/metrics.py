"""What a process counts, from anywhere in it, as it logs: labels of bounded number, and almost nothing to pay.

A count is one entry of a dictionary; `gateway.telemetry.prometheus` makes text of it when somebody asks. Labels are
routes, kinds, entities, actions and codes of ours, never what a caller wrote.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

#: upper bounds in seconds: from a warm answer to a long report
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)


@dataclass(frozen=True, slots=True)
class Count:
    """Something that only grows, by labels."""

    name: str
    documentation: str
    labels: Sequence[str] = ()
    values: defaultdict[tuple[str, ...], float] = field(default_factory=lambda: defaultdict(float))

    def add(self, *labels: str, by: float = 1.0) -> None:
        self.values[labels] += by


@dataclass(frozen=True, slots=True)
class Timing:
    """How long something takes, by labels; in seconds."""

    name: str
    documentation: str
    labels: Sequence[str] = ()
    #: how many within each bound, and beyond the last; at the end the sum of all
    values: dict[tuple[str, ...], list[float]] = field(default_factory=dict)

    def observe(self, seconds: float, *labels: str) -> None:
        tally = self.values.get(labels)
        if tally is None:
            tally = self.values[labels] = [0.0] * (len(BOUNDS) + 2)
        tally[bisect_left(BOUNDS, seconds)] += 1
        tally[-1] += seconds


@dataclass(frozen=True, slots=True)
class Level:
    """How many there are at the moment, by labels."""

    name: str
    documentation: str
    labels: Sequence[str] = ()
    values: defaultdict[tuple[str, ...], float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def one_more(self, *labels: str) -> Iterator[None]:
        """One more for as long as the block lasts."""
        self.values[labels] += 1
        try:
            yield
        finally:
            self.values[labels] -= 1


REQUESTS = Count("gateway_http_requests", "Requests answered.", ("method", "route", "status"))
REQUEST_SECONDS = Timing("gateway_http_request_seconds", "From a request to its answer.", ("route",))
REFUSED = Count("gateway_refused", "Requests refused, by the limit that they met.", ("limit",))

EXECUTES = Count(
    "gateway_executes", "Operations run by this process, at once or as a job.", ("kind", "entity", "action", "outcome")
)
EXECUTE_SECONDS = Timing("gateway_execute_seconds", "Operations from start to outcome.", ("kind",))

UPSTREAM_ANSWERS = Count(
    "gateway_upstream_answers", "Answers of applications, by status or error.", ("kind", "outcome")
)
UPSTREAM_SECONDS = Timing(
    "gateway_upstream_seconds", "From sending a request to an application to its whole answer.", ("kind",)
)
REFRESHES = Count("gateway_token_refreshes", "Renewals of OAuth tokens.", ("kind", "outcome"))

JOBS_ENDED = Count("gateway_jobs_ended", "Jobs that this process ended.", ("task", "status"))
QUEUE_WAIT = Timing("gateway_job_queue_wait_seconds", "From a job's acceptance to its first start.")
LEASES_LOST = Count("gateway_leases_lost", "Jobs that were taken from this process for its silence.")

DOWNLOADS = Level("gateway_downloads_in_progress", "Files that are being sent to callers.")
DOWNLOAD_BYTES = Count("gateway_download_bytes", "Bytes of files sent to callers.")

BACKGROUND_FAILURES = Count("gateway_background_failures", "Rounds of a background loop that failed.", ("loop",))
LOOP_LAG = Timing("gateway_event_loop_lag_seconds", "How late the event loop is, looked at 20 times a second.")

#: all of them, in the order in which they are told
ALL: Sequence[Count | Timing | Level] = (
    REQUESTS,
    REQUEST_SECONDS,
    REFUSED,
    EXECUTES,
    EXECUTE_SECONDS,
    UPSTREAM_ANSWERS,
    UPSTREAM_SECONDS,
    REFRESHES,
    JOBS_ENDED,
    QUEUE_WAIT,
    LEASES_LOST,
    DOWNLOADS,
    DOWNLOAD_BYTES,
    BACKGROUND_FAILURES,
    LOOP_LAG,
)
