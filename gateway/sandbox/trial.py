"""A sandbox in this process, for trying one operation of a kind: it records the requests that it received."""

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
    """A request that the sandbox received, and the status of its response; its secrets are those of the trial."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    status: int


@asynccontextmanager
async def playing(kind: Kind) -> AsyncIterator[tuple[str, Callable[[], list[Received]]]]:
    """Run a sandbox with one kind; yields its URL, and a function that returns the requests received so far."""
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
            query=dict(call.query),
            headers={name: value for name, value in call.headers.items() if name.lower() not in _OF_EVERY_REQUEST},
            body=_shown(call.body),
            status=call.status,
        )
        for call in journal.calls
    ]


#: headers that do not depend on the spec
_OF_EVERY_REQUEST = frozenset({"host", "user-agent", "accept-encoding", "content-length", "traceparent"})


def _shown(body: bytes) -> Any:
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode(errors="replace")
