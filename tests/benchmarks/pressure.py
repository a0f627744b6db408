"""More load than an ordinary client makes: canned requests over plain sockets, and an application canned as well."""

import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.benchmarks.relays import SMALL, answer

_BODY = answer(SMALL)
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY
#: seconds between two handfuls of requests
_TICK = 0.002


class Canned(asyncio.Protocol):
    """An application that answers every request alike. Its requests have no body."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(_ANSWER * data.count(b"\r\n\r\n"))


@dataclass(frozen=True)
class Outcome:
    """What callers got: how many of which status, and the latency of those that were let in."""

    answers: Mapping[int, int]
    seconds: float
    #: milliseconds of answers with status 200, ascending
    latencies: Sequence[float]

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
    """One connection of a caller: a request at a time."""

    def __init__(self, callers: "Callers") -> None:
        self._callers = callers
        self._buffer = b""
        self._sent_at = 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._callers.is_free(self)

    def send(self, request: bytes) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        if len(rest) >= length:
            self._buffer = b""
            self._callers.heard(int(head[9:12]), time.perf_counter() - self._sent_at)
            self._callers.is_free(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._callers.is_lost(self)


class Callers:
    """Many callers of one URL."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        body = json.dumps({"entity": "tickets", "action": "list", "params": {"per_page": SMALL}}).encode()
        lines = [f"{name}: {value}" for name, value in {**headers, "Content-Length": str(len(body))}.items()]
        first = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}", "Content-Type: application/json"]
        head = "\r\n".join([*first, *lines])
        self._request = f"{head}\r\n\r\n".encode() + body
        self._free: list[_Line] = []
        self._is_closed_loop = False
        self._clear()

    def _clear(self) -> None:
        self._answers: Counter[int] = Counter()
        self._latencies: list[float] = []

    def is_free(self, line: _Line) -> None:
        if self._is_closed_loop:
            line.send(self._request)
        else:
            self._free.append(line)

    def is_lost(self, line: _Line) -> None:
        if line in self._free:
            self._free.remove(line)

    def heard(self, status: int, seconds: float) -> None:
        self._answers[status] += 1
        if status == 200:
            self._latencies.append(seconds * 1000)

    async def connect(self, connections: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: _Line(self), *self._address)

    async def steady(self, warm: float, seconds: float) -> Outcome:
        """Every connection asks again as soon as it is answered."""
        self._is_closed_loop = True
        for line in self._free:
            line.send(self._request)
        self._free.clear()
        await asyncio.sleep(warm)
        outcome = await self._counted(seconds)
        self._is_closed_loop = False
        return outcome

    async def _counted(self, seconds: float) -> Outcome:
        self._clear()
        began = time.perf_counter()
        await asyncio.sleep(seconds)
        return Outcome(dict(self._answers), time.perf_counter() - began, sorted(self._latencies))

    async def pressed(self, rate: float, warm: float, seconds: float) -> Outcome:
        """So many requests a second, whatever becomes of the earlier ones."""
        pressing = asyncio.create_task(self._press(rate))
        await asyncio.sleep(warm)
        outcome = await self._counted(seconds)
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
                self._free.pop(0).send(self._request)
                due -= 1
            due = min(due, rate * 0.1)

    def close(self) -> None:
        for line in list(self._free):
            line._transport.abort()


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_serve(int(sys.argv[1])))
