"""Faults of policies: each with its place and the nearest name."""

import pytest

from gateway.access.policy.language import checked
from gateway.access.policy.paths import covers, redact
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


RECORD = {"id": 1, "email": "a@b.c", "lines": [{"phone": "1", "n": 2}], "owner": {"phone": "3", "email": "kept"}}


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["email"], {"id": 1, "lines": [{"phone": "1", "n": 2}], "owner": {"phone": "3", "email": "kept"}}),
        (["*.phone"], {"id": 1, "email": "a@b.c", "lines": [{"n": 2}], "owner": {"email": "kept"}}),
        (["lines.n", "owner"], {"id": 1, "email": "a@b.c", "lines": [{"phone": "1"}]}),
        (["*"], {}),
        (["unknown.deep"], RECORD),
    ],
)
def test_redacted_members_are_absent(paths, left):
    assert redact(RECORD, paths) == left
    assert redact([RECORD], paths) == [left]


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
