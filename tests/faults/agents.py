"""Agents behind a load balancer while workers and front ends are killed: every task ends, and is done once.

python -m tests.faults.agents [TASKS KILLS]
"""

import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import aiohttp

from tests.agents.mcp.conftest import Raw, Reply
from tests.faults.arena import Arena, arena, ticket
from tests.faults.storm import IN_FLIGHT
from tests.harness.round_robin import round_robin
from tests.harness.waiting import PATIENCE

TASKS, KILLS = 300, 10
#: concurrent agents, fewer than the concurrent batches of the application
_AGENTS = 20
#: one of so many tasks has a write that must not be repeated
_WRITE_EVERY = 3
_CAPABILITIES = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
#: errors after which a call is repeated with its key
_AGAIN = ("idempotency_in_flight", "unavailable")


class Agent:
    """An agent that repeats a call with the same key when its front end dies."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._raw = Raw(session, f"{url}/mcp")

    async def ask(self, method: str, params: dict[str, Any], **options: Any) -> Reply:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    reply = await self._raw(method, params, **options)
                except aiohttp.ClientError:
                    await asyncio.sleep(0.1)
                    continue
                if reply.status not in (502, 503) and (answer := _answer_in(reply)) is not None:
                    return answer
                await asyncio.sleep(0.1)

    async def call(self, name: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
        """The result, after all earlier attempts with the key have ended."""
        async with asyncio.timeout(PATIENCE):
            while True:
                result = (await self.ask("tools/call", {"name": name, "arguments": arguments}, **options)).result
                if result.get("structuredContent", {}).get("error") not in _AGAIN:
                    return dict(result)
                await asyncio.sleep(0.2)

    async def begun(self, name: str, arguments: dict[str, Any]) -> str:
        """The id of a call's task."""
        return str((await self.call(name, arguments, capabilities=_CAPABILITIES))["taskId"])

    async def ended(self, task_id: str) -> dict[str, Any]:
        """Wait until the task has ended."""
        async with asyncio.timeout(PATIENCE):
            while True:
                task = (await self.ask("tasks/get", {"taskId": task_id}, capabilities=_CAPABILITIES)).result
                if task["status"] != "working":
                    return dict(task)
                await asyncio.sleep(0.5)


def _answer_in(reply: Reply) -> Reply | None:
    """The response, which may be the last event of a stream; None if the stream ends before."""
    if not isinstance(reply.document, str):
        return reply
    messages = [json.loads(line[6:]) for line in reply.document.splitlines() if line.startswith("data: ")]
    answers = [message for message in messages if "id" in message]
    return Reply(reply.status, reply.headers, answers[-1]) if answers else None


@dataclass
class AgentsReport:
    """The outcomes of the tasks."""

    tasks: int
    kills: Counter[str] = field(default_factory=Counter)
    #: the number of tasks in progress at each kill
    under_way: list[int] = field(default_factory=list)
    #: `done`, `unknown`, or the code of the error that a task ended with, and that a write was answered with
    ends: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    #: tasks that did not end
    lost: int = 0
    #: keys with two tasks, writes that the application was sent twice, and batches sent again though nothing was killed
    doubled: int = 0
    #: batches, whose repetition changes nothing, that were sent again because a process was killed while it sent them
    repeated: int = 0
    #: reported as unknown although nothing was killed while it was sent
    invented: int = 0
    #: reported as done although the application did not receive it, or as failed although it did
    untrue: int = 0
    #: seconds from the call to the end of its task
    durations: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.invented or self.untrue)

    def table(self) -> str:
        durations = sorted(self.durations) or [0.0]
        lines = [
            ("tasks of agents, three front ends", self.tasks),
            ("kills", f"{sum(self.kills.values())}: {_listed(self.kills)}"),
            ("under way at a kill", f"{min(self.under_way, default=0)} tasks at least"),
            ("ended", _listed(self.ends)),
            ("writes between them", _listed(self.writes)),
            ("lost", self.lost),
            ("doubled", self.doubled),
            ("idempotent batches sent again", self.repeated),
            ("unknown without a kill", self.invented),
            ("results untrue", self.untrue),
            ("from call to end", f"median {durations[len(durations) // 2]:.1f} s, slowest {durations[-1]:.1f} s"),
            ("took", f"{self.seconds:.0f} s"),
        ]
        return "\n".join(f"{name:<38} {value}" for name, value in lines)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


class AgentsRun:
    """One run in as many rounds as there are kills, and one more.

    In each round, agents begin tasks and wait for their ends. While the last ones are in progress, a process is killed;
    when it runs again, the next round begins.
    """

    def __init__(self, gateway: Arena, tasks: int, kills: int) -> None:
        self._gateway = gateway
        self._kills = kills
        self._begun: dict[int, str] = {}
        self._ended = self._restarted = 0
        self._changed = asyncio.Condition()
        self._killed_at: list[float] = []
        self.report = AgentsReport(tasks)

    async def run(self) -> AgentsReport:
        started = time.monotonic()
        gateway, numbers = self._gateway, iter(range(1, self.report.tasks + 1))
        urls = [gateway.url_of(front_end) for front_end in gateway.front_ends]
        async with (
            gateway.desk() as desk,
            round_robin(urls) as balancer,
            aiohttp.ClientSession(headers=desk.api.headers) as session,
        ):
            agent, connector = Agent(session, balancer.url), desk.record["id"]
            agents = (self._work(agent, connector, numbers) for _ in range(_AGENTS))
            await asyncio.gather(self._rage(), *agents)
        self._judge()
        self.report.seconds = time.monotonic() - started
        return self.report

    async def _work(self, agent: Agent, connector: str, numbers: Iterator[int]) -> None:
        for number in numbers:
            round_number = (number - 1) * (self._kills + 1) // self.report.tasks
            async with self._changed:
                await self._changed.wait_for(lambda due=round_number: self._restarted >= due)
            started = time.monotonic()
            arguments = {
                "operation": "support-desk.ticket_bulk_updates.create",
                "params": {"ids": _ids(number), "ticket": {"status": "solved"}},
                "connector": connector,
                "idempotency_key": f"task-{number}",
            }
            task_id = await agent.begun("write", arguments)
            async with self._changed:
                self._begun[number] = task_id
                self._changed.notify_all()
            writing = [self._create(agent, connector, number)] if number % _WRITE_EVERY == 0 else []
            await asyncio.gather(self._follow(agent, number, task_id), *writing)
            self._ended += 1
            self.report.durations.append(time.monotonic() - started)

    async def _follow(self, agent: Agent, number: int, task_id: str) -> None:
        try:
            task = await agent.ended(task_id)
        except TimeoutError:
            self.report.lost += 1
            return
        content = task.get("result", {}).get("structuredContent", {})
        end = self._judged(content, self._gateway.upstream.updated[_ids(number)])
        self.report.ends[end] += 1

    async def _create(self, agent: Agent, connector: str, number: int) -> None:
        """A write that must not be repeated, while the task runs."""
        name = f"write-{number}"
        arguments = {
            "operation": "support-desk.tickets.create",
            "params": ticket(name),
            "connector": connector,
            "idempotency_key": name,
        }
        content = (await agent.call("write", arguments))["structuredContent"]
        end = self._judged(content, self._gateway.upstream.created[name])
        self.report.writes[end] += 1

    def _judged(self, content: dict[str, Any], seen: int) -> str:
        """Compare the end of a call with the number of requests that the application received."""
        if "result" in content:
            self.report.untrue += not seen
            return "done"
        if content.get("outcome") == "unknown":
            self.report.invented += not self._was_killed(content.get("known", {}).get("sent_at"))
            return "unknown"
        self.report.untrue += seen > 0
        return str(content.get("error"))

    async def _rage(self) -> None:
        """Kill front ends and workers in turns, each when the last tasks of its round begin."""
        gateway = self._gateway
        pairs = zip(itertools.cycle(gateway.front_ends), itertools.cycle(gateway.workers), strict=False)
        victims = itertools.islice(itertools.chain.from_iterable(pairs), self._kills)
        for number, program in enumerate(victims, start=1):
            last = number * self.report.tasks // (self._kills + 1)
            async with self._changed:
                await self._changed.wait_for(lambda due=last - 2: len(self._begun) >= due)
            self.report.under_way.append(len(self._begun) - self._ended)
            self.report.kills["front end" if program in gateway.front_ends else "worker"] += 1
            self._killed_at.append(time.time())
            await program.kill()
            await program.start()
            async with self._changed:
                self._restarted += 1
                self._changed.notify_all()

    def _judge(self) -> None:
        report, upstream = self.report, self._gateway.upstream
        report.lost += report.tasks - len(self._begun)
        report.doubled = len(self._begun) - len(set(self._begun.values()))
        report.doubled += sum(count > 1 for count in upstream.created.values())
        for first, *again in upstream.updated_at.values():
            for at in again:
                was_killed = any(first - IN_FLIGHT <= killed_at <= at for killed_at in self._killed_at)
                report.repeated += was_killed
                report.doubled += not was_killed

    def _was_killed(self, sent_at: str | None) -> bool:
        """Whether a process was killed during the request."""
        if sent_at is None:
            return False
        sent = datetime.fromisoformat(sent_at).timestamp()
        return any(sent - 0.1 <= killed_at <= sent + IN_FLIGHT for killed_at in self._killed_at)


def _ids(number: int) -> str:
    return f"{number}1,{number}2"


async def agents(tasks: int, kills: int) -> AgentsReport:
    async with arena(front_ends=3, workers=2) as gateway:
        gateway.upstream.slowest, gateway.upstream.batch_seconds = 0.5, 1.0
        return await AgentsRun(gateway, tasks, kills).run()


def main() -> int:
    tasks, kills = (int(each) for each in sys.argv[1:3]) if len(sys.argv) > 2 else (TASKS, KILLS)
    report = asyncio.run(agents(tasks, kills))
    sys.stdout.write(report.table() + "\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
