"""The servers of PostgreSQL that a URL names: a primary and its standbys, of which one is wanted."""

import asyncio
from typing import Any

import asyncpg

from gateway.foundation.db.urls import urls_of_hosts

#: seconds after which the next server is asked too, because this one has not answered yet
_NEXT_AFTER = 0.15


class DatabaseServers:
    """Connects to that server of a URL which answers and has its `target_session_attrs`.

    asyncpg asks one server after the other. It would never ask the second one while the first is silent, as a machine
    is that has lost its power.
    """

    def __init__(self, url: str) -> None:
        #: a URL for each server; the one that was connected to last is the first
        self._urls = urls_of_hosts(url)

    async def connect(self, **options: Any) -> Any:
        """A new connection; raises the error of the first server that was asked, and TimeoutError if all are silent."""
        if len(self._urls) == 1:
            return await asyncpg.connect(self._urls[0], **options)
        attempts: dict[asyncio.Task[Any], str] = {}
        errors: list[BaseException] = []
        waiting = list(self._urls)
        try:
            while waiting or attempts:
                if waiting:
                    url = waiting.pop(0)
                    attempts[asyncio.create_task(asyncpg.connect(url, **options), name="connect")] = url
                done, _ = await asyncio.wait(
                    attempts, timeout=_NEXT_AFTER if waiting else None, return_when=asyncio.FIRST_COMPLETED
                )
                for attempt in done:
                    url = attempts.pop(attempt)
                    error = attempt.exception()
                    if error is None:
                        attempts.update(dict.fromkeys(done - {attempt}, ""))
                        self._urls.sort(key=url.__ne__)
                        return attempt.result()
                    errors.append(error)
        finally:
            for attempt in attempts:
                attempt.cancel()
                attempt.add_done_callback(_discard)
        # That a standby is no primary says less than why the primary cannot be reached.
        raise min(errors, key=lambda error: isinstance(error, asyncpg.exceptions.TargetServerAttributeNotMatched))


def _discard(attempt: "asyncio.Task[Any]") -> None:
    """Close what is not needed, because another server was faster."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().terminate()
