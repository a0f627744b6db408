"""Counts the requests in progress, of each holder and all of them, and refuses the excess with 503."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from random import getrandbits
from uuid import UUID

from aiohttp import web
from aiohttp.hdrs import ACCEPT, AUTHORIZATION
from aiohttp.web_request import BaseRequest
from msgspec import Struct

from gateway.errors import Unavailable
from gateway.foundation.aio.turns import Places
from gateway.foundation.aio.waiting import streaming
from gateway.foundation.telemetry.load import ThreadLoad
from gateway.foundation.telemetry.loop_lag import LoopLag
from gateway.foundation.telemetry.metrics import REFUSED, REQUESTS
from gateway.settings import Settings
from gateway.web.admission.gradient import GradientLimit
from gateway.web.admission.organization_turns import OrganizationTurns
from gateway.web.admission.refusals import SAMPLES_PER_SECOND, Refusals
from gateway.web.admission.token_buckets import Rates
from gateway.web.errors import problem_response
from gateway.web.pages.error_card import CONSOLE, error_card, is_for_page
from gateway.web.pages.rendering import Pages

Handler = Callable[[BaseRequest], Awaitable[web.StreamResponse]]
#: stops reading from the sender's connection for so many seconds
PauseSender = Callable[[BaseRequest, float], None]

#: requests without a token get this fraction of the slots: 1/20
_SLOTS_PER_TOKENLESS_SLOT = 20
#: samples, 20 a second, for which a new process refuses nothing: in a rolling restart it takes over the requests of the
#: process that stops
_WARM_UP = 60
#: seconds for which nothing is read from a sender that ignores refusals; short, because it may be a proxy
_PAUSE = 1.0
#: bodies of the maximum size that fit into memory at least, so that one organization's share is two
_BODIES = 4
#: notices of the maximum size that fit into memory at least, so that one organization's share is one
_NOTICES = 2
#: a holder that takes slots of different sizes takes this fraction of those that are left of its share
_PARTS = 8
#: long pages of an organization that are read and encoded at once: PostgreSQL reads one, and the process encodes one
_LONG_PAGES = 2
#: seconds that a long page waits for the others of its organization
_LONG_PAGE_WAIT = 5.0
_LONG_PAGE_RETRY = 2
_REQUEST_ID = "0" * 32


class Slot(Struct, frozen=True):
    """A slot that a holder has taken, or several."""

    slots: "FairSlots"
    holder: Hashable
    count: int = 1

    def release(self) -> None:
        self.slots.release(self.holder, self.count)


class FairSlots:
    """Slots: a holder gets at most half of those that the others leave, so that some are free for a new holder."""

    def __init__(self, total: int, name: str, what: str, *, retry_after: int = 1, unit: str = "slots") -> None:
        self._total = total
        self._name = name
        #: the purpose of the slots for the error, such as `requests in progress`
        self._what = what
        self._unit = unit
        #: seconds
        self._retry_after = retry_after
        self._held: dict[Hashable, int] = {}
        self.in_use = 0

    def acquire(self, holder: Hashable, count: int = 1) -> Slot:
        """Take slots for the holder until their `release`; raises Unavailable."""
        held = self._held.get(holder, 0)
        is_full = self.in_use + count > self._total
        if is_full or held + count > self._share(held):
            REFUSED.add(self._name)
            who = f"all {self._total} {self._unit}" if is_full else f"{held} of {self._total} {self._unit}"
            raise Unavailable(f"{who} for {self._what} are taken; try again in a moment", retry_after=self._retry_after)
        self._held[holder] = held + count
        self.in_use += count
        return Slot(self, holder, count)

    def acquire_part(self, holder: Hashable, least: int, most: int) -> Slot:
        """Take a part of the slots that are left of the holder's share: at least and at most so many.

        Raises Unavailable if the least is not left.
        """
        left = min(self._total - self.in_use, self._share(held := self._held.get(holder, 0)) - held)
        return self.acquire(holder, max(least, min(most, left // _PARTS)))

    def acquire_rest(self, holder: Hashable, count: int) -> Slot:
        """Take slots for what cannot be refused any more: so many, or those that are left of the holder's share."""
        held = self._held.get(holder, 0)
        taken = max(0, min(count, self._total - self.in_use, self._share(held) - held))
        self._held[holder] = held + taken
        self.in_use += taken
        return Slot(self, holder, taken)

    def require(self, holder: Hashable) -> None:
        """Raise Unavailable if the holder's share is taken."""
        if self._held and holder in self._held:
            self.acquire(holder).release()

    def _share(self, held: int) -> int:
        """The slots of a holder of so many."""
        return max(1, (self._total - (self.in_use - held)) // 2)

    def release(self, holder: Hashable, count: int = 1) -> None:
        self.in_use -= count
        held = self._held.pop(holder, 0) - count
        if held:
            self._held[holder] = held


class Limits:
    """All limits of one front end."""

    def __init__(self, settings: Settings) -> None:
        self.rates = Rates(settings.client_rate, settings.organization_rate)
        self.load = GradientLimit(settings.max_load, warm_up=_WARM_UP)
        self.refusals = Refusals()
        self.turns = OrganizationTurns()
        self._samples = 0
        #: by organization
        self.requests = FairSlots(settings.max_requests, "requests", "requests in progress")
        #: by organization; as many as requests in progress, which they are not (SEP-3415)
        self.streams = FairSlots(settings.max_requests, "streams", "streams of events", retry_after=5)
        tokenless = max(1, settings.max_requests // _SLOTS_PER_TOKENLESS_SLOT)
        #: by IP address
        self.tokenless = FairSlots(tokenless, "tokenless", "requests without a token")
        #: by organization
        self.downloads = FairSlots(settings.max_downloads, "downloads", "streamed files", retry_after=5)
        #: bytes of request bodies in memory, by organization; requests without a token share those of one organization
        largest = _BODIES * settings.max_body_bytes, _NOTICES * settings.max_notice_bytes
        body_bytes = max(settings.max_bodies_bytes, *largest)
        self.bodies = FairSlots(body_bytes, "bodies", "request bodies", unit="bytes")
        #: bytes of files that wait for an application to take them, by organization
        self.pieces = FairSlots(body_bytes, "pieces", "pieces of uploads", retry_after=5, unit="bytes")
        #: bytes of responses that their callers have not yet read, by organization
        self.answers = FairSlots(settings.max_answers_bytes, "answers", "unread responses", unit="bytes")
        #: by organization
        self._long_pages = Places(_LONG_PAGES)
        self.in_progress = 0
        self._admitted = 0
        #: requests in progress that use no processor, without those that wait for jobs and events
        self._suspended = 0
        self._waiting: Callable[[], int] = lambda: 0

    @contextmanager
    def watching(self, lag: LoopLag, waiting: Callable[[], int], calling: Callable[[], int]) -> Iterator[None]:
        """Sample the load of the process within the block, at the interval of the event loop's lag."""
        self._waiting = waiting
        thread_load = ThreadLoad()

        def sample(_lag: float) -> None:
            admitted, self._admitted = self._admitted, 0
            self._samples += 1
            if self._samples % SAMPLES_PER_SECOND == 0:
                self.turns.forget_half()
            self.refusals.observe(admitted)
            is_rush = self.refusals.is_rush
            self.load.observe(thread_load.measure(), lag.cycle, self.at_work, admitted, calling(), is_rush=is_rush)

        lag.subscribe(sample)
        try:
            yield
        finally:
            lag.unsubscribe_all()
            thread_load.close()

    @property
    def at_work(self) -> int:
        """Requests that compete for the processor."""
        return self.in_progress - self._suspended - self._waiting()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Mark a request as suspended within the block: it waits, perhaps for minutes, without using the processor."""
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1

    def admits(self, authorization: str | None = None) -> bool:
        """Whether to admit a request, which already counts as in progress.

        In an overload the organizations that sent less than others go on, up to twice the limit.
        """
        most, at_work = self.load.max_in_progress, self.at_work - 1
        if at_work >= most and (at_work >= 2 * most or not self.turns.is_behind(authorization)):
            REFUSED.add("overload")
            self.refusals.add()
            return False
        self._admitted += 1
        return True

    @contextmanager
    def one_download(self, organization_id: UUID) -> Iterator[None]:
        """Hold a slot for a streamed file within the block; raises Unavailable."""
        slot = self.downloads.acquire(organization_id)
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1
            slot.release()

    @contextmanager
    def one_stream(self, request: web.Request, organization_id: UUID) -> Iterator[None]:
        """Count the request within the block as a stream, instead of as a request in progress; raises Unavailable.

        A stream is no work, even while its client reads nothing.
        """
        slot = self.streams.acquire(organization_id)
        release_slot(request)
        self._suspended += 1
        try:
            with streaming():
                yield
        finally:
            self._suspended -= 1
            slot.release()

    @asynccontextmanager
    async def one_long_page(self, organization_id: UUID) -> AsyncIterator[None]:
        """Read a long page of a list within the block; raises Unavailable if too many of the organization wait."""
        places = self._long_pages.of(organization_id)
        try:
            with self.suspended():
                async with asyncio.timeout(_LONG_PAGE_WAIT):
                    await places.acquire()
        except TimeoutError:
            REFUSED.add("pages")
            raise Unavailable(
                "the organization reads many long pages of lists; try again in a moment, or with a smaller limit",
                retry_after=_LONG_PAGE_RETRY,
            ) from None
        try:
            yield
        finally:
            places.release()

    @contextmanager
    def one_piece(self, organization_id: UUID, least: int, most: int) -> Iterator[int]:
        """Hold memory for a piece of a file within the block: so many bytes. Raises Unavailable."""
        slot = self.pieces.acquire_part(organization_id, least, most)
        try:
            yield slot.count
        finally:
            slot.release()


class LoadShedding:
    """Counts the requests in progress and refuses the excess."""

    def __init__(self, limits: Limits, probes: Collection[str], pages: Pages) -> None:
        self._limits = limits
        #: paths that are always admitted
        self._probes = probes
        error = Unavailable("the gateway is overloaded; try again in a moment")
        self._problem = _Refusal.of(problem_response(error, _REQUEST_ID))
        self._page = _Refusal.of(error_card(pages, error, 503, _REQUEST_ID, CONSOLE))

    def wrapped(self, handler: Handler, pause_sender: PauseSender) -> Handler:
        """Wrap the handler: it handles admitted requests; `pause_sender` slows senders that ignore refusals."""
        limits = self._limits

        async def handle(request: BaseRequest) -> web.StreamResponse:
            limits.in_progress += 1
            try:
                if request.path in self._probes:
                    return await handler(request)
                authorization = request.headers.get(AUTHORIZATION)
                if limits.admits(authorization):
                    holder = limits.turns.begin(authorization)
                    try:
                        return await handler(request)
                    finally:
                        limits.turns.end(holder)
                if limits.refusals.are_too_many:
                    pause_sender(request, _PAUSE)
                is_page = is_for_page(request.path, request.headers.get(ACCEPT, ""))
                return self._refused(self._page if is_page else self._problem)
            finally:
                limits.in_progress -= 1

        return handle

    def _refused(self, refusal: "_Refusal") -> web.Response:
        """The refusal, with the headers of every response; built in few steps, because it must be cheap."""
        request_id = f"{getrandbits(128):032x}"
        REQUESTS.add("none", "none", "503")
        headers = {
            **refusal.headers,
            "Retry-After": str(self._limits.refusals.retry_after),
            "X-Request-Id": request_id,
            "X-Content-Type-Options": "nosniff",
            "Server": "gateway",
        }
        body = refusal.before_id + request_id.encode() + refusal.after_id
        return web.Response(status=503, body=body, headers=headers)


class _Refusal(Struct, frozen=True):
    """A refusal that is encoded once, around the id of the request."""

    headers: Mapping[str, str]
    before_id: bytes
    after_id: bytes

    @classmethod
    def of(cls, response: web.Response) -> "_Refusal":
        """The refusal like a response whose id is `_REQUEST_ID`."""
        assert isinstance(response.body, bytes)
        before_id, _, after_id = response.body.partition(_REQUEST_ID.encode())
        return cls(dict(response.headers), before_id, after_id)


#: the slot of a request in progress
SLOT = web.RequestKey("slot", Slot)
#: the memory that the request's body takes
BODY_MEMORY = web.RequestKey("body_memory", Slot)
#: the memory that the request's response takes until it is read
ANSWER_MEMORY = web.RequestKey("answer_memory", Slot)
#: the limits of requests
LIMITS = web.AppKey("limits", Limits)
#: refuses requests in an overload
LOAD_SHEDDING = web.AppKey("load_shedding", LoadShedding)


def release_slot(request: web.Request) -> None:
    """Release the slot of a request in progress, if the request has one."""
    slot = request.pop(SLOT, None)
    if slot is not None:
        slot.release()
