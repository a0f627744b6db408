"""Refusing at the door: in an overload, parsing a request only to refuse it would take the time that others need.

A whole request that came in one piece is answered without being parsed; whatever is not plainly one is let through, to
be refused behind the door.
"""

import asyncio
import re
from math import inf
from secrets import token_hex

from gateway.errors import Unavailable
from gateway.http.admission import Limits
from gateway.http.errors import problem_response
from gateway.telemetry.metrics import REFUSED, REQUESTS

#: seconds that a refusal is held back, so that callers who come again at once take no more than waiting room
HOLD = 0.25
#: refusals held back at a time; beyond that they go out at once
_HELD = 5000

#: what is asked by those who look after the gateway, and is never refused
_PROBES = (b"GET /healthz", b"GET /readyz", b"GET /metrics")
_HEAD = re.compile(rb"(?:GET|POST|PATCH|PUT|DELETE) /\S* HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,9})(?=\r\n)", re.IGNORECASE)
#: a body of another form, or a wish that is no plain request
_OTHERWISE = re.compile(rb"\r\n(?:transfer-encoding|upgrade|expect|connection): ", re.IGNORECASE)


def is_whole(data: bytes) -> bool:
    """Whether the bytes are plainly one request, head and body, and nothing else."""
    end = data.find(b"\r\n\r\n") + 4
    if end < 4 or not _HEAD.match(data) or _OTHERWISE.search(data, 0, end):
        return False
    lengths = _LENGTH.findall(data, 0, end)
    return len(lengths) <= 1 and len(data) - end == (int(lengths[0]) if lengths else 0)


class Turnstile:
    """Lets in what the process can carry."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.held = 0
        # let in by this turn of the event loop, and not counted as at work yet
        self._entering = 0

    @property
    def hold(self) -> float:
        """Seconds for which the next refusal is held back."""
        return HOLD if self.held < _HELD else 0.0

    def turns_away(self, data: bytes) -> bool:
        """Whether these bytes, the first on a connection that waits for a request, are to be refused."""
        limits = self._limits
        if limits.overload.most == inf:
            return False
        has_room = limits.overload.admits(limits.at_work + self._entering)
        if has_room or data.startswith(_PROBES) or not is_whole(data):
            self._enter()
            return False
        REFUSED.add("overload")
        REQUESTS.add("none", "none", "503")
        return True

    def _enter(self) -> None:
        if not self._entering:
            asyncio.get_running_loop().call_soon(self._entered)
        self._entering += 1

    def _entered(self) -> None:
        self._entering = 0


def refusal() -> bytes:
    """The answer to a request that was turned away; its connection stays."""
    return _REFUSAL.replace(_NOBODY, token_hex(16).encode())


def _refusal(request_id: str) -> bytes:
    error = Unavailable("the gateway has more to do than it can; try again in a moment", retry_after=1)
    response = problem_response(error, request_id)
    assert isinstance(response.body, bytes)
    headers = {**response.headers, "Content-Length": str(len(response.body)), "X-Request-Id": request_id}
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(["HTTP/1.1 503 Service Unavailable", *lines, "", ""]).encode() + response.body


#: made once, because refusing must cost next to nothing; an id takes the place of this one, which is as long
_NOBODY = b"0" * 32
_REFUSAL = _refusal(_NOBODY.decode())
