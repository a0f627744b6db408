"""Faults of policies: each with its place and the nearest name."""

import sys
import unicodedata

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
        (";" * 65_536, (1, 1), "more than 200 statements"),
        ("// only\n" * 8_000, (1, 1), "no statement"),
        (f'@type("Action") {PERMIT};', (1, 2), "unknown annotation"),
        (f'@id("a") @id("b") {PERMIT};', (1, 2), "duplicate annotation: @id"),
        (f'@redact("{"name," * 1_000}") {PERMIT};', (1, 2), "needs a text of 1 to 500 characters"),
        (f'@redact("{",".join(["name"] * 51)}") {PERMIT};', (1, 2), "needs 1 to 50 paths"),
        (f'@redact("em\u200bail") {PERMIT};', (1, 2), r"'em\u200bail' is not a path"),
        (f'@id("a\u200b") {PERMIT};', (1, 2), r"'a\u200b' has a character that cannot be shown"),
        (f'@approval("a\\0") {PERMIT};', (1, 2), r"'a\x00' has a character that cannot be shown"),
        (f"per\u200bmit{PERMIT[6:]};", (1, 4), "invalid token"),
        (f"\ufeff{PERMIT};", (1, 1), "invalid token"),
        (f"// a\r{PERMIT} when {{ {'(' * 4000}true{')' * 4000} }};", (1, 248), "more than 200 levels"),
        (" " * 70_000, (1, 1), "at most 65,536"),
        (f'{PERMIT} when {{ resource.name like "{"x" * 201}" }};', (1, 63), "at most 200 are allowed"),
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


def test_of_many_unknown_names_a_few_are_searched_and_fifty_reported(schema):
    names = ", ".join(f'Action::"support-desk.tickets.updte{number}"' for number in range(1_000))

    with pytest.raises(InvalidPolicy) as refused:
        checked("main", f"permit(principal, action in [{names}], resource);", schema)

    messages = [fault.message for fault in refused.value.faults]
    assert len(messages) == 50
    assert sum("did you mean support-desk.tickets.update?" in each for each in messages) == 5


@pytest.mark.parametrize(
    "text",
    [
        f'@id("Größe 名前 🦄") @advice("Ask\nus.") {PERMIT};',
        f'@redact("größe, 名前.*") {PERMIT};',
        f'@approval("Look first.") forbid(principal, action, resource); {PERMIT};',
        f'{PERMIT} when {{ {{type: "Action"}} == {{type: "Action"}} }};',
        f"{PERMIT} {'when { true } ' * 4_000};",
        f'{PERMIT} when {{ resource.name == "{";" * 60_000}" }};',
        f"// a\r{PERMIT};",
        f"{PERMIT};" * 200,
    ],
)
def test_a_text_that_is_unusual_is_accepted(schema, text):
    assert checked("main", text, schema)


@pytest.mark.parametrize(
    ("path", "is_covered"),
    [
        (("email",), True),
        (("email", "domain"), True),
        (("owner",), True),
        (("owner", "phone"), True),
        (("owner", "name"), False),
        (("id",), False),
        (("owner", "0", "phone"), True),
        (("owner", "-1", "phone"), True),
        (("0", "owner", "+1", " 2", "phone"), True),
        (("owner", "0"), True),
        (("owner", "0", "name"), False),
        (("id", "0"), False),
    ],
)
def test_a_path_is_covered_if_redacted_members_are_in_it_or_above_it(path, is_covered):
    assert covers(["email", "owner.phone"], path) is is_covered


@pytest.mark.parametrize(
    ("path", "is_covered", "is_covered_as_scalar"),
    [
        (("name",), True, False),
        (("phone",), True, False),
        (("owner", "name"), False, False),
        (("owner", "phone"), True, True),
        (("0", "owner", "phone"), True, True),
        (("email",), True, True),
        (("email", "domain"), True, True),
        (("lines", "0"), True, False),
        (("lines", "0", "card"), True, True),
        (("lines", "x", "card", "end"), True, True),
    ],
)
def test_a_scalar_has_no_redacted_member(path, is_covered, is_covered_as_scalar):
    redacted = ["email", "*.phone", "lines.*.card"]

    assert covers(redacted, path) is is_covered
    assert covers(redacted, path, is_scalar=True) is is_covered_as_scalar


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
        ({"emails": ["a"]}, "emails"),
        ({"query": "emails:a@b.c"}, "query"),
        ({"query": "mail of a person", "filename": "e", "limit": 3, "n": None}, None),
    ],
)
def test_a_param_tells_of_a_redacted_member_that_it_names(params, place):
    assert first_telling(["email", "*.phone_number", "owner.*"], params) == place


@pytest.mark.parametrize(
    "text",
    [
        'project = A AND "phone number" ~ "1*"',
        "ORDER BY PHONE_NUMBER",
        "PhoneNUMBER asc",
        "PHONENumber asc",
        "[Phone Number] = 1",
        "contact.`phone``number`",
        "phone/**/number",
        "phone\u00a0number",
        "phone\u200bnumber",
        "\uff30\uff28\uff2f\uff2e\uff25\uff3f\uff2e\uff35\uff2d\uff22\uff25\uff32 = 1",
        "\uff50\uff48\uff4f\uff4e\uff45\uff2e\uff55\uff4d\uff42\uff45\uff52 = 1",
        r"phone\_number LIKE '1%'",
        r"ph\one\ number = 1",
        r"ph\u006fne\u{0020}number = 1",
        r'{"q": "\\u0070hone_number"}',
        r'{"q": "SELECT Id,\nphone_number FROM Contact"}',
        "%70hone%5Fnumber=1",
        "<attribute name='&#112;hone&#x5f;number'/>",
        "'%phone_number'",
        "customerPhoneNumber1",
        "phone_numbers:1",
        "PhoneNumbers",
        r"\160hone\137number = 1",
        "%2570hone%255Fnumber=1",
        "%252570hone_number=1",
        "&amp;#112;hone_number",
        r"\\u0025\u0037\u0030hone_number",
    ],
)
def test_another_way_to_write_a_name_is_recognized(text):
    assert first_telling(["*.phone_number"], {"query": text}) == "query"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Straße", "STRASSE = 1"),
        ("line2", "line_2 asc"),
        ("adresse", "%adresse"),
        ("owner.categories", "Category"),
        ("address", "addresses"),
        ("people", "person_id"),
    ],
)
def test_a_name_has_one_form(path, text):
    assert first_telling([path], {"query": text}) == "query"


@pytest.mark.parametrize("text", ["phones numbered", "telephonenumbers", "phone", "number phone", ""])
def test_letters_of_other_words_are_no_name(text):
    assert first_telling(["phone_number"], {"query": text}) is None


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0316" * 4_000_000,
        "a" + "\uff9e\u0316" * 30_000,
        r"\u0301\u0316" * 300_000,
        "&#x301;&#x316;" * 300_000,
        "\u00e9" * 65_537,
        "&#" + "1" * 5_000 + ";",
    ],
    ids=["marks", "marks of other forms", "escaped marks", "entities", "long", "number"],
)
def test_a_text_that_takes_long_to_read_tells(text):
    assert first_telling(["email"], {"query": text}) == "query"
    assert first_telling(["email"], {text: 1}) == text


@pytest.mark.parametrize("text", ["a" + "\u0301" * 30, "\u00e9" * 65_536, "x" * 100_000, "\u0e19\u0e49\u0e33" * 20_000])
def test_a_text_of_another_language_tells_nothing(text):
    assert first_telling(["email"], {"query": text}) is None


def test_every_character_that_combines_when_it_is_normalized_is_known():
    every = map(chr, range(sys.maxunicode + 1))
    combining = {each for each in every if all(map(unicodedata.combining, unicodedata.normalize("NFKD", each)))}

    assert not [each for each in combining if first_telling(["email"], {"query": each * 31}) is None]


@pytest.mark.parametrize("redacted", [["*"], ["*.*"], ["*", "email"]])
def test_if_everything_is_redacted_every_param_tells_but_those_that_choose_the_record_or_the_page(redacted):
    assert first_telling(redacted, {"id": 1, "page": 2, "status": "open"}, ["id", "page"]) == "status"
    assert first_telling(redacted, {"id": 1, "page": 2}, ["id", "page"]) is None


def test_a_pattern_has_up_to_200_characters(schema):
    assert checked("main", f'{PERMIT} when {{ resource.name like "{"x" * 200}" }};', schema)


def test_a_policy_of_many_conditions_is_no_deep_one(schema):
    many = " && ".join(['(context.surface != "mcp" || resource.name like "D*")'] * 150)
    text = f"{PERMIT} when {{ {many} }};" * 3

    assert len(checked("main", text, schema)) == 3
