"""The bell: Redis and arq, which wake workers. Losing it loses nothing. This is the one module that names arq.

arq alone loses or doubles work when it is killed, so it carries nothing but the word that there is some: each ring
lets one worker slot claim one job, whichever is due, from PostgreSQL.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import msgspec
from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.worker import Worker, func
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

#: the arq queue, and the channel that wakes workers at once instead of at their next poll
QUEUE = "gateway:jobs"
CHANNEL = "gateway:rung"
#: seconds that a ring may take before it is given up; the sweeper rings again
_RING_TIMEOUT = 1.0
#: seconds between looks at the queue when no ring is heard, and after Redis failed
_POLL, _PAUSE = 0.5, 0.5
#: seconds; arq's own limit on a task, which the job's deadline is there for
_A_DAY = 86_400
_AWAY = (RedisError, OSError, TimeoutError)


def _packed(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value)


def _unpacked(value: bytes) -> dict[str, Any]:
    unpacked: dict[str, Any] = msgspec.json.decode(value)
    return unpacked


def redis_settings(url: str) -> RedisSettings:
    """arq's settings; connecting fails at once, since nothing waits for Redis."""
    settings = RedisSettings.from_dsn(url)
    settings.conn_timeout = 1
    settings.conn_retries = 0
    return settings


class Bell:
    """Rings for jobs; silent, not failing, while Redis is away."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: ArqRedis | None = None
        self._connecting = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator["Bell"]:
        bell = cls(url)
        try:
            yield bell
        finally:
            if bell._pool is not None:
                await bell._pool.aclose()

    async def ring(self, job_id: UUID, attempt: int) -> bool:
        """Wake a worker; False when Redis did not answer in time."""
        try:
            async with asyncio.timeout(_RING_TIMEOUT):
                pool = await self._connected()
                await pool.enqueue_job("run", _job_id=f"{job_id}:{attempt}", _queue_name=QUEUE)
                await pool.publish(CHANNEL, b"")
        except _AWAY:
            log.warning("Redis is away; workers will find the job in PostgreSQL", extra={"job_id": str(job_id)})
            return False
        return True

    async def is_there(self) -> bool:
        """Whether Redis answers."""
        try:
            async with asyncio.timeout(_RING_TIMEOUT):
                await (await self._connected()).ping()
        except _AWAY:
            return False
        return True

    async def _connected(self) -> ArqRedis:
        async with self._connecting:
            if self._pool is None:
                self._pool = await create_pool(redis_settings(self._url), job_serializer=_packed)
        return self._pool


class BellWorker(Worker):
    """arq's loop, awake as soon as it is rung and unmoved by Redis going away."""

    def __init__(self, work: Callable[[], Awaitable[None]], url: str, slots: int) -> None:
        self._rung = asyncio.Event()
        self._work = work

        async def run(ctx: dict[Any, Any]) -> None:
            await work()

        async def freed(ctx: dict[Any, Any]) -> None:
            self._rung.set()

        super().__init__(
            functions=[func(run, name="run")],
            queue_name=QUEUE,
            redis_settings=redis_settings(url),
            max_jobs=slots,
            poll_delay=_POLL,
            job_timeout=_A_DAY,
            max_tries=1,
            retry_jobs=False,
            keep_result=0,
            allow_abort_jobs=False,
            log_results=False,
            health_check_interval=5,
            handle_signals=False,
            after_job_end=freed,
            job_serializer=_packed,
            job_deserializer=_unpacked,
        )
        self._url = url
        self.is_listening = False

    def stop_picking(self) -> None:
        """Take no more rings; what runs goes on."""
        self.allow_pick_jobs = False

    async def close_quietly(self) -> None:
        """Close the connection, whether or not Redis is there to hear it."""
        if self._pool is not None:
            with contextlib.suppress(*_AWAY):
                await self._pool.aclose(close_connection_pool=True)

    async def main(self) -> None:
        """Look at the queue when rung, when a slot frees, and every half second besides."""
        listener = asyncio.create_task(self._listen(), name="listen for rings")
        try:
            while True:
                try:
                    await self._connect()
                    await self._poll_iteration()
                except _AWAY:
                    await asyncio.sleep(_PAUSE)
                self._rung.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._rung.wait(), self.poll_delay_s)
        finally:
            listener.cancel()

    async def _connect(self) -> None:
        if self._pool is None:
            self._pool = await create_pool(
                self.redis_settings,
                job_serializer=self.job_serializer,
                job_deserializer=self.job_deserializer,
                default_queue_name=self.queue_name,
            )

    async def _listen(self) -> None:
        while True:
            try:
                await self._connect()
                async with self.pool.pubsub() as channel:
                    await channel.subscribe(CHANNEL)
                    self.is_listening = True
                    self._rung.set()
                    while True:
                        if await channel.get_message(ignore_subscribe_messages=True, timeout=5):
                            self._rung.set()
            except _AWAY:
                log.warning("Redis is away; jobs are found in PostgreSQL until it is back")
            finally:
                self.is_listening = False
            await asyncio.sleep(_PAUSE)
