"""The notices that the sandbox sends to a hook when a record changes: format and signature follow the kind's spec."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.context_store.notices.notice import Notice, changes_of
from gateway.context_store.notices.verification import delivery_digest
from tests.harness.waiting import PATIENCE
from tests.sandbox.conftest import reset

#: a secret in the format that applications show: `whsec_` and a key in Base64
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
AUTH = {"Authorization": "Bearer token", "Notion-Version": "2025-09-03"}


@dataclass
class Hook:
    """Receives notices, and answers handshakes as required unless it `refuses`."""

    url: str = ""
    refuses: bool = False
    secret: str = SECRET
    notices: "asyncio.Queue[Notice]" = field(default_factory=asyncio.Queue)

    async def handle(self, request: web.Request) -> web.Response:
        if self.refuses:
            return web.Response(status=403)
        body: Any = await request.json()
        if "X-Hook-Secret" in request.headers:
            self.secret = request.headers["X-Hook-Secret"]
            return web.Response(headers={"X-Hook-Secret": self.secret})
        if isinstance(body, dict) and "verification_token" in body:
            self.secret = body["verification_token"]
            return web.Response()
        self.notices.put_nowait(Notice(request.method, str(request.url), request.headers, await request.read()))
        return web.json_response({"challenge": body.get("challenge")} if isinstance(body, dict) else {})

    async def next(self) -> Notice:
        return await asyncio.wait_for(self.notices.get(), PATIENCE)


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    opened, app = Hook(), web.Application()
    app.router.add_post("/hooks/1", opened.handle)
    async with TestServer(app) as server:
        opened.url = str(server.make_url("/hooks/1"))
        yield opened


async def registered(http, hook, kind, **shares):
    async with http.put(f"/_sandbox/hooks/{kind}", json={"url": hook.url, "secret": SECRET, **shares}) as answer:
        return answer.status, await answer.text()


async def put_record(http, kind, table):
    """Create or change the record 77 of a table, as users of the application would."""
    async with http.put(f"/_sandbox/records/{kind}/{table}/77", json={}) as answer:
        assert answer.status == 200, await answer.text()


@pytest.mark.parametrize(
    ("kind", "table", "change"),
    [
        ("support-desk", "tickets", ("tickets", "77")),
        ("support-desk", "articles", ("articles", "77")),
        ("crm-records", "deals", ("deals", "77")),
        ("team-chat", "users", ("users", "77")),
        ("team-chat", "channels", ("channels", "")),
        ("work-management", "tasks", ("tasks", "77")),
        ("incident-management", "incidents", ("incidents", "")),
        ("workspace-notes", "pages", ("pages", "77")),
        ("linear", "issues", ("issues", "77")),
        ("sentry", "issues", ("issues", "")),
    ],
)
async def test_the_gateway_reads_the_change_from_the_notice(http, hook, catalog, kind, table, change):
    spec = catalog.kind(kind).spec.webhooks
    assert await registered(http, hook, kind) == (204, "")
    if spec.handshake is not None and spec.handshake.style == "challenge":
        await hook.next()

    await put_record(http, kind, table)
    created = await hook.next()
    async with http.delete(f"/_sandbox/records/{kind}/{table}/77"):
        pass
    notices = [created] if kind == "incident-management" else [created, await hook.next()]

    for notice in notices:
        assert delivery_digest(spec, notice, [hook.secret], datetime.now(UTC)) is not None, notice.body
        assert change in changes_of(spec, notice)
    assert len({notice.body for notice in notices}) == len(notices)


async def test_a_write_through_the_api_sends_one_notice_and_a_read_none(http, hook, catalog):
    await registered(http, hook, "support-desk")
    spec = catalog.kind("support-desk").spec.webhooks

    await (await http.get("/api/v2/tickets/3.json", headers=AUTH)).release()
    ticket = {"ticket": {"subject": "Changed"}}
    await (await http.put("/api/v2/tickets/3.json", json=ticket, headers=AUTH)).release()
    changes = changes_of(spec, await hook.next())
    async with http.get("/_sandbox/notices") as answer:
        sent = (await answer.json())["notices"]

    assert changes == [("tickets", "3")]
    assert [(each["kind"], each["body"]["subject"]) for each in sent] in ([], [("support-desk", "zen:ticket:3")])
    assert hook.notices.empty()


async def test_notices_are_lost_and_sent_twice_on_request(http, hook):
    await registered(http, hook, "support-desk", lost=1.0)
    await put_record(http, "support-desk", "tickets")
    await registered(http, hook, "support-desk", doubled=1.0)
    await put_record(http, "support-desk", "users")

    first, second = await hook.next(), await hook.next()

    assert b"zen:user:77" in first.body
    assert (first.body, dict(first.headers)) == (second.body, dict(second.headers))


async def test_without_a_hook_and_after_a_reset_nothing_is_sent(http, hook):
    await put_record(http, "support-desk", "tickets")
    await registered(http, hook, "support-desk")
    await reset(http)
    await put_record(http, "support-desk", "tickets")
    await registered(http, hook, "support-desk")
    await put_record(http, "support-desk", "users")

    assert b"zen:user:77" in (await hook.next()).body
    assert hook.notices.empty()


@pytest.mark.parametrize("kind", ["team-chat", "work-management", "workspace-notes"])
async def test_a_hook_that_refuses_the_handshake_is_not_registered(http, hook, kind):
    hook.refuses = True

    status, text = await registered(http, hook, kind)

    assert (status, "answered 403 to the handshake" in text) == (400, True)


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("crm-query", {"url": "http://127.0.0.1/", "secret": "s"}, "describes no notices"),
        ("support-desk", {"url": "http://127.0.0.1/"}, "secret is missing"),
        ("support-desk", {"secret": "s"}, "url"),
        ("airtable", {"url": "http://127.0.0.1/", "secret": "not_base64"}, "secret must be Base64"),
        ("no-kind", {"url": "http://127.0.0.1/"}, "there is no kind"),
    ],
)
async def test_an_invalid_hook_is_refused(http, kind, body, words):
    async with http.put(f"/_sandbox/hooks/{kind}", json=body) as answer:
        assert (answer.status, words in await answer.text()) == (400, True)
