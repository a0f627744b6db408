"""What an approval is bound to, and when enough people have given it."""

from uuid import UUID

import msgspec
import pytest

from gateway.access.policy.model import Approval
from gateway.operations.approvals.model import (
    ApprovalRule,
    ApproverWord,
    Digest,
    RecordChange,
    changes_in,
    is_complete,
    lifetime,
    may_count,
    ranges_of,
    rules_of,
    shows,
)

ADA, BOB, EVE = UUID(int=1), UUID(int=2), UUID(int=3)
REQUEST = {"method": "PUT", "url": "https://acme.example/1", "headers": {"A": "***"}, "body": {"n": 1, "a": "é"}}


def digest_of(*requests, connector=ADA, account=BOB) -> str:
    digest = Digest(connector, account)
    for each in requests:
        digest.add(each)
    return digest.value


def test_a_digest_is_that_of_the_canonical_json():
    # printf '%s' '{"account":"…2","connector_id":"…1","requests":[]}' | openssl dgst -sha256 -binary | base64
    assert digest_of() == "sha-256=:iCWf7r40/BMNA/8Ph1ziOm3O0oqAJ+rF+eU0zHDP1z4=:"


def test_the_order_of_members_changes_no_digest():
    assert digest_of(REQUEST) == digest_of({name: REQUEST[name] for name in sorted(REQUEST, reverse=True)})


@pytest.mark.parametrize(
    "other",
    [
        digest_of({**REQUEST, "body": {"n": 2, "a": "é"}}),
        digest_of({**REQUEST, "url": "https://acme.example/2"}),
        digest_of(REQUEST, REQUEST),
        digest_of(REQUEST, account=EVE),
        digest_of(REQUEST, connector=EVE),
        digest_of({**REQUEST, "body": {"n": 2**70, "a": "é"}}),
        digest_of({**REQUEST, "body": {"n": 1, "a": "é", "absent": None}}),
        digest_of({**REQUEST, "body": {"n": "1", "a": "é"}}),
    ],
)
def test_whatever_differs_has_another_digest(other):
    assert other != digest_of(REQUEST)


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, -(2**53) - 1, 2**70, 10**30])
def test_a_large_whole_number_has_another_digest_than_every_text_and_every_other_number(number):
    text = str(number)
    others = [text, f"\0{text}", f"\0\0{text}", f" {text}", [number], {"n": number}, number + 1, -number, float(number)]

    digests = [digest_of({**REQUEST, "body": {"id": each}}) for each in (number, *others)]

    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("body", "digest"),
    [
        # as above, of {"body":{"id":9007199254740991}} and of {"body":{"id":"9007199254740993","of":[1.5,null,true]}}
        ({"id": 2**53 - 1}, "sha-256=:D2QPJtLsOHS5nN+25EIof8RvL+zU8r1s2sRXxt8kAwc=:"),
        ({"id": "9007199254740993", "of": [1.5, None, True]}, "sha-256=:N+V0rQTHO+Cc/Er1pA5G4KSwh+6bsHEK2o/fkwp7SxE=:"),
    ],
)
def test_ordinary_requests_are_in_plain_canonical_json(body, digest):
    assert digest_of({"body": body}) == digest


def test_the_order_of_requests_and_of_items_is_approved_too():
    other = {**REQUEST, "body": {"items": [1, 2]}}

    assert digest_of(REQUEST, other) != digest_of(other, REQUEST)
    assert digest_of(other) != digest_of({**REQUEST, "body": {"items": [2, 1]}})


def test_one_number_has_one_form():
    assert digest_of({**REQUEST, "body": 1.0}) == digest_of({**REQUEST, "body": 1})


@pytest.mark.parametrize(
    ("indexes", "ranges"), [([], []), ([0], [(0, 1)]), ([0, 1, 2, 5, 7, 8], [(0, 3), (5, 6), (7, 9)])]
)
def test_indexes_are_kept_as_ranges(indexes, ranges):
    assert ranges_of(indexes) == ranges


def word(client_id, *groups) -> ApproverWord:
    return ApproverWord(client_id=client_id, groups=groups)


ANYBODY = ApprovalRule(policy="p", reason="r")
TWO_LEADS = ApprovalRule(policy="q", reason="r", approver_type="Group", approver="leads", count=2)
ONLY_ADA = ApprovalRule(policy="s", reason="r", approver_type="Person", approver=str(ADA))


@pytest.mark.parametrize(
    ("rules", "approvers", "complete"),
    [
        ([ANYBODY], [], False),
        ([ANYBODY], [word(ADA)], True),
        ([TWO_LEADS], [word(ADA, "leads"), word(BOB)], False),
        ([TWO_LEADS], [word(ADA, "leads"), word(BOB, "leads")], True),
        ([ANYBODY, TWO_LEADS], [word(EVE)], False),
        ([ONLY_ADA, TWO_LEADS], [word(ADA, "leads"), word(BOB, "leads")], True),
        ([ONLY_ADA, TWO_LEADS], [word(EVE, "leads"), word(BOB, "leads")], False),
    ],
)
def test_every_rule_needs_its_approvers(rules, approvers, complete):
    assert is_complete(rules, approvers) is complete


@pytest.mark.parametrize(
    ("rules", "approver", "counts"),
    [
        ([TWO_LEADS], word(ADA), False),
        ([TWO_LEADS], word(ADA, "leads"), True),
        ([ONLY_ADA], word(BOB, "leads"), False),
        ([ONLY_ADA, ANYBODY], word(BOB), True),
    ],
)
def test_an_approver_whom_no_rule_names_does_not_count(rules, approver, counts):
    assert may_count(rules, approver) is counts


def test_the_annotations_of_statements_become_rules():
    approvals = [
        Approval(policy="a", reason="one"),
        Approval(policy="b", reason="two", approvers='Group::"leads", 2'),
        Approval(policy="c", reason="three", approvers=f'Person::"{ADA}"'),
    ]

    assert rules_of([*approvals, approvals[0]]) == (
        ApprovalRule(policy="a", reason="one"),
        ApprovalRule(policy="b", reason="two", approver_type="Group", approver="leads", count=2),
        ApprovalRule(policy="c", reason="three", approver_type="Person", approver=str(ADA)),
    )


@pytest.mark.parametrize(
    ("expires", "seconds"), [([None], 86_400), (["4h", None], 14_400), (["2d", "30m"], 1800), ([], 86_400)]
)
def test_an_approval_lives_as_long_as_the_shortest_statement_says(expires, seconds):
    approvals = [Approval(policy="p", reason="r", expires=each) for each in expires]

    assert lifetime(approvals, 86_400) == seconds


@pytest.mark.parametrize(
    ("found", "written", "changes"),
    [
        ({"status": "open"}, {"ticket": {"status": "solved"}}, [("ticket.status", "open", "solved")]),
        ({"ticket": {"status": "open"}}, {"ticket": {"status": "solved"}}, [("ticket.status", "open", "solved")]),
        ({"status": "solved"}, {"ticket": {"status": "solved"}}, []),
        ({"name": "a"}, {"name": "b", "size": 1}, [("name", "a", "b"), ("size", None, 1)]),
        ({}, {}, []),
    ],
)
def test_changes_are_the_members_whose_value_becomes_another(found, written, changes):
    what = "tickets.update"
    expected = [
        RecordChange(record="1", member=member, old=old, new=new, operation=what) for member, old, new in changes
    ]

    assert changes_in(what, "1", found, written) == expected


@pytest.mark.parametrize(
    ("member", "old", "redacted", "is_shown"),
    [
        ("ticket.subject", "a", ["subject"], False),
        ("ticket.status", "a", ["subject"], True),
        ("ticket.subject", "a", ["ticket.subject"], False),
        ("subject", "a", ["subject"], False),
        ("properties.email", "a", ["properties.email"], False),
        ("properties.email", "a", ["*.email"], False),
        ("status", "a", ["*.email"], True),
        ("status", "a", ["*"], False),
        ("ticket.via", {"source": {"from": "a"}}, ["via.source.*"], False),
        ("ticket.via", "web", ["via.source.*"], True),
        ("people", [{"email": "a"}], ["people.email"], False),
        ("status", "a", [], True),
    ],
)
def test_a_change_of_a_redacted_member_is_not_shown(member, old, redacted, is_shown):
    change = RecordChange(record="1", member=member, old=old, new="b")

    assert shows(change, redacted) is is_shown
    assert shows(RecordChange(record="1", member=member, old="b", new=old), redacted) is is_shown


def test_of_a_large_value_its_length_and_its_digest_are_kept_and_compared():
    found = {"text": "x" * 10_000, "list": [{"b": 1, "a": "y" * 5000}], "short": "x" * 100}
    written = {"text": "z" * 10_000, "list": [], "short": "new"}

    changes = {each.member: each for each in changes_in("items.update", "1", found, written)}
    same = changes_in("items.update", "1", {**found, "list": [{"a": "y" * 5000, "b": 1}]}, written)
    other = changes_in("items.update", "1", {**found, "text": "x" * 9999 + "y"}, written)

    assert len(msgspec.json.encode(list(changes.values()))) < 1500
    assert (changes["short"].old, changes["list"].new, changes["text"].old["bytes"]) == ("x" * 100, [], 10_002)
    assert same == list(changes.values())
    assert other != same


def test_a_record_has_a_bounded_number_of_changes():
    written = {str(number): number for number in range(1000)}

    assert len(changes_in("items.update", "1", {}, written)) == 100
