"""Reads lists and copies of applications that are rude, and compares them with what the applications have."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import aiohttp
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.errors import GatewayError, InternalError, UpstreamRateLimited
from gateway.foundation.numbered_pages import Numbering
from gateway.kinds.catalog import Catalog, Kind, Operation
from gateway.sandbox.app import create_sandbox
from gateway.sandbox.rude import Behaviour
from gateway.upstream.auth import StaticAuthorizer, headers_for
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.catalog import example_environment

#: longest wait that a caller is told
_LONGEST_WAIT = 366 * 86_400
#: behaviours that change members by which records could be told apart
_CHANGING = (Behaviour.HALF_SURROGATES, Behaviour.HUGE_NUMBERS)


@dataclass
class Played:
    """A sandbox with one kind, and connectors to it."""

    kind: Kind
    http: aiohttp.ClientSession
    transport: Transport
    origin: URL

    def connector(self) -> UpstreamConnector:
        """A connector of its own, which no earlier one slows down."""
        spec = self.kind.spec
        methods = sorted(spec.authentication.values(), key=lambda method: method.scheme != "bearer")
        authorizer = StaticAuthorizer(headers_for(methods[0], dict.fromkeys(methods[0].credentials, "token")))
        upstreams = Upstreams(self.transport, {self.kind.name: self.origin})
        scope = RateScope(id=f"{self.kind.name}:{uuid4()}", kind=self.kind.name)
        return upstreams.connector(self.kind, example_environment(spec), authorizer, scope)

    async def reset(self) -> None:
        """The initial records, and good manners."""
        (await self.http.delete("/_sandbox/state")).release()

    async def become(self, *behaviours: Behaviour) -> None:
        """Behave like this; politely without an argument."""
        if not behaviours:
            (await self.http.delete("/_sandbox/rude")).release()
            return
        async with self.http.post("/_sandbox/rude", json={"behaviours": behaviours}) as answer:
            assert answer.status == 200, await answer.text()


@asynccontextmanager
async def played(kind: Kind, scale: float = 1) -> AsyncIterator[Played]:
    """A sandbox that plays one kind, with `scale` times the usual records."""
    kind = _without_limit(kind)
    async with TestServer(create_sandbox(Catalog([kind]), seed=7, scale=scale)) as server:
        origin = server.make_url("/").origin()
        async with Transport(EgressPolicy.of([origin])) as transport, aiohttp.ClientSession(base_url=origin) as http:
            yield Played(kind, http, transport, origin)


def _without_limit(kind: Kind) -> Kind:
    """The kind with a rate limit that no test reaches."""
    limit = kind.spec.rate_limit.model_copy(update={"requests": 1_000_000})
    return Kind(kind.spec.model_copy(update={"rate_limit": limit}))


@dataclass(frozen=True)
class Reading:
    """What the reading of a list gave: its records, and what was said about missing ones."""

    records: Sequence[Any]
    error: GatewayError | None = None

    @property
    def faults(self) -> list[str]:
        """What is wrong with the error, whatever the list has."""
        if isinstance(self.error, InternalError):
            return [f"an internal error: {self.error!r}"]
        is_limit = isinstance(self.error, UpstreamRateLimited)
        wait = (self.error.retry_after or 0) if self.error is not None and is_limit else 1
        return [] if 0 < wait <= _LONGEST_WAIT else [f"a wait of {wait} seconds"]


def lists_of(kind: Kind) -> list[Operation]:
    """The lists that callers read page by page."""
    return [each for each in kind.operations.values() if each.is_list and each.action.long_running is None]


def numbering_of(operation: Operation) -> Numbering | None:
    """How the pages of a list are numbered whose records may move, with the params of its example."""
    operation = operation.instead(operation.action.example)
    paging = operation.paging
    if paging is None:
        return None
    return Numbering.of(style=paging.style, param=paging.param, size=paging.size, order=operation.order)


async def read(connector: UpstreamConnector, operation: Operation, params: Mapping[str, Any] | None = None) -> Reading:
    """Read a list to its end with the params of its example, and others."""
    found: list[Any] = []
    example = {**operation.action.example, **(params or {})}
    try:
        async for page in connector.pages(operation.entity_id, operation.action_id, example):
            found += page.decoded()
    except GatewayError as error:
        return Reading(found, error)
    return Reading(found)


async def list_faults(
    application: Played, operation: Operation, truth: Sequence[Any], behaviour: Behaviour
) -> list[str]:
    """What is wrong with the list of a rude application that has the records of `truth`."""
    await application.reset()
    await application.become(Behaviour.SMALL_PAGES, behaviour)
    rude = await read(application.connector(), operation)
    if rude.error is not None:
        return rude.faults
    if behaviour in _CHANGING:
        missing = len(truth) - len(rude.records)
    else:
        member = identifier(truth)
        expected = names_of(truth, member)
        if behaviour is Behaviour.MOVING_RECORDS:
            await application.become()
            expected &= names_of((await read(application.connector(), operation)).records, member)
        missing = (expected - names_of(rude.records, member)).total()
    # Pages that are far smaller than requested are no measure of page numbers, so that these lists are not overlapped.
    numbering = numbering_of(operation)
    is_safe = operation.order != "unknown" or (numbering is not None and numbering.counts_records)
    may_skip = behaviour is Behaviour.MOVING_RECORDS and not is_safe
    return [f"{missing} of {len(truth)} records are missing without a word"] if missing > 0 and not may_skip else []


def identifier(records: Sequence[Any]) -> str | None:
    """The member that tells records apart, which all have; None if they are told apart as a whole."""
    if not records or not all(isinstance(record, dict) for record in records):
        return None
    for name in records[0]:
        values = [record.get(name) for record in records]
        if all(isinstance(value, str | int) for value in values) and len(set(map(str, values))) == len(records):
            return str(name)
    return None


def names_of(records: Sequence[Any], member: str | None) -> Counter[str]:
    """What tells each record apart."""
    return Counter(
        str(record[member]) if member is not None and isinstance(record, dict) and member in record else repr(record)
        for record in records
    )
