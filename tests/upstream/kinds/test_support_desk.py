"""Support desk, beside what is tested of every kind: effects, bulk updates, audits and files."""

import pytest
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import InvalidCredentials
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.upstream.prepared import effect_of
from gateway.upstream.requests import checked_environment
from tests.upstream.kinds.tables.support_desk import API_TOKEN, ENVIRONMENT, ORIGIN

KIND = load_kind(shipped_specs() / "support-desk")


def test_null_clears_when_a_ticket_is_due():
    operation = KIND.operation("tickets", "update")

    sent = validated(operation, {"ticket_id": 1, "ticket": {"due_at": None}})

    assert sent["ticket"] == {"due_at": None}


def test_a_bulk_update_of_250_tickets_goes_out_in_three_batches(offline):
    ids = [str(number) for number in range(1, 251)]

    shown = offline("support-desk", **ENVIRONMENT).dry_run(
        "ticket_bulk_updates", "create", {"ids": ",".join(ids), "ticket": {"status": "solved"}}
    )

    batches = [URL(request["url"]).query["ids"].split(",") for request in shown]
    assert [len(batch) for batch in batches] == [100, 100, 50]
    assert [ticket for batch in batches for ticket in batch] == ids


@pytest.mark.parametrize(
    ("action", "params", "effect"),
    [
        ("tickets.list", {}, Effect.READ),
        ("tickets.create", {"ticket": {"subject": "x"}}, Effect.WRITE),
        ("tickets.update", {"ticket_id": 1, "ticket": {"status": "open"}}, Effect.IDEMPOTENT),
        ("tickets.update", {"ticket_id": 1, "ticket": {"comment": {"body": "x"}}}, Effect.WRITE),
        ("tickets.update", {"ticket_id": 1, "ticket": {"comment": {}}}, Effect.WRITE),
        ("ticket_comments.create", {"ticket_id": 1, "ticket": {"comment": {"body": "x"}}}, Effect.WRITE),
        ("ticket_bulk_updates.create", {"ids": "1", "ticket": {}}, Effect.IDEMPOTENT),
        ("users.create", {"user": {"name": "x"}}, Effect.WRITE),
        ("users.update", {"user_id": 1, "user": {}}, Effect.IDEMPOTENT),
    ],
)
def test_what_a_call_twice_would_do(action, params, effect):
    assert effect_of(KIND.operation(*action.split(".")), params) is effect


@pytest.mark.parametrize("action", ["tickets.create", "ticket_comments.create", "users.create"])
def test_what_is_created_can_be_looked_up_when_its_answer_is_lost(action):
    found_by = KIND.operation(*action.split(".")).action.find_by

    assert KIND.operation(*found_by.split(" ")[0].split(".")).is_list


async def test_the_audits_of_the_account_turn_to_older_ones_until_there_are_none(upstream, connect):
    # The example of the application's own API description: 1501607522 is later than 1501575122.
    newer, older = "fDE1MDE2MDc1MjJ8fA==", "fDE1MDE1NzUxMjJ8fA=="
    address = f"{ORIGIN}/api/v2/ticket_audits.json?cursor="
    first = {"after_url": f"{address}{newer}", "after_cursor": newer, "before_url": f"{address}{older}"}
    upstream.answers({"audits": [{"id": 2}], **first, "before_cursor": older})
    upstream.answers({"audits": [{"id": 1}], **first, "before_url": None, "before_cursor": None})
    connector = connect("support-desk", API_TOKEN, **ENVIRONMENT)

    pages = [page async for page in connector.pages("ticket_audits", "list", {"limit": 1})]

    assert [page.decoded() for page in pages] == [[{"id": 2}], [{"id": 1}]]
    assert pages[0].meta == {
        "next_page": f"{address}{older}",
        "previous_page": f"{address}{newer}",
        "count": None,
        "after_cursor": newer,
        "before_cursor": older,
    }
    assert [asked.url.raw_path_qs for asked in upstream.received] == [
        "/api/v2/ticket_audits.json?limit=1",
        "/api/v2/ticket_audits.json?limit=1&cursor=fDE1MDE1NzUxMjJ8fA%3D%3D",
    ]


@pytest.mark.parametrize(
    "subdomain", ["", "a.b", "acme.evil.example/", "acme#", "acme@evil", "-acme", "acme-", "ACME", "a" * 64, "acme\n"]
)
def test_a_subdomain_is_one_dns_label(subdomain):
    with pytest.raises(InvalidCredentials, match="DNS label"):
        checked_environment(KIND.spec, {"subdomain": subdomain})


@pytest.mark.parametrize(
    ("entity", "record"), [("attachments", "attachment"), ("article_attachments", "article_attachment")]
)
def test_a_files_address_lies_in_its_record(entity, record):
    download = KIND.operation(entity, "download").action.download

    assert (download.url, download.size, download.name, download.content_type) == (
        (record, "content_url"),
        (record, "size"),
        (record, "file_name"),
        (record, "content_type"),
    )


@pytest.mark.parametrize(
    ("entity", "action", "params"),
    [
        ("tickets", "update", {"ticket_id": 7, "ticket": {"assignee_id": None}}),
        ("ticket_bulk_updates", "create", {"ids": "7", "ticket": {"assignee_id": None}}),
    ],
)
def test_a_ticket_can_be_unassigned(entity, action, params):
    given = validated(KIND.operation(entity, action), params)

    assert given["ticket"] == {"assignee_id": None}
