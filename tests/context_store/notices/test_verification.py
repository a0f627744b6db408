"""Notices are verified as the applications' documents have it: their own examples, forged, old and moved about."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from multidict import CIMultiDict

from gateway.context_store.notices.notice import MAX_RECORDS, Notice, NoticedChange, changes_of
from gateway.context_store.notices.verification import delivery_digest
from tests.harness.catalog import shipped_catalog

URL = "https://gateway.example.com/hooks/1"
SLASH_COMMAND = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)


def shipped(kind):
    return shipped_catalog().kind(kind).spec.webhooks


GITHUB, STRIPE, LINEAR, INTERCOM = (shipped(kind) for kind in ("github", "stripe", "linear", "intercom"))


def digest_of(key, signed, algorithm="sha256"):
    return hmac.new(key.encode(), signed.encode(), algorithm)


def hexadecimal(key, signed, algorithm="sha256"):
    return digest_of(key, signed, algorithm).hexdigest()


def base64_of(key, signed):
    return base64.b64encode(digest_of(key, signed).digest()).decode()


AT = 1700000000
ISO = "2023-11-14T22:13:20Z"
HUBSPOT_BODY = '[{"eventId":1,"subscriptionType":"contact.creation","objectId":123}]'
ZENDESK_BODY = '{"type":"zen:event-type:ticket.created","detail":{"id":"5158"}}'
LINEAR_BODY = '{"action":"update","webhookTimestamp":1700000000000}'
AIRTABLE_BODY = '{"base":{"id":"app1"},"webhook":{"id":"ach1"},"timestamp":"2023-11-14T22:13:20.663Z"}'
NOTION_BODY = '{"id":"367cba44","timestamp":"2023-11-14T22:13:20.000Z","type":"page.created"}'
#: spec, secret, time, headers and body; the first three are the documents' own examples
SIGNED = {
    # https://docs.slack.dev/authentication/verifying-requests-from-slack
    "slack": (
        shipped("team-chat"),
        "8f742231b10e8888abcd99yyyzzz85a5",
        1531420618,
        {
            "X-Slack-Request-Timestamp": "1531420618",
            "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        SLASH_COMMAND,
    ),
    # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    "github": (
        GITHUB,
        "It's a Secret to Everybody",
        AT,
        {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
        b"Hello, World!",
    ),
    # https://docs.svix.com/receiving/verifying-payloads/how-manual
    "svix": (
        shipped("incident-management"),
        "whsec_plJ3nmyCDGBKInavdOK15jsl",
        1731705121,
        {
            "webhook-id": "msg_loFOjxBNrRLzqYUf",
            "webhook-timestamp": "1731705121",
            "webhook-signature": "v1a,b3RoZXI= v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
        },
        b'{"event_type":"ping","data":{"success":true}}',
    ),
    "zendesk": (
        shipped("support-desk"),
        "secret",
        AT,
        {
            "X-Zendesk-Webhook-Signature-Timestamp": ISO,
            "X-Zendesk-Webhook-Signature": base64_of("secret", ISO + ZENDESK_BODY),
        },
        ZENDESK_BODY.encode(),
    ),
    "hubspot": (
        shipped("crm-records"),
        "secret",
        AT,
        {
            "X-HubSpot-Request-Timestamp": f"{AT}000",
            "X-HubSpot-Signature-v3": base64_of("secret", f"POST{URL}{HUBSPOT_BODY}{AT}000"),
        },
        HUBSPOT_BODY.encode(),
    ),
    "asana": (
        shipped("work-management"),
        "secret",
        AT,
        {"X-Hook-Signature": hexadecimal("secret", '{"events":[]}')},
        b'{"events":[]}',
    ),
    "notion": (
        shipped("workspace-notes"),
        "secret",
        AT,
        {"X-Notion-Signature": "sha256=" + hexadecimal("secret", NOTION_BODY)},
        NOTION_BODY.encode(),
    ),
    "stripe": (
        STRIPE,
        "whsec_a",
        AT,
        {"Stripe-Signature": f"t={AT},v0=6ffbb59b,v1={'0' * 64},v1={hexadecimal('whsec_a', f'{AT}.{{}}')}"},
        b"{}",
    ),
    "linear": (
        LINEAR,
        "secret",
        AT,
        {"Linear-Signature": hexadecimal("secret", LINEAR_BODY)},
        LINEAR_BODY.encode(),
    ),
    # https://airtable.com/developers/web/api/webhooks-overview; the secret is the key in Base64
    "airtable": (
        shipped("airtable"),
        base64.b64encode(b"secret").decode(),
        AT,
        {"X-Airtable-Content-MAC": f"hmac-sha256={hexadecimal('secret', AIRTABLE_BODY)}"},
        AIRTABLE_BODY.encode(),
    ),
    "intercom": (
        INTERCOM,
        "secret",
        AT,
        {"X-Hub-Signature": "sha1=" + hexadecimal("secret", "{}", "sha1")},
        b"{}",
    ),
}
EVERY = pytest.mark.parametrize(("spec", "secret", "at", "headers", "body"), SIGNED.values(), ids=SIGNED)
TIMED = {name: case for name, case in SIGNED.items() if case[0].timestamp is not None}


def verified(spec, secrets, at, headers, body, url=URL, method="POST"):
    notice = Notice(method, url, CIMultiDict(headers), body)
    return delivery_digest(spec, notice, secrets, datetime.fromtimestamp(at, UTC))


@EVERY
def test_a_signed_notice_passes_whatever_the_case_of_its_headers(spec, secret, at, headers, body):
    as_it_came = verified(spec, [secret], at, headers, body)
    lower = {name.lower(): text for name, text in headers.items()}
    in_lower_case = verified(spec, ["b3RoZXI=", secret], at, lower, body)

    assert as_it_came is not None
    assert in_lower_case == as_it_came


@EVERY
def test_a_forged_notice_does_not_pass(spec, secret, at, headers, body):
    signature = spec.signature.header
    cut = {**headers, signature: headers[signature][:-1]}
    missing = {name: text for name, text in headers.items() if name != signature}

    assert verified(spec, [secret], at, headers, body + b" ") is None
    assert verified(spec, ["b3RoZXI="], at, headers, body) is None
    assert verified(spec, [], at, headers, body) is None
    assert verified(spec, [secret], at, cut, body) is None
    assert verified(spec, [secret], at, missing, body) is None
    assert verified(spec, [secret], at, {**headers, signature: "\udcff é"}, body) is None


@pytest.mark.parametrize(("spec", "secret", "at", "headers", "body"), TIMED.values(), ids=TIMED)
def test_a_notice_of_another_time_does_not_pass(spec, secret, at, headers, body):
    tolerance = spec.timestamp.tolerance

    assert verified(spec, [secret], at + tolerance, headers, body) is not None
    assert verified(spec, [secret], at + tolerance + 1, headers, body) is None
    assert verified(spec, [secret], at - tolerance - 1, headers, body) is None


def test_a_signature_counts_for_the_method_and_the_url_that_it_names():
    spec, secret, at, headers, body = SIGNED["hubspot"]

    assert verified(spec, [secret], at, headers, body, url=URL + "2") is None
    assert verified(spec, [secret], at, headers, body, method="PUT") is None


def test_a_delivery_is_known_by_its_signed_id_else_by_what_was_signed():
    spec, secret, at, _, _ = SIGNED["notion"]

    def digest(body, at=at):
        return verified(
            spec, [secret], at, {"X-Notion-Signature": "sha256=" + hexadecimal(secret, body)}, body.encode()
        )

    attempt = '{"id":"1","timestamp":"2023-11-14T22:13:20Z","attempt_number":%d}'
    assert digest(attempt % 1) == digest(attempt % 2) == hashlib.sha256(b"id 1").digest()
    assert digest('{"timestamp":"2023-11-14T22:13:20Z"}') != digest('{"timestamp":"2023-11-14T22:13:21Z"}')


@pytest.mark.parametrize("text", ["", "never", "1e400", "9" * 40, "-1", "١٧٠٠٠٠٠٠٠٠"])
def test_a_signed_time_that_is_none_does_not_pass(text):
    signed = {"Stripe-Signature": f"t={text},v1={hexadecimal('s', text + '.{}')}"}

    assert verified(STRIPE, ["s"], datetime.now(UTC).timestamp() + timedelta(1).total_seconds(), signed, b"{}") is None


ABOUT = {
    "zendesk": ("support-desk", '{"type":"zen:event-type:user.created","detail":{"id":"7"}}', [("users", "7")]),
    "zendesk ticket": ("support-desk", ZENDESK_BODY, [("tickets", "5158")]),
    "zendesk trigger": ("support-desk", "ticket 7 was solved", [("tickets", "")]),
    "zendesk of no copy": ("support-desk", '{"type":"zen:event-type:agent.state_changed"}', []),
    "hubspot": ("crm-records", '[{"subscriptionType":"contact.creation","objectId":1246965},'
                '{"subscriptionType":"contact.propertyChange","objectId":1246965},'
                '{"subscriptionType":"deal.deletion","objectId":7}]',
                [("contacts", "1246965"), ("deals", "7")]),
    "slack": ("team-chat", '{"type":"event_callback","event":{"type":"channel_rename"}}', [("channels", "")]),
    "slack user": ("team-chat", '{"event":{"type":"user_change","user":{"id":"U1"}}}', [("users", "U1")]),
    "shopify refund": ("shopify", '{"id":9,"order_id":450789469}', [("orders", "450789469")]),
    "asana": ("work-management", '{"events":[{"resource":{"gid":"1","resource_type":"task"}}]}', [("tasks", "1")]),
    "asana story": ("work-management", '{"events":[{"resource":{"gid":"1","resource_type":"story"},'
                    '"parent":{"gid":"2","resource_type":"task"}}]}', [("tasks", "2")]),
    "asana heartbeat": ("work-management", '{"events":[]}', []),
    "incident.io": ("incident-management", '{"event_type":"public_incident.incident_created_v2"}',
                    [("incident_updates", ""), ("incidents", "")]),
    "notion": ("workspace-notes", NOTION_BODY, [("pages", "")]),
    "notion page": ("workspace-notes", '{"type":"page.moved","entity":{"id":"a-b","type":"page"}}', [("pages", "a-b")]),
    "no id": ("support-desk", '{"type":"zen:event-type:user.created","detail":{"id":true}}', [("users", "")]),
    "too long an id": ("support-desk", '{"type":"zen:event-type:user.created","detail":{"id":"%s"}}' % ("7" * 201),
                       [("users", "")]),
    "an id with NUL": ("support-desk", '{"type":"zen:event-type:user.created","detail":{"id":"7\\u0000"}}',
                       [("users", "")]),
    "linear": ("linear", '{"action":"update","type":"Issue","data":{"id":"2174add1"}}', [("issues", "2174add1")]),
    "stripe": ("stripe", '{"type":"invoice.paid","data":{"object":{"id":"in_1"}}}', [("invoices", "in_1")]),
    "stripe dispute": ("stripe", '{"type":"charge.dispute.created","data":{"object":{"id":"dp_1","charge":"ch_1"}}}',
                       [("charges", "ch_1")]),
    "stripe card": ("stripe", '{"type":"customer.source.created","data":{"object":{"id":"card_1"}}}',
                    [("customers", "")]),
    "intercom": ("intercom", '{"topic":"company.created","data":{"item":{"id":"5"}}}', [("companies", "")]),
    "airtable": ("airtable", AIRTABLE_BODY, [("records", ""), ("tables", "")]),
    "sentry": ("sentry", '{"action":"created","data":{"issue":{"id":"1"}}}', [("issues", "")]),
    "no object": ("work-management", '{"events":[1,null,"x"]}', []),
    "deep": ("work-management", "[" * 100_000, []),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "changes"), ABOUT.values(), ids=ABOUT)
def test_a_notice_is_about_the_entities_of_its_type_and_the_records_that_it_names(kind, body, changes):
    headers = {"Sentry-Hook-Resource": "issue", "X-Shopify-Topic": "refunds/create"}
    assert changes_of(shipped(kind), Notice("POST", URL, headers, body.encode())) == changes


def test_a_notice_of_very_many_records_is_about_their_entity():
    spec = shipped("crm-records")
    assert spec is not None

    def notice(count: int) -> Notice:
        events = [{"subscriptionType": "contact.creation", "objectId": number} for number in range(count)]
        return Notice("POST", URL, {}, msgspec.json.encode(events))

    assert len(changes_of(spec, notice(MAX_RECORDS))) == MAX_RECORDS
    assert changes_of(spec, notice(MAX_RECORDS + 1)) == [NoticedChange("contacts")]
