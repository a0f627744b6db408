import hashlib
import subprocess
import sys

import pytest

from gateway import errors
from gateway.client import SyncGateway
from gateway.client.synchronous import Bridge, _Loop
from tests.client.conftest import QUICK
from tests.client.stub import BLOB, JOB_ID, TICKETS


@pytest.fixture
def in_thread(server):
    """A client whose calls leave this loop, on which the server runs, free."""
    import asyncio

    def run(work):
        with SyncGateway(str(server.make_url("")), "id", "s3cret", retry_policy=QUICK) as gateway:
            return work(gateway)

    return lambda work: asyncio.to_thread(run, work)


async def test_calls_need_no_loop(in_thread):
    answer = await in_thread(lambda gateway: gateway.execute("support-desk", "tickets", "list", {"per_page": 2}))

    assert answer.result == TICKETS[:2]


async def test_iterators_are_plain(in_thread):
    found = await in_thread(lambda gateway: list(gateway.search("support-desk", "tickets")))

    assert found == TICKETS


async def test_an_iterator_may_be_left_early(in_thread):
    first = await in_thread(lambda gateway: next(iter(gateway.records("support-desk", "tickets"))))

    assert first == TICKETS[0]


async def test_what_comes_back_is_synchronous_too(in_thread, stub):
    stub.job_records = [{"id": 1}]

    def journey(gateway):
        job = gateway.submit("support-desk", "reports", "get").wait()
        return job.id, list(job.records()), job.status

    assert await in_thread(journey) == (JOB_ID, [{"id": 1}], "succeeded")


async def test_connectors_and_downloads_too(in_thread, tmp_path):
    def journey(gateway):
        desk = gateway.connectors.get(gateway.connectors.list()[0].id)
        return gateway.download(desk, "attachments", {"attachment_id": 7}, tmp_path / "a.bin")

    found = await in_thread(journey)

    assert found.sha256 == hashlib.sha256(BLOB).hexdigest()


async def test_errors_are_the_same(in_thread):
    with pytest.raises(errors.UnknownEntity):
        await in_thread(lambda gateway: gateway.execute("support-desk", "tikets", "list"))


def test_the_client_loads_no_server():
    heavy = "asyncpg", "arq", "redis", "pydantic", "pydantic_settings", "yaml", "jsonschema_rs", "aiohttp.web"
    program = f"import sys, gateway.client; print([name for name in {heavy!r} if name in sys.modules])"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "[]"


class Paired:
    """Takes one of its own kind, by place or by name."""

    async def is_other(self, first: object, *, second: object) -> bool:
        return type(first) is Paired and type(second) is Paired


def test_what_stands_behind_a_bridge_is_passed_on_by_place_and_by_name():
    loop = _Loop()
    bridged = Bridge(Paired(), loop)

    assert bridged.is_other(bridged, second=bridged)
    loop.close()
