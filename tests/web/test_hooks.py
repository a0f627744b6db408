"""Hooks over HTTP: callers manage them, applications send notices."""

import hashlib
import hmac
import io
import json
import time

import pytest

from tests.harness.blocked_loop import never_blocked
from tests.harness.in_process import front_end

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
STORED = "SELECT count(*) FROM inbound_notices WHERE hook_id::text = $1"
CHANGED = "SELECT entity FROM inbound_changes WHERE connector_id::text = $1 ORDER BY entity"
CREDENTIALS = {
    "Team-Chat": {"access_token": "token"},
    "Work-Management": {"token": "token"},
    "Workspace-Notes": {"access_token": "token"},
    "CRM-Query": {"refresh_token": "token", "instance_url": "https://acme.my.salesforce.com"},
}


@pytest.fixture
def connector_of(api):
    async def create(kind):
        return await api.connector(kind, CREDENTIALS[kind], validate=False)

    return create


@pytest.fixture
async def chat(connector_of):
    return await connector_of("Team-Chat")


@pytest.fixture
def rows(front):
    async def fetch(query, *arguments):
        async with front.services.database.system() as connection:
            return [row[0] for row in await connection.fetch(query, *arguments)]

    return fetch


async def hook_of(connector, **members):
    return (await connector.api.post(f"{connector.path}/hook", members)).document()


async def notify(api, hook, body, headers=None, secret=SECRET, at=None):
    """Send a notice as the chat application does, or with other headers; returns the response."""
    at = str(int(time.time() if at is None else at))
    signature = hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), "sha256").hexdigest()
    signed = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={signature}"}
    headers = {"Content-Type": "application/json", **(signed if headers is None else headers)}
    path = "/hooks/" + hook["url"].rpartition("/hooks/")[2]
    async with api.session.post(path, data=io.BytesIO(body.encode()), headers=headers) as response:
        return response.status, dict(response.headers), await response.text()


MESSAGE = json.dumps({"event_id": "Ev1", "event": {"type": "message", "channel": "C1"}})


async def test_a_connector_has_one_hook_until_it_is_deleted(chat, api):
    first = await hook_of(chat)
    second = await hook_of(chat, secret=SECRET)
    seen = (await api.get(f"{chat.path}/hook")).document()
    deleted = await api.call("DELETE", f"{chat.path}/hook")

    assert first["url"].endswith(f"/hooks/{first['id']}")
    assert (first["has_secret"], second["has_secret"], second["url"]) == (False, True, first["url"])
    assert seen == second
    assert SECRET not in json.dumps(seen)
    assert deleted.status == 204
    assert (await api.get(f"{chat.path}/hook")).status == 404
    assert (await notify(api, second, MESSAGE))[0] == 403


async def test_a_signed_notice_is_stored_once_with_the_entities_to_synchronize(chat, api, rows):
    hook = await hook_of(chat, secret=SECRET)

    answers = [await notify(api, hook, MESSAGE, at=time.time() - seconds) for seconds in (0, 0, 5)]

    assert [(status, body) for status, _, body in answers] == [(200, "{}")] * 3
    assert await rows(STORED, hook["id"]) == [1]
    assert await rows(CHANGED, chat.record["id"]) == ["channel_messages", "threads"]
    assert (await api.get(f"{chat.path}/hook")).document()["last_notice_at"]


@pytest.mark.parametrize(
    "change", [{"secret": "other"}, {"at": 1531420618}, {"headers": {}}, {"headers": {"X-Slack-Signature": "v0="}}]
)
async def test_a_forged_or_old_notice_is_refused(chat, api, rows, change):
    hook = await hook_of(chat, secret=SECRET)

    status, _, body = await notify(api, hook, MESSAGE, **change)

    assert (status, json.loads(body)["detail"]) == (403, "the notice is not accepted")
    assert await rows(STORED, hook["id"]) == [0]
    assert await rows(CHANGED, chat.record["id"]) == []


async def test_the_response_of_an_unknown_hook_is_that_of_a_forged_notice(chat, api):
    hook = await hook_of(chat)
    unknown = {"url": "/hooks/0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"}

    bodies = [json.loads((await notify(api, each, MESSAGE))[2]) for each in (hook, unknown, {"url": "/hooks/x"})]

    assert len({(body["status"], body["code"], body["detail"]) for body in bodies}) == 1


async def test_an_address_with_many_refused_notices_gets_a_429(chat, api):
    hook = await hook_of(chat, secret=SECRET)

    refused = [(await notify(api, hook, MESSAGE, secret="other"))[0] for _ in range(61)]
    signed = await notify(api, hook, MESSAGE)

    assert refused == [403] * 60 + [429]
    assert signed[0] == 200


async def test_a_notice_of_more_than_a_mebibyte_is_refused_and_counted(chat, api, caplog):
    hook = await hook_of(chat, secret=SECRET)

    assert (await notify(api, hook, " " * 2**20 + MESSAGE))[0] == 413
    assert 'gateway_inbound_notices_total{kind="team-chat",outcome="too_large"} 1.0' in await metrics(api)
    assert "larger than GATEWAY_MAX_NOTICE_BYTES" in caplog.text


async def test_the_operator_may_accept_notices_of_25_mebibytes(tmp_path, database_url, redis_url):
    async with (
        front_end(tmp_path, database_url, redis_url, max_notice_bytes=25 << 20) as front,
        front.api() as api,
    ):
        connector = await api.connector("Team-Chat", CREDENTIALS["Team-Chat"], validate=False)
        hook = await hook_of(connector, secret=SECRET)
        padding = " " * ((25 << 20) - len(MESSAGE))

        assert (await notify(api, hook, padding + MESSAGE))[0] == 200
        assert (await notify(api, hook, f" {padding}{MESSAGE}"))[0] == 413


async def metrics(api):
    return (await api.get("/metrics")).body.decode()


async def test_the_previous_secret_stays_valid_beside_the_new_one(chat, api):
    for secret in ("first", "second", "third"):
        hook = await hook_of(chat, secret=secret)

    statuses = [(await notify(api, hook, MESSAGE, secret=secret))[0] for secret in ("first", "second", "third")]

    assert statuses == [403, 200, 200]


async def test_a_signed_challenge_is_answered(chat, api):
    hook = await hook_of(chat, secret=SECRET)
    body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1a"})

    signed, forged = await notify(api, hook, body), await notify(api, hook, body, secret="other")

    assert (signed[0], json.loads(signed[2])) == (200, {"challenge": "3eZbrw1a"})
    assert forged[0] == 403


async def test_a_handshake_in_a_header_sets_the_secret_and_is_returned(connector_of, api, rows):
    connector = await connector_of("Work-Management")
    hook = await hook_of(connector)
    body = json.dumps({"events": [{"action": "changed", "resource": {"gid": "1", "resource_type": "task"}}]})
    secrets = [hashlib.sha256(text).hexdigest() for text in (b"project 1", b"project 2")]

    answers = [await notify(api, hook, "{}", {"X-Hook-Secret": secret}) for secret in secrets]
    signatures = [hmac.new(secret.encode(), body.encode(), "sha256").hexdigest() for secret in secrets]
    notices = [await notify(api, hook, body, {"X-Hook-Signature": signature}) for signature in signatures]

    assert [(status, headers.get("X-Hook-Secret")) for status, headers, _ in answers] == [
        (200, secret) for secret in secrets
    ]
    assert [status for status, _, _ in notices] == [200, 200]
    assert await rows(CHANGED, connector.record["id"]) == ["tasks"]


@pytest.mark.parametrize("others", [[], [{}] * 200_000])
async def test_a_notice_of_very_many_changes_does_not_hold_the_loop(connector_of, api, rows, others):
    connector = await connector_of("Work-Management")
    hook = await hook_of(connector)
    changes = [{"resource": {"gid": str(number), "resource_type": "task"}} for number in range(15_000)]
    body = json.dumps({"events": [*others, *changes[: len(changes) - len(others) // 20]]}, separators=(",", ":"))
    secret = "a" * 32
    assert (await notify(api, hook, "{}", {"X-Hook-Secret": secret}))[0] == 200
    signature = hmac.new(secret.encode(), body.encode(), "sha256").hexdigest()

    with never_blocked():
        answer = await notify(api, hook, body, {"X-Hook-Signature": signature})

    assert answer[0] == 200
    assert await rows(CHANGED, connector.record["id"]) == ["tasks"]


async def test_a_handshake_is_accepted_for_an_hour_after_the_creation_of_the_hook(connector_of, api, rows):
    connector = await connector_of("Work-Management")
    hook = await hook_of(connector)
    await rows("UPDATE inbound_hooks SET handshake_until = now() WHERE id::text = $1", hook["id"])

    late = await notify(api, hook, "{}", {"X-Hook-Secret": "a" * 32})
    again = await hook_of(connector)
    in_time = await notify(api, again, "{}", {"X-Hook-Secret": "a" * 32})

    assert (late[0], "X-Hook-Secret" in late[1], again["has_secret"]) == (403, False, False)
    assert in_time[0] == 200


async def test_handshakes_end_with_the_first_signed_notice_until_the_hook_is_requested_again(connector_of, api):
    connector = await connector_of("Work-Management")
    hook = await hook_of(connector)
    body = json.dumps({"events": [{"action": "changed", "resource": {"gid": "1", "resource_type": "task"}}]})
    secret = "a" * 32
    signature = hmac.new(secret.encode(), body.encode(), "sha256").hexdigest()

    first = await notify(api, hook, "{}", {"X-Hook-Secret": secret})
    notice = await notify(api, hook, body, {"X-Hook-Signature": signature})
    late = await notify(api, hook, "{}", {"X-Hook-Secret": "b" * 32})
    again = await notify(api, await hook_of(connector), "{}", {"X-Hook-Secret": "b" * 32})

    assert [first[0], notice[0], late[0], again[0]] == [200, 200, 403, 200]


async def test_the_verification_token_of_a_handshake_is_shown(connector_of, api):
    connector = await connector_of("Workspace-Notes")
    hook = await hook_of(connector)

    answer = await notify(api, hook, json.dumps({"verification_token": "secret_tMrlL1qK5vuQ"}), {})
    seen = (await api.get(f"{connector.path}/hook")).document()

    assert (answer[0], seen["verification_token"][:12]) == (200, "secret_tMrlL")


async def test_a_kind_without_webhooks_has_no_hook(connector_of):
    connector = await connector_of("CRM-Query")

    answer = await connector.api.post(f"{connector.path}/hook", {})

    assert (answer.status, "accepts no webhooks" in answer.document(422)["detail"]) == (422, True)


async def test_a_secret_that_is_no_valid_key_is_refused(api):
    connector = await api.connector("Incident-Management", {"api_key": "key"}, validate=False)

    answer = await connector.api.post(f"{connector.path}/hook", {"secret": "whsec_no base64"})

    assert answer.document(422)["errors"][0]["pointer"] == "/secret"


async def test_another_organization_s_connector_has_no_hook(front, chat):
    async with front.api() as stranger:
        assert (await stranger.post(f"{chat.path}/hook", {})).status == 404
        assert (await stranger.get(f"{chat.path}/hook")).status == 404


async def test_a_notice_of_a_kind_that_is_not_served_any_more_is_refused_and_the_log_says_why(chat, api, rows, caplog):
    hook = await hook_of(chat, secret=SECRET)
    await rows("UPDATE connectors SET kind = 'gone' WHERE id::text = $1 RETURNING kind", chat.record["id"])

    refused = await notify(api, hook, MESSAGE)
    shown = await api.get(f"{chat.path}/hook")
    again = await api.post(f"{chat.path}/hook", {})

    assert (refused[0], shown.status) == (403, 200)
    assert again.document(409)["code"] == "connector_not_ready"
    assert "a notice was refused: the kind gone is not served" in caplog.text
