"""Downloads of every kind: truncated, aborted, stalled, stored, and in chunks."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from gateway.sandbox import files
from tests.harness.caller import Api, ConnectorApi
from tests.harness.sandbox import fault
from tests.harness.up import Running
from tests.harness.waiting import eventually

CRM = {"access_token": "access", "refresh_token": "refresh", "client_id": "app", "client_secret": "secret"}
WORK = {"token": "token"}
SIZE = 100_000
NUMBER = files.number_for(SIZE)
MIB = 1 << 20


@dataclass(frozen=True)
class Source:
    """Where a kind keeps files, and the params that name the one of this test."""

    kind: str
    entity: str
    params: dict[str, Any]
    credentials: dict[str, str] | None = None


SOURCES = [
    Source("support-desk", "attachments", {"attachment_id": NUMBER}),
    Source("support-desk", "article_attachments", {"article_id": 1, "attachment_id": NUMBER}),
    Source("crm-query", "attachments", {"id": f"00P{NUMBER:012}"}, CRM),
    Source("crm-query", "content_versions", {"id": f"068{NUMBER:012}"}, CRM),
    Source("work-management", "attachments", {"attachment_gid": str(NUMBER)}, WORK),
]


@pytest.fixture
async def sandbox(running: Running) -> AsyncIterator[aiohttp.ClientSession]:
    """The sandbox's own side."""
    async with aiohttp.ClientSession(running.sandbox_url) as session:
        yield session


async def counters(sandbox: aiohttp.ClientSession) -> dict[str, Any]:
    async with sandbox.get("/_sandbox/counters") as response:
        return await response.json()


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.kind} {source.entity}")
async def test_every_file_comes_by_execute_as_a_resource_and_out_of_storage(running: Running, api: Api, source: Source):
    environment = {"instance_url": running.sandbox_url} if source.credentials is CRM else {}
    connector = await api.connector(source.kind, source.credentials, environment=environment)

    posted = await connector.send(source.entity, "download", source.params)
    plain = await api.get(f"{connector.path}/download/{source.entity}", params=source.params)
    part = await connector.send(source.entity, "download", {**source.params, "range_header": "bytes=5-9"})
    job = await connector.submit(source.entity, "download", source.params)
    stored = await api.get(f"/api/v1/jobs/{job['id']}/result?wait=30")

    assert [posted.status, plain.status, part.status, stored.status] == [200, 200, 206, 200]
    assert {hashlib.sha256(answer.body).hexdigest() for answer in (posted, plain, stored)} == {files.sha256_of(NUMBER)}
    assert part.body == posted.body[5:10]


async def test_a_file_goes_out_under_safe_labels(support_desk: ConnectorApi):
    answer = await support_desk.send("attachments", "download", {"attachment_id": NUMBER})

    assert answer.headers["Content-Disposition"] == f'attachment; filename="file-{NUMBER}.bin"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in answer.headers
    assert "X-Request-Id" in answer.headers


async def test_a_file_without_an_address_says_why(api: Api, running: Running):
    connector = await api.connector("work-management", WORK)
    record = {"data": {"gid": "7", "name": "elsewhere", "download_url": None, "size": None}}

    async with fault(running.sandbox_url, path_prefix="/api/1.0/attachments/", body=record):
        answer = await connector.send("attachments", "download", {"attachment_gid": "7"})

    assert (answer.status, answer.json()["code"]) == (404, "upstream_not_found")
    assert "no address for this file" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("params", "status", "code"),
    [
        ({}, 422, "invalid_params"),
        ({"attachment_id": "x"}, 422, "invalid_params"),
        ({"attachment_id": NUMBER, "nonsense": 1}, 422, "invalid_params"),
        ({"attachment_id": 0}, 404, "upstream_not_found"),
    ],
)
async def test_what_is_no_file_is_an_error_by_either_way(
    api: Api, support_desk: ConnectorApi, params: dict[str, Any], status: int, code: str
):
    posted = await support_desk.send("attachments", "download", params)
    plain = await api.get(f"{support_desk.path}/download/attachments", params=params)

    assert [(answer.status, answer.json()["code"]) for answer in (posted, plain)] == [(status, code)] * 2


async def test_an_entity_without_files_has_no_resource(api: Api, support_desk: ConnectorApi):
    answer = await api.get(f"{support_desk.path}/download/tickets?ticket_id=1")

    assert (answer.status, answer.json()["code"]) == (422, "unknown_action")


async def test_a_file_of_another_organization_is_not_there(support_desk: ConnectorApi, stranger: Api):
    answer = await stranger.get(f"{support_desk.path}/download/attachments?attachment_id={NUMBER}")

    assert (answer.status, answer.json()["code"]) == (404, "not_found")


async def test_a_stored_file_of_another_organization_is_not_there(api: Api, support_desk: ConnectorApi, stranger: Api):
    job = await api.ended_job(await support_desk.submit("attachments", "download", {"attachment_id": NUMBER}))

    answer = await stranger.get(f"/api/v1/jobs/{job['id']}/result")

    assert (answer.status, answer.json()["code"]) == (404, "not_found")


@pytest.fixture
async def cut(running: Running) -> AsyncIterator[None]:
    """Every file breaks off before its end."""
    async with fault(running.sandbox_url, path_prefix="/attachments/", truncate_after_bytes=60_000):
        yield


@pytest.mark.usefixtures("cut")
async def test_a_cut_file_breaks_the_transfer(support_desk: ConnectorApi):
    with pytest.raises(aiohttp.ClientPayloadError):
        await support_desk.send("attachments", "download", {"attachment_id": NUMBER})


@pytest.mark.usefixtures("cut")
async def test_a_cut_file_fails_its_job(api: Api, support_desk: ConnectorApi):
    submitted = await support_desk.submit("attachments", "download", {"attachment_id": NUMBER})

    job = await api.ended_job(submitted)
    result = await api.get(f"/api/v1/jobs/{job['id']}/result")

    assert (job["status"], job["error"]["code"]) == ("failed", "upstream_truncated")
    assert (result.status, result.json()["code"]) == (502, "upstream_truncated")


async def test_a_stalled_caller_holds_a_few_mebibytes_upstream_and_leaving_closes_it(
    api: Api, support_desk: ConnectorApi, sandbox: aiohttp.ClientSession
):
    before = await counters(sandbox)
    response = await api.session.get(f"{support_desk.path}/download/attachments?attachment_id=200", headers=api.headers)
    await response.content.readexactly(1)
    await asyncio.sleep(1)  # as long as it takes to send all of it, were it not held back
    stalled = await counters(sandbox)

    response.close()
    await eventually(lambda: _are_closed(sandbox, before))

    assert stalled["open_downloads"] == before["open_downloads"] + 1
    assert stalled["bytes_sent"] - before["bytes_sent"] < 24 * MIB


async def test_leaving_a_silent_file_closes_it_upstream(
    api: Api, support_desk: ConnectorApi, running: Running, sandbox: aiohttp.ClientSession
):
    before = await counters(sandbox)
    address = f"{support_desk.path}/download/attachments?attachment_id={NUMBER}"
    async with fault(running.sandbox_url, path_prefix="/attachments/", stall_after_bytes=1000):
        response = await api.session.get(address, headers=api.headers)
        await response.content.readexactly(1000)

        response.close()

        assert await eventually(lambda: _are_closed(sandbox, before))


async def _are_closed(sandbox: aiohttp.ClientSession, before: dict[str, int]) -> bool:
    """Whether all downloads that have begun since are over."""
    return (await counters(sandbox))["open_downloads"] <= before["open_downloads"]


@pytest.mark.parametrize(("form", "length"), [("base64", 48 << 10), ("text", None)])
async def test_callers_that_read_only_json_get_chunks(support_desk: ConnectorApi, form: str, length: int | None):
    params = {"attachment_id": NUMBER, "_airbyte_response_type": "json", "_airbyte_response_format": form}

    answer = await support_desk.send("attachments", "download", params, headers={"X-ADP-Agent-SDK": "test"})

    assert answer.status == (200 if length else 422)  # the bytes of the sandbox are no text
    assert length is None or answer.json()["result"]["bytes_returned"] == length


async def test_chunks_make_up_the_file(support_desk: ConnectorApi):
    got, params = b"", {"attachment_id": NUMBER}
    while params.get("range_header", "") is not None:
        chunk = (await support_desk.send("attachments", "download", params, headers={"X-ADP-Agent-SDK": "t"})).json()
        got += base64.b64decode(chunk["result"]["content"])
        params["range_header"] = chunk["result"]["next_range_header"]

    assert hashlib.sha256(got).hexdigest() == files.sha256_of(NUMBER)
