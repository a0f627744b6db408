"""Admission control: what is refused before anything is done for it, by rate, by slots and by load."""

import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, inf
from random import getrandbits
from uuid import UUID

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.errors import RateLimited, Unavailable
from gateway.http.errors import PROBLEM, problem_response
from gateway.http.server.overload import Overload, Refusals
from gateway.identity.model import Caller
from gateway.settings import Settings
from gateway.telemetry.load import Busyness
from gateway.telemetry.loop_lag import LoopLag
from gateway.telemetry.metrics import REFUSED, REQUESTS

Handler = Callable[[BaseRequest], Awaitable[web.StreamResponse]]
#: takes no further request of its sender for so many seconds
PauseSender = Callable[[BaseRequest, float], None]

#: callers whose buckets are remembered; who was not seen for long has a full one anyway
_REMEMBERED = 10_000
#: the part of the slots for requests that those without a token have of their own
_STRANGERS = 20
#: samples, 20 a second, of a process that has just begun to answer: in a rolling restart it must not refuse what comes
#: from the one that stops
_WARM_UP = 60
#: seconds for which nothing more is read from a sender who takes no notice of refusals; short, as it may be a proxy
_PAUSE = 1.0
_REQUEST_ID = "0" * 32


@dataclass(slots=True)
class Bucket:
    """Tokens of one caller: `rate` a second, at most a second's worth of them at once."""

    rate: float
    tokens: float
    at: float

    @property
    def quota(self) -> int:
        return max(1, round(self.rate))

    def try_acquire(self, now: float) -> bool:
        """One token, if there is one."""
        self.tokens = min(float(self.quota), self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    @property
    def wait(self) -> float:
        """Seconds until there is a token."""
        return max(0.0, (1 - self.tokens) / self.rate)


def _refusal(name: str, bucket: Bucket) -> RateLimited:
    REFUSED.add(f"{name}_rate")
    seconds = max(1, ceil(bucket.wait))
    return RateLimited(
        f"the {name} may make {bucket.quota} requests a second; try again in {seconds} s", retry_after=seconds
    )


@dataclass(frozen=True, slots=True)
class RateDecision:
    """What became of a request at the buckets, and the headers of its answer, refused or not.

    The headers are those of draft-ietf-httpapi-ratelimit-headers-10.
    """

    headers: Mapping[str, str]
    refusal: RateLimited | None = None


#: where there are no limits
NO_RATES = RateDecision({})


class Rates:
    """The buckets of clients and organizations; a rate of 0 is no limit."""

    def __init__(self, client_rate: float, organization_rate: float) -> None:
        self._rates = {"client": client_rate, "organization": organization_rate}
        self.buckets: dict[tuple[str, UUID], Bucket] = {}
        self.is_limiting = any(self._rates.values())
        self._policy = ", ".join(f'"{name}";q={max(1, round(rate))};w=1' for name, rate in self._rates.items() if rate)

    def try_acquire(self, caller: Caller) -> RateDecision:
        """A token of the client's and one of the organization's bucket, or the refusal."""
        now, items, refusal = time.monotonic(), [], None
        for name, owner in (("client", caller.client_id), ("organization", caller.organization_id)):
            if not self._rates[name]:
                continue
            bucket = self._bucket(name, owner, now)
            if refusal is None and not bucket.try_acquire(now):
                refusal = _refusal(name, bucket)
            items.append(f'"{name}";r={max(0, int(bucket.tokens))};t={ceil(bucket.wait) or 1}')
        return RateDecision({"RateLimit": ", ".join(items), "RateLimit-Policy": self._policy}, refusal)

    def _bucket(self, name: str, owner: UUID, now: float) -> Bucket:
        bucket = self.buckets.get((name, owner))
        if bucket is None:
            if len(self.buckets) >= _REMEMBERED:
                self.buckets.clear()
            rate = self._rates[name]
            bucket = self.buckets[(name, owner)] = Bucket(rate, float(max(1, round(rate))), now)
        return bucket


class FairSlots:
    """No holder takes more than half of what the others leave, so that there is always some left for one who is new."""

    def __init__(self, total: int, name: str, what: str, *, retry_after: int = 1) -> None:
        self._total = total
        self._name = name
        #: what a place is for, in the plural
        self._what = what
        #: seconds
        self._retry_after = retry_after
        self._held: dict[Hashable, int] = {}
        self.in_use = 0

    def acquire(self, holder: Hashable) -> None:
        """A place for the holder until it gives it back; raises Unavailable."""
        held = self._held.get(holder, 0)
        free = self._total - (self.in_use - held)
        if self.in_use >= self._total or held >= max(1, free // 2):
            REFUSED.add(self._name)
            who = f"all {self._total} slots" if self.in_use >= self._total else f"{held} of {self._total} slots"
            raise Unavailable(f"{who} for {self._what} are taken; try again in a moment", retry_after=self._retry_after)
        self._held[holder] = held + 1
        self.in_use += 1

    def release(self, holder: Hashable) -> None:
        self.in_use -= 1
        held = self._held.pop(holder) - 1
        if held:
            self._held[holder] = held

    @contextmanager
    def slot(self, holder: Hashable) -> Iterator[None]:
        """A place for as long as the block lasts; raises Unavailable."""
        self.acquire(holder)
        try:
            yield
        finally:
            self.release(holder)


class Limits:
    """All limits of one front end."""

    def __init__(self, settings: Settings) -> None:
        self.rates = Rates(settings.client_rate, settings.organization_rate)
        self.overload = Overload(settings.max_load, warm_up=_WARM_UP)
        self.refusals = Refusals()
        #: of organizations
        self.requests = FairSlots(settings.max_requests, "requests", "requests in progress")
        #: of addresses, for what needs no token
        self.strangers = FairSlots(max(1, settings.max_requests // _STRANGERS), "strangers", "requests without a token")
        #: of organizations
        self.downloads = FairSlots(settings.max_downloads, "downloads", "files that are sent", retry_after=5)
        self.in_progress = 0
        self._admitted = 0
        #: of those, the ones that wait without work, but for jobs: they take room, but no time
        self._parked = 0
        self._waiting_for_jobs: Callable[[], int] = lambda: 0

    @contextmanager
    def watching(self, lag: LoopLag, waiting_for_jobs: Callable[[], int], calling: Callable[[], int]) -> Iterator[None]:
        """Look at how busy the process is as often as at its loop, for as long as the block lasts."""
        self._waiting_for_jobs = waiting_for_jobs
        busyness = Busyness()

        def sample(_lag: float) -> None:
            admitted, self._admitted = self._admitted, 0
            self.refusals.observe(admitted)
            is_rush = self.refusals.is_rush
            self.overload.observe(busyness.look(), lag.cycle, self.at_work, admitted, calling(), is_rush=is_rush)

        lag.subscribe(sample)
        try:
            yield
        finally:
            lag.unsubscribe_all()
            busyness.close()

    @property
    def at_work(self) -> int:
        """Requests that make each other wait."""
        return self.in_progress - self._parked - self._waiting_for_jobs()

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Around what a request waits for without work, be it for minutes."""
        self._parked += 1
        try:
            yield
        finally:
            self._parked -= 1

    def admits(self) -> bool:
        """Before anything is done for a request, which counts as in progress already: whether it may come in."""
        if self.overload.max_in_progress < inf and self.at_work - 1 >= self.overload.max_in_progress:
            REFUSED.add("overload")
            self.refusals.add()
            return False
        self._admitted += 1
        return True

    @contextmanager
    def one_download(self, organization_id: UUID) -> Iterator[None]:
        """A place for a file that is streamed, for as long as the block lasts; raises Unavailable."""
        with self.downloads.slot(organization_id), self.parked():
            yield


class LoadShedding:
    """Counts the requests in progress, and refuses those that are too many."""

    def __init__(self, limits: Limits, probes: Collection[str]) -> None:
        self._limits = limits
        #: paths that are always answered
        self._probes = probes
        refusal = Unavailable("the gateway has more to do than it can; try again in a moment")
        body = problem_response(refusal, _REQUEST_ID).body
        assert isinstance(body, bytes)
        self._before_id, _, self._after_id = body.partition(_REQUEST_ID.encode())

    def before(self, handler: Handler, pause_sender: PauseSender) -> Handler:
        """The handler, called for requests that are let in; `pause_sender` is for those who ignore refusals."""
        limits = self._limits

        async def handle(request: BaseRequest) -> web.StreamResponse:
            limits.in_progress += 1
            try:
                if request.path in self._probes or limits.admits():
                    return await handler(request)
                if limits.refusals.are_many:
                    pause_sender(request, _PAUSE)
                return self._refused()
            finally:
                limits.in_progress -= 1

        return handle

    def _refused(self) -> web.Response:
        """A refusal that says what every response says; made in as few steps as may be."""
        request_id = f"{getrandbits(128):032x}"
        REQUESTS.add("none", "none", "503")
        headers = {
            "Content-Type": PROBLEM,
            "Retry-After": str(self._limits.refusals.retry_after),
            "X-Request-Id": request_id,
            "X-Content-Type-Options": "nosniff",
            "Server": "gateway",
        }
        body = self._before_id + request_id.encode() + self._after_id
        return web.Response(status=503, body=body, headers=headers)
