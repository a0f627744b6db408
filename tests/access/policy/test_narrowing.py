"""The part of the schema that a policy is checked against: it has the same faults as the whole."""

import json
import time
from collections.abc import Sequence

import cedarpy
import pytest

from gateway.access.policy.language import PolicyText, Schema, checked, reduced, statements_of
from gateway.access.policy.narrowing import work_of
from gateway.errors import InvalidPolicy

UPDATE = 'action == Action::"support-desk.tickets.update"'
ON_UPDATES = f"permit(principal, {UPDATE}, resource)"
EVERYWHERE = "permit(principal, action, resource)"


def faults(schema, text: str) -> set[str]:
    """What is wrong, without the name of the action that Cedar found it for."""
    result = cedarpy.validate_policies(text, schema)
    return {each.error.partition(" for Action::")[0] for each in result.errors}


def part_of(schema: Schema, text: str) -> tuple[str, cedarpy.Schema]:
    """The text and the schema that a policy is checked by."""
    shortened, part = reduced(PolicyText(text), statements_of("main", text), schema.document)
    return shortened, cedarpy.Schema.from_json_str(json.dumps(part))


def partial_faults(schema: Schema, text: str) -> set[str]:
    shortened, part = part_of(schema, text)
    return faults(part, shortened)


def listed(names: Sequence[str]) -> str:
    return f"[{', '.join(f'Action::{json.dumps(name)}' for name in names)}]"


@pytest.fixture(scope="module")
def operations(schema: Schema) -> list[str]:
    """The names of all operations, whose lists are within the maximum length of a policy."""
    return sorted((name for name in schema.actions if name.count(".") == 2), key=len)[:1500]


@pytest.mark.parametrize(
    "text",
    [
        f"{EVERYWHERE};",
        'forbid(principal, action in Action::"idempotent", resource) when { context.params has ticket_id };',
        f"{EVERYWHERE} when {{ context.params has ticket_id && context.params.ticket_id == 1 }};",
        f"{ON_UPDATES} when {{ context.params.ticket_id == 1 }};",
        f"{EVERYWHERE} when {{ {UPDATE} && context.params.ticket_id == 1 }};",
        f'{EVERYWHERE} when {{ context.calls.today > 5 && context.surface == "mcp" && !context.approved }};',
        f"{EVERYWHERE} when {{ context == context }};",
        'permit(principal, action == Action::"stripe.refunds.create", resource) when { context.sum.amount.today > 5 };',
    ],
)
def test_a_policy_that_fits_the_schema_fits_its_part(schema: Schema, text: str):
    assert faults(schema.handle, text) == set()
    assert partial_faults(schema, text) == set()


@pytest.mark.parametrize(
    "text",
    [
        f"{EVERYWHERE} when {{ context.params.ticket_id == 1 }};",
        f"{EVERYWHERE} when {{ context.surfac == 1 }};",
        f'{ON_UPDATES} when {{ context.params.ticket == {{status: "open"}} }};',
        f'{ON_UPDATES} when {{ [context.params.ticket].contains({{status: "open"}}) }};',
        f'{ON_UPDATES} when {{ context.params == {{ticket_id: 1, ticket: {{status: "open"}}}} }};',
        f"{EVERYWHERE} when {{ (if context.approved then context.params else context.params).ticket_id == 1 }};",
        f'{EVERYWHERE} when {{ {UPDATE} || context.params["ticket_id"] == 1 }};',
        f'{EVERYWHERE} when {{ context.params has ticket_id && context.params.ticket_id == "1" }};',
        f"{EVERYWHERE} when {{ context.params has id && context.params.id == 1 }};",
        f"{EVERYWHERE} unless {{ context.calls.today.last > 1 }};",
        'permit(principal, action == Action::"no.such.action", resource);',
        f'permit(principal is Kind, {UPDATE}, resource in Workspace::"emea");',
        'permit(principal, action in [Action::"read", Action::"writ"], resource);',
        f'{EVERYWHERE} when {{ action in [Action::"writ"] }};',
    ],
)
def test_a_fault_is_found_by_the_part_of_the_schema_too(schema: Schema, text: str):
    whole = faults(schema.handle, text)

    assert whole
    assert partial_faults(schema, text) == whole


def test_an_action_that_a_policy_names_stands_for_no_other(schema: Schema):
    is_read = {"id": "read"}
    first = next(name for name, action in schema.actions.items() if is_read in action.get("memberOf", ()))
    reads = 'permit(principal, action in Action::"read", resource)'
    text = f'{reads} when {{ action == Action::"{first}" || context.params.unknown == 1 }};'

    assert partial_faults(schema, text) == faults(schema.handle, text) != set()


def test_a_policy_is_checked_for_few_of_the_actions(schema: Schema):
    reading = 'forbid(principal, action in Action::"idempotent", resource) when { context.params has ticket_id };'
    named = {"stripe.refunds.create", "freshdesk.tickets.delete"}
    listed = ", ".join(f'Action::"{name}"' for name in named)
    naming = f"forbid(principal, action in [{listed}], resource);"

    actions = [
        reduced(PolicyText(text), statements_of("main", text), schema.document)[1][""]["actions"]
        for text in (reading, naming)
    ]

    assert max(map(len, actions)) < 20 < len(schema.actions)
    assert named & set(actions[1])


@pytest.mark.parametrize(
    "form",
    [
        "permit(principal, action in {}, resource);",
        'permit(principal, action in {}, resource) when {{ context.surface == "mcp" && context.params has id }};',
        "permit(principal, action, resource) when {{ action in {} }};",
        "permit(principal, action, resource) unless {{ {}.contains(action) || context.approved }};",
    ],
)
def test_a_policy_that_names_1500_actions_is_checked_as_fast_as_one_that_names_few(schema, operations, form):
    text = form.format(listed(operations))
    shortened, part = reduced(PolicyText(text), statements_of("main", text), schema.document)

    began = time.process_time()
    statements = checked("main", text, schema)

    assert time.process_time() - began < 2
    assert work_of(part, [each.document for each in statements_of("main", shortened)]) < 2_000
    assert len(json.dumps(statements[0].document)) > 60_000


def test_a_list_is_shortened_to_names_that_the_policy_tells_apart(schema: Schema, operations):
    reads = [name for name in operations if name.endswith(".list")][:40]
    other, escaped, unknown = reads[0], reads[1], "no.such.action"
    text = (
        f"permit(principal, action in {listed([*reads, unknown])}, resource)\n"
        f"when {{ action in {listed(reads[:20])} || action == Action::{json.dumps(other)} }};\n"
        f'forbid(principal, action == Action::"{escaped.replace("s", chr(92) + "u{73}")}", resource);'
    )
    shortened, _ = part_of(schema, text)

    kept = [name for name in reads if f'"{name}"' in shortened]
    found = partial_faults(schema, text)

    assert {other, escaped} < set(kept)
    assert len(kept) < 20
    assert found == faults(schema.handle, text) != set()


@pytest.mark.parametrize("condition", ["context.params.ticket_id == 1", "context.params has id && context.params.id"])
def test_a_name_of_a_list_does_not_stand_for_one_that_only_another_list_has(schema, operations, condition):
    first, second = operations[0::2], operations[1::2]
    text = (
        f"{EVERYWHERE} when {{ (action in {listed(first[:300])} || action in {listed(second[:300])}) && {condition} }};"
    )

    assert partial_faults(schema, text) == faults(schema.handle, text) != set()


def test_a_policy_that_compares_too_many_actions_is_refused(schema: Schema, operations):
    def tree(names: Sequence[str]) -> str:
        middle = len(names) // 2
        return (
            f"action == Action::{json.dumps(names[0])}"
            if not middle
            else f"({tree(names[:middle])} || {tree(names[middle:])})"
        )

    began = time.process_time()
    with pytest.raises(InvalidPolicy, match="compares too many actions"):
        checked("main", f"{EVERYWHERE} when {{ {tree(operations[:1000])} }};", schema)

    assert time.process_time() - began < 2
