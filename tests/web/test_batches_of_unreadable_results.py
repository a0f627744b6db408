"""Writes that were done, and whose results cannot be read to redact them: withheld, and nothing is sent twice."""

import os
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import pytest
from aiohttp import web

from tests.harness.caller import Api, ConnectorApi
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.label_printer import write_label_printer
from tests.harness.sandbox import fault
from tests.harness.serving import served
from tests.web.test_policies import put, run_jobs

#: passed on unread, and not decoded as a whole
NUMBERS = "[" + ",".join(["1e300"] * 5_001) + "]"
NAMES = ["a", "b", "c"]


class Printer:
    """An application that counts what it printed; the labels whose names are odd have results that cannot be read."""

    def __init__(self) -> None:
        self.printed: Counter[str] = Counter()
        self.odd = {"b"}
        #: records beside those of the labels, so many that a list is not divided
        self.others = 0

    def record(self, name: str) -> str:
        return f'{{"name":"{name}","secret":"s3cret","numbers":{NUMBERS if name in self.odd else "[]"}}}'

    def records(self, names: list[str]) -> str:
        return ",".join([*map(self.record, names), *["{}"] * self.others])

    async def one(self, request: web.Request) -> web.Response:
        name = (await request.json())["name"]
        self.printed[name] += 1
        return web.json_response(text=self.record(name))

    async def many(self, request: web.Request) -> web.Response:
        names = [label["name"] for label in (await request.json())["labels"]]
        self.printed.update(names)
        # Spaces make the list as large as those whose records are counted.
        return web.json_response(text=f'{{"printed":[{self.records(names)}{" " * (5 << 20) if self.others else ""}]}}')

    async def read(self, request: web.Request) -> web.Response:
        return web.json_response(text=f'{{"labels":[{self.records(request.query["names"].split(","))}]}}')


@pytest.fixture
def printer() -> Printer:
    return Printer()


@pytest.fixture
async def printing(
    printer: Printer, tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str
) -> AsyncIterator[FrontEnd]:
    root = write_label_printer(tmp_path_factory.mktemp("specs"))
    app = web.Application()
    app.add_routes(
        [
            web.post("/labels", printer.one),
            web.post("/labels/many", printer.many),
            web.get("/labels", printer.read),
        ]
    )
    async with served(app) as url:
        with patch.dict(os.environ, {"GATEWAY_UPSTREAM_LABEL_PRINTER": url}):
            folder = tmp_path_factory.mktemp("front")
            async with front_end(folder, database_url, redis_url, specs=(root,)) as opened:
                yield opened


@pytest.fixture
async def labels(printing: FrontEnd) -> AsyncIterator[ConnectorApi]:
    """A connector of the printer, of whose labels policies redact the secret."""
    async with printing.api() as api:
        connector = await api.connector("label-printer", {"token": "t"}, validate=False)
        await redact(api, "secret")
        yield connector


async def redact(api: Api, path: str) -> None:
    cedar = f'@redact("{path}") permit(principal, action, resource);'
    assert (await put(api, cedar)).status == 200


async def batch(front: FrontEnd, labels: ConnectorApi, action: str, **options: Any) -> list[dict[str, Any]]:
    operations = [{"id": each, "entity": "labels", "action": action, "params": {"name": each}} for each in NAMES]
    body = {"operations": operations, **options}
    job = (await labels.api.post(f"{labels.path}/batch", body)).document(202)["job"]
    await run_jobs(front)
    answer = await labels.api.get(f"/api/v1/jobs/{job['id']}/result")
    assert b"s3cret" not in answer.body
    assert b"1e300" not in answer.body
    results: list[dict[str, Any]] = answer.document()["result"]["results"]
    return results


@pytest.mark.parametrize("options", [{}, {"steps": True}], ids=["together", "steps"])
async def test_a_batch_sends_each_write_once_and_withholds_the_result_that_cannot_be_read(
    printing: FrontEnd, printer: Printer, labels: ConnectorApi, options: dict[str, Any]
):
    results = await batch(printing, labels, "create", **options)

    assert printer.printed == dict.fromkeys(NAMES, 1)
    assert [each["status"] for each in results] == ["succeeded"] * 3
    assert [each["result"] and each["result"]["name"] for each in results] == ["a", None, "c"]
    assert "do not repeat it" in results[1]["warning"]


async def test_writes_whose_common_answer_cannot_be_divided_are_unknown_and_not_repeated(
    printing: FrontEnd, printer: Printer, labels: ConnectorApi
):
    printer.odd, printer.others = set(), 600_001

    results = await batch(printing, labels, "create")

    assert printer.printed == dict.fromkeys(NAMES, 1)
    assert [each["status"] for each in results] == ["unknown"] * 3
    assert [each["error"]["safe_to_retry"] for each in results] == [False] * 3


async def test_a_read_of_a_batch_that_cannot_be_read_fails_alone(printing: FrontEnd, labels: ConnectorApi):
    results = await batch(printing, labels, "get")

    assert [each["status"] for each in results] == ["succeeded", "failed", "succeeded"]
    assert results[1]["error"]["code"] == "upstream_invalid_response"


@pytest.mark.parametrize("is_job", [False, True], ids=["inline", "job"])
async def test_a_call_that_was_carried_out_succeeds_without_the_result_that_cannot_be_read(
    printing: FrontEnd, printer: Printer, labels: ConnectorApi, is_job: bool
):
    if is_job:
        job = await labels.submit("labels", "create", {"name": "b"})
        await run_jobs(printing)
        answer = (await labels.api.get(f"/api/v1/jobs/{job['id']}/result")).document()
    else:
        answer = await labels.execute("labels", "create", {"name": "b"})

    assert printer.printed == {"b": 1}
    assert answer["result"] is None
    assert "do not repeat it" in answer["warning"]


@pytest.mark.parametrize("is_resumed", [False, True], ids=["whole", "resumed"])
async def test_an_upload_is_complete_also_if_its_answer_cannot_be_read(front: FrontEnd, api: Api, is_resumed: bool):
    drive = await api.connector("google-drive", {"access_token": "token", "refresh_token": "refresh"})
    await redact(api, "name")
    path, params = f"{drive.path}/upload/files_upload", {"filename": "film.bin", "file_mime_type": "video/mp4"}
    headers = {"Upload-Complete": "?0", "Upload-Length": "3"}
    begun = await api.call("POST", path, params=params, headers=headers) if is_resumed else None
    odd = {"status": 200, "body": f'{{"id":"f","name":"film","numbers":{NUMBERS}}}'}
    async with fault(front.sandbox_url, kind="google-drive", method="PUT", **odd):
        if begun is None:
            answer = await api.call("POST", path, params=params, data=b"abc")
        else:
            part = {"Content-Type": "application/partial-upload", "Upload-Offset": "0", "Upload-Complete": "?1"}
            answer = await api.call("PATCH", begun.headers["Location"], data=b"abc", headers=part)

    assert answer.document()["result"] is None
    assert "do not repeat it" in answer.document()["warning"]


async def test_a_file_sent_in_one_request_is_uploaded_also_if_the_answer_cannot_be_read(front: FrontEnd, api: Api):
    credentials = {"username": "ada@example.com", "password": "token"}
    tracker = await api.connector("jira", credentials, environment={"subdomain": "acme"})
    await redact(api, "name")
    path, params = f"{tracker.path}/upload/issue_attachments", {"issueIdOrKey": "ACME-7", "filename": "hi.txt"}
    async with fault(front.sandbox_url, kind="jira", method="POST", status=200, body=f'[{{"numbers":{NUMBERS}}}]'):
        answer = await api.call("POST", path, params=params, data=b"hello")

    assert answer.document()["result"] is None
    assert "do not repeat it" in answer.document()["warning"]


@pytest.mark.parametrize("is_resumed", [False, True], ids=["whole", "resumed"])
async def test_an_upload_whose_last_answer_is_no_json_is_of_unknown_outcome(
    front: FrontEnd, api: Api, is_resumed: bool
):
    drive = await api.connector("google-drive", {"access_token": "token", "refresh_token": "refresh"})
    path, params = f"{drive.path}/upload/files_upload", {"filename": "film.bin", "file_mime_type": "video/mp4"}
    headers = {"Upload-Complete": "?0", "Upload-Length": "3"}
    begun = await api.call("POST", path, params=params, headers=headers) if is_resumed else None
    async with fault(front.sandbox_url, kind="google-drive", method="PUT", status=200, body="<html>"):
        if begun is None:
            answer = await api.call("POST", path, params=params, data=b"abc")
        else:
            part = {"Content-Type": "application/partial-upload", "Upload-Offset": "0", "Upload-Complete": "?1"}
            answer = await api.call("PATCH", begun.headers["Location"], data=b"abc", headers=part)

    assert answer.status == 502
    assert (answer.json()["outcome"], answer.json()["safe_to_retry"]) == ("unknown", False)
