"""Load shedding: in an overload a request is refused before it has a route, which leaves time for the others."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from random import getrandbits

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.errors import Unavailable
from gateway.http.admission import Limits
from gateway.http.errors import PROBLEM, problem_response
from gateway.telemetry.metrics import REQUESTS

Handler = Callable[[BaseRequest], Awaitable[web.StreamResponse]]
#: takes no further request of its sender for so many seconds
Rest = Callable[[BaseRequest, float], None]

#: seconds after which a refused sender is to come again
RETRY_AFTER = 1
#: refusals a second that cost little beside what is let in
_FEW_REFUSALS = 2000
_REQUEST_ID = "0" * 32


class LoadShedding:
    """Counts the requests in progress, and refuses those that are too many."""

    def __init__(self, limits: Limits, probes: Collection[str]) -> None:
        self._limits = limits
        #: paths that are always answered
        self._probes = probes
        refusal = Unavailable("the gateway has more to do than it can; try again in a moment", retry_after=RETRY_AFTER)
        body = problem_response(refusal, _REQUEST_ID).body
        assert isinstance(body, bytes)
        self._before_id, _, self._after_id = body.partition(_REQUEST_ID.encode())
        #: refusals since the moment
        self._refusals, self._since = 0, 0.0

    def before(self, handler: Handler, rest: Rest) -> Handler:
        """The handler, called for requests that are let in; `rest` is for senders who take no notice of refusals."""
        limits = self._limits

        async def handle(request: BaseRequest) -> web.StreamResponse:
            limits.in_progress += 1
            try:
                if request.path in self._probes or limits.admits():
                    return await handler(request)
                if self._are_many():
                    rest(request, RETRY_AFTER)
                return self._refused()
            finally:
                limits.in_progress -= 1

        return handle

    def _are_many(self) -> bool:
        """Whether refusals take so much of the process that those who were let in would have to wait for them."""
        now = asyncio.get_running_loop().time()
        if now - self._since > 1:
            self._refusals, self._since = 0, now
        self._refusals += 1
        return self._refusals > _FEW_REFUSALS

    def _refused(self) -> web.Response:
        """A refusal that says what every response says; made in as few steps as may be."""
        request_id = f"{getrandbits(128):032x}"
        REQUESTS.add("none", "none", "503")
        headers = {
            "Content-Type": PROBLEM,
            "Retry-After": str(RETRY_AFTER),
            "X-Request-Id": request_id,
            "X-Content-Type-Options": "nosniff",
            "Server": "gateway",
        }
        body = self._before_id + request_id.encode() + self._after_id
        return web.Response(status=503, body=body, headers=headers)
