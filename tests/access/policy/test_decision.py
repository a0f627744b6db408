"""Decisions of policies: a table of cases, and Cedar's own answer over the whole set."""

import dataclasses
import json
import random
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import cedarpy
import pytest
from msgspec.structs import replace

from gateway.access.policy.decision import DecidedSet
from gateway.access.policy.language import Schema, checked, statements_of
from gateway.access.policy.model import Counted, History, PolicyCall, Verdict
from gateway.access.policy.point import about
from gateway.access.policy.schema import document
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.kinds.catalog import Catalog, Kind
from tests.access.policy.conftest import CLIENT, CONNECTOR, EVERYTHING, TARGET
from tests.harness.blocked_loop import LIMIT, divided, never_blocked
from tests.harness.work import seconds_at_most
from tests.kinds.small_kind import small_operation

NOW = datetime(2026, 11, 26, 14, 30, tzinfo=UTC)
UPDATE = ("tickets.update", {"ticket_id": 7, "ticket": {"status": "solved"}})
CREATE = ("tickets.create", {"ticket": {"subject": "Fire", "comment": {"body": "It burns"}}})
LIST = ("tickets.list", {})
OTHER = UUID(int=9)


def decided(schema, text, call):
    return DecidedSet(checked("main", text, schema)).decide(call, NOW)


@pytest.mark.parametrize(
    ("text", "call", "verdict", "policies"),
    [
        (EVERYTHING, LIST, "allow", ("main",)),
        ('@id("all") permit(principal, action, resource);', LIST, "allow", ("all",)),
        ('permit(principal, action in Action::"read", resource);', LIST, "allow", ("main",)),
        ('permit(principal, action in Action::"read", resource);', UPDATE, "deny", ()),
        ('permit(principal, action in [Action::"idempotent", Action::"read"], resource);', UPDATE, "allow", ("main",)),
        ('permit(principal, action == Action::"support-desk.tickets.list", resource);', LIST, "allow", ("main",)),
        ('permit(principal, action == Action::"support-desk.tickets.get", resource);', LIST, "deny", ()),
        (f'permit(principal == Client::"{CLIENT}", action, resource);', LIST, "allow", ("main",)),
        (f'permit(principal == Client::"{OTHER}", action, resource);', LIST, "deny", ()),
        (f'permit(principal, action, resource == Connector::"{CONNECTOR}");', LIST, "allow", ("main",)),
        ('permit(principal, action, resource in Workspace::"emea");', LIST, "allow", ("main",)),
        ('permit(principal, action, resource in Workspace::"apac");', LIST, "deny", ()),
        ('permit(principal, action, resource is Connector in Kind::"support-desk");', LIST, "allow", ("main",)),
        ('permit(principal, action, resource) when { resource.name == "Desk" };', LIST, "allow", ("main",)),
        ('permit(principal, action, resource) unless { resource.name like "De*" };', LIST, "deny", ()),
        ('permit(principal, action, resource) when { context.surface == "mcp" };', LIST, "deny", ()),
        (
            'permit(principal, action, resource) when { context.time.toTime() < duration("15h") };',
            LIST,
            "allow",
            ("main",),
        ),
        ('permit(principal, action, resource) when { context.time.toTime() < duration("9h") };', LIST, "deny", ()),
        (
            f"""{EVERYTHING}
            @id("no-closing") @advice("Ask a lead.")
            forbid(principal, action == Action::"support-desk.tickets.update", resource)
            when {{ context.params.ticket has status && context.params.ticket.status == "solved" }};""",
            UPDATE,
            "deny",
            ("no-closing",),
        ),
        (
            f"""{EVERYTHING} forbid(principal, action in Action::"write", resource)
            when {{ context.params has ticket && context.params.ticket has status
                    && context.params.ticket.status == "open" }};""",
            UPDATE,
            "allow",
            ("main",),
        ),
        (
            f"""{EVERYTHING} @id("few") forbid(principal, action == Action::"support-desk.tickets.list", resource)
            when {{ context.params has per_page && context.params.per_page > 50 }};""",
            ("tickets.list", {"per_page": 51}),
            "deny",
            ("few",),
        ),
        (f'{EVERYTHING} @approval("Money") permit(principal, action, resource);', LIST, "approve", ("main",)),
        (
            f'{EVERYTHING} @id("ask") @requireApproval("Mail") forbid(principal, action, resource);',
            LIST,
            "approve",
            ("ask",),
        ),
        ('@approval("Mail") forbid(principal, action, resource);', LIST, "deny", ()),
        (
            f'{EVERYTHING} @approval("Mail") forbid(principal, action, resource);'
            '@id("hard") forbid(principal, action, resource);',
            LIST,
            "deny",
            ("hard",),
        ),
    ],
)
def test_the_decision_is_that_of_cedar_and_of_its_annotations(schema, call_of, text, call, verdict, policies):
    decision = decided(schema, text, call_of(*call))

    assert (decision.verdict, decision.policies) == (verdict, policies)


def test_a_forbid_that_errs_denies(schema, call_of):
    text = f"""{EVERYTHING} @id("sum") forbid(principal, action == Action::"support-desk.tickets.list", resource)
        when {{ context.params has per_page && context.params.per_page * 4611686018427387904 > 1 }};"""

    decision = decided(schema, text, call_of("tickets.list", {"per_page": 100}))

    assert (decision.verdict, decision.policies) == (Verdict.DENY, ("sum",))


def test_a_permit_that_errs_does_not_apply(schema, call_of):
    text = """permit(principal, action == Action::"support-desk.tickets.list", resource)
        when { context.params has per_page && context.params.per_page * 4611686018427387904 > 1 };"""

    assert decided(schema, text, call_of("tickets.list", {"per_page": 100})).verdict is Verdict.DENY


def test_the_strictest_annotation_counts_and_redactions_add_up(schema, call_of):
    text = """
        @id("a") @redact("email, *.phone") permit(principal, action, resource);
        @id("b") @redact("name") @approval("Personal data") @approvers("Group::\\"leads\\", 2") @expires("4h")
        permit(principal, action, resource);
    """

    decision = decided(schema, text, call_of())

    assert decision.verdict is Verdict.APPROVE
    assert decision.redact == ("*.phone", "email", "name")
    [approval] = decision.approvals
    assert (approval.policy, approval.reason, approval.expires) == ("b", "Personal data", "4h")
    assert approval.approvers == 'Group::"leads", 2'


def test_the_advice_of_the_deciding_forbid_is_given(schema, call_of):
    text = f'{EVERYTHING} @advice("Ask a lead.") forbid(principal, action in Action::"idempotent", resource);'

    assert decided(schema, text, call_of(*UPDATE)).advice == "Ask a lead."


@pytest.mark.parametrize(
    ("text", "always"),
    [
        (EVERYTHING, Verdict.ALLOW),
        ('permit(principal, action == Action::"support-desk.tickets.get", resource);', Verdict.DENY),
        (f"{EVERYTHING} forbid(principal, action, resource);", Verdict.DENY),
        (f'{EVERYTHING} forbid(principal, action, resource) when {{ context.surface == "mcp" }};', None),
        ('forbid(principal, action, resource) when { context.surface == "mcp" };', Verdict.DENY),
        (
            'permit(principal, action, resource) when { context.surface == "mcp" };'
            "forbid(principal, action, resource);",
            Verdict.DENY,
        ),
    ],
)
def test_a_decision_that_depends_on_no_context_is_known_before_the_call(schema, call_of, text, always):
    decision = DecidedSet(checked("main", text, schema)).always(call_of())

    assert (decision and decision.verdict) == always


def test_a_number_that_cedar_cannot_hold_is_denied_if_a_policy_reads_it(catalog, schema, call_of):
    text = f"""{EVERYTHING} forbid(principal, action == Action::"support-desk.tickets.get", resource)
        when {{ context.params.ticket_id == 1 }};"""
    too_large = replace(call_of("tickets.get", {"ticket_id": 7}), params={"ticket_id": 2**70})

    assert decided(schema, text, too_large).verdict is Verdict.DENY


def _with(call_of, **members):
    return call_of("tickets.create", {"ticket": {"subject": "Fire", "comment": {"body": "It burns"}, **members}})


@pytest.mark.parametrize("effect", ["permit", "forbid"])
@pytest.mark.parametrize(
    ("members", "is_read"),
    [
        ({"subject": "a" * 65_536}, True),
        ({"subject": "a" * 65_537}, False),
        ({"tags": [str(number) for number in range(5_000)]}, True),
        ({"tags": [str(number) for number in range(5_001)]}, False),
        ({"tags": ["a" * 40_000, "b" * 30_000]}, False),
        ({"subject": "a" * 40_000, "tags": ["b" * 30_000]}, False),
    ],
    ids=["text", "long text", "elements", "many elements", "long elements", "together"],
)
def test_params_that_a_policy_reads_and_that_are_too_large_are_denied(schema, call_of, effect, members, is_read):
    read = 'context.params.ticket has subject && context.params.ticket.subject == "x"'
    tags = 'context.params.ticket has tags && context.params.ticket.tags.contains("x")'
    text = {
        "permit": f"permit(principal, action, resource) unless {{ ({read}) || ({tags}) }};",
        "forbid": f"{EVERYTHING} forbid(principal, action, resource) when {{ ({read}) || ({tags}) }};",
    }[effect].replace("action,", 'action == Action::"support-desk.tickets.create",')

    verdict = decided(schema, text, _with(call_of, **members)).verdict

    assert verdict is (Verdict.ALLOW if is_read else Verdict.DENY)


@pytest.mark.parametrize("condition", ['has status && context.params.ticket.status == "x"', "has external_id"])
def test_params_that_no_policy_reads_may_be_large(schema, call_of, condition):
    text = f"""{EVERYTHING} forbid(principal, action == Action::"support-desk.tickets.create", resource)
        when {{ context.params.ticket {condition} }};"""
    call = _with(call_of, subject="a" * 100_000, tags=["a"] * 10_000, status="new")

    assert decided(schema, text, call).verdict is Verdict.ALLOW


def test_a_member_that_a_policy_asks_for_is_known_by_its_presence(schema, call_of):
    text = f"""{EVERYTHING} forbid(principal, action == Action::"support-desk.tickets.create", resource)
        when {{ context.params.ticket has comment }};"""
    call = _with(call_of, comment={"body": "a" * 100_000})

    assert decided(schema, text, call).verdict is Verdict.DENY
    assert decided(schema, text.replace("has comment", "has type"), call).verdict is Verdict.ALLOW


@pytest.mark.parametrize("members", [{"subject": "a" * 100_000}, {"tags": ["a"] * 10_000}], ids=["text", "elements"])
def test_a_param_that_policies_only_ask_for_may_be_large(schema, call_of, members):
    (name,) = members
    text = f"""{EVERYTHING} forbid(principal, action == Action::"support-desk.tickets.create", resource)
        when {{ context.params.ticket has {name} && context.surface == "mcp" }};"""

    assert decided(schema, text, _with(call_of, **members)).verdict is Verdict.ALLOW
    assert decided(schema, text, replace(_with(call_of, **members), surface=Surface.MCP)).verdict is Verdict.DENY


@pytest.mark.parametrize("is_list", [True, False], ids=["elements", "members"])
def test_decimals_that_a_policy_reads_take_bounded_time(is_list):
    number = {"type": "number", "description": "a number"}
    names = [f"m{place}" for place in range(5_000)]
    of_list, of_record = (
        {"type": "array", "items": number},
        {"type": "object", "properties": dict.fromkeys(names, number)},
    )
    param = {**(of_list if is_list else of_record), "description": "numbers"}
    kind = Kind(small_operation({"request": "POST /things", "effect": "write", "params": {"d": param}}).spec)
    condition = "context.params has d && context.params.d == context.params.d && context.approved"
    text = f'{EVERYTHING} forbid(principal, action == Action::"small.things.act", resource) when {{ {condition} }};'
    statements = DecidedSet(checked("main", text, Schema.of(document(Catalog([kind])))))

    def call(count):
        values = [place / 8 for place in range(count)]
        return PolicyCall(
            client_id=CLIENT,
            target=replace(TARGET, kind="small"),
            entity="things",
            action="act",
            effect=Effect.WRITE,
            surface=Surface.HTTP,
            params={"d": values if is_list else dict(zip(names, values, strict=False))},
            operation=kind.operation("things", "act"),
        )

    assert statements.decide(call(1_000), NOW).verdict is Verdict.ALLOW
    with seconds_at_most(LIMIT):
        assert statements.decide(call(5_000), NOW).verdict is Verdict.DENY


_LIKE, _TAGS = 'context.params.ticket.subject like "*%sb"', "context.params.ticket.tags"


def _listed(expression, times):
    return f"[{', '.join([expression] * times)}]"


@pytest.mark.parametrize(
    ("condition", "members"),
    [
        (_listed(_LIKE % ("a" * 197), 200), {"subject": "a" * 65_536}),
        (_listed(_LIKE % ("a" * 50_000), 1), {"subject": "a" * 65_536}),
        (_listed(f"{_TAGS}.containsAll({_TAGS})", 700), {"tags": list(map(str, range(5_000)))}),
        (_listed(_TAGS, 1_000), {"tags": list(map(str, range(5_000)))}),
    ],
    ids=["many patterns", "a long pattern that is stored", "many comparisons", "a set of arrays"],
)
def test_the_more_a_policy_compares_the_less_it_reads(call_of, condition, members):
    text = f"""{EVERYTHING} forbid(principal, action == Action::"support-desk.tickets.create", resource)
        when {{ {condition} == [] }};"""
    decided = DecidedSet([each for number in range(8) for each in statements_of(f"p{number}", text)])
    decided.about(_with(call_of))

    assert decided.decide(_with(call_of, **members), NOW).verdict is Verdict.DENY
    small = _with(call_of, **{name: value[:2] for name, value in members.items()})
    assert decided.decide(small, NOW).verdict is Verdict.ALLOW


def test_a_record_of_any_names_is_no_access_to_the_context(call_of):
    text = f'{EVERYTHING} forbid(principal, action, resource) when {{ {{".": context.surface}} == {{".": "x"}} }};'

    assert DecidedSet(statements_of("main", text)).decide(call_of(), NOW).verdict is Verdict.ALLOW


def test_a_kind_that_changed_is_decided_by_its_new_types(catalog, schema, call_of):
    text = f"""{EVERYTHING} forbid(principal, action == Action::"support-desk.tickets.list", resource)
        when {{ context.params has per_page && context.params.per_page > 50 }};"""
    sets, call = DecidedSet(checked("main", text, schema)), call_of("tickets.list", {"per_page": 60})
    spec = call.operation.spec.model_copy()

    before, now = sets.about(call), sets.about(replace(call, operation=dataclasses.replace(call.operation, spec=spec)))

    assert before is not now
    assert sets.decide(call, NOW).verdict is Verdict.DENY


@pytest.mark.parametrize("seed", range(5))
def test_random_requests_are_decided_as_cedar_decides_over_the_whole_set(call_of, seed):
    """10,000 requests, decided by the policies of five organizations."""
    chance = random.Random(seed)
    text = "\n".join(_statement(chance) for _ in range(60))
    ours, whole = DecidedSet(statements_of("x", text)), cedarpy.PolicySet.from_str(text)
    calls = [_call(chance, call_of) for _ in range(2000)]

    verdicts = [ours.decide(call, NOW).verdict for call in calls]

    differing = [
        call
        for call, verdict in zip(calls, verdicts, strict=True)
        if (verdict is Verdict.ALLOW) != _of_cedar(whole, ours, call)
    ]
    assert differing == []
    assert len(set(verdicts)) == 2


def _statement(chance):
    effect = chance.choice(["permit", "permit", "forbid"])
    client = UUID(int=chance.randrange(6))
    principal = chance.choice(["principal", f'principal == Client::"{client}"'])
    action = chance.choice(
        [
            'action in Action::"read"',
            'action in [Action::"idempotent"]',
            'action == Action::"support-desk.tickets.list"',
        ]
    )
    resource = chance.choice(
        ["resource", f'resource in Workspace::"w{chance.randrange(4)}"', 'resource in Kind::"jira"']
    )
    condition = chance.choice(
        [
            f'context.surface == "{chance.choice(["http", "mcp"])}"',
            f"context.params has per_page && context.params.per_page > {chance.randrange(100)}",
            f'resource.name == "n{chance.randrange(3)}"',
            f"context.params has ticket_id && context.params.ticket_id == {chance.randrange(5)}",
        ]
    )
    word = chance.choice(["when", "when", "unless"])
    narrow = f' when {{ principal == Client::"{client}" }}' if effect == "permit" or chance.random() < 0.9 else ""
    return f"{effect}({principal}, {action}, {resource}){narrow} {word} {{ {condition} }};"


def _call(chance, call_of):
    operation, params = chance.choice(
        [
            ("tickets.list", {"per_page": chance.randrange(1, 100)}),
            ("tickets.get", {"ticket_id": chance.randrange(5)}),
            ("tickets.update", {"ticket_id": chance.randrange(5), "ticket": {"status": "open"}}),
        ]
    )
    target = replace(TARGET, workspace_name=f"w{chance.randrange(3)}", name=f"n{chance.randrange(2)}")
    surface = chance.choice([Surface.HTTP, Surface.MCP])
    return call_of(operation, params, surface, UUID(int=chance.randrange(4)), target)


def _of_cedar(whole, ours, call):
    """Whether Cedar allows the call by the whole text, with all params."""
    about = ours.about(call)
    context = {"params": {**call.params}, "surface": call.surface.value}
    request = {**about.request, "context": json.dumps(context)}
    return cedarpy.is_authorized(request, whole, cedarpy.Entities.from_json_str(json.dumps(about.entities))).allowed


@pytest.mark.parametrize(
    ("scope", "is_client", "is_person", "is_in_session"),
    [
        (f'principal == Person::"{CLIENT}"', False, True, True),
        (f'principal == Client::"{CLIENT}"', True, False, False),
        ('principal in Group::"leads"', False, True, True),
        ('principal in Group::"interns"', False, False, False),
        (f'principal in Client::"{OTHER}"', False, False, True),
        ("principal is Person", False, True, True),
        ('principal is Person in Group::"leads"', False, True, True),
        ("principal", True, True, True),
    ],
)
def test_a_person_is_a_principal_of_its_own_in_groups_and_in_the_client_that_acts(
    schema, call_of, scope, is_client, is_person, is_in_session
):
    text = f"permit({scope}, action, resource);"
    person = replace(call_of(), groups=("leads", "staff"))

    allowed = [
        decided(schema, text, call).verdict is Verdict.ALLOW
        for call in (call_of(), person, replace(person, acting_client_id=OTHER))
    ]

    assert allowed == [is_client, is_person, is_in_session]


def counted(today: float, last_hour: float = 0) -> Counted:
    return Counted(Decimal(last_hour), Decimal(today))


HISTORY = History(
    calls=counted(90, 7), writes=counted(3, 1), sums={"per_page": counted(50, 20), "ticket.x": counted(1)}
)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("context.calls.today == 90 && context.calls.last_hour == 7", True),
        ("context.writes.today >= 3 && context.writes.last_hour < 2", True),
        ("context.writes.today > 3", False),
        ("context.sum.per_page.today + 1 == 51", True),
        ("context.sum.per_page.last_hour > 20", False),
        ("context.sum has per_page && context.sum.per_page.last_hour == 20", True),
        ("context.approved", False),
    ],
)
def test_what_a_client_has_called_before_is_known_to_policies(schema, call_of, condition, holds):
    text = f'permit(principal, action == Action::"support-desk.tickets.list", resource) when {{ {condition} }};'

    decision = decided(schema, text, replace(call_of(), history=HISTORY))

    assert (decision.verdict is Verdict.ALLOW) == holds


def test_sums_of_a_param_that_the_operation_does_not_have_are_no_error(schema, call_of):
    text = f"{EVERYTHING} forbid(principal, action, resource) when {{ context.approved }};"
    policy = f"""{text} forbid(principal, action == Action::"support-desk.tickets.list", resource)
        when {{ context.sum.per_page.today > 1 }};"""

    decision = decided(schema, policy, replace(call_of("tickets.get", {"ticket_id": 1}), history=HISTORY))

    assert decision.verdict is Verdict.ALLOW


def test_an_approval_is_known_to_policies(schema, call_of):
    text = "permit(principal, action, resource) when { context.approved };"

    assert decided(schema, text, replace(call_of(), is_approved=True)).verdict is Verdict.ALLOW


async def test_a_decision_by_many_statements_does_not_hold_the_loop(call_of):
    one = 'forbid(principal, action, resource) when { context.surface == "x" && context.approved };'
    statements = [each for _ in range(27) for each in statements_of("main", one * 200)]  # 512 Ki characters
    decided = DecidedSet([*statements, *statements_of("all", EVERYTHING)])

    with never_blocked():
        found = await divided(about(decided, call_of()))
        decision = found.decide(call_of(), NOW)

    assert decision.verdict is Verdict.ALLOW
    assert await about(decided, call_of()) is found


def test_statements_that_are_kept_for_clients_and_operations_take_bounded_memory(call_of):
    text = f'forbid(principal, action, resource) when {{ context.surface == "{"x" * 60_000}" }};'
    decided = DecidedSet(statements_of("main", text))
    calls = [replace(call_of(), client_id=UUID(int=number)) for number in range(400)]

    for call in calls:
        decided.about(call)

    assert decided.kept(calls[-1]) is not None
    assert sum(decided.kept(call) is not None for call in calls) * 60_000 <= 16 << 20
