"""Signed links: a person opens one stored file without a token."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID, uuid4

import aiohttp
import msgspec
import pytest

from gateway.access.identity.model import Caller
from gateway.jobs.model import JobSummary, NewJob
from gateway.jobs.pruning import prune_jobs
from gateway.upstream.http_ranges.integrity import File
from gateway.upstream.responses import OperationResult
from tests.harness.caller import Answer, Api
from tests.harness.in_process import FrontEnd
from tests.web.belongings import STAFF, Belongings, belongings_of
from tests.web.test_routes import noted

BYTES = b"0123456789"


class Unread:
    """Progress that no test reads."""

    async def progress(self, done: int, total: int | None, message: str) -> None:
        pass


@dataclass(frozen=True)
class Stored:
    """A file that a client of an organization has stored."""

    front: FrontEnd
    caller: Caller
    job: JobSummary

    @property
    def link(self) -> str:
        return self.front.services.jobs.file_links.link(self.caller, self.job).path


async def file_of(front: FrontEnd, caller: Caller, action: str = "download") -> Stored:
    async def pieces() -> AsyncIterator[bytes]:
        yield BYTES

    job_id, services = uuid4(), front.services
    file = File(200, {"Content-Type": "text/plain"}, len(BYTES), pieces())
    stored = await services.jobs.files.save(caller.organization_id, job_id, 1, file, Unread())
    answer = OperationResult(result=msgspec.Raw(msgspec.json.encode(stored)))
    new = NewJob(
        id=job_id,
        organization_id=caller.organization_id,
        client_id=caller.client_id,
        entity="attachments",
        action=action,
        session=caller.session,
    )
    await services.operations.execution.keep(new, answer)
    return Stored(front, caller, await services.jobs.access.done(caller, job_id, 10))


@pytest.fixture
async def stored(front: FrontEnd) -> Stored:
    client_id, _ = await front.client()
    client = await front.services.identity.client(UUID(client_id))
    assert client is not None
    return await file_of(front, client.client.caller(None))


async def opened(stored: Stored, path: str, **headers: str) -> Answer:
    """The response to a browser without a token."""
    async with aiohttp.ClientSession(stored.front.base_url) as session, session.get(path, headers=headers) as answer:
        return Answer(answer.status, answer.headers, await answer.read())


async def test_a_link_opens_the_file_without_a_token_whole_and_in_ranges(stored: Stored) -> None:
    whole = await opened(stored, stored.link)
    part = await opened(stored, stored.link, Range="bytes=2-4")

    assert (whole.status, whole.body) == (200, BYTES)
    assert "sandbox" in whole.headers["Content-Security-Policy"]
    assert (part.status, part.body, part.headers["Content-Range"]) == (206, b"234", "bytes 2-4/10")


async def test_the_link_is_for_one_file_of_one_organization(front: FrontEnd, stored: Stored) -> None:
    other = await file_of(front, stored.caller)
    stranger = replace(stored, caller=Caller(stored.caller.client, await front.organization()))

    signature = stored.link.partition("?")[2]
    assert (await opened(stored, f"/files/{other.job.id}?{signature}")).status == 403
    assert (await opened(stored, stranger.link)).status == 403


@pytest.mark.parametrize("place", range(0, 88, 11))
async def test_a_link_that_was_altered_opens_nothing(stored: Stored, place: int) -> None:
    path, _, text = stored.link.partition("?signature=")
    signed = bytearray(base64.urlsafe_b64decode(text))
    signed[place] ^= 1

    altered = await opened(stored, f"{path}?signature={base64.urlsafe_b64encode(signed).decode()}")

    assert altered.status == 403
    assert b"request another one" in altered.body


@pytest.mark.parametrize("text", ["", "x", "A" * 96, "é"])
async def test_an_invalid_signature_opens_nothing(stored: Stored, text: str) -> None:
    assert (await opened(stored, f"/files/{stored.job.id}?signature={text}")).status == 403


async def test_a_program_reads_the_error_of_a_link_as_json_and_a_browser_shows_a_page(stored: Stored) -> None:
    path = stored.link.partition("?")[0] + "?signature=x"

    answers = [await opened(stored, path), await opened(stored, path, Accept="text/html,*/*;q=0.8")]

    assert [(each.status, each.headers["Content-Type"]) for each in answers] == [
        (403, "application/problem+json"),
        (403, "text/html; charset=utf-8"),
    ]


async def test_a_link_expires(stored: Stored) -> None:
    assert stored.job.expires_at is not None
    past = msgspec.structs.replace(stored.job, expires_at=stored.job.expires_at - timedelta(days=365))

    assert (await opened(stored, replace(stored, job=past).link)).status == 403


async def test_a_link_ends_when_its_client_is_disabled(front: FrontEnd, stored: Stored) -> None:
    await front.services.identity.disable_client(stored.caller.client_id)

    assert (await opened(stored, stored.link)).status == 403


async def in_session_and_grant(front: FrontEnd) -> tuple[dict[str, Stored], Belongings]:
    """Files that were stored in the session of a client for a person, and in the person's grant to an agent's host."""
    organization_id = await front.organization()
    async with front.api(organization_id) as administrator:
        await administrator.call("PUT", f"/api/v1/groups/{STAFF}", json={"workspaces": None, "scopes": []})
        rights = {"scopes": ["read", "write"], "workspaces": None, "groups": [STAFF]}
        person = (await administrator.post("/api/v1/people", rights)).document(201)
        ada = await belongings_of(front, organization_id, administrator, person)
    tokens = {"session": ada.session["token"], "grant": ada.grant.access_token}
    clients = {name: await front.access.tokens.verify(token) for name, token in tokens.items()}
    return {name: await file_of(front, client.caller(None)) for name, client in clients.items()}, ada


async def test_a_link_ends_with_the_session_or_the_grant_in_which_it_was_made(front: FrontEnd) -> None:
    links, ada = await in_session_and_grant(front)
    (grant,) = await front.access.authorization.own_grants(links["grant"].caller, 10)

    before = {name: (await opened(each, each.link)).status for name, each in links.items()}
    await front.services.operations.delegation.end(links["grant"].caller, UUID(ada.session["id"]))
    ended = {name: (await opened(each, each.link)).status for name, each in links.items()}
    await front.access.authorization.revoke_own(links["grant"].caller, UUID(grant.id))

    assert before == {"session": 200, "grant": 200}
    assert ended == {"session": 403, "grant": 200}
    assert (await opened(links["grant"], links["grant"].link)).status == 403


async def test_a_link_does_not_come_back_with_a_person_who_is_active_again(front: FrontEnd) -> None:
    links, ada = await in_session_and_grant(front)
    organization_id, person_id = links["grant"].caller.organization_id, ada.person["id"]

    async with front.api(organization_id) as administrator:
        for status in ("suspended", "active"):
            change = await administrator.call("PATCH", f"/api/v1/people/{person_id}", json={"status": status})
            assert change.document()["status"] == status

    assert [(await opened(each, each.link)).status for each in links.values()] == [403, 403]


async def test_a_link_ends_with_the_result(front: FrontEnd, stored: Stored) -> None:
    async with front.services.database.system() as connection:
        await connection.execute("UPDATE jobs SET expires_at = now() WHERE id = $1", stored.job.id)
    await prune_jobs(front.services.database)

    assert (await opened(stored, stored.link)).status == 410


async def test_a_result_that_is_no_file_has_no_link(front: FrontEnd, stored: Stored) -> None:
    listed = await file_of(front, stored.caller, action="list")

    assert (await opened(stored, listed.link)).status == 404


async def test_the_use_of_a_link_is_recorded(front: FrontEnd, stored: Stored) -> None:
    client_id, secret = await front.client(stored.caller.organization_id)
    await opened(stored, stored.link)
    await front.services.identity.disable_client(stored.caller.client_id)

    async with Api.of(front.base_url, client_id, secret) as api:
        entry = await noted(api, "file_link.open")
        await opened(stored, stored.link)
        async with asyncio.timeout(10):
            while (refused := await noted(api, "file_link.open"))["outcome"] == "succeeded":
                pass

    assert (entry["target"], entry["actor"]["id"]) == (str(stored.job.id), str(stored.caller.client_id))
    assert (entry["outcome"], refused["outcome"]) == ("succeeded", "forbidden")
