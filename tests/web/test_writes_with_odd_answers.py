"""Writes whose answers are odd, by every way in: the application gets each once, and none that was done has failed."""

import asyncio
import gzip
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import aiohttp
import pytest

from gateway.kinds.rule_names import package_rules
from gateway.upstream.long_running.rules import long_rule
from gateway.upstream.rules import rule_named
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.console import signed_in
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.label_printer import KIND, write_label_printer
from tests.upstream.wire import CLOSE, Wire, answer
from tests.web.test_policies import put, run_jobs

#: passed on unread, and not decoded as a whole
_NUMBERS = b"[" + b",".join([b"1e300"] * 5_001) + b"]"
#: so many that a list is not divided into its items
_MANY = b"[" + b"{}," * 600_001 + b"{}" + b" " * (4 << 20) + b"]"
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LABEL = {"name": "a"}
WITHHELD = "do not repeat it"

#: answers that say that the label is printed, whatever of them can be read
DONE = {
    "a label": answer(b'{"name": "a"}'),
    "nothing": answer(b""),
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "205": answer(b"", "205 Reset Content"),
    "207": answer(b'{"responses": []}', "207 Multi-Status"),
    "null": answer(b"null"),
    "a text": answer(b'"done"'),
    "an unknown charset": answer(b'{"name": "a"}', "200 OK", "Content-Type: application/json; charset=klingon"),
    "a number that no double holds": answer(b'{"name": "a", "number": 1e999}'),
    "half a surrogate pair": answer(b'{"name": "a", "id": "\\ud83d"}'),
    "NUL": answer(b'{"name": "a", "id": "\\u0000"}'),
    "an id of 4,000 digits": answer(b'{"name": "a", "id": ' + b"9" * 4_000 + b"}"),
    "numbers at the ends of doubles": answer(b'{"name": "a", "numbers": ' + _NUMBERS + b"}"),
    "a list of such numbers": answer(b"[" + _NUMBERS + b"]"),
    "700,000 values": answer(b'{"name": "a", "values": [' + b"{}," * 700_000 + b"{}]}"),
    "600,000 records": answer(_MANY),
    "900 levels": answer(b'{"name": "a", "levels": ' + b"[" * 900 + b"]" * 900 + b"}"),
}
#: answers that leave it open whether the label is printed
LOST = {
    "10,000 levels": answer(b"[" * 10_000 + b"]" * 10_000),
    "no UTF-8": answer(b'{"name": "\xff\xfe"}'),
    "UTF-16": answer('{"name": "a"}'.encode("utf-16")),
    "HTML": answer(b"<html>done</html>", "200 OK", "Content-Type: text/html"),
    "two documents": answer(b'{"name": "a"}\n{"name": "b"}'),
    "NaN": answer(b'{"name": NaN}'),
    "33 MiB": answer(b'"' + b"x" * (33 << 20) + b'"'),
    "a gzip bomb": answer(gzip.compress(bytes(64 << 20)), "200 OK", "Content-Encoding: gzip"),
    "no gzip": answer(b"{}", "200 OK", "Content-Encoding: gzip"),
    "another coding": answer(b"{}", "200 OK", "Content-Encoding: br"),
    "half an answer": answer(b'{"name"', length=99),
    "half a head": b"HTTP/1.1 200 OK\r\nContent-",
    "a closed connection": CLOSE,
    "100 and nothing": b"HTTP/1.1 100 Continue\r\n\r\n",
    "101": b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    "103 and nothing": b"HTTP/1.1 103 Early Hints\r\n\r\n",
    "a chunk without a size": _CHUNKED + b"ZZ\r\n{}\r\n",
    "chunks without an end": _CHUNKED + b"2\r\n{}\r\n",
    "a trailer that is none": _CHUNKED + b"2\r\n{}\r\n0\r\nno trailer\x00\r\n\r\n",
    "more than its length": answer(b'{"name": "a"}', length=2),
    "301": answer(b"", "301 Moved Permanently", "Location: /labels/a"),
    "303": answer(b"", "303 See Other", "Location: /labels/a"),
    "307": answer(b"", "307 Temporary Redirect", "Location: /labels/a"),
    "304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "500": answer(b"{}", "500 Internal Server Error"),
    "504": answer(b"", "504 Gateway Timeout"),
    "half a refusal": answer(b'{"message"', "400 Bad Request", length=99),
}


@pytest.fixture(scope="module")
async def printer() -> AsyncIterator[Wire]:
    """The application, which answers what a test tells it to."""
    async with Wire().listening() as wire:
        yield wire


@pytest.fixture(scope="module")
async def printing(
    printer: Wire, tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str
) -> AsyncIterator[FrontEnd]:
    root = write_label_printer(tmp_path_factory.mktemp("specs"))
    with patch.dict(os.environ, {"GATEWAY_UPSTREAM_LABEL_PRINTER": str(printer.origin)}):
        async with front_end(tmp_path_factory.mktemp("front"), database_url, redis_url, specs=(root,)) as opened:
            yield opened


@pytest.fixture
async def labels(printing: FrontEnd, printer: Wire) -> AsyncIterator[ConnectorApi]:
    """A connector of the printer, which has received nothing yet."""
    async with printing.api() as api:
        connector = await api.connector(KIND, {"token": "t"}, validate=False)
        printer.script.clear()
        printer.received.clear()
        yield connector


async def redact(api: Api) -> None:
    assert (await put(api, '@redact("secret") permit(principal, action, resource);')).status == 200


async def result_of(api: Api, job: dict[str, Any], **headers: str) -> Answer:
    return await api.get(f"/api/v1/jobs/{job['id']}/result", headers=headers)


async def ended(front: FrontEnd, api: Api, job: dict[str, Any]) -> dict[str, Any]:
    """The document of the result, or the error, of a job that is run to its end."""
    await run_jobs(front)
    document: dict[str, Any] = (await result_of(api, job)).json()
    return document


async def line(front: FrontEnd, labels: ConnectorApi, entity: str, action: str, params: Any, **options: Any) -> Any:
    """The line of the only operation of a batch."""
    operations = [{"id": "a", "entity": entity, "action": action, "params": params}]
    job = (await labels.api.post(f"{labels.path}/batch", {"operations": operations, **options})).document(202)["job"]
    (found,) = (await ended(front, labels.api, job))["result"]["results"]
    return found


async def tool(front: FrontEnd, api: Api, name: str, **arguments: Any) -> dict[str, Any]:
    async with aiohttp.ClientSession(headers=api.headers) as session:
        raw = Raw(session, f"{front.base_url}/mcp")
        result: dict[str, Any] = (await raw("tools/call", {"name": name, "arguments": arguments})).result
        return result


WRITE = {"operation": f"{KIND}.labels.create", "params": LABEL}


async def by_every_way(front: FrontEnd, labels: ConnectorApi, printer: Wire, said: bytes) -> list[dict[str, Any]]:
    """The outcomes of the same write by every way in, to which the application gives this answer."""
    key = {"Idempotency-Key": uuid4().hex}
    outcomes = []
    printer.says(said)
    outcomes.append((await labels.send("labels", "create", LABEL)).json())
    printer.says(said)
    outcomes.append((await labels.send("labels", "create", LABEL, key)).json())
    outcomes.append((await labels.send("labels", "create", LABEL, key)).json())
    printer.says(said)
    outcomes.append((await labels.send("labels", "create", LABEL, select_fields=["name"])).json())
    printer.says(said)
    outcomes.append(await ended(front, labels.api, await labels.submit("labels", "create", LABEL)))
    printer.says(said)
    of_batch = await line(front, labels, "labels", "create", LABEL, steps=True)
    outcomes.append(of_batch | of_batch.get("error", {}))
    printer.says(said)
    outcomes.append((await tool(front, labels.api, "write", **WRITE))["structuredContent"])
    assert len(printer.received) == 6  # a repetition with the key sends nothing
    return outcomes


@pytest.mark.parametrize("is_redacted", [False, True], ids=["whole", "redacted"])
@pytest.mark.parametrize("said", DONE.values(), ids=DONE)
async def test_a_write_that_was_done_is_done_by_every_way_in(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire, said: bytes, is_redacted: bool
):
    if is_redacted:
        await redact(labels.api)

    outcomes = await by_every_way(printing, labels, printer, said)

    assert [each for each in outcomes if "code" in each or "error" in each] == []
    assert all("result" in each or "preview" in each for each in outcomes)


@pytest.mark.parametrize("said", LOST.values(), ids=LOST)
async def test_a_write_whose_answer_is_lost_is_unknown_by_every_way_in(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire, said: bytes
):
    outcomes = await by_every_way(printing, labels, printer, said)

    assert [each["outcome"] for each in outcomes] == ["unknown"] * len(outcomes)
    assert not any(each.get("safe_to_retry") for each in outcomes)
    assert not any(each.get("retryable") for each in outcomes)


# --- rules that raise ---

_RULES = """
from gateway.upstream.rules import Rule

def odd(operation, answer):
    raise ValueError("a bug of the rule")

ODD = Rule(answer=odd)
"""
_STAMPS = """
description: Stamps.
actions:
  create:
    request: POST /stamps
    effect: write
    description: Prints a stamp.
    record: $
    rule: odd_stamps
    params: {name: {type: string, description: name of the stamp}}
    required: [name]
    example: {name: a}
"""


@pytest.fixture
async def stamping(
    printer: Wire, tmp_path: Path, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FrontEnd]:
    """A front end with a package whose rule has a bug."""
    root = write_label_printer(tmp_path)
    (root / "stamps.yaml").write_text(_STAMPS)
    metadata = tmp_path / "odd_stamp_rules-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-stamp-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[gateway.rules]\nodd_stamps = odd_stamp_rules:ODD\n")
    (tmp_path / "odd_stamp_rules.py").write_text(_RULES)
    monkeypatch.setenv("GATEWAY_UPSTREAM_LABEL_PRINTER", str(printer.origin))
    monkeypatch.syspath_prepend(tmp_path)
    for cached in (package_rules, rule_named, long_rule):
        cached.cache_clear()
    async with front_end(tmp_path, database_url, redis_url, specs=(root,)) as opened:
        yield opened
    monkeypatch.undo()
    for cached in (package_rules, rule_named, long_rule):
        cached.cache_clear()


async def test_a_write_after_which_a_rule_raises_is_unknown(stamping: FrontEnd, printer: Wire):
    printer.script.clear()
    printer.received.clear()
    printer.says(*[answer(b'{"name": "a"}')] * 5)
    async with stamping.api() as api:
        stamps = await api.connector(KIND, {"token": "t"}, validate=False)
        key = {"Idempotency-Key": uuid4().hex}
        outcomes = [
            await stamps.send("stamps", "create", LABEL),
            await stamps.send("stamps", "create", LABEL, key),
            await stamps.send("stamps", "create", LABEL, key),
        ]
        by_tool = await tool(stamping, api, "write", operation=f"{KIND}.stamps.create", params=LABEL)
        job = await ended(stamping, api, await stamps.submit("stamps", "create", LABEL))
        of_batch = await line(stamping, stamps, "stamps", "create", LABEL)
        audit = (await api.get("/api/v1/audit")).document()["data"]

    assert [each.status for each in outcomes] == [500, 500, 409]
    told = [*(each.json() for each in outcomes), by_tool["structuredContent"], job, of_batch["error"]]
    assert [each["outcome"] for each in told] == ["unknown"] * 6
    assert not any(each.get("safe_to_retry") for each in told)
    assert b"a bug of the rule" not in b"".join(each.body for each in outcomes)
    assert len(printer.received) == 5
    assert {each["outcome"] for each in audit if each["what"] == "stamps.create"} <= {
        "unknown",
        "interrupted",
        "accepted",
        None,
    }


# --- results that are stored ---

UNREADABLE = {
    "a label": answer(b'{"name": "a", "secret": "s3cret", "numbers": ' + _NUMBERS + b"}"),
    "a long label": answer(b'{"text": "' + b"x" * 70_000 + b'", "secret": "s3cret", "numbers": ' + _NUMBERS + b"}"),
    "a list": answer(b'[{"secret": "s3cret", "numbers": ' + _NUMBERS + b"}]"),
}


@pytest.mark.parametrize("said", UNREADABLE.values(), ids=UNREADABLE)
async def test_a_stored_result_that_policies_redact_later_is_withheld_if_it_cannot_be_read(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire, said: bytes
):
    key = {"Idempotency-Key": uuid4().hex}
    printer.says(said, said, said)
    first = await labels.send("labels", "create", LABEL, key)
    job = await labels.submit("labels", "create", LABEL)
    operations = [{"id": "a", "entity": "labels", "action": "create", "params": LABEL}]
    batch = (await labels.api.post(f"{labels.path}/batch", {"operations": operations})).document(202)["job"]
    await run_jobs(printing)
    await redact(labels.api)

    repeated = await labels.send("labels", "create", LABEL, key)
    results = [await result_of(labels.api, each) for each in (job, batch)]
    lines = [await result_of(labels.api, each, Accept="application/x-ndjson") for each in (job, batch)]
    of_tools = [await tool(printing, labels.api, "job", job_id=each["id"]) for each in (job, batch)]

    assert first.document()["result"] is not None
    assert (repeated.status, repeated.headers["Idempotency-Replayed"]) == (200, "true")
    assert len(printer.received) == 3
    assert [each.status for each in (*results, *lines)] == [200] * 4
    assert not any(each.get("isError") for each in of_tools)
    (of_batch,) = results[1].json()["result"]["results"]
    assert (of_batch["status"], of_batch["result"]) == ("succeeded", None)
    for told in (repeated.json(), results[0].json(), of_batch, of_tools[0]["structuredContent"]):
        assert told["result"] in (None, [None])
        assert WITHHELD in told["warning"]
    everything = [repeated.body, *(each.body for each in (*results, *lines)), json.dumps(of_tools).encode()]
    assert not any(b"s3cret" in text for text in everything)


async def test_a_result_of_many_levels_is_repeated_for_a_key(printing: FrontEnd, labels: ConnectorApi, printer: Wire):
    for levels in range(920, 940):
        key = {"Idempotency-Key": uuid4().hex}
        printer.says(answer(b'{"levels": ' + b"[" * levels + b"]" * levels + b"}"))
        first = await labels.send("labels", "create", LABEL, key)
        repeated = await labels.send("labels", "create", LABEL, key)

        assert repeated.status == 200 or repeated.json()["outcome"] == "unknown"
        assert first.status == 200 or first.json()["outcome"] == "unknown"
    assert len(printer.received) == 20


# --- tools ---


async def test_a_tool_tells_which_of_many_writes_has_a_result_that_cannot_be_read(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire
):
    printer.says(UNREADABLE["a label"], answer(b'{"name": "a"}'))
    each = [{"name": "a"}, {"name": "a"}]

    async def run() -> None:
        while not calling.done():
            await run_jobs(printing)
            await asyncio.sleep(0)

    calling = asyncio.create_task(tool(printing, labels.api, "write", operation=WRITE["operation"], each=each))
    await run()
    told = (await calling)["structuredContent"]["result"]

    assert len(printer.received) == 2
    assert [each["status"] for each in told["results"]] == ["succeeded"] * 2
    assert sorted(str(each["result"]) for each in told["results"]) == ["None", "{'name': 'a'}"]
    assert sum(WITHHELD in each.get("warning", "") for each in told["results"]) == 1


# --- the console ---


async def test_the_console_shows_that_a_write_was_done_whose_result_cannot_be_read(printing: FrontEnd, printer: Wire):
    organization_id = await printing.organization()
    credentials = await printing.client(organization_id)
    async with printing.api(organization_id) as api, signed_in(printing, *credentials) as browser:
        labels = await api.connector(KIND, {"token": "t"}, validate=False)
        printer.script.clear()
        printer.received.clear()
        printer.says(UNREADABLE["a label"], UNREADABLE["a label"])
        form = {"csrf": await browser.csrf(), "connector": labels.record["id"], "operation": WRITE["operation"]}
        shown = await browser.send("/console/playground", **{**form, "do": "run", "p.name": "a"})
        job = await labels.submit("labels", "create", LABEL)
        await run_jobs(printing)
        page = await browser.get(f"/console/jobs/{job['id']}")

    assert (shown.status, page.status) == (200, 200)
    assert WITHHELD.encode() in shown.body
    assert len(printer.received) == 2


async def test_the_console_shows_what_of_a_batch_failed_beside_records_with_half_a_surrogate_pair(
    printing: FrontEnd, printer: Wire
):
    organization_id = await printing.organization()
    credentials = await printing.client(organization_id)
    async with printing.api(organization_id) as api, signed_in(printing, *credentials) as browser:
        labels = await api.connector(KIND, {"token": "t"}, validate=False)
        printer.script.clear()
        printer.says(DONE["half a surrogate pair"], answer(b'{"message": "no more paper"}', "422 Unprocessable"))
        operations = [{"entity": "labels", "action": "create", "params": LABEL}] * 2
        body = {"operations": operations, "concurrency": 1}
        job = (await api.post(f"{labels.path}/batch", body)).document(202)["job"]
        await run_jobs(printing)
        page = await browser.get(f"/console/jobs/{job['id']}")

    assert page.status == 200
    assert b"no more paper" in page.body


# --- mutations of GraphQL ---


def of_graphql(data: Any, *errors: dict[str, Any]) -> bytes:
    return answer(json.dumps({"data": data, **({"errors": errors} if errors else {})}).encode())


_CARD = {"cardCreate": {"card": {"id": "7", "owner": None}}}
_WITHIN = ["cardCreate", "card", "owner"]
EXECUTED = {
    "beside its data": of_graphql(_CARD, {"message": "no owner", "path": _WITHIN}),
    "a limit": of_graphql(_CARD, {"message": "slow", "path": _WITHIN, "extensions": {"code": "RATE_LIMITED"}}),
    "in place of its data": of_graphql({"cardCreate": None}, {"message": "no owner", "path": _WITHIN}),
    "in place of all data": of_graphql(None, {"message": "no owner", "path": _WITHIN}),
}


@pytest.mark.parametrize("said", EXECUTED.values(), ids=EXECUTED)
async def test_a_mutation_that_was_executed_with_errors_is_unknown_and_sent_once(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire, said: bytes
):
    printer.says(*[said] * 6)

    inline = (await labels.send("cards", "create", {"name": "a"})).json()
    of_batch = await line(printing, labels, "cards", "create", {"name": "a"})

    assert len(printer.received) == 2
    assert (inline["outcome"], inline["safe_to_retry"], inline["retryable"]) == ("unknown", False, False)
    assert (of_batch["status"], of_batch["error"]["safe_to_retry"]) == ("unknown", False)


async def test_a_mutation_that_was_refused_has_failed(labels: ConnectorApi, printer: Wire):
    printer.says(of_graphql({"cardCreate": None}, {"message": "no", "path": ["cardCreate"]}))
    refused = await labels.send("cards", "create", {"name": "a"})

    assert (refused.status, refused.json()["code"]) == (422, "upstream_rejected")
    assert "outcome" not in refused.json()


async def test_a_mutation_that_was_limited_is_sent_again(labels: ConnectorApi, printer: Wire):
    printer.says(of_graphql(None, {"message": "slow", "extensions": {"code": "RATE_LIMITED"}}), of_graphql(_CARD))

    assert (await labels.execute("cards", "create", {"name": "a"}))["result"] == _CARD["cardCreate"]
    assert len(printer.received) == 2


# --- bulk requests of a batch ---

_DEEP = b'{"name": ' + b"[" * 900 + b"]" * 900 + b"}"
#: what is in the list of labels of an answer, and what becomes of the labels a and b
PRINTED = {
    "both": (b'{"name": "a"}, {"name": "b"}', ["succeeded", "succeeded"]),
    "in another order": (b'{"name": "b"}, {"name": "a"}', ["succeeded", "succeeded"]),
    "one more": (b'{"name": "b"}, {"name": "c"}, {"name": "a"}', ["succeeded", "succeeded"]),
    "one twice": (b'{"name": "b"}, {"name": "a"}, {"name": "a"}', ["succeeded", "succeeded"]),
    "one less": (b'{"name": "b"}', ["unknown", "succeeded"]),
    "null for one": (b'null, {"name": "b"}', ["unknown", "succeeded"]),
    "errors for one": (b'{"error": "no"}, {"name": "b"}', ["unknown", "succeeded"]),
    "none": (b"", ["unknown", "unknown"]),
    "other names": (b'{"name": 1}, {"name": null}, {"name": {}}', ["unknown", "unknown"]),
    "no objects": (b'1, "a", [], true', ["unknown", "unknown"]),
    "a name of many levels": (_DEEP + b', {"name": "b"}', ["unknown", "succeeded"]),
    "a name of 5,000 digits": (b'{"name": ' + b"9" * 5_000 + b'}, {"name": "b"}', ["unknown", "succeeded"]),
    "a name of numbers": (b'{"name": ' + _NUMBERS + b'}, {"name": "b"}', ["unknown", "unknown"]),
    "a label of numbers": (b'{"name": "a", "numbers": ' + _NUMBERS + b'}, {"name": "b"}', ["succeeded", "succeeded"]),
    "600,000 others": (b"{}," * 600_001 + b'{"name": "b"}' + b" " * (4 << 20), ["unknown", "unknown"]),
}


@pytest.mark.parametrize("is_redacted", [False, True], ids=["whole", "redacted"])
@pytest.mark.parametrize(("printed", "statuses"), PRINTED.values(), ids=PRINTED)
async def test_each_write_of_a_bulk_request_is_done_or_unknown_and_sent_once(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire, printed: bytes, statuses: list[str], is_redacted: bool
):
    if is_redacted:
        await redact(labels.api)
    printer.says(answer(b'{"printed": [' + printed + b"]}"))
    operations = [{"entity": "labels", "action": "create", "params": {"name": name}} for name in "ab"]
    job = (await labels.api.post(f"{labels.path}/batch", {"operations": operations})).document(202)["job"]

    results = (await ended(printing, labels.api, job))["result"]["results"]

    assert [each["status"] for each in results] == statuses
    assert len(printer.received) == 1
    assert not any(each["error"]["safe_to_retry"] for each in results if "error" in each)


@pytest.mark.parametrize("said", LOST.values(), ids=LOST)
async def test_writes_of_a_bulk_request_whose_answer_is_lost_are_unknown_and_sent_once(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire, said: bytes
):
    printer.says(said)
    operations = [{"entity": "labels", "action": "create", "params": {"name": name}} for name in "ab"]
    job = (await labels.api.post(f"{labels.path}/batch", {"operations": operations})).document(202)["job"]

    results = (await ended(printing, labels.api, job))["result"]["results"]

    assert [each["status"] for each in results] == ["unknown"] * 2
    assert len(printer.received) == 1


async def test_a_step_that_refers_to_a_result_that_is_withheld_is_not_sent(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire
):
    await redact(labels.api)
    printer.says(UNREADABLE["a label"])
    first = {"id": "a", "entity": "labels", "action": "create", "params": LABEL}
    second = {"entity": "labels", "action": "create", "params": {"name": {"$from": "a.name"}}}
    body = {"steps": True, "operations": [first, second]}
    job = (await labels.api.post(f"{labels.path}/batch", body)).document(202)["job"]

    results = (await ended(printing, labels.api, job))["result"]["results"]

    assert [each["status"] for each in results] == ["succeeded", "failed"]
    assert (results[1]["error"]["code"], len(printer.received)) == ("invalid_params", 1)


# --- long operations in a batch ---

STARTED = answer(b'{"id": "r1"}')
LOST_RUNS = {
    "no id": [answer(b"{}")],
    "an id that is none": [answer(b'{"id": {}}')],
    "nothing": [answer(b"")],
    "numbers at the ends of doubles": [answer(b'{"id": "r1", "numbers": ' + _NUMBERS + b"}")],
    "an unknown state": [STARTED, answer(b'{"state": "odd"}')],
    "a status that is missing": [STARTED, answer(b"{}", "404 Not Found")],
    "a status that is refused": [STARTED, answer(b"{}", "400 Bad Request")],
    "a status that is limited": [STARTED, answer(b"{}", "429 Too Many Requests", "Retry-After: 60")],
    "a status that cannot be read": [STARTED, answer(b"<html>")],
}


@pytest.mark.parametrize(("action", "params"), [("create", {"name": "a"}), ("create_many", {"names": ["a"]})])
@pytest.mark.parametrize("said", LOST_RUNS.values(), ids=LOST_RUNS)
async def test_a_long_operation_of_a_batch_that_was_started_and_lost_is_unknown(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire, said: list[bytes], action: str, params: Any
):
    printer.says(*said)

    lost = await line(printing, labels, "rolls", action, params)

    assert sum(head.startswith("POST") for head in printer.received) == 1
    assert (lost["status"], lost["error"]["safe_to_retry"]) == ("unknown", False)


async def test_a_long_operation_of_a_batch_that_failed_in_the_application_has_failed(
    printing: FrontEnd, labels: ConnectorApi, printer: Wire
):
    printer.says(STARTED, answer(b'{"state": "failed"}'))

    failed = await line(printing, labels, "rolls", "create", {"name": "a"})

    assert (failed["status"], failed["error"]["code"]) == ("failed", "upstream_error")
