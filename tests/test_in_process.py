"""The engine in the caller's process, with the sandbox as the application."""

import asyncio
import hashlib
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

import gateway
from gateway import connect, connect_sync
from gateway.errors import (
    InvalidCredentials,
    InvalidParams,
    UnknownAction,
    UnknownConnectorType,
    UpstreamNotFound,
    UpstreamTruncated,
)
from gateway.sandbox.app import create_sandbox
from tests.harness.catalog import shipped_catalog
from tests.harness.hostile_kinds import write_kind
from tests.harness.label_printer import KIND, write_label_printer
from tests.upstream.wire import Wire, answer

CREDENTIALS = {"subdomain": "acme", "email": "agent@example.com", "api_token": "token"}


@pytest.fixture(scope="module")
async def upstream():
    async with TestServer(create_sandbox(shipped_catalog(), seed=7, job_seconds=0.2)) as server:
        yield str(server.make_url("/").origin())


@pytest.fixture
async def desk(upstream):
    async with connect("support-desk", CREDENTIALS, upstream=upstream) as desk:
        yield desk


async def test_a_call_returns_records_and_meta(desk):
    page = await desk.execute("tickets", "list", {"per_page": 2})

    assert [record["id"] for record in page.records] == [1, 2]
    assert page.meta["count"] > 2


async def test_a_single_record_is_the_result_itself(desk):
    page = await desk.execute("tickets", "get", {"ticket_id": 1})

    assert page.record["id"] == 1


async def test_records_are_fetched_page_by_page_until_the_caller_stops(desk):
    ids = []
    async for record in desk.records("tickets", params={"per_page": 2}):
        ids.append(record["id"])
        if len(ids) == 5:
            break

    assert ids == [1, 2, 3, 4, 5]


async def test_pages_have_records_and_meta(desk):
    pages = []
    async for page in desk.pages("tickets", params={"per_page": 2}):
        pages.append(page)
        if len(pages) == 2:
            break

    assert [[record["id"] for record in page.records] for page in pages] == [[1, 2], [3, 4]]
    assert pages[0].meta["count"] > 4


async def test_records_are_limited_and_selected(desk):
    found = [record async for record in desk.records("tickets", params={"per_page": 2}, select=["id"], limit=3)]
    one = await desk.execute("tickets", "get", {"ticket_id": 1}, exclude=["description"])

    assert found == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert "subject" in one.record
    assert "description" not in one.record
    with pytest.raises(InvalidParams, match="did you mean subject"):
        await desk.execute("tickets", "list", select=["subjet"])


class _Enough(Exception):
    """Stops a download in the middle."""


async def test_an_interrupted_save_is_resumed(desk, tmp_path):
    file = ("attachments", {"attachment_id": 3}, tmp_path / "a.bin")
    whole = b"".join([chunk async for chunk in desk.download(*file[:2])])

    def stop(at, of):
        if at > 1 << 20:
            raise _Enough

    with pytest.raises(_Enough):
        await desk.save(*file, on_progress=stop)
    kept = (tmp_path / "a.bin.part").stat().st_size
    found = await desk.save(*file, sha256=hashlib.sha256(whole).hexdigest())
    named = await desk.save(*file[:2], tmp_path)

    assert kept > 1 << 20
    assert found.resumed_from == kept
    assert found.path.read_bytes() == whole == named.path.read_bytes()
    assert named.path.name != "a.bin"
    with pytest.raises(UpstreamTruncated, match="the download was deleted"):
        await desk.save(*file, sha256="0" * 64)


async def test_a_program_without_an_event_loop_has_the_same_methods(upstream, tmp_path):
    def journey():
        with connect_sync("support-desk", CREDENTIALS, upstream=upstream) as desk:
            first = desk.execute("tickets", "list", {"per_page": 2}).records
            some = list(desk.records("tickets", select=["id"], limit=3))
            file = desk.save("attachments", {"attachment_id": 1}, tmp_path / "a.bin")
            refused = pytest.raises(InvalidParams)
            with refused:
                desk.execute("tickets", "list", {"sort_ordr": "asc"})
            return first, some, file, desk.dry_run("tickets", "list"), desk.kind.name

    first, some, file, dry_run, kind = await asyncio.to_thread(journey)

    assert [record["id"] for record in first] == [1, 2]
    assert some == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert file.size == 1 << 20
    assert (dry_run[0]["method"], kind) == ("GET", "support-desk")


async def test_the_error_without_credentials_lists_every_method_with_its_fields():
    with pytest.raises(InvalidCredentials) as raised:
        async with connect("support-desk", {}):
            pass

    assert "api_token (email, api_token)" in raised.value.detail
    assert "oauth (" in raised.value.detail
    assert raised.value.detail.endswith("required variables: subdomain")
    assert {fault.code for fault in raised.value.faults} == {"required"}


async def test_a_bulk_update_runs_until_it_finishes(desk):
    ids = ",".join(map(str, range(1, 151)))

    page = await desk.execute("ticket_bulk_updates", "create", {"ids": ids, "ticket": {"status": "pending"}})

    assert page.record["succeeded"] == 150
    assert len(page.record["results"]) == 150


async def test_a_file_is_streamed_whole_or_in_part(desk):
    whole = b"".join([chunk async for chunk in desk.download("attachments", {"attachment_id": 1})])
    part = b"".join(
        [chunk async for chunk in desk.download("attachments", {"attachment_id": 1}, range_header="bytes=5-9")]
    )

    assert len(whole) == 1 << 20
    assert part == whole[5:10]
    assert hashlib.sha256(whole).hexdigest()


async def test_a_search_of_the_copy_needs_the_hosted_mode(desk):
    with pytest.raises(UnknownAction, match="hosted mode"):
        await desk.execute("tickets", "context_store_search", {"query": {}})


async def test_errors_are_those_of_the_gateway(desk):
    with pytest.raises(InvalidParams, match="did you mean sort_order"):
        await desk.execute("tickets", "list", {"sort_ordr": "asc"})
    with pytest.raises(UpstreamNotFound):
        await desk.execute("tickets", "get", {"ticket_id": 10**12})


async def test_wrong_credentials_are_refused_before_a_request_is_sent():
    with pytest.raises(InvalidCredentials) as raised:
        async with connect("support-desk", {"subdomain": "acme", "email": "a@b.c", "token": "x"}):
            pass

    assert {fault.field for fault in raised.value.faults} == {"api_token", "token"}


async def test_a_check_raises_for_refused_credentials(upstream):
    async with connect("support-desk", {**CREDENTIALS, "api_token": "bad"}, upstream=upstream) as desk:
        with pytest.raises(Exception, match="401"):
            await desk.check()


async def test_a_refresh_token_alone_is_enough_to_connect(upstream):
    async with connect(
        "work-management",
        {"refresh_token": "refresh", "client_id": "app", "client_secret": "secret"},
        upstream=upstream,
    ) as work:
        page = await work.execute("workspaces", "list")

    assert page.records


async def test_kinds_of_the_folders_in_the_environment_are_served_as_by_a_gateway(tmp_path, monkeypatch):
    write_kind(tmp_path, "fleet")
    monkeypatch.setenv("GATEWAY_SPECS", str(tmp_path))

    async with connect("fleet", {"api_key": "k"}) as fleet:
        assert fleet.kind.name == "fleet"
    with pytest.raises(UnknownConnectorType):
        async with connect("fleet", {"api_key": "k"}, specs=()):
            pass


def test_no_package_has_the_name_of_a_public_function():
    folder = Path(gateway.__file__).parent

    assert [name for name in gateway.__all__ if (folder / name).is_dir()] == []


async def test_a_write_that_was_done_is_done_also_if_its_fields_cannot_be_selected(tmp_path):
    numbers = ",".join(["1e300"] * 5_001)
    async with Wire().listening() as wire:
        wire.says(answer(f'{{"name": "a", "numbers": [{numbers}]}}'.encode()))
        folders, upstream = (write_label_printer(tmp_path),), str(wire.origin)
        async with connect(KIND, {"token": "t"}, specs=folders, upstream=upstream) as printer:
            page = await printer.execute("labels", "create", {"name": "a"}, select=["name"])

    assert page.result is None
    assert "do not repeat it" in page.answer.warning


async def test_a_long_operation_that_was_started_and_lost_is_of_unknown_outcome(tmp_path):
    async with Wire().listening() as wire:
        wire.says(answer(b'{"id": "r1"}'), answer(b"{}", "404 Not Found"))
        folders, upstream = (write_label_printer(tmp_path),), str(wire.origin)
        async with connect(KIND, {"token": "t"}, specs=folders, upstream=upstream) as printer:
            with pytest.raises(UpstreamNotFound) as lost:
                await printer.execute("rolls", "create", {"name": "a"})

    assert lost.value.is_outcome_unknown
    assert lost.value.extra["known"] == {"run_id": "r1"}
