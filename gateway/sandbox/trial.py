"""One operation of a kind tried against a sandbox in this process: the request as it was received, and the response."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from gateway.kinds.catalog import Catalog, Kind
from gateway.sandbox.app import OWN_PATH, create_sandbox
from gateway.sandbox.journal import CallJournal


@dataclass(frozen=True, slots=True)
class Received:
    """A request as the sandbox received it, and the status it answered; secrets are what the trial made up."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    status: int


@asynccontextmanager
async def playing(kind: Kind) -> AsyncIterator[tuple[str, Callable[[], list[Received]]]]:
    """The URL of a sandbox that plays one kind, and what tells the requests that it received so far."""
    journal = CallJournal()
    runner = web.AppRunner(create_sandbox(Catalog([kind]), journal=journal), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}{OWN_PATH}/{kind.name}", lambda: _received(journal, kind)
    finally:
        await runner.cleanup()


def _received(journal: CallJournal, kind: Kind) -> list[Received]:
    own = f"{OWN_PATH}/{kind.name}"
    return [
        Received(
            call.method,
            call.path.removeprefix(own),
            dict(call.query),
            {name: value for name, value in call.headers.items() if name.lower() not in _OF_EVERY_REQUEST},
            _shown(call.body),
            call.status,
        )
        for call in journal.calls
    ]


#: headers that no spec decides about
_OF_EVERY_REQUEST = frozenset({"host", "user-agent", "accept-encoding", "content-length", "traceparent"})


def _shown(body: bytes) -> Any:
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode(errors="replace")
