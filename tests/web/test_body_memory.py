"""The memory of request bodies is bounded for all requests and shared between organizations."""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest

from tests.harness.caller import Api
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.waiting import PATIENCE, eventually

EXECUTE = b"/api/v1/integrations/connectors/00000000-0000-4000-8000-000000000000/execute"
MIB = 1 << 20


@pytest.fixture(scope="module")
async def small(tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    """A front end with memory for four bodies of 1 MiB."""
    folder: Path = tmp_path_factory.mktemp("small")
    async with front_end(folder, database_url, redis_url, max_bodies_bytes=4 * MIB, max_body_bytes=MIB) as opened:
        yield opened


async def begun(front: FrontEnd, api: Api, length: bytes) -> asyncio.StreamWriter:
    """A request whose body does not arrive."""
    _, writer = await asyncio.open_connection("127.0.0.1", int(front.base_url.rpartition(":")[2]))
    token = f"Authorization: {api.headers['Authorization']}\r\n".encode()
    writer.write(b"POST " + EXECUTE + b" HTTP/1.1\r\nHost: a\r\n" + length + b"\r\n" + token + b"\r\n")
    return writer


async def status_of(api: Api, size: int) -> tuple[int, str | None]:
    response = await api.call("POST", EXECUTE.decode(), data=BytesIO(b"{}" + b" " * (size - 2)))
    return response.status, response.headers.get("Retry-After")


async def until(api: Api, status: int) -> None:
    """Wait until a body of 1 MiB gets this status: a request is counted when its head arrives."""
    async with asyncio.timeout(PATIENCE):
        while (await status_of(api, MIB))[0] != status:
            pass


@pytest.mark.parametrize("length", [f"Content-Length: {MIB}".encode(), b"Transfer-Encoding: chunked"])
async def test_the_bodies_of_one_organization_leave_memory_to_the_others(small: FrontEnd, length: bytes):
    async with small.api() as greedy, small.api() as other:
        writers = [await begun(small, greedy, length) for _ in range(10)]
        await eventually(lambda: small.limits.bodies.in_use == 2 * MIB)  # a body sent now would take a share of theirs

        assert await status_of(greedy, MIB) == (503, "1")
        assert (await status_of(greedy, 4096))[0] == 422
        assert (await status_of(other, MIB))[0] == 422

        for writer in writers:
            writer.close()
        await until(greedy, 422)


async def test_a_body_that_does_not_arrive_is_no_work_when_load_is_shed(small: FrontEnd):
    async with small.api() as api:
        writer = await begun(small, api, b"Content-Length: 100")
        await eventually(lambda: small.limits.at_work == small.limits.in_progress - 1, within=20)
        writer.close()
        await eventually(lambda: small.limits.at_work == small.limits.in_progress, within=20)


async def test_memory_is_free_again_after_the_request(small: FrontEnd):
    async with small.api() as api:
        assert {await status_of(api, MIB) for _ in range(10)} == {(422, None)}
        assert {await status_of(api, MIB + 1) for _ in range(10)} == {(413, None)}


async def test_the_connector_of_a_batch_is_checked_before_its_body_is_read(small: FrontEnd):
    async with small.api() as api:
        path = EXECUTE.decode().replace("execute", "batch")
        response = await api.call("POST", path, data=b"not JSON")
        connector = await api.connector()
        larger = await api.call(
            "POST", f"/api/v1/integrations/connectors/{connector.record['id']}/batch", data=BytesIO(b" " * (MIB + 1))
        )

    assert response.status == 404
    assert larger.status == 413
    assert "application/x-ndjson" in larger.document(413)["detail"]
