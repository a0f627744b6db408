"""Sends one delivery: one POST, through the egress policy and without redirects."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

import aiohttp
from yarl import URL

from gateway.errors import GatewayError, UpstreamTimeout
from gateway.events.retries import retry_after
from gateway.events.signing import SIGNATURES, signed_headers
from gateway.events.webhook import DeliveryAttempt
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.large_json import LARGE
from gateway.foundation.telemetry.metrics import WEBHOOK_ATTEMPTS, WEBHOOK_SECONDS
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.redaction import NO_SECRETS
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.transport import NotSent, Transport

#: seconds for one attempt, from the wait for a permit to the first bytes of the response's body
TIMEOUT = 15.0
#: bytes of a response's body that are stored
_STORED_BYTES = 1024


class Sender:
    """Sends deliveries through a separate transport, for which the operator allows other addresses."""

    def __init__(self, transport: Transport, timeout: float = TIMEOUT) -> None:
        self._transport = transport
        self._timeout = timeout

    async def send(
        self,
        webhook_id: UUID,
        url: str,
        message_id: str,
        body: bytes,
        signing_secrets: Sequence[str],
        further_headers: Mapping[str, str] | None = None,
    ) -> DeliveryAttempt:
        """Send a delivery once; a failure is an attempt with an error."""
        at, started = CLOCK.now(), time.monotonic()
        sign = partial(signed_headers, message_id, at, signing_secrets)
        headers = {
            "Content-Type": "application/json",
            **(further_headers or {}),
            **(await in_thread(sign, body) if len(body) > LARGE else sign(body)),
        }
        request = UpstreamRequest(
            method="POST",
            url=URL(url, encoded=True),
            headers=headers,
            body=body,
            secrets=tuple(headers[SIGNATURES].split()),
        )
        scope = RateScope(id=f"webhook:{webhook_id}", kind="webhook")
        status, kept, error, failure, pause, secrets = None, b"", None, None, None, NO_SECRETS
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._transport.open(request, scope, timeout=self._timeout) as response,
            ):
                status, secrets = response.status, response.secrets
                pause = retry_after(response.headers.get("retry-after"), at)
                async for chunk in response.chunks:
                    kept += chunk
                    if len(kept) >= _STORED_BYTES:
                        break
        except NotSent as unsent:
            error, failure = unsent.error.detail, _failure_to_connect(unsent)
        except (UpstreamTimeout, TimeoutError):
            # The status of a response counts, even if its body does not end in time.
            error, failure = (
                (f"no response within {self._timeout:.0f} seconds", "timeout") if status is None else (None, None)
            )
        except GatewayError as broken:
            error, failure = broken.detail, "connection_refused"
        if error is None and status is not None and not 200 <= status < 300:
            error, failure = f"the receiver answered {status}", "http_5xx" if status >= 500 else "http_4xx"
        took = time.monotonic() - started
        outcome = "error" if status is None else f"{status // 100}xx"
        WEBHOOK_ATTEMPTS.add(outcome)
        WEBHOOK_SECONDS.observe(took)
        answer = secrets.masked(kept.decode(errors="replace").replace("\0", ""))
        text = None if status is None else answer[:_STORED_BYTES]
        return DeliveryAttempt(
            at=at,
            duration_ms=round(took * 1000),
            status=status,
            body=text,
            error=error,
            failure=failure,
            retry_after=pause,
        )


def _failure_to_connect(unsent: NotSent) -> str:
    if isinstance(unsent.error, UpstreamTimeout):
        return "timeout"
    return "tls_error" if isinstance(unsent.__cause__, aiohttp.ClientSSLError) else "connection_refused"
