"""Whether PostgreSQL, Redis and a worker are available to a front end."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.errors import Unavailable
from gateway.foundation.aio.remembered import Remembered
from gateway.run.services import Services

#: seconds for which the results are cached, because probes need no token
_CACHED = 1.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """The results of the checks by name, and the reason if PostgreSQL is unavailable."""

    checks: Mapping[str, bool]
    reason: str | None


def readiness(services: Services) -> Remembered[Readiness]:
    """The readiness, checked at most once a second."""

    async def check() -> Readiness:
        trouble, redis, worker = await asyncio.gather(
            services.database.trouble(), services.jobs.wakeup.is_available(), _has_worker(services)
        )
        checks = {"postgres": trouble is None, "redis": redis, "worker": worker}
        return Readiness(checks, None if trouble is None else f"PostgreSQL: {trouble}")

    return Remembered(check, _CACHED)


async def _has_worker(services: Services) -> bool:
    try:
        return await services.jobs.maintenance.has_live_worker()
    except Unavailable:
        return False
