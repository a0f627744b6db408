"""The notice of approvals: a message by a connector of the organization, once for each approval, and never a loop."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.access.identity.tokens import hashed, new_secret
from tests.harness.caller import Api
from tests.harness.clients import EVERY_SCOPE
from tests.harness.command_line import invoked
from tests.harness.in_process import FrontEnd
from tests.harness.processes import bare_environment
from tests.harness.waiting import eventually
from tests.web.test_approvals import APPROVALS, APPROVER, ASK, Bench, bench  # noqa: F401 - a fixture
from tests.web.test_personal_connectors import connected, person_of
from tests.web.test_policies import EVERYTHING, READ, UPDATE, put, run_jobs

NOTICE = f"{APPROVALS}/notice"
#: writes of the support desk need an approval, and messages do not
ASK_THERE = f"""{READ}
@id("ask") @approval("Writes need <!channel> a person.")
permit(principal, action in [Action::"write", Action::"idempotent"], resource in Kind::"support-desk");
permit(principal, action == Action::"team-chat.messages.create", resource);
"""
TEXT = "{{requested_by}} asks for {{operation}} of {{connector}} ({{items}}): {{reason}} {{url}}"


@dataclass(frozen=True)
class Chat:
    """The bench with a chat that gets the notices."""

    bench: Bench
    connector_id: str
    channel: str

    async def set(self, api: Api | None = None, status: int = 200, **members: Any) -> dict[str, Any]:
        params = {"channel": self.channel, "text": TEXT}
        body = {
            "connector_id": self.connector_id,
            "entity": "messages",
            "action": "create",
            "params": params,
            **members,
        }
        answer = await (api or self.bench.admin).call("PUT", NOTICE, json=body)
        document: dict[str, Any] = answer.document(status)
        return document

    async def notice(self) -> dict[str, Any]:
        document: dict[str, Any] = (await self.bench.admin.get(NOTICE)).document()
        return document

    async def jobs(self) -> list[dict[str, Any]]:
        """The jobs of notices, the oldest first."""
        jobs = (await self.bench.admin.get(f"/api/v1/jobs?connector_id={self.connector_id}&entity=messages")).document()
        return list(reversed(jobs["data"]))

    async def messages(self) -> list[str]:
        call = {"entity": "channel_messages", "action": "list", "params": {"channel": self.channel, "limit": 20}}
        path = f"/api/v1/integrations/connectors/{self.connector_id}/execute"
        return [each["text"] for each in (await self.bench.admin.post(path, call)).document()["result"]]


@pytest.fixture
async def chat(bench: Bench) -> Chat:  # noqa: F811
    connector = await bench.admin.connector("team-chat", {"bot_key": "xoxb-1"}, name="Chat")
    path = f"/api/v1/integrations/connectors/{connector.record['id']}/execute"
    channels = (await bench.admin.post(path, {"entity": "channels", "action": "list"})).document()["result"]
    assert (await put(bench.admin, ASK_THERE)).status == 200
    return Chat(bench, connector.record["id"], channels[0]["id"])


async def test_each_approval_is_told_once_by_a_job_with_its_own_entry(chat: Chat):
    stored = await chat.set()
    job, approval = await chat.bench.asked()
    await run_jobs(chat.bench.front)

    [notice] = await chat.jobs()
    [told, *_] = await chat.messages()
    requester = approval["requested_by"]["client"]["name"]
    operation = f"{requester} asks for tickets.update of {chat.bench.desk.record['name']} (1)"
    assert told == f"{operation}: Writes need ‹!channel› a person. {approval['url']}"
    assert (notice["status"], notice["labels"], notice["approval"]) == (
        "succeeded",
        {"approval_id": approval["id"]},
        None,
    )
    assert (stored["last"], (await chat.notice())["last"]["status"]) == (None, "succeeded")
    assert job["status"] == "waiting"

    async def entries() -> list[dict[str, Any]]:
        found = (await chat.bench.admin.get("/api/v1/audit?operation=messages.create")).document()["data"]
        return found if len(found) == 2 else []

    settled, accepted = await eventually(entries)
    assert (accepted["outcome"], accepted["intent"]) == ("accepted", f"notice of approval {approval['id']}")
    assert (settled["outcome"], settled["actor"]["id"]) == ("succeeded", stored["set_by"])
    assert len((await chat.bench.approver.get(APPROVALS)).document()["data"]) == 1


async def test_the_next_approval_is_told_too_and_none_after_the_notice_is_deleted(chat: Chat):
    await chat.set()
    await chat.bench.asked()
    await chat.bench.asked({"ticket_id": 2, "ticket": {"status": "solved"}})
    assert (await chat.bench.admin.call("DELETE", NOTICE)).status == 204
    await chat.bench.asked({"ticket_id": 3, "ticket": {"status": "solved"}})

    assert len({each["labels"]["approval_id"] for each in await chat.jobs()}) == len(await chat.jobs()) == 2
    assert (await chat.bench.admin.get(NOTICE)).status == 404
    assert (await chat.bench.admin.call("DELETE", NOTICE)).status == 404


async def test_a_notice_that_would_need_an_approval_is_refused_and_never_asks(chat: Chat):
    await chat.set()
    await put(chat.bench.admin, ASK)

    refused = await chat.set(status=403)
    await chat.bench.asked()
    await run_jobs(chat.bench.front)

    [notice] = await chat.jobs()
    assert refused["code"] == "denied_by_policy"
    assert (notice["status"], notice["error"]["code"], notice["approval"]) == ("failed", "denied_by_policy", None)
    last = (await chat.notice())["last"]
    assert last["status"] == "failed"
    assert "demands an approval" in last["message"]
    assert len((await chat.bench.approver.get(APPROVALS)).document()["data"]) == 1


@pytest.mark.parametrize(
    ("members", "status", "code"),
    [
        ({"params": {"channel": "C1", "text": "{{old}}"}}, 422, "invalid_params"),
        ({"params": {"channel": "C1", "text": "{{request.headers.Authorization}}"}}, 422, "invalid_params"),
        ({"params": {"channel": "C1", "text": 5}}, 422, "invalid_params"),
        ({"params": {"text": "{{url}}"}}, 422, "invalid_params"),
        ({"action": "creat"}, 422, "unknown_action"),
        ({"entity": "channels", "action": "list", "params": {}}, 422, "invalid_params"),
        ({"connector_id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"}, 404, "not_found"),
        ({"colour": "red"}, 422, "invalid_params"),
    ],
)
async def test_a_notice_that_cannot_be_sent_is_refused_when_it_is_set(chat: Chat, members, status, code):
    refused = await chat.set(status=status, **members)

    assert refused["code"] == code
    assert (await chat.bench.admin.get(NOTICE)).status == 404


async def test_a_connector_of_another_organization_does_not_exist(chat: Chat):
    async with chat.bench.front.api() as stranger:
        theirs = await stranger.connector("team-chat", {"bot_key": "xoxb-2"})
        refused = await chat.set(status=404, connector_id=theirs.record["id"])

        assert (await stranger.get(NOTICE)).status == 404
    assert refused["code"] == "not_found"


async def test_a_personal_connector_and_a_limited_administrator_are_refused(chat: Chat, front: FrontEnd):
    person_id, person = await person_of(front, chat.bench.admin, ["read", "write", "admin"])
    members = {"connector_type": "team-chat", "credentials": {"bot_key": "xoxb-3"}}
    own = (await connected(person, "me", **members)).document(201)
    secret = new_secret()
    limited_id = await front.services.identity.create_client(
        "limited", [chat.bench.organization_id], hashed(secret), EVERY_SCOPE, workspaces=["acme"]
    )

    async with Api.of(front.base_url, str(limited_id), secret) as limited:
        refused = await chat.set(limited, 403)
    personal = await chat.set(person, 422, connector_id=own["id"])
    of_another = await chat.set(status=403, connector_id=own["id"])

    assert own["owner"] == person_id
    assert (refused["code"], of_another["code"]) == ("insufficient_scope", "personal_connector")
    assert [each["field"] for each in personal["errors"]] == ["connector_id"]
    assert (await chat.bench.admin.get(NOTICE)).status == 404


async def test_only_administrators_of_the_whole_organization_see_and_set_it(chat: Chat, front: FrontEnd):
    await chat.set()
    agent, approver = chat.bench.agent, chat.bench.approver

    answers = [await agent.get(NOTICE), await approver.get(NOTICE), await agent.call("DELETE", NOTICE)]

    assert [each.document(403)["code"] for each in answers] == ["insufficient_scope"] * 3
    await chat.set(agent, 403)
    async with front.api(chat.bench.organization_id, ["read", "admin"]) as reader:
        assert (await chat.set(reader, 403))["code"] == "insufficient_scope"


async def test_a_failed_notice_is_seen_and_holds_no_call_up(chat: Chat):
    await chat.set(params={"channel": "C0NOTHERE", "text": TEXT})
    job, approval = await chat.bench.asked()
    await run_jobs(chat.bench.front)
    await chat.bench.decide(approval)

    assert (await chat.bench.ended(job))["status"] == "succeeded"
    last = (await chat.notice())["last"]
    assert (last["status"], (await chat.jobs())[0]["id"]) == ("failed", last["job_id"])


async def test_a_notice_goes_to_no_connector_that_is_gone(chat: Chat):
    await chat.set()
    await chat.bench.admin.call("DELETE", f"/api/v1/integrations/connectors/{chat.connector_id}")

    job, _ = await chat.bench.asked()

    assert job["status"] == "waiting"
    assert (await chat.notice())["last"]["status"] in ("queued", "failed", "canceled")


async def test_a_flood_of_calls_is_no_flood_of_messages(chat: Chat, sql):
    await chat.set()
    await sql(
        "UPDATE approval_notices SET hour = date_trunc('hour', now()), sent = 59 WHERE organization_id = $1",
        str(chat.bench.organization_id),
    )

    asked = [(await chat.bench.asked())[0] for _ in range(2)]

    assert [job["status"] for job in asked] == ["waiting"] * 2
    assert (await chat.notice())["skipped_reason"] == "60 notices were sent in this hour"
    assert len(await chat.jobs()) == 1


async def test_nothing_is_sent_in_the_name_of_a_client_that_is_disabled(chat: Chat, sql):
    stored = await chat.set()
    await sql("UPDATE clients SET disabled_at = now() WHERE id = $1", stored["set_by"])

    await chat.bench.asked()

    await sql("UPDATE clients SET disabled_at = NULL WHERE id = $1", stored["set_by"])
    assert (await chat.notice())["skipped_reason"] == "the client that set the notice is disabled or gone"
    assert await chat.jobs() == []


async def test_params_that_a_name_makes_invalid_fail_the_notice_and_nothing_else(chat: Chat, sql):
    """The schema is checked again with the real names: here the channel becomes empty."""
    await chat.set(params={"channel": "{{connector}}", "text": "x"})
    await sql("UPDATE connectors SET name = '\u202e' WHERE id = $1", chat.bench.desk.record["id"])

    job, _ = await chat.bench.asked()
    await run_jobs(chat.bench.front)

    [notice] = await chat.jobs()
    assert (job["status"], notice["status"], notice["error"]["code"]) == ("waiting", "failed", "invalid_params")


async def test_a_notice_is_sent_again_only_by_the_client_that_set_it(chat: Chat, sql):
    await chat.set()
    await chat.bench.asked()
    [job] = await chat.jobs()
    await sql("UPDATE jobs SET status = 'failed', finished_at = now() WHERE id = $1", job["id"])

    refused = await chat.bench.agent.post(f"/api/v1/jobs/{job['id']}/retry")
    again = await chat.bench.admin.post(f"/api/v1/jobs/{job['id']}/retry")
    await run_jobs(chat.bench.front)

    assert refused.document(403)["code"] == "insufficient_scope"
    assert (await chat.bench.job(again.document(202)["job"]))["status"] == "succeeded"


async def test_it_is_set_shown_and_deleted_on_the_command_line(chat: Chat, front: FrontEnd, tmp_path):
    client_id, secret = await front.client(chat.bench.organization_id)
    environment = {
        **bare_environment(),
        "GATEWAY_URL": front.base_url,
        "GATEWAY_CLIENT_ID": client_id,
        "GATEWAY_CLIENT_SECRET": secret,
    }

    async def notice(*words: str) -> Any:
        ended = await invoked("approvals", "notice", *words, environment=environment, directory=tmp_path)
        assert ended.code == 0, ended.err
        return ended

    params = ("messages", "create", f"channel={chat.channel}", "text=Please decide: {{url}}")
    stored = json.loads((await notice("set", "team-chat", *params, "--connector", chat.connector_id, "-o", "json")).out)
    shown = json.loads((await notice("show", "-o", "json")).out)
    await notice("delete")

    assert stored == shown
    assert stored["params"] == {"channel": chat.channel, "text": "Please decide: {{url}}"}
    assert (await chat.bench.admin.get(NOTICE)).status == 404


async def test_a_notice_is_taken_from_budgets_and_metered_like_a_call(chat: Chat):
    await chat.set()
    await put(chat.bench.admin, EVERYTHING, "others", "shadow")
    await chat.bench.admin.call("PUT", "/api/v1/budgets/b", json={"per": "day", "writes": 100})

    await chat.bench.asked(UPDATE)
    await run_jobs(chat.bench.front)

    assert (await chat.bench.admin.get("/api/v1/budgets/b")).document()["spent"]["writes"] == 1
