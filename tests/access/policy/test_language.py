"""Faults of policies: each with its place and the nearest name."""

import pytest

from gateway.access.policy.language import checked
from gateway.access.policy.paths import covers, first_redacted, first_telling
from gateway.errors import InvalidPolicy

PERMIT = "permit(principal, action, resource)"


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("permit(principal action, resource);", (1, 18), "unexpected token `action`"),
        (f"{PERMIT};\n\npermit(principal, action,, resource);", (3, 26), "unexpected token"),
        (f"{PERMIT} when {{ context.surface == }};", (1, 63), "unexpected token"),
        (f"{PERMIT}", (1, 36), "unexpected end of input"),
        (f"{PERMIT}\n  when {{ foo }};", (2, 10), "invalid variable: foo"),
        ("// all\nallow(principal, action, resource);", (2, 1), "invalid policy effect: allow"),
        (f'{PERMIT}\nwhen {{ context.surfac == "mcp" }};', (2, 16), "did you mean surface?"),
        (f'{PERMIT};\n{PERMIT} when {{ resource.nam == "x" }};', (2, 53), "did you mean name?"),
        ('permit(principal, action in Action::"writ", resource);', (1, 37), "did you mean write?"),
        ('permit(principal == Clint::"x", action, resource);', (1, 21), "did you mean Client?"),
        (
            'permit(principal, action == Action::"support-desk.tickets.updte", resource);',
            (1, 37),
            "did you mean support-desk.tickets.update?",
        ),
        (
            'permit(principal, action == Action::"support-desk.tickets.list", resource)\n'
            "when { context.params has per_page && context.params.per_pag > 5 };",
            (2, 54),
            "did you mean per_page?",
        ),
        (
            'permit(principal, action == Action::"support-desk.tickets.get", resource)\n'
            'when { context.params.ticket_id == "x" };',
            (1, 1),
            "the types Long and String are not compatible",
        ),
        (f'@advise("x") {PERMIT};', (1, 2), "did you mean @advice?"),
        ('@redact("email") forbid(principal, action, resource);', (1, 2), "only a permit redacts"),
        (f'@redact("a..b") {PERMIT};', (1, 2), "'a..b' is not a path"),
        (f'@expires("4h") {PERMIT};', (1, 2), "needs @approval"),
        (f'@approval("x") @expires("soon") {PERMIT};', (1, 17), "is a duration"),
        (f'@approval("x") @approvers("leads") {PERMIT};', (1, 17), "is an entity and a number"),
        (f'@id("a") {PERMIT};\n@id("a") {PERMIT};', (2, 2), "the id 'a' is that of an earlier statement"),
        ("permit(principal == ?principal, action, resource);", (1, 21), "templates are not supported"),
        ("// nothing", (1, 1), "no statement"),
        (f"{PERMIT};" * 201, (1, 1), "more than 200 statements"),
        (" " * 70_000, (1, 1), "at most 65,536"),
        (f"{PERMIT} when {{ {'(' * 4000}true{')' * 4000} }};", (1, 243), "more than 200 levels"),
        (f"{PERMIT} when {{ {'[' * 4000}{']' * 4000} == [] }};", (1, 243), "more than 200 levels"),
        (f"{PERMIT} when {{ {'{a:' * 4000}1{'}' * 4000} == 1 }};", (1, 641), "more than 200 levels"),
        (f"{PERMIT} when {{ {' || '.join(['true'] * 4000)} }};", (1, 1641), "more than 200 levels"),
        (f"{PERMIT} when {{ {'if true then true else ' * 2000}true }};", (1, 2339), "more than 200 levels"),
        (f"{PERMIT} when {{ context{'.a' * 4000} }};", (1, 449), "more than 200 levels"),
        (f"{PERMIT} when {{ context{'.contains(1)' * 4000} }};", (1, 2436), "more than 200 levels"),
    ],
)
def test_a_fault_has_its_place_and_the_nearest_name(schema, text, place, words):
    with pytest.raises(InvalidPolicy) as refused:
        checked("main", text, schema)

    error = refused.value
    assert (error.extra["line"], error.extra["column"]) == place
    assert error.detail.startswith(f"line {place[0]}, column {place[1]}: ")
    assert words in error.detail


def test_all_faults_are_reported_each_once(schema):
    text = f'{PERMIT} when {{ context.surfac == "a" || context.tim == "b" }};\n@advise("x") {PERMIT};'

    with pytest.raises(InvalidPolicy) as refused:
        checked("main", text, schema)

    assert len(refused.value.faults) == 3


@pytest.mark.parametrize(
    ("path", "is_covered"),
    [
        (("email",), True),
        (("email", "domain"), True),
        (("owner",), True),
        (("owner", "phone"), True),
        (("owner", "name"), False),
        (("id",), False),
    ],
)
def test_a_path_is_covered_if_redacted_members_are_in_it_or_above_it(path, is_covered):
    assert covers(["email", "owner.phone"], path) is is_covered


@pytest.mark.parametrize(
    ("paths", "redacted"),
    [
        (["id", "email"], "email"),
        (["owner.phone.mobile"], "owner.phone.mobile"),
        (["owner"], None),
        (["owner.name", "emails"], None),
        (["lines.a.note"], "lines.a.note"),
    ],
)
def test_a_selected_field_is_redacted_if_it_lies_within_a_redacted_member(paths, redacted):
    assert first_redacted(["email", "owner.phone", "lines.*.note"], paths) == redacted


@pytest.mark.parametrize(
    ("params", "place"),
    [
        ({"email": "a"}, "email"),
        ({"filter": {"any": [{"field": "Email"}]}}, "filter.any.field"),
        ({"where": {"contact_email": {"like": "a%"}}}, "where.contact_email"),
        ({"sort": "-created,-phoneNumber"}, "sort"),
        ({"sort": "phone-number"}, "sort"),
        ({"query": "SELECT Id FROM Contact WHERE Email LIKE 'a%'"}, "query"),
        ({"filter[email]": "a"}, "filter[email]"),
        ({"email__contains": "a"}, "email__contains"),
        ({"query": "x" * 20_000 + "hisemailbox"}, "query"),
        ({"owner": {"id": 1}}, "owner"),
        ({"filtering": '[{"field": "\\u0065mail", "operator": "CONTAIN"}]'}, "filtering"),
        ({"query": "mail of a person", "filename": "e", "emails": 1, "limit": 3, "n": None}, None),
    ],
)
def test_a_param_tells_of_a_redacted_member_that_it_names(params, place):
    assert first_telling(["email", "*.phone_number", "owner.*"], params) == place


def test_without_a_name_in_the_paths_no_param_tells():
    assert first_telling(["*", "*.*"], {"email": "a"}) is None


def test_a_policy_of_many_conditions_is_no_deep_one(schema):
    many = " && ".join(['(context.surface != "mcp" || resource.name like "D*")'] * 150)
    text = f"{PERMIT} when {{ {many} }};" * 3

    assert len(checked("main", text, schema)) == 3
