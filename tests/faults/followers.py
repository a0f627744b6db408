"""Clients that follow jobs through a storm: by event streams, and by tasks and subscriptions at /mcp."""

import asyncio
import contextlib
import json
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.agents.mcp.conftest import Raw
from tests.faults.arena import Arena
from tests.harness.caller import Api, UnexpectedStatus
from tests.harness.raw_http import STATUS_LINE, head_of, sent

#: seconds without a byte after which a client connects again: a comment every 15, and a freeze of up to 13
SILENCE = 40.0
#: seconds between two polls of a task
_POLL_INTERVAL = 0.5
_TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
_NO_SUCH_TASK = -32602
#: errors after which a client tries again: a front end was killed, or the gateway refuses temporarily
_PASSING = (aiohttp.ClientError, OSError, TimeoutError, UnexpectedStatus)
_EVENT = re.compile(rb"id: (\d+)\nevent: (\w+)\ndata: (.*)\n")


@dataclass
class FollowersReport:
    """The changes of jobs that the clients received."""

    jobs: int = 0
    #: event streams that were opened, and that ended before their job's end
    streams: int = 0
    broken_off: int = 0
    #: streams with a second head in them
    corrupted: int = 0
    #: events that came twice
    repeated: int = 0
    #: answers "there is no task" for a job that was accepted
    denied: int = 0
    subscriptions: int = 0
    #: subscriptions that ended with a result while their task was working
    ended_early: int = 0
    #: ends that are not the job's
    untrue: int = 0
    #: seconds without a byte of an open event stream, at most
    longest_silence: float = 0.0
    #: seconds from a job's end until the clients of its event stream and its subscription received it
    events_late: list[float] = field(default_factory=list)
    subscriptions_late: list[float] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether every client received the correct end of every job."""
        lies = self.corrupted or self.repeated or self.denied or self.ended_early or self.untrue
        return not lies and len(self.events_late) == len(self.subscriptions_late) == self.jobs


class Followers:
    """Three clients for each job that is followed."""

    def __init__(self, gateway: Arena, seed: int) -> None:
        self._gateway = gateway
        self._random = random.Random(seed)
        self.report = FollowersReport()
        #: job → its final status, and when the client received it
        self._by_events: dict[str, tuple[str, float]] = {}
        self._by_subscription: dict[str, float] = {}
        self._by_task: dict[str, str] = {}

    async def follow(self, job_id: str) -> None:
        """Wait until each client has received the job's end."""
        self.report.jobs += 1
        await asyncio.gather(self._stream_events(job_id), self._poll_task(job_id), self._listen(job_id))

    def judge(self, ended: Mapping[str, tuple[str, float]]) -> None:
        """Compare the received ends with those of the jobs: status and time by job."""
        report = self.report
        for job_id, (status, heard_at) in self._by_events.items():
            report.untrue += status != ended[job_id][0]
            report.events_late.append(heard_at - ended[job_id][1])
        for job_id, heard_at in self._by_subscription.items():
            report.subscriptions_late.append(heard_at - ended[job_id][1])
        for job_id, task_status in self._by_task.items():
            report.untrue += (task_status == "cancelled") != (ended[job_id][0] == "canceled")

    # --- event streams ---

    async def _stream_events(self, job_id: str) -> None:
        seen: list[int] = []
        while job_id not in self._by_events:
            with contextlib.suppress(*_PASSING):
                await self._one_stream(job_id, seen)
            await asyncio.sleep(0.2)

    async def _one_stream(self, job_id: str, seen: list[int]) -> None:
        """Read one connection to its end as bytes, because a client library hides a second head."""
        url = self._gateway.url_of(self._random.choice(self._gateway.front_ends))
        headers = {**await self._token(url), "Last-Event-ID": str(max(seen, default=0))}
        reader, writer = await sent(url, head_of("GET", f"/api/v1/jobs/{job_id}/events", headers))
        data = b""
        try:
            while chunk := await self._read(reader):
                data += chunk
        finally:
            writer.close()
            self._judge_stream(job_id, data, seen)

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        began = time.monotonic()
        async with asyncio.timeout(SILENCE):
            chunk = await reader.read(1 << 16)
        self.report.longest_silence = max(self.report.longest_silence, time.monotonic() - began)
        return chunk

    def _judge_stream(self, job_id: str, data: bytes, seen: list[int]) -> None:
        report = self.report
        report.corrupted += data.count(STATUS_LINE) > 1
        if not data.startswith(b"HTTP/1.1 200 "):
            return
        report.streams += 1
        for number, name, text in _EVENT.findall(data):
            report.repeated += int(number) in seen
            seen.append(int(number))
            if name == b"done":
                self._by_events[job_id] = (json.loads(text)["status"], time.time())
        report.broken_off += job_id not in self._by_events

    # --- the Model Context Protocol ---

    async def _poll_task(self, job_id: str) -> None:
        while job_id not in self._by_task:
            try:
                reply = await self._asked("tasks/get", {"taskId": job_id})
            except _PASSING:
                reply = None
            if isinstance(reply, dict):
                self.report.denied += reply.get("error", {}).get("code") == _NO_SUCH_TASK
                status = reply.get("result", {}).get("status", "working")
                if status != "working":
                    self._by_task[job_id] = status
            await asyncio.sleep(_POLL_INTERVAL)

    async def _listen(self, job_id: str) -> None:
        while job_id not in self._by_subscription:
            try:
                stream = await self._asked("subscriptions/listen", {"notifications": {"taskIds": [job_id]}})
            except _PASSING:
                stream = None
            if isinstance(stream, str):
                self.report.subscriptions += 1
                self._judge_subscription(job_id, stream)
            await asyncio.sleep(0.2)

    def _judge_subscription(self, job_id: str, stream: str) -> None:
        frames = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
        statuses = [frame["params"]["status"] for frame in frames if frame.get("method") == "notifications/tasks"]
        last = frames[-1] if frames else {}
        self.report.denied += last.get("error", {}).get("code") == _NO_SUCH_TASK
        is_over = bool(statuses) and statuses[-1] != "working"
        self.report.ended_early += "result" in last and not is_over
        if is_over:
            self._by_subscription[job_id] = time.time()

    async def _asked(self, method: str, params: dict[str, Any]) -> Any:
        """The document of one request to one front end; the text of a stream."""
        url = self._gateway.url_of(self._random.choice(self._gateway.front_ends))
        timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENCE)
        async with aiohttp.ClientSession(headers=await self._token(url), timeout=timeout) as session:
            return (await Raw(session, f"{url}/mcp")(method, params, capabilities=_TASKS)).document

    async def _token(self, url: str) -> dict[str, str]:
        client = self._gateway.api_client
        async with asyncio.timeout(SILENCE), Api.of(url, client.id, client.secret) as api:
            return api.headers
