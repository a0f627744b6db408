"""The caller's wishes for an answer, and that without any the application's bytes stay as they came."""

import msgspec
import pytest

from gateway.contract.kinds import Effect
from gateway.errors import InvalidParams, UpstreamInvalidResponse
from gateway.upstream.field_selection import FieldSelection, ensure_declared, selected, selected_of
from gateway.upstream.responses import OperationResult
from tests.harness.blocked_loop import divided, never_blocked

TICKET = {
    "id": 1,
    "subject": "Printer",
    "via": {"channel": "email", "source": {"from": "a@b.c", "to": None}},
    "tags": [{"id": 7, "name": "vip"}, {"id": 8, "name": "eu"}],
}


def answered(document: object) -> OperationResult:
    return OperationResult(result=msgspec.Raw(msgspec.json.encode(document)), meta={"next_page": 2})


async def test_an_answer_without_wishes_is_passed_on_byte_for_byte():
    answer = OperationResult(result=msgspec.Raw(b'[ {"id" : 1.0} ]'), meta={"next_page": 2})

    assert (await selected(answer, FieldSelection())) is answer


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        (["id"], {"id": 1}),
        (["subject", "id"], {"id": 1, "subject": "Printer"}),
        (["via.channel"], {"via": {"channel": "email"}}),
        (["via.source.to", "via.channel"], {"via": {"channel": "email", "source": {"to": None}}}),
        (["via", "via.channel"], {"via": TICKET["via"]}),
        (["tags.name"], {"tags": [{"name": "vip"}, {"name": "eu"}]}),
        (["subject.length"], {"subject": "Printer"}),
        (["nothing", "via.nothing"], {"via": {}}),
    ],
)
async def test_selected_fields_are_all_that_is_kept(paths, kept):
    assert (await selected(answered(TICKET), FieldSelection(select_fields=paths))).decoded() == kept


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["via", "tags", "subject"], {"id": 1}),
        (["via.source", "tags", "subject"], {"id": 1, "via": {"channel": "email"}}),
        (["tags.name", "via", "subject"], {"id": 1, "tags": [{"id": 7}, {"id": 8}]}),
        (["nothing", "via.nothing", "id.deeper"], TICKET),
    ],
)
async def test_excluded_fields_are_all_that_is_left_out(paths, left):
    assert (await selected(answered(TICKET), FieldSelection(exclude_fields=paths))).decoded() == left


RECORD = {"id": 1, "email": "a@b.c", "lines": [{"phone": "1", "n": 2}], "owner": {"phone": "3", "email": "kept"}}


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["email"], {"id": 1, "lines": [{"phone": "1", "n": 2}], "owner": {"phone": "3", "email": "kept"}}),
        (["*.phone"], {"id": 1, "email": "a@b.c", "lines": [{"n": 2}], "owner": {"email": "kept"}}),
        (["lines.n", "owner"], {"id": 1, "email": "a@b.c", "lines": [{"phone": "1"}]}),
        (["*.phone", "owner.email"], {"id": 1, "email": "a@b.c", "lines": [{"n": 2}], "owner": {}}),
        (["*.*", "owner.phone"], {"id": 1, "email": "a@b.c", "lines": [{}], "owner": {}}),
        (["lines.*.deeper", "*.phone.deeper"], RECORD),
        (["*"], {}),
        (["unknown.deep"], RECORD),
    ],
)
async def test_redacted_members_are_absent_and_named(paths, left):
    one = await selected(answered(RECORD), FieldSelection(redact=paths))
    listed = await selected(answered([RECORD]), FieldSelection(redact=paths, exclude_fields=["*"]))

    assert (one.decoded(), listed.decoded()) == (left, [left])
    assert list(one.redacted) == sorted(paths)


async def test_what_is_both_selected_and_excluded_is_left_out():
    shape = FieldSelection(select_fields=["id", "via"], exclude_fields=["via.source"])

    assert (await selected(answered(TICKET), shape)).decoded() == {"id": 1, "via": {"channel": "email"}}


async def test_wishes_reach_every_record_of_a_list_and_leave_its_meta():
    answer = await selected(answered([TICKET, TICKET, "not a record", None]), FieldSelection(select_fields=["id"]))

    assert answer.decoded() == [{"id": 1}, {"id": 1}, "not a record", None]
    assert answer.meta == {"next_page": 2}


async def test_a_limit_cuts_a_list_that_the_application_does_not_page():
    assert (await selected(answered([1, 2, 3]), FieldSelection(limit=2))).decoded() == [1, 2]


async def test_truncation_cuts_long_texts_wherever_they_are_and_says_so():
    document = {"body": "x" * 1001, "deep": [{"body": "y" * 5000}], "short": "z" * 1000}

    cut = (await selected(answered(document), FieldSelection(skip_truncation=False))).decoded()

    assert cut["body"] == "x" * 1000 + "… [truncated]"
    assert cut["deep"] == [{"body": "y" * 1000 + "… [truncated]"}]
    assert cut["short"] == "z" * 1000


def test_a_shape_kept_with_a_job_holds_only_what_was_wished_for():
    assert FieldSelection(select_fields=["id"]).as_document() == {"select_fields": ["id"], "skip_truncation": True}
    assert FieldSelection(**FieldSelection(limit=3).as_document()) == FieldSelection(limit=3)


@pytest.mark.parametrize(
    ("selection", "faults"),
    [
        (FieldSelection(["id", "via.channel"], ["subject"]), {}),
        (FieldSelection(["idd"]), {"/select_fields/0": "tickets.list: select_fields names 'idd'; did you mean id?"}),
        (
            FieldSelection(["id"], ["id", "subjct.x"]),
            {"/exclude_fields/1": "tickets.list: exclude_fields names 'subjct.x'; did you mean subject?"},
        ),
    ],
)
def test_fields_that_no_record_has_are_named_with_the_nearest(selection, faults):
    known = ("id", "subject", "via")

    ensure_declared(selection, "tickets.list", ())
    if not faults:
        ensure_declared(selection, "tickets.list", known)
        return
    with pytest.raises(InvalidParams) as refused:
        ensure_declared(selection, "tickets.list", known)

    assert {fault.pointer: fault.message for fault in refused.value.faults} == faults


SMALL = b'{"id":1,"a":{"b":[{"c":1}]}}'


@pytest.mark.parametrize(
    ("result", "selection"),
    [
        (b"[" + b",".join([SMALL] * 190_000) + b"]", FieldSelection(["id", "a.b.c"])),
        (b"[" + b",".join([SMALL] * 20_000) + b"]", FieldSelection([f"a.f{n}" for n in range(300)])),
        (b"[" + b",".join([SMALL] * 20_000) + b"]", FieldSelection(None, [f"a.b.f{n}" for n in range(300)])),
        (b'{"a":[' + b",".join([SMALL] * 100_000) + b"]}", FieldSelection(["a.a.b.c"])),
        (b"[" + b",".join([SMALL] * 100_000) + b"]", FieldSelection(skip_truncation=False)),
    ],
    ids=["small records", "many paths", "many excluded paths", "one large record", "truncation"],
)
async def test_a_selection_from_a_large_answer_does_not_hold_the_loop(result: bytes, selection: FieldSelection):
    with never_blocked():
        answer = await divided(selected(OperationResult(result=msgspec.Raw(result)), selection))

    assert answer.decoded()


async def test_a_path_is_taken_once_however_it_is_written():
    assert (await selected(answered({"a": {"b": 1, "c": 2}}), FieldSelection(["a.b", "a", "a.c"]))).decoded() == {
        "a": {"b": 1, "c": 2}
    }
    assert (await selected(answered({"a": {"b": 1, "c": 2}}), FieldSelection(None, ["a.b", "a.b.x"]))).decoded() == {
        "a": {"c": 2}
    }


#: records that are passed on unread, and cannot be decoded
_EXTREME = b"[" + b",".join([b"1e300"] * 5_001) + b"]"
UNREADABLE = [
    b'{"id":1,"deep":' + b"[" * 2_000 + b"]" * 2_000 + b"}",
    b'{"id":1,"numbers":' + _EXTREME + b"}",
    b'{"id":1,"half":' + b"\\ud83d}",
    b'[{"id":1},{"id":2,"numbers":' + _EXTREME + b"}]",
]


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.IDEMPOTENT])
@pytest.mark.parametrize("result", UNREADABLE, ids=["deep", "numbers", "not JSON", "list"])
async def test_the_result_of_a_write_that_cannot_be_read_is_withheld(effect: Effect, result: bytes):
    answer = OperationResult(result=msgspec.Raw(result), meta={"next": "secret"}, next={"page": 2}, is_page=True)

    done = await selected_of(effect, answer, FieldSelection(redact=["subject"]))

    assert (done.decoded(), done.meta, done.next, done.redacted) == (None, None, None, ("subject",))
    assert "withheld" in done.warning
    assert "carried out, do not repeat it" in done.warning


async def test_the_result_of_a_read_that_cannot_be_read_is_an_error():
    for result in UNREADABLE:
        with pytest.raises(UpstreamInvalidResponse):
            await selected_of(Effect.READ, OperationResult(result=msgspec.Raw(result)), FieldSelection(redact=["a"]))


async def test_a_warning_stays_with_the_one_of_a_withheld_result():
    answer = OperationResult(result=msgspec.Raw(UNREADABLE[0]), warning="it was not checked")

    done = await selected_of(Effect.WRITE, answer, FieldSelection(redact=["subject"]))

    assert done.warning.startswith("it was not checked; the result is withheld")


async def test_a_write_whose_result_can_be_read_has_it():
    done = await selected_of(Effect.WRITE, answered(TICKET), FieldSelection(select_fields=["id"]))

    assert (done.decoded(), done.warning) == ({"id": 1}, None)


@pytest.mark.parametrize("selection", [FieldSelection(redact=["deep.x"]), FieldSelection(select_fields=["deep.x"])])
async def test_a_record_that_is_too_deep_for_a_path_is_an_invalid_response(selection: FieldSelection):
    answer = OperationResult(result=msgspec.Raw(b'{"deep":' + b"[" * 900 + b"]" * 900 + b"}"))

    with pytest.raises(UpstreamInvalidResponse):
        await selected(answer, selection)
