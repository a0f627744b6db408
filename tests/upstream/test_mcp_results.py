"""Results of tools against the output schema that was accepted: reads are refused, writes have a warning."""

import json
import time
from typing import Any

import msgspec
import pytest

from gateway.contract.kinds import Effect
from gateway.errors import UpstreamInvalidResponse
from gateway.jobs.results import answer_of, head_of
from gateway.upstream.mcp_results import checked
from gateway.upstream.responses import OperationResult
from tests.harness.blocked_loop import LIMIT
from tests.harness.mcp_server import CREATE, SEARCH
from tests.harness.work import seconds_at_most
from tests.kinds.small_kind import small_operation
from tests.upstream.mcp_reached import KIND, TITLE, reaching

ISSUES = {
    "type": "object",
    "properties": {
        "issues": {"type": "array", "items": {"$ref": "#/$defs/issue"}},
        "by_mail": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["issues"],
    "$defs": {"issue": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
}
CANARY = "canary-7b1f"
TEXT = [{"type": "text", "text": "{}"}]


def answer(content: Any) -> dict[str, Any]:
    return {"content": TEXT, "structuredContent": content}


async def called(content: Any = None, schema: Any = ISSUES, effect: Effect = Effect.READ, **members: Any) -> Any:
    """The result of a call of a tool with this output schema and result."""
    result = {"content": TEXT} if content is None else answer(content)
    async with reaching(tools=[{**CREATE, "outputSchema": schema}], answer=result, **members) as reached:
        connector = await reached.connector(effect=effect)
        found = await connector.execute(KIND, "create_issue", TITLE)
        assert sum(each.startswith("tools/call") for each in reached.server.asked) == 1
        return found


async def test_a_result_that_matches_is_returned_as_it_is():
    found = await called({"issues": [{"id": 1}], "by_mail": {"ann@example.com": 1}})

    assert found.decoded() == answer({"issues": [{"id": 1}], "by_mail": {"ann@example.com": 1}})
    assert found.warning is None


MISMATCHES = {
    "a wrong type": ({"issues": [{"id": 1}, {"id": CANARY}]}, ["structuredContent.issues.1.id (type)"]),
    "a member that is missing": ({"issues": [{}]}, ["structuredContent.issues.0.id (required)"]),
    "a name of the content alone": ({"issues": [], "by_mail": {CANARY: "x"}}, ["structuredContent.by_mail.* (type)"]),
    "no object": ([CANARY], ["structuredContent (type)"]),
    "several places": (
        {"issues": [{"id": None}, {}, {"id": []}, {"id": 1.5}]},
        ["issues.0.id (type)", "issues.1.id (required)", "issues.2.id (type)"],
    ),
}


@pytest.mark.parametrize(("content", "places"), MISMATCHES.values(), ids=MISMATCHES)
async def test_a_read_that_does_not_match_is_an_error_that_names_the_first_places_and_no_values(content, places):
    with pytest.raises(UpstreamInvalidResponse) as raised:
        await called(content)

    assert all(each in raised.value.detail for each in places)
    assert (raised.value.code, raised.value.retryable) == ("upstream_invalid_response", False)
    assert CANARY not in raised.value.detail
    assert "issues.3" not in raised.value.detail


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.IDEMPOTENT])
async def test_the_result_of_a_write_that_does_not_match_is_delivered_with_a_warning(effect):
    found = await called({"issues": [{"id": CANARY}]}, effect=effect)

    assert found.decoded()["structuredContent"] == {"issues": [{"id": CANARY}]}
    assert "issues.0.id (type)" in found.warning
    assert "do not repeat it" in found.warning
    assert CANARY not in found.warning


async def test_a_warning_is_stored_with_the_result_of_a_job():
    found = await called({"issues": "none"}, effect=Effect.WRITE)

    assert answer_of(json.loads(json.dumps(head_of(found))), found.result).warning == found.warning


async def test_a_result_without_structured_content_does_not_match():
    with pytest.raises(UpstreamInvalidResponse, match="the result has no structuredContent"):
        await called()
    assert "no structuredContent" in (await called(effect=Effect.WRITE)).warning


async def test_a_tool_that_states_no_schema_may_answer_anything():
    assert (await called([CANARY], schema=None)).warning is None


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
async def test_the_result_of_a_task_is_checked_too(protocol):
    members = {"protocol": protocol, "states": ["working", "completed"]}
    tool = {**CREATE, "outputSchema": ISSUES, "execution": {"taskSupport": "required"}}
    async with reaching(tools=[tool], answer=answer({"issues": 1}), **members) as reached:
        written = await (await reached.connector()).execute(KIND, "create_issue", TITLE)
        reading = await reached.connector(effect=Effect.READ)
        with pytest.raises(UpstreamInvalidResponse, match=r"structuredContent\.issues \(type\)"):
            await reading.execute(KIND, "create_issue", TITLE)

    assert "structuredContent.issues (type)" in written.warning


CHOICES = [{"type": "string", "minLength": number + 2} for number in range(140)]
LARGE = {
    "many values": ([1] * 60_000, {}),
    "many checks": (["a"] * 10_000, {"items": {"anyOf": CHOICES}}),
    "many arrays": ([[]] * 120_000, {}),
    "a long text": ("a" * (3 << 20), {}),
}


@pytest.mark.parametrize(("content", "schema"), LARGE.values(), ids=LARGE)
async def test_content_that_would_take_long_is_returned_with_the_warning_that_it_was_not_checked(content, schema):
    found = await called(content, schema)

    assert "to be checked" in found.warning
    assert found.decoded()["structuredContent"] == content


COSTLY = {
    "choices that all fail": (["a"] * 6_000, {"items": {"anyOf": CHOICES}}),
    "items that are compared": (list(range(6_000)), {"allOf": [{"uniqueItems": True}] * 140}),
    "members that are missing": ([{}] * 6_000, {"items": {"anyOf": [{"required": [f"x{n}"]} for n in range(140)]}}),
    "an expression that backtracks": (["a" * 5_000 + "!"] * 100, {"items": {"pattern": "^(a+)+$"}}),
}


@pytest.mark.parametrize(("content", "schema"), COSTLY.values(), ids=COSTLY)
async def test_the_time_for_a_check_is_bounded(content, schema):
    began = time.process_time()
    await called(content, schema, effect=Effect.WRITE)

    assert time.process_time() - began < 3


async def test_nothing_is_fetched_for_a_schema():
    async with reaching(tools=[SEARCH]) as other:
        reference = f"{other.server.origin}/schema.json"
        found = await called([CANARY], {"type": "array", "items": {"$ref": reference}})

    assert (found.warning, other.server.asked) == (None, [])


MANY_NAMES = {"type": "object", "required": [f"p{number}" for number in range(300)]}


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        ({"type": "object", "properties": {"a": {"type": "array", "items": MANY_NAMES}}}, {"a": [{}] * 4900}),
        (MANY_NAMES, {"x": "y" * 1_000_000}),
    ],
    ids=["objects", "text"],
)
def test_the_faults_of_a_result_without_any_required_member_take_bounded_time(schema: Any, content: Any):
    operation = small_operation({"output_schema": schema})
    result = OperationResult(result=msgspec.Raw(msgspec.json.encode(answer(content))))

    with seconds_at_most(LIMIT), pytest.raises(UpstreamInvalidResponse, match="required"):
        checked(operation, Effect.READ, result)
