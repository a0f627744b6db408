"""Asks the application to end an operation whose job is canceled."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from gateway.errors import GatewayError, JobCanceled
from gateway.kinds.long_running import FollowUp
from gateway.upstream.long_running.operation_run import OperationRun

log = logging.getLogger(__name__)

#: maximum seconds of the request
_TIMEOUT = 10.0


class Cancellation:
    """The cancellation of one started operation; the application is asked once, and may end it otherwise."""

    def __init__(self, run: OperationRun, request: FollowUp | None, params: Mapping[str, Any]) -> None:
        self._run, self._request, self._params = run, request, params

    async def ask_if_canceled(self) -> None:
        """Ask if the job is canceled."""
        if self._run.run_context.is_canceled:
            await self.ask()

    async def ask(self) -> None:
        """Ask, unless the application was asked before; a refusal is logged."""
        request, self._request = self._request, None
        if request is None:
            return
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._run.ask(self._run.call.operation.follow_up(request), self._params)
        except (GatewayError, TimeoutError) as error:
            log.warning("the application did not accept a cancellation", extra={"reason": type(error).__name__})

    @asynccontextmanager
    async def guarding(self) -> AsyncIterator[None]:
        """Ask if the block ends because the job is canceled: a read is not followed to its end."""
        try:
            yield
        except asyncio.CancelledError:
            await self.ask_if_canceled()
            raise
        except JobCanceled:
            await self.ask()
            raise
