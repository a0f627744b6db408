"""A load generator with prepared requests on plain sockets, and an application with prepared responses."""

import asyncio
import json
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from tests.benchmarks.relays import LARGE, SMALL, answer


def _response(records: int) -> bytes:
    body = answer(records)
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


#: by the `per_page` of a request, which the application allows to be 100
_RESPONSES = {b"%d" % SMALL: _response(SMALL), b"100": _response(LARGE)}
_PER_PAGE = re.compile(rb"per_page=([0-9]+)")
#: the request of a caller who names no other
LIST = {"entity": "tickets", "action": "list", "params": {"per_page": SMALL}}
#: seconds between two handfuls of requests
_TICK = 0.002


class Canned(asyncio.Protocol):
    """An application that has its answers ready, `seconds` after a request came. Its requests have no body."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        asked = _PER_PAGE.search(data)
        response = _RESPONSES[asked[1] if asked else b"100"]
        if self._seconds:
            asyncio.get_running_loop().call_later(self._seconds, self._answer, response)
        else:
            self._answer(response)

    def _answer(self, response: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(response)


@dataclass(frozen=True)
class Outcome:
    """The responses to callers: their number by status, and the latency of the accepted ones."""

    answers: Mapping[int, int]
    seconds: float
    #: milliseconds of answers with status 200, ascending
    latencies: Sequence[float]
    #: and of all others
    refusals: Sequence[float]

    @property
    def accepted(self) -> float:
        """Requests let in a second."""
        return self.answers.get(200, 0) / self.seconds

    @property
    def offered(self) -> float:
        return sum(self.answers.values()) / self.seconds

    @property
    def p50(self) -> float:
        return statistics.median(self.latencies)

    @property
    def p99(self) -> float:
        return self.latencies[int(len(self.latencies) * 0.99)]


class _Line(asyncio.Protocol):
    """One connection of a caller: a request at a time, always the same."""

    def __init__(self, callers: "Callers", request: bytes) -> None:
        self._callers = callers
        self._request = request
        self._buffer, self._head = b"", b""
        #: bytes of a body that are still to come; negative until its head is there
        self._left = -1
        self._sent_at = 0.0
        self.is_open = True

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._callers.is_free(self)

    def send(self) -> None:
        self._callers.in_flight += 1
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._left < 0:
            self._buffer += data
            head, separator, rest = self._buffer.partition(b"\r\n\r\n")
            if not separator:
                return
            self._head, self._buffer = head.lower(), b""
            self._left = number_in(self._head, b"content-length") - len(rest)
        else:
            self._left -= len(data)
        if self._left <= 0:
            self._left = -1
            seconds = time.perf_counter() - self._sent_at
            self._callers.on_response(self, int(self._head[9:12]), seconds, number_in(self._head, b"retry-after"))

    def connection_lost(self, exc: BaseException | None) -> None:
        self.is_open = False
        self._callers.is_lost(self)

    def abort(self) -> None:
        self._transport.abort()


def number_in(head: bytes, name: bytes) -> int:
    """The value of a header in a head in lower case; 0 if there is none."""
    return int(head.partition(b"\r\n" + name + b": ")[2].split(b"\r\n", 1)[0] or 0)


class Callers:
    """Many callers of one server; its paths are dealt out to their connections in turn."""

    def __init__(self, url: str, paths: Sequence[str], headers: Mapping[str, str], document: Any = LIST) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        body = json.dumps(document).encode()
        fields = {"Content-Type": "application/json", **headers, "Content-Length": str(len(body))}
        head = "\r\n".join([f"Host: {parts.netloc}", *(f"{name}: {value}" for name, value in fields.items())])
        self.requests = [f"POST {path} HTTP/1.1\r\n{head}\r\n\r\n".encode() + body for path in paths]
        self._lines: list[_Line] = []
        self.in_flight = 0
        self._free: list[_Line] = []
        self._is_closed_loop = False
        self._clear()

    @classmethod
    def prepared(cls, url: str, requests: Sequence[bytes]) -> Self:
        """Callers whose connections send prepared requests."""
        callers = cls(url, [], {})
        callers.requests = list(requests)
        return callers

    def _clear(self) -> None:
        self._answers: Counter[int] = Counter()
        self._latencies: list[float] = []
        self._refusals: list[float] = []

    def is_free(self, line: _Line) -> None:
        if self._is_closed_loop:
            line.send()
        else:
            self._free.append(line)

    def is_lost(self, line: _Line) -> None:
        self._lines.remove(line)
        if line in self._free:
            self._free.remove(line)

    def on_response(self, line: _Line, status: int, seconds: float, retry_after: int) -> None:
        """An answer; its caller rests as long as it is told, and at most twice that: they do not all come at once."""
        self.in_flight -= 1
        self._answers[status] += 1
        (self._latencies if status == 200 else self._refusals).append(seconds * 1000)
        if retry_after:
            asyncio.get_running_loop().call_later(retry_after * random.uniform(1, 2), self._rested, line)
        else:
            self.is_free(line)

    def _rested(self, line: _Line) -> None:
        if line.is_open:
            self.is_free(line)

    async def connect(self, connections: int) -> None:
        loop = asyncio.get_running_loop()
        for number in range(connections):
            request = self.requests[number % len(self.requests)]
            _, line = await loop.create_connection(lambda request=request: _Line(self, request), *self._address)
            self._lines.append(line)

    async def steady(self, warm: float, seconds: float) -> Outcome:
        """Every connection asks again as soon as it is answered; where it is refused, after a rest."""
        self.begin()
        await asyncio.sleep(warm)
        outcome = await self.counted(seconds)
        self._is_closed_loop = False
        return outcome

    def begin(self) -> None:
        """Every connection asks from now on as soon as it is answered."""
        self._is_closed_loop = True
        free, self._free = self._free, []
        for line in free:
            line.send()

    async def once(self) -> Outcome:
        """Every connection asks once, all at the same time; returns when all are answered."""
        self._clear()
        began = time.perf_counter()
        free, self._free = self._free, []
        for line in free:
            line.send()
        while self.in_flight:  # noqa: ASYNC110  what comes is told to the lines
            await asyncio.sleep(_TICK)
        return self._outcome(began)

    async def counted(self, seconds: float) -> Outcome:
        """What callers get from now on."""
        self._clear()
        began = time.perf_counter()
        await asyncio.sleep(seconds)
        return self._outcome(began)

    def _outcome(self, began: float) -> Outcome:
        passed = time.perf_counter() - began
        return Outcome(dict(self._answers), passed, sorted(self._latencies), sorted(self._refusals))

    async def pressed(self, rate: float, warm: float, seconds: float) -> Outcome:
        """So many requests a second, whatever becomes of the earlier ones, of callers who rest when refused."""
        pressing = asyncio.create_task(self._press(rate))
        await asyncio.sleep(warm)
        outcome = await self.counted(seconds)
        pressing.cancel()
        return outcome

    async def _press(self, rate: float) -> None:
        due, last = 0.0, time.perf_counter()
        while True:
            await asyncio.sleep(_TICK)
            now = time.perf_counter()
            due, last = due + (now - last) * rate, now
            while due >= 1 and self._free:
                # the one that has rested longest, as a client's pool has it
                self._free.pop(0).send()
                due -= 1
            due = min(due, rate * 0.1)

    def close(self) -> None:
        for line in self._lines:
            line.abort()


async def _serve(port: int, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Canned(seconds), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_serve(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))
