"""Sends notices of changes to a webhook URL of the gateway, signed as the spec describes."""

import asyncio
import logging
import random
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4
from zlib import crc32

import aiohttp
import msgspec
from aiohttp import web

from gateway.foundation.aio.background import cancel_and_wait
from gateway.kinds.notice_signatures import key_of, sign, time_text
from gateway.kinds.notices import NoticeSpec
from gateway.kinds.paging import HEADER_PATH
from gateway.kinds.placements import put
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Record, nested
from gateway.sandbox.kinds.notices import NOTICES
from gateway.sandbox.store import RecordChange

log = logging.getLogger(__name__)

#: seconds for a response
_TIMEOUT = 10.0
#: maximum notices in the list of sent notices
_MAX_SENT = 1000
#: notices that are sent at the same time; those of a record are sent one after the other
_LANES = 8


@dataclass(frozen=True, slots=True)
class HookAddress:
    """The webhook URL and secret of a kind; the share `lost` is not sent, and the share `doubled` is sent twice."""

    url: str
    secret: str = field(repr=False)
    lost: float = 0.0
    doubled: float = 0.0

    def times(self) -> int:
        """The number of times that the next notice is sent."""
        draw = random.random()  # noqa: S311 - simulates faults, no secret
        return 0 if draw < self.lost else 2 if draw < self.lost + self.doubled else 1


@dataclass(frozen=True, slots=True)
class SentNotice:
    """A notice and the status of the response; 0 without a response."""

    kind: str
    url: str
    body: Any
    status: int


_Lane = asyncio.Queue[tuple[Application, HookAddress, RecordChange]]


class Notices:
    """Sends the notices of every kind that has a registered hook; those of a record in the order of its changes."""

    def __init__(self) -> None:
        self.sent: deque[SentNotice] = deque(maxlen=_MAX_SENT)
        self._hooks: dict[str, HookAddress] = {}
        self._lanes: Sequence[_Lane] = [asyncio.Queue() for _ in range(_LANES)]
        self._session: aiohttp.ClientSession | None = None

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Send for as long as the sandbox runs."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT)) as self._session:
            sending = [asyncio.create_task(self._send_all(lane), name="notices") for lane in self._lanes]
            yield
            await cancel_and_wait(*sending)

    async def register(
        self, application: Application, url: str, secret: str | None, *, lost: float = 0.0, doubled: float = 0.0
    ) -> None:
        """Send the kind's notices to this URL from now on, after the handshake that the spec describes.

        `secret` signs them, unless the application creates the secret. The share `lost` of them is not sent, and the
        share `doubled` is sent twice. Raises ValueError.
        """
        kind, spec = application.kind.name, application.kind.spec.webhooks
        if spec is None:
            raise ValueError(f"the spec of {kind} describes no notices")
        makes_secret = spec.handshake is not None and spec.handshake.style == "secret"
        if secret is None and not makes_secret:
            raise ValueError(f"secret is missing: give the one that the hook of {kind} has")
        try:
            key_of(spec.signature, secret or "")
        except ValueError as error:
            raise ValueError(f"secret {error}") from error
        key = secrets.token_hex(32) if secret is None or makes_secret else secret
        hook = HookAddress(url, key, lost, doubled)
        await self._shake_hands(spec, hook)
        self._hooks[kind] = hook

    def forget(self, kind: str) -> None:
        """Stop sending the kind's notices."""
        self._hooks.pop(kind, None)

    def clear(self) -> None:
        """Stop sending notices, and clear the list of sent ones."""
        self._hooks.clear()
        self.sent.clear()

    def announce(self, application: Application) -> None:
        """Send a notice of each change since the last call, if the kind has a registered hook."""
        hook = self._hooks.get(application.kind.name)
        for change in application.store.take_changes():
            if hook is not None:
                lane = self._lanes[crc32(f"{change.table}/{change.row.id}".encode()) % _LANES]
                lane.put_nowait((application, hook, change))

    async def _send_all(self, lane: _Lane) -> None:
        while True:
            application, hook, change = await lane.get()
            kind, spec = application.kind.name, application.kind.spec.webhooks
            assert spec is not None
            notice_of = NOTICES.get(kind)
            headers, body = (
                ({}, notice_of(change, time.time())) if notice_of else _plain_notice(application, spec, change)
            )
            if body:
                data, headers = _written(spec, hook, body, headers)
                for _ in range(hook.times()):
                    self.sent.append(SentNotice(kind, hook.url, body, await self._sent(hook, data, headers)))

    async def _sent(self, hook: HookAddress, data: bytes, headers: Mapping[str, str]) -> int:
        """Send a notice; returns the status of the response, 0 without one."""
        try:
            status, _, _ = await self._post(hook, data, headers)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            log.warning("a notice was not answered: %s", error, extra={"url": hook.url})
            return 0
        return status

    async def _shake_hands(self, spec: NoticeSpec, hook: HookAddress) -> None:
        if spec.handshake is None:
            return
        value = hook.secret if spec.handshake.style == "secret" else secrets.token_hex(16)
        in_header = spec.handshake.path[0] == HEADER_PATH
        name = ".".join(spec.handshake.path[1:])
        body = {} if in_header else nested(spec.handshake.path, value)
        is_signed = spec.handshake.style == "challenge"
        try:
            given = {name: value} if in_header else {}
            answer = await self._post(hook, *_written(spec, hook, body, given, is_signed=is_signed))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ValueError(f"{hook.url} does not answer: {error}") from error
        status, headers, text = answer
        is_echoed = headers.get(name) == value if in_header else not is_signed or value in text
        if status != 200 or not is_echoed:
            raise ValueError(f"{hook.url} answered {status} to the handshake: {text[:200]}")

    async def _post(self, hook: HookAddress, data: bytes, headers: Mapping[str, str]) -> tuple[int, Any, str]:
        """Status, headers and text of the response."""
        assert self._session is not None
        async with self._session.post(hook.url, data=data, headers=headers, allow_redirects=False) as response:
            return response.status, response.headers, await response.text()


def _written(
    spec: NoticeSpec, hook: HookAddress, body: Any, headers: Mapping[str, str], *, is_signed: bool = True
) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a notice with the current time."""
    delivery_id, time_sent = str(uuid4()), ""
    if spec.timestamp is not None:
        time_sent = time_text(spec.timestamp, datetime.now(UTC))
    if isinstance(body, dict):
        _put_in_body(spec, body, time_sent, delivery_id)
    data = msgspec.json.encode(body)
    signature = {}
    if is_signed:
        signature = sign(spec, "POST", hook.url, data, time=time_sent, delivery_id=delivery_id, secret=hook.secret)
    return data, {"Content-Type": "application/json", **headers, **signature}


def _put_in_body(spec: NoticeSpec, body: Record, written: str, delivery_id: str) -> None:
    """Set the time and the delivery id, if the spec has them in the body."""
    if spec.timestamp is not None and spec.timestamp.path[0] != HEADER_PATH:
        is_number = spec.timestamp.format != "iso8601"
        put(body, spec.timestamp.path, int(written) if is_number else written)
    if spec.delivery_id and spec.delivery_id[0] != HEADER_PATH:
        put(body, spec.delivery_id, delivery_id)


def _plain_notice(application: Application, spec: NoticeSpec, change: RecordChange) -> tuple[dict[str, str], Any]:
    """The headers and the body of a notice that follow from the spec; no body if no rule has an entity of the table."""
    for rule in spec.rules:
        if any(application.table_for(entity) == change.table for entity in rule.entities):
            body: Record = {"action": change.type}
            text = rule.types[0].replace("*", change.type)
            headers = {".".join(spec.type[1:]): text} if spec.type[0] == HEADER_PATH else {}
            if not headers:
                put(body, spec.type, text)
            if rule.record_id:
                put(body, rule.record_id, change.row.id)
            return headers, nested(spec.changes, [body]) if spec.changes else body
    return {}, None
