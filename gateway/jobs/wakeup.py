"""Wake-ups: arq wakes workers through Redis. A lost wake-up loses no job. Only this module uses arq.

arq alone loses or doubles work when a process is killed, so its messages only say that jobs are queued: a wake-up makes
one worker claim some due jobs, not certain ones, from PostgreSQL. It ends with the claim and not with the jobs, so that
the wake-up of a killed worker is soon free for another.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import msgspec
from arq.connections import ArqRedis
from arq.constants import in_progress_key_prefix
from arq.worker import Worker, func
from redis.asyncio import ConnectionPool
from redis.exceptions import RedisError

from gateway.errors import Unavailable
from gateway.foundation.aio.loops import every, running

log = logging.getLogger(__name__)

#: the arq queue, and the channel that wakes workers at once instead of at their next poll
QUEUE = "gateway:jobs"
CHANNEL = "gateway:jobs_ready"
#: maximum jobs claimed after one wake-up
BATCH = 20
#: seconds until Redis counts as unavailable
_TIMEOUT = 1.0
#: seconds during which nothing is then sent to it
_BACKOFF = 1.0
#: seconds between polls of the queue when no notification is received
_POLL = 0.5
#: seconds between tries after Redis failed
_PAUSE = 0.5
#: seconds that a wake-up may take, which is one claim
_WAKEUP_TIMEOUT = 10
#: concurrent wake-ups
_CONCURRENCY = 10
_UNAVAILABLE = (RedisError, OSError, TimeoutError)
_REDIS_UNAVAILABLE = "Redis is unavailable; workers find jobs in PostgreSQL until it is back"

# arq logs two lines for every wake-up, which do not help an operator.
logging.getLogger("arq.worker").setLevel(logging.WARNING)


def _client(url: str) -> ArqRedis:
    """A client that connects when it is first used; a silent Redis counts as unavailable."""
    pool: ConnectionPool = ConnectionPool.from_url(url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT)
    return ArqRedis(
        pool, job_serializer=msgspec.json.encode, job_deserializer=msgspec.json.decode, default_queue_name=QUEUE
    )


async def _close(client: ArqRedis) -> None:
    with contextlib.suppress(*_UNAVAILABLE):
        await client.aclose(close_connection_pool=True)


class Wakeup:
    """Announces jobs in the background: no caller waits for Redis. While Redis is unavailable, nothing is sent."""

    def __init__(self, url: str) -> None:
        self._redis = _client(url)
        self._pending: list[str] = []
        self._notifying: asyncio.Task[None] | None = None
        self._backs_off_until = 0.0

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator["Wakeup"]:
        wakeup = cls(url)
        try:
            yield wakeup
        finally:
            if wakeup._notifying is not None:
                await wakeup._notifying
            await _close(wakeup._redis)

    async def notify(self, job_id: UUID, attempt: int) -> None:
        """Wake a worker for a job, in the background; concurrent notifications are sent together."""
        self._pending.append(f"{job_id}:{attempt}")
        if self._notifying is None or self._notifying.done():
            self._notifying = asyncio.create_task(self._notify_all(), name="wake-up")

    async def _notify_all(self) -> None:
        while self._pending:
            pending, self._pending = self._pending, []
            if asyncio.get_running_loop().time() < self._backs_off_until:
                continue
            try:
                async with asyncio.timeout(_TIMEOUT):
                    for arq_id in pending[::BATCH]:
                        await self._redis.enqueue_job("run", _job_id=arq_id)
                    await self._redis.publish(CHANNEL, b"")
            except _UNAVAILABLE:
                log.warning("Redis is unavailable; workers find the jobs in PostgreSQL", extra={"jobs": len(pending)})
                self._backs_off_until = asyncio.get_running_loop().time() + _BACKOFF

    async def is_available(self) -> bool:
        """Whether Redis answers."""
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._redis.ping()
        except _UNAVAILABLE:
            return False
        return True


class NotifiedWorker(Worker):
    """arq's worker, but woken by notifications, and running on while Redis is unavailable."""

    def __init__(self, on_wake: Callable[[], None], url: str) -> None:
        self._is_notified = asyncio.Event()
        self._redis = _client(url)

        async def run(ctx: dict[Any, Any]) -> None:
            on_wake()

        async def on_job_end(ctx: dict[Any, Any]) -> None:
            self._is_notified.set()

        super().__init__(
            functions=[func(run, name="run")],
            queue_name=QUEUE,
            redis_pool=self._redis,
            max_jobs=_CONCURRENCY,
            poll_delay=_POLL,
            job_timeout=_WAKEUP_TIMEOUT,
            max_tries=1,
            retry_jobs=False,
            keep_result=0,
            allow_abort_jobs=False,
            log_results=False,
            health_check_interval=5,
            handle_signals=False,
            after_job_end=on_job_end,
            job_serializer=msgspec.json.encode,
            job_deserializer=msgspec.json.decode,
        )

    async def main(self) -> None:
        """Poll the queue when notified, when a wake-up ends, and every half second."""
        async with running(every(_PAUSE, self._listen, name="wake-up listener")):
            await every(0, self._poll_once, name="wake-up queue")

    async def _poll_once(self) -> None:
        """Raises Unavailable when Redis does not respond."""
        self._is_notified.clear()
        try:
            await self._poll_iteration()
        except _UNAVAILABLE:
            raise Unavailable(_REDIS_UNAVAILABLE) from None
        # Not `wait_for`: before Python 3.12 it swallows being canceled when a notification comes at the same moment.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.poll_delay_s):
                await self._is_notified.wait()

    async def start_jobs(self, job_ids: list[bytes]) -> None:
        """Start wake-ups as arq does, but in one round trip, and without losing a slot if Redis fails in between."""
        names = [job_id.decode() for job_id in job_ids[: self.max_jobs - self.job_counter]]
        if not names:
            return
        async with self.pool.pipeline(transaction=True) as pipe:
            for name in names:
                pipe.set(in_progress_key_prefix + name, b"1", nx=True, px=int(self.in_progress_timeout_s * 1000))
                pipe.zscore(self.queue_name, name)
            replies = await pipe.execute()
        for name, is_ours, score in zip(names, replies[::2], replies[1::2], strict=True):
            if is_ours and score is not None:
                self._start(name, int(score))

    def _start(self, name: str, score: int) -> None:
        self.job_counter += 1
        task = asyncio.create_task(self.run_job(name, score))
        task.add_done_callback(self._on_done)
        self.tasks[name] = task

    def _on_done(self, _task: "asyncio.Task[None]") -> None:
        self.job_counter -= 1

    async def close_quietly(self) -> None:
        """Finish the wake-ups in progress and close the connection, also if Redis is unavailable."""
        if self.tasks:
            await asyncio.wait(self.tasks.values(), timeout=_TIMEOUT)
        await _close(self._redis)

    async def _listen(self) -> None:
        """Raises Unavailable when Redis does not respond."""
        try:
            async with self.pool.pubsub() as channel:
                await channel.subscribe(CHANNEL)
                self._is_notified.set()
                await self._receive(channel)
        except _UNAVAILABLE:
            raise Unavailable(_REDIS_UNAVAILABLE) from None

    async def _receive(self, channel: Any) -> None:
        """Wake at every notification; raises TimeoutError if Redis does not answer a ping."""
        is_pinged = False
        while True:
            message = await channel.get_message(timeout=_TIMEOUT)
            if message is None and is_pinged:
                raise TimeoutError
            is_pinged = message is None
            if is_pinged:
                await channel.ping()
            elif message["type"] == "message":
                self._is_notified.set()
