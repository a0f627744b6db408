import hashlib
import subprocess
import sys

import pytest

from gateway import errors
from gateway.client import SyncGateway
from tests.client.conftest import QUICK
from tests.client.generate_synchronous import MODULES, ROOT, generated
from tests.client.stub import BLOB, JOB_ID, TICKETS
from tests.type_checking import mypy


@pytest.fixture
def in_thread(server):
    """Run work with a synchronous client in a thread, because the server runs on this event loop."""
    import asyncio

    def run(work):
        with SyncGateway(str(server.make_url("")), "id", "s3cret", retry_policy=QUICK) as gateway:
            return work(gateway)

    return lambda work: asyncio.to_thread(run, work)


async def test_calls_need_no_loop(in_thread):
    answer = await in_thread(lambda gateway: gateway.execute("support-desk", "tickets", "list", {"per_page": 2}))

    assert answer.result == TICKETS[:2]


async def test_async_iterators_become_iterators(in_thread):
    found = await in_thread(lambda gateway: list(gateway.search("support-desk", "tickets")))

    assert found == TICKETS


async def test_an_iterator_may_be_abandoned(in_thread):
    first = await in_thread(lambda gateway: next(iter(gateway.records("support-desk", "tickets"))))

    assert first == TICKETS[0]


async def test_returned_objects_are_synchronous_too(in_thread, stub):
    stub.job_records = [{"id": 1}]

    def journey(gateway):
        job = gateway.submit("support-desk", "reports", "get").wait()
        return job.id, list(job.records()), job.status

    assert await in_thread(journey) == (JOB_ID, [{"id": 1}], "succeeded")


async def test_connectors_and_downloads_are_synchronous_too(in_thread, tmp_path):
    def journey(gateway):
        desk = gateway.connectors.get(gateway.connectors.list()[0].id)
        return gateway.download(desk, "attachments", {"attachment_id": 7}, tmp_path / "a.bin")

    found = await in_thread(journey)

    assert found.sha256 == hashlib.sha256(BLOB).hexdigest()


async def test_errors_are_the_same(in_thread):
    with pytest.raises(errors.UnknownEntity):
        await in_thread(lambda gateway: gateway.execute("support-desk", "tikets", "list"))


@pytest.mark.processes
def test_the_client_loads_no_server():
    heavy = "asyncpg", "arq", "redis", "pydantic", "pydantic_settings", "yaml", "jsonschema_rs", "aiohttp.web"
    program = f"import sys, gateway.client; print([name for name in {heavy!r} if name in sys.modules])"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "[]"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
@pytest.mark.processes
def test_the_synchronous_classes_are_as_generated(module):
    found = (ROOT / module.path).read_text("utf-8")

    assert found == generated(module), "run: python -m tests.client.generate_synchronous"


PROGRAM = """
from typing import assert_type
from gateway.client import Answer, SyncGateway, SyncJob

with SyncGateway("http://127.0.0.1:1", "id", "secret") as gateway:
    assert_type(gateway.execute("support-desk", "tickets", "list"), Answer)
    assert_type(gateway.submit("support-desk", "tickets", "list"), SyncJob)
    assert_type(gateway.begin("support-desk", "tickets", "list"), Answer | SyncJob)
    assert_type([job.wait().status for job in gateway.jobs.list()], list[str])
"""
WRONG = """
from gateway.client import SyncGateway

SyncGateway().execute("support-desk", "tickets", "list", limit="2")
SyncGateway().connectors.create("support-desk")
SyncGateway().submit("support-desk", "tickets", "list").statuss
"""


@pytest.mark.processes
def test_mypy_knows_the_types_of_results(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(PROGRAM)
    wrong.write_text(WRONG)

    accepted, refused = mypy(right), mypy(wrong)

    assert accepted.returncode == 0, accepted.stdout
    assert [line.rpartition("[")[2] for line in refused.stdout.splitlines() if ": error: " in line] == [
        "call-arg]",
        "call-arg]",
        "attr-defined]",
    ]
