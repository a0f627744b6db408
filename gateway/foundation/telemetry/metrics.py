"""The metrics of a process, which any module may update.

Labels are routes, kinds, entities, actions and error codes, never a caller's text, so that their number is bounded. A
process counts in one thread: plain numbers are enough, without the lock that `prometheus_client` takes for each update.
`gateway.run.monitoring.prometheus` turns them into text when it is scraped.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

#: upper bounds of the buckets in seconds: from a cached response to a long report
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
#: all metrics of the process
REGISTRY = CollectorRegistry(auto_describe=False)


class Counter(Collector):
    """A number that only grows, by labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str] = ()) -> None:
        self.name, self.documentation, self.labels = name, documentation, tuple(labels)
        self._values: defaultdict[tuple[str, ...], float] = defaultdict(float, {} if labels else {(): 0.0})
        REGISTRY.register(self)

    def add(self, *labels: str, by: float = 1.0) -> None:
        self._values[labels] += by

    def value(self, *labels: str) -> float:
        """The count; 0 for labels that were never counted."""
        return self._values.get(labels, 0.0)

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self.name, self.documentation, labels=self.labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family


class Histogram(Collector):
    """Durations in seconds, by labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str] = ()) -> None:
        self.name, self.documentation, self.labels = name, documentation, tuple(labels)
        self._observed: defaultdict[tuple[str, ...], _Observed] = defaultdict(_Observed)
        if not labels:
            self._observed[()] = _Observed()
        REGISTRY.register(self)

    def observe(self, seconds: float, *labels: str) -> None:
        observed = self._observed[labels]
        observed.times[bisect_left(BOUNDS, seconds)] += 1
        observed.sum += seconds

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self.name, self.documentation, labels=self.labels)
        for labels, observed in self._observed.items():
            bounds = [*map(str, BOUNDS), "+Inf"]
            buckets = zip(bounds, accumulate(observed.times), strict=True)
            family.add_metric(labels, list(buckets), observed.sum)
        yield family


class _Observed:
    """The number of observations in each bucket, the last for those above all bounds; and their sum in seconds."""

    __slots__ = ("sum", "times")

    def __init__(self) -> None:
        self.times = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0


class Gauge:
    """A number that goes up and down."""

    def __init__(self, name: str, documentation: str, value: float = 0.0) -> None:
        self.name, self.documentation = name, documentation
        self._metric = prometheus_client.Gauge(name, documentation, registry=REGISTRY)
        self.set(value)

    def set(self, value: float) -> None:
        self._metric.set(value)

    def one_more(self) -> AbstractContextManager[None]:
        """Increase the number by one for the duration of the block."""
        return self._metric.track_inprogress()


REQUESTS = Counter("gateway_http_requests", "Requests answered.", ("method", "route", "status"))
REQUEST_SECONDS = Histogram("gateway_http_request_seconds", "From a request to its answer.", ("route",))
REFUSED = Counter("gateway_refused", "Requests refused, by the limit that was reached.", ("limit",))

EXECUTES = Counter(
    "gateway_executes", "Operations run by this process, at once or as a job.", ("kind", "entity", "action", "outcome")
)
EXECUTE_SECONDS = Histogram("gateway_execute_seconds", "Operations from start to outcome.", ("kind",))

UPSTREAM_ANSWERS = Counter(
    "gateway_upstream_answers", "Answers of applications, by status or error.", ("kind", "outcome")
)
UPSTREAM_SECONDS = Histogram(
    "gateway_upstream_seconds", "From sending a request to an application to its whole answer.", ("kind",)
)
#: OpenTelemetry's names of metrics and labels for MCP; `error_type` is empty for a success
_OF_MCP = ("mcp_method_name", "error_type")
MCP_SERVER_SECONDS = Histogram(
    "mcp_server_operation_duration_seconds", "From a request of an MCP client to its result.", _OF_MCP
)
MCP_CLIENT_SECONDS = Histogram(
    "mcp_client_operation_duration_seconds", "From sending a request to an MCP server to its result.", _OF_MCP
)
REFRESHES = Counter("gateway_token_refreshes", "Renewals of OAuth tokens.", ("kind", "outcome"))

BATCH_OPERATIONS = Counter(
    "gateway_batch_operations", "Operations of batches that this process ended.", ("kind", "status")
)

POLICY_DECISIONS = Counter(
    "gateway_policy_decisions",
    "Calls that the policies of an organization decided, by mode and verdict.",
    ("mode", "verdict"),
)

JOBS_ENDED = Counter("gateway_jobs_ended", "Jobs that this process ended.", ("task", "status"))
QUEUE_WAIT = Histogram("gateway_job_queue_wait_seconds", "From a job's acceptance to its first start.")
LEASES_LOST = Counter("gateway_leases_lost", "Jobs whose lease this process lost, because its heartbeats were late.")

SCHEDULE_SLOTS = Counter("gateway_schedule_slots", "Slots of schedules, by outcome: run or missed.", ("outcome",))
SCHEDULE_LATENESS = Histogram(
    "gateway_schedule_lateness_seconds", "From a slot of a schedule to the decision to run it."
)
WEBHOOK_ATTEMPTS = Counter(
    "gateway_webhook_attempts",
    "Attempts to deliver events, by class of the response's status or `error`.",
    ("outcome",),
)
WEBHOOK_SECONDS = Histogram("gateway_webhook_seconds", "From sending a delivery to its response.")
NOTICES = Counter(
    "gateway_inbound_notices",
    "Requests of applications to hooks: stored, repeated, handshake, refused or too_large.",
    ("kind", "outcome"),
)
NOTICE_SECONDS = Histogram("gateway_inbound_notice_seconds", "From an accepted notice to its answer.", ("kind",))

EXPORT_RECORDS = Counter("gateway_export_records", "Records collected into files.", ("format",))

DOWNLOADS = Gauge("gateway_downloads_in_progress", "Files that are being sent to callers.")
DOWNLOAD_BYTES = Counter("gateway_download_bytes", "Bytes of files sent to callers.")

REPLICA_READS = Counter(
    "gateway_replica_reads",
    "Reads for which there is a replica, by what happened: `replica` answered; or the primary, because the replica was "
    "`away`, its `lag` was too long, or it was `behind` a write.",
    ("outcome",),
)
KEYS_HELD_SECONDS = Gauge(
    "gateway_encryption_keys_held_seconds",
    "Seconds for which the process still holds the encryption key of a key service that ends first.",
    math.inf,
)
BACKGROUND_FAILURES = Counter("gateway_background_failures", "Rounds of a background loop that failed.", ("loop",))
LOOP_LAG = Histogram("gateway_event_loop_lag_seconds", "How late the event loop is, measured 20 times a second.")

#: all metrics, in the order in which they are exported
ALL: Sequence[Counter | Histogram | Gauge] = (
    REQUESTS,
    REQUEST_SECONDS,
    REFUSED,
    EXECUTES,
    EXECUTE_SECONDS,
    UPSTREAM_ANSWERS,
    UPSTREAM_SECONDS,
    MCP_SERVER_SECONDS,
    MCP_CLIENT_SECONDS,
    REFRESHES,
    BATCH_OPERATIONS,
    POLICY_DECISIONS,
    JOBS_ENDED,
    QUEUE_WAIT,
    LEASES_LOST,
    SCHEDULE_SLOTS,
    SCHEDULE_LATENESS,
    EXPORT_RECORDS,
    WEBHOOK_ATTEMPTS,
    WEBHOOK_SECONDS,
    NOTICES,
    NOTICE_SECONDS,
    DOWNLOADS,
    DOWNLOAD_BYTES,
    REPLICA_READS,
    KEYS_HELD_SECONDS,
    BACKGROUND_FAILURES,
    LOOP_LAG,
)
