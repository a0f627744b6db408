"""The notice of approvals in the console: its form, what became of the last message, and who may not see it."""

import json
from collections.abc import AsyncIterator

import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser, signed_in
from tests.web.test_approval_notices import ASK_THERE, NOTICE, Chat, bench, chat  # noqa: F401 - fixtures
from tests.web.test_policies import put, run_jobs

PAGE = "/console/approvals/notice"
PARAMS = {"channel": "C1", "text": "Please decide: {{url}}"}


@pytest.fixture
async def admins(chat: Chat) -> AsyncIterator[ConsoleBrowser]:  # noqa: F811
    """A browser in which an administrator of the bench's organization is signed in."""
    async with signed_in(chat.bench.front, *await chat.bench.front.client(chat.bench.organization_id)) as opened:
        yield opened


async def send(browser: ConsoleBrowser, path: str = PAGE, **fields: str):
    return await browser.send(path, csrf=await browser.csrf(), **fields)


def fields_of(chat: Chat, **members: str) -> dict[str, str]:  # noqa: F811
    params = json.dumps({**PARAMS, "channel": chat.channel})
    return {"connector": chat.connector_id, "operation": "messages.create", "params": params, **members}


async def test_a_notice_is_set_sent_changed_and_deleted(admins: ConsoleBrowser, chat: Chat):  # noqa: F811
    empty = await admins.get(PAGE)
    stored = await send(admins, **fields_of(chat))
    _, approval = await chat.bench.asked()
    await run_jobs(chat.bench.front)
    shown = (await admins.get(PAGE)).body.decode()
    [told, *_] = await chat.messages()
    changed = {**PARAMS, "channel": chat.channel, "text": "{{operation}} waits"}
    await send(admins, **fields_of(chat, params=json.dumps(changed)))
    document = await chat.notice()
    deleted = await send(admins, f"{PAGE}/delete")

    assert (empty.status, b"What is sent" in empty.body) == (200, False)
    assert (stored.status, stored.headers["Location"]) == (303, PAGE)
    assert told == f"Please decide: {approval['url']}"
    assert all(each in shown for each in ("messages.create", "Please decide: {{url}}", "succeeded", "What is sent"))
    assert document["params"] == changed
    assert deleted.status == 303
    assert (await chat.bench.admin.get(NOTICE)).status == 404


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"connector": "7"}, "choose the connector"),
        ({"connector": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"}, "no such connector"),
        ({"operation": "messages"}, "messages.create"),
        ({"operation": "messages.crate"}, "create"),
        ({"operation": "channels.list", "params": "{}"}, "only reads"),
        ({"params": "text"}, "write a JSON object"),
        ({"params": "[1]"}, "write a JSON object"),
        ({"params": '{"channel": "C1", "text": "<b>{{link}}"}'}, "is no placeholder"),
        ({"params": '{"text": "x"}'}, "channel"),
    ],
)
async def test_a_notice_that_cannot_be_sent_keeps_the_form(
    admins: ConsoleBrowser,
    chat: Chat,  # noqa: F811
    fields: dict[str, str],
    words: str,
):
    given = fields_of(chat, **fields)

    refused = await send(admins, **given)

    assert refused.status == 422
    assert words in refused.body.decode()
    assert f'value="{given["operation"]}"'.encode() in refused.body
    assert b"<b>{{" not in refused.body
    assert (await chat.bench.admin.get(NOTICE)).status == 404


async def test_a_notice_that_would_need_an_approval_is_refused_at_the_form(
    admins: ConsoleBrowser,
    chat: Chat,  # noqa: F811
):
    await put(chat.bench.admin, ASK_THERE.replace('resource in Kind::"support-desk"', "resource"))

    refused = await send(admins, **fields_of(chat))

    assert (refused.status, b"demands an approval" in refused.body) == (422, True)


async def test_another_organization_neither_sees_nor_changes_a_notice(
    stranger: ConsoleBrowser,
    chat: Chat,  # noqa: F811
):
    stored = await chat.set()

    seen = await stranger.get(PAGE)
    refused = await send(stranger, **fields_of(chat))

    assert chat.connector_id.encode() not in seen.body
    assert refused.status == 422
    assert (await chat.notice())["updated_at"] == stored["updated_at"]


async def test_who_only_approves_sees_no_form(chat: Chat, api: Api):  # noqa: F811
    approver = await chat.bench.front.client(chat.bench.organization_id, ["read", "write", "approve"])
    async with signed_in(chat.bench.front, *approver) as browser:
        page, listed = await browser.get(PAGE), await browser.get("/console/approvals")
        refused = await send(browser, **fields_of(chat))

    assert (page.status, refused.status) == (403, 403)
    assert PAGE.encode() not in listed.body
