"""The engine in a caller's own process, against the sandbox."""

import hashlib
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

import gateway
from gateway import connect
from gateway.errors import InvalidCredentials, InvalidParams, UnknownAction, UpstreamNotFound
from gateway.kinds.catalog import load_catalog
from gateway.sandbox.app import create_sandbox

CREDENTIALS = {"subdomain": "acme", "email": "agent@example.com", "api_token": "token"}


@pytest.fixture(scope="module")
async def upstream():
    async with TestServer(create_sandbox(load_catalog(), seed=7, job_seconds=0.2)) as server:
        yield str(server.make_url("/").origin())


@pytest.fixture
async def desk(upstream):
    async with connect("support-desk", CREDENTIALS, upstream=upstream) as desk:
        yield desk


async def test_a_call_answers_records_and_meta(desk):
    page = await desk.execute("tickets", "list", {"per_page": 2})

    assert [record["id"] for record in page.records] == [1, 2]
    assert page.meta["count"] > 2


async def test_a_single_record_is_the_result_itself(desk):
    page = await desk.execute("tickets", "get", {"ticket_id": 1})

    assert page.record["id"] == 1


async def test_pages_go_on_by_themselves_and_only_as_far_as_asked(desk):
    ids = []
    async for record in desk.pages("tickets", params={"per_page": 2}):
        ids.append(record["id"])
        if len(ids) == 5:
            break

    assert ids == [1, 2, 3, 4, 5]


async def test_a_bulk_update_runs_to_its_end_here_too(desk):
    ids = ",".join(map(str, range(1, 151)))

    page = await desk.execute("ticket_bulk_updates", "create", {"ids": ids, "ticket": {"status": "pending"}})

    assert page.record["succeeded"] == 150
    assert len(page.record["results"]) == 150


async def test_a_file_comes_whole_or_in_part(desk):
    whole = b"".join([chunk async for chunk in desk.download("attachments", {"attachment_id": 1})])
    part = b"".join(
        [chunk async for chunk in desk.download("attachments", {"attachment_id": 1}, range_header="bytes=5-9")]
    )

    assert len(whole) == 1 << 20
    assert part == whole[5:10]
    assert hashlib.sha256(whole).hexdigest()


async def test_what_needs_the_hosted_mode_says_so(desk):
    with pytest.raises(UnknownAction, match="hosted mode"):
        await desk.execute("tickets", "context_store_search", {"query": {}})


async def test_errors_are_those_of_the_gateway(desk):
    with pytest.raises(InvalidParams, match="did you mean sort_order"):
        await desk.execute("tickets", "list", {"sort_ordr": "asc"})
    with pytest.raises(UpstreamNotFound):
        await desk.execute("tickets", "get", {"ticket_id": 10**12})


async def test_wrong_credentials_are_named_before_anything_is_sent():
    with pytest.raises(InvalidCredentials) as raised:
        async with connect("support-desk", {"subdomain": "acme", "email": "a@b.c", "token": "x"}):
            pass

    assert {fault.field for fault in raised.value.faults} == {"api_token", "token"}


async def test_refused_credentials_show_in_a_check(upstream):
    async with connect("support-desk", {**CREDENTIALS, "api_token": "bad"}, upstream=upstream) as desk:
        with pytest.raises(Exception, match="401"):
            await desk.check()


async def test_a_bare_refresh_token_mints_its_first_access_token(upstream):
    async with connect(
        "work-management",
        {"refresh_token": "refresh", "client_id": "app", "client_secret": "secret"},
        upstream=upstream,
    ) as work:
        page = await work.execute("workspaces", "list")

    assert page.records


def test_no_package_hides_what_callers_import():
    folder = Path(gateway.__file__).parent

    assert [name for name in gateway.__all__ if (folder / name).is_dir()] == []
