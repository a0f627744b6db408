"""The part of the schema that a policy is checked against: it has the same faults as the whole."""

import cedarpy
import pytest

from gateway.access.policy.language import Schema, statements_of
from gateway.access.policy.narrowing import narrowed

UPDATE = 'action == Action::"support-desk.tickets.update"'
ON_UPDATES = f"permit(principal, {UPDATE}, resource)"
EVERYWHERE = "permit(principal, action, resource)"


def faults(schema, text: str) -> set[str]:
    """What is wrong, without the name of the action that Cedar found it for."""
    result = cedarpy.validate_policies(text, schema)
    return {each.error.partition(" for Action::")[0] for each in result.errors}


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
    assert faults(schema.handle_for(statements_of("main", text)), text) == set()


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
    assert faults(schema.handle_for(statements_of("main", text)), text) == whole


def test_an_action_that_a_policy_names_stands_for_no_other(schema: Schema):
    is_read = {"id": "read"}
    first = next(name for name, action in schema.actions.items() if is_read in action.get("memberOf", ()))
    reads = 'permit(principal, action in Action::"read", resource)'
    text = f'{reads} when {{ action == Action::"{first}" || context.params.unknown == 1 }};'

    assert faults(schema.handle_for(statements_of("main", text)), text) == faults(schema.handle, text) != set()


def test_a_policy_is_checked_for_few_of_the_actions(schema: Schema):
    reading = 'forbid(principal, action in Action::"idempotent", resource) when { context.params has ticket_id };'
    named = {"stripe.refunds.create", "freshdesk.tickets.delete"}
    listed = ", ".join(f'Action::"{name}"' for name in named)
    naming = f"forbid(principal, action in [{listed}], resource);"

    actions = [
        narrowed(schema.document, [each.document for each in statements_of("main", text)])[""]["actions"]
        for text in (reading, naming)
    ]

    assert max(map(len, actions)) < 20 < len(schema.actions)
    assert named <= set(actions[1])
