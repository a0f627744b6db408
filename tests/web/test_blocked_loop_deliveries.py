"""No delivery, stream or page of events at the limits holds the event loop, whatever the receiver answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import pytest

from gateway.context_store.entities import register
from gateway.context_store.layout import Layout
from gateway.context_store.records import upsert
from gateway.contract.events import EventType
from gateway.events.recording import add_event, add_record_events
from gateway.foundation.aio.loops import every, running
from tests.agents.mcp.conftest import CAPABILITIES, VERSION, VERSIONS, headers_of
from tests.harness.blocked_loop import LIMIT, LongestCallback, measured
from tests.harness.caller import Api, ConnectorApi
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.waiting import eventually

#: other tests beside them would be measured too
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("without_collections")]

EVENTS, WEBHOOKS = "/api/v1/events", "/api/v1/webhooks"
#: of a page of events, of a job's labels
PAGE, LABELS = 1000, {f"label {number:02}": "x" * 71 for number in range(50)}
ANSWERS = {
    "accepts": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "refuses": b"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n",
    "answers at length": b"HTTP/1.1 200 OK\r\nContent-Length: 524288\r\n\r\n" + b"\xff\x00" * (256 << 10),
    "answers in many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 15_000 + b"Content-Length: 0\r\n\r\n",
}


class Receiver(asyncio.Protocol):
    """A receiver that costs the loop of the test next to nothing: it counts bytes and has its answer ready."""

    answer = ANSWERS["accepts"]
    deliveries = 0

    def connection_made(self, transport: Any) -> None:
        self._transport, self._head, self._left = transport, b"", 0

    def data_received(self, data: bytes) -> None:
        if not self._left:
            head, separator, body = (self._head + data).partition(b"\r\n\r\n")
            self._head = b"" if separator else head
            if not separator:
                return
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            self._left, data = length, body
        self._left -= len(data)
        if not self._left:
            Receiver.deliveries += 1
            self._transport.write(Receiver.answer)


@pytest.fixture(scope="module")
async def receiver_url() -> AsyncIterator[str]:
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture(scope="module")
async def front(tmp_path_factory, database_url: str, redis_url: str, receiver_url: str) -> AsyncIterator[FrontEnd]:
    folder = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, webhook_origins=(receiver_url,)) as opened:
        yield opened


@pytest.fixture
def organization(front: FrontEnd, support_desk: ConnectorApi, sql: Callable[..., Any]) -> "Organization":
    return Organization(front, UUID(support_desk.record["id"]), sql)


class Organization:
    """Adds events as jobs and copies do."""

    def __init__(self, front: FrontEnd, connector_id: UUID, sql: Callable[..., Any]) -> None:
        self._front, self._connector_id, self._sql = front, connector_id, sql

    async def id(self) -> UUID:
        (row,) = await self._sql("SELECT organization_id FROM connectors WHERE id = $1", self._connector_id)
        return UUID(str(row["organization_id"]))

    async def records(self, documents: list[tuple[str, bytes]]) -> None:
        """Write records into the copy; each is an event."""
        organization_id = await self.id()
        async with self._front.services.database.system() as connection:
            entity = await register(connection, self._connector_id, organization_id, "tickets", Layout())
            await upsert(connection, entity, documents)

    async def changes(self, count: int) -> None:
        organization_id = await self.id()
        async with self._front.services.database.system() as connection:
            for page in range(count // PAGE):
                ids = [f"{page}-{number:0100}" for number in range(PAGE)]
                await add_record_events(connection, organization_id, self._connector_id, "tickets", updated=ids)

    async def ends_of_jobs(self, count: int) -> None:
        organization_id = await self.id()
        async with self._front.services.database.system() as connection, connection.transaction():
            for _ in range(count):
                data = {"job_id": str(uuid4()), "status": "succeeded", "entity": "tickets", "labels": LABELS}
                await add_event(connection, organization_id, EventType.JOB_SUCCEEDED, data, self._connector_id)

    async def large(self, size: int) -> None:
        organization_id = await self.id()
        data = {"job_id": str(uuid4()), "status": "failed", "entity": "tickets", "labels": {"a": "x" * size}}
        async with self._front.services.database.system() as connection:
            await add_event(connection, organization_id, EventType.JOB_FAILED, data, self._connector_id)


async def subscribed(api: Api, url: str, **members: Any) -> str:
    body = {"url": url, "types": ["record.*", "job.*"], **members}
    created = (await api.post(WEBHOOKS, body)).document(201)
    await api.call("POST", f"{WEBHOOKS}/{created['id']}/rotate")  # deliveries have two signatures
    return str(created["id"])


async def delivering(front: FrontEnd, until: Callable[[], Any]) -> float:
    """The processor time of the longest callback while a worker delivers."""
    longest, deliverer = LongestCallback(), front.services.events.deliverer
    with measured(longest):
        async with running(every(0, deliverer.deliver, name="deliveries")):
            await eventually(until, within=60)
    await deliverer.close()
    return longest.seconds


@pytest.mark.parametrize(("count", "size"), [(3, 24 << 20), (64, 256 << 10), (500, 64 << 10)])
async def test_no_delivery_with_records_holds_the_loop(
    front: FrontEnd, api: Api, organization: Organization, receiver_url: str, count: int, size: int
):
    Receiver.answer, seconds = ANSWERS["accepts"], []
    await subscribed(api, receiver_url, include_record=True)
    for number in range(2):
        record = b'{"x":"' + b"%d" % number * (size - 100) + b'"}'
        await organization.records([(str(each), record) for each in range(count)])
        Receiver.deliveries = 0
        seconds.append(await delivering(front, lambda: Receiver.deliveries >= count))

    assert min(seconds) <= LIMIT


@pytest.mark.parametrize("answer", ANSWERS)
async def test_no_turns_of_many_webhooks_hold_the_loop(
    front: FrontEnd, api: Api, organization: Organization, receiver_url: str, answer: str
):
    """As many turns as a worker has, with as many events as a turn reads."""
    count = 200 if len(ANSWERS[answer]) > 200_000 else 1000
    Receiver.answer, seconds = ANSWERS[answer], []
    for _ in range(200):
        await subscribed(api, receiver_url)
    for _ in range(2):
        Receiver.deliveries = 0
        await organization.ends_of_jobs(64)
        seconds.append(await delivering(front, lambda: Receiver.deliveries >= count))

    assert min(seconds) <= LIMIT


async def test_no_page_of_events_holds_the_loop(api: Api, organization: Organization):
    await organization.ends_of_jobs(PAGE)
    longest = LongestCallback()
    with measured(longest):
        for _ in range(2):
            async with api.session.get(EVENTS, params={"limit": PAGE}, headers=api.headers) as response:
                assert response.status == 200
                while await response.content.readany():
                    pass

    assert longest.seconds <= LIMIT


async def test_no_streams_of_many_events_hold_the_loop(api: Api, organization: Organization, front: FrontEnd):
    """An organization's streams all get the events of a large load at once."""
    longest = LongestCallback()

    async def bytes_of(stream: aiohttp.ClientResponse) -> None:
        left = 100 * PAGE
        while left > 0:
            left -= len(await stream.content.readany())

    first = str((await api.get(EVENTS)).document()["latest_id"])
    opened = [
        await api.session.get(f"{EVENTS}/stream", headers=api.headers, params={"after": first}) for _ in range(20)
    ]
    params = {"name": EventType.RECORD_UPDATED, "cursor": first, "_meta": {VERSION: VERSIONS[0], CAPABILITIES: {}}}
    document = {"jsonrpc": "2.0", "id": 7, "method": "events/stream", "params": params}
    headers = {**api.headers, **headers_of("events/stream", params)}
    opened += [await api.session.post("/mcp", data=json.dumps(document), headers=headers) for _ in range(20)]
    with measured(longest):
        await organization.changes(100_000)
        await organization.ends_of_jobs(200)
        await asyncio.gather(*map(bytes_of, opened))
    for each in opened:
        each.close()

    assert longest.seconds <= LIMIT


#: bytes of the largest event: what a caller or an application sends may be as large
EVENT = 30 << 20


async def test_no_large_event_holds_the_loop_on_any_way_to_its_reader(
    front: FrontEnd, api: Api, organization: Organization, receiver_url: str
):
    """Its page, the poll and the stream of an agent, the plain stream, and its delivery to a webhook."""
    Receiver.answer, Receiver.deliveries = ANSWERS["refuses"], 0
    first = str((await api.get(EVENTS)).document()["latest_id"])
    await subscribed(api, receiver_url)
    await organization.large(EVENT)
    requests = [api.session.get(EVENTS, params={"after": first}, headers=api.headers)]
    for method in ("events/poll", "events/stream"):
        params = {"name": EventType.JOB_FAILED, "cursor": first, "_meta": {VERSION: VERSIONS[0], CAPABILITIES: {}}}
        document = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        headers = {**api.headers, **headers_of(method, params)}
        requests.append(api.session.post("/mcp", data=json.dumps(document), headers=headers))
    requests.append(api.session.get(f"{EVENTS}/stream", params={"after": first}, headers=api.headers))
    longest = LongestCallback()
    with measured(longest):
        for request in requests:
            async with request as response:
                left = EVENT
                while left > 0:
                    left -= len(await response.content.readany())
    seconds = await delivering(front, lambda: Receiver.deliveries)

    assert (longest.seconds <= LIMIT, seconds <= LIMIT) == (True, True), (longest, seconds)


async def test_no_poll_of_an_agent_holds_the_loop(api: Api, organization: Organization):
    await organization.ends_of_jobs(PAGE)
    params = {
        "name": EventType.JOB_SUCCEEDED, "cursor": "0", "maxEvents": PAGE,
        "_meta": {VERSION: VERSIONS[0], CAPABILITIES: {}},
    }  # fmt: skip
    document = {"jsonrpc": "2.0", "id": 7, "method": "events/poll", "params": params}
    longest = LongestCallback()
    with measured(longest):
        async with api.session.post(
            "/mcp", data=json.dumps(document), headers={**api.headers, **headers_of("events/poll", params)}
        ) as response:
            while await response.content.readany():
                pass
        assert response.status == 200

    assert longest.seconds <= LIMIT
