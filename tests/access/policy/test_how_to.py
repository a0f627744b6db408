"""The policies of docs/how-to/policies.md: each is valid, allows what it should allow, and denies the rest."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.access.policy.decision import DecidedSet
from gateway.access.policy.language import checked
from gateway.access.policy.model import Counted, History, PolicyCall, Verdict
from gateway.access.policy.paths import first_telling
from gateway.contract.policies import Surface
from gateway.upstream.field_selection import EVERYTHING as EVERY_FIELD
from gateway.upstream.field_selection import selector
from gateway.upstream.prepared import prepare
from tests.access.policy.conftest import CLIENT, EVERYTHING, TARGET

DOCUMENT = Path(__file__).parents[3] / "docs/how-to/policies.md"
POLICIES = dict(re.findall(r"### ([^\n]+)\n\n```cedar\n(.+?)```", DOCUMENT.read_text("utf-8"), re.DOTALL))
NOON, NIGHT = datetime(2026, 3, 2, 12, tzinfo=UTC), datetime(2026, 3, 2, 22, tzinfo=UTC)
LIST, GET = ("tickets.list", {}), ("tickets.get", {"ticket_id": 1})
UPDATE = ("tickets.update", {"ticket_id": 1, "ticket": {"status": "solved"}})
CREATE = ("tickets.create", {"ticket": {"subject": "Fire", "comment": {"body": "It burns"}}})
MESSAGE = {"text": "Hello"}
REFUNDED = History(sums={"amount": Counted(Decimal(0), Decimal(90_000))})
#: heading → a call that is allowed, and one that is denied; a call: kind, operation, params and what differs
CASES = {
    "Everything that scopes allow": (("support-desk", *UPDATE, {}), None),
    "An agent that only reads": (("support-desk", *LIST, {}), ("support-desk", *UPDATE, {})),
    "An agent that works in one workspace": (
        ("support-desk", *LIST, {}),
        ("support-desk", *LIST, {"target": replace(TARGET, workspace_name="apac")}),
    ),
    "Nobody deletes": (
        ("freshdesk", "tickets.list", {}, {}),
        ("freshdesk", "tickets.delete", {"id": 1}, {}),
    ),
    "Refunds up to a limit": (
        ("stripe", "refunds.create", {"charge": "ch_1", "amount": 10_000}, {}),
        ("stripe", "refunds.create", {"charge": "ch_1"}, {}),
    ),
    "Agents do not close tickets": (
        ("support-desk", *UPDATE, {}),
        ("support-desk", *UPDATE, {"surface": Surface.MCP}),
    ),
    "Writes in working hours": (("support-desk", *CREATE, {}), ("support-desk", *CREATE, {"now": NIGHT})),
    "Refunds above a daily sum need a person": (
        ("stripe", "refunds.create", {"charge": "ch_1", "amount": 10_000}, {"history": REFUNDED}),
        ("stripe", "refunds.create", {"charge": "ch_1", "amount": 10_001}, {"history": REFUNDED}),
    ),
    "A slow agent": (
        ("support-desk", *LIST, {"history": History(calls=Counted(Decimal(499), Decimal(900)))}),
        ("support-desk", *LIST, {"history": History(calls=Counted(Decimal(500), Decimal(500)))}),
    ),
    "Messages only to some channels": (
        ("team-chat", "messages.create", {**MESSAGE, "channel": "C-SUPPORT"}, {}),
        ("team-chat", "messages.create", {**MESSAGE, "channel": "C-GENERAL"}, {}),
    ),
}


def decision_of(catalog, schema, cedar, kind, operation, params, members):
    base = "" if "permit(" in cedar else EVERYTHING
    entity, _, action = operation.partition(".")
    prepared = prepare(catalog.kind(kind).operation(entity, action), params)
    usual = {"client_id": CLIENT, "target": replace(TARGET, kind=kind), "surface": Surface.HTTP}
    given = {name: value for name, value in members.items() if name != "now"}
    call = PolicyCall(
        **{**usual, **given},
        entity=entity,
        action=action,
        effect=prepared.effect,
        params=prepared.params,
        operation=prepared.operation,
    )
    return DecidedSet(checked("main", base + cedar, schema)).decide(call, members.get("now", NOON))


def test_the_document_says_what_a_redacted_name_matches():
    rows = re.findall(r"^\| (`[^|]+) \| (yes|no) \| (yes|no) \|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    said = {
        name: (left_out == "yes", refused == "yes")
        for names, left_out, refused in rows
        for name in re.findall("`(.+?)`", names)
    }
    leave_out = selector(EVERY_FIELD.redacting(["email"]))

    found = {name: (leave_out({name: 1}) == {}, first_telling(["email"], {name: 1}) == name) for name in said}

    assert len(said) > 8
    assert found == said


def test_every_policy_of_the_document_is_tried():
    assert POLICIES.keys() == CASES.keys()


@pytest.mark.parametrize("heading", CASES)
def test_a_policy_of_the_document_allows_and_denies_what_its_heading_says(catalog, schema, heading):
    allowed, denied = CASES[heading]

    assert decision_of(catalog, schema, POLICIES[heading], *allowed).verdict is Verdict.ALLOW
    if denied is not None:
        assert decision_of(catalog, schema, POLICIES[heading], *denied).verdict is not Verdict.ALLOW
