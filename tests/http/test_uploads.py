"""Files of callers over HTTP: the answer is that of execute, what cannot be sent is refused, and all is on record."""

from collections.abc import AsyncIterator

import pytest

from gateway.client import Gateway
from tests.harness.caller import ConnectorApi
from tests.http.test_routes import noted

CREDENTIALS = {"username": "ada@example.com", "password": "token"}
ENVIRONMENT = {"subdomain": "acme"}
FILE = {"issueIdOrKey": "ACME-7", "filename": "hi.txt"}


@pytest.fixture
async def tracker(api) -> ConnectorApi:
    return await api.connector("jira", CREDENTIALS, environment=ENVIRONMENT)


def path_of(connector: ConnectorApi) -> str:
    return f"{connector.path}/upload/issue_attachments"


async def test_a_file_is_uploaded_and_on_record(api, tracker):
    headers = {"Content-Type": "text/plain"}

    response = await api.call("POST", path_of(tracker), params=FILE, data=b"hello", headers=headers)

    assert response.status == 200, response.body
    assert response.json()["result"]["file"]["filename"] == "hi.txt"
    assert response.json()["result"]["file"]["content_type"] == "text/plain"
    assert (await noted(api, "issue_attachments.create"))["outcome"] == "succeeded"


async def test_our_client_uploads_a_file_of_the_disk(front, tmp_path):
    file = tmp_path / "report.csv"
    file.write_bytes(b"a,b\n" * 100_000)

    async with Gateway(front.base_url, *await front.client(), "w") as gateway:
        await gateway.connectors.create("jira", CREDENTIALS, environment=ENVIRONMENT)
        answer = await gateway.upload("jira", "issue_attachments", file, {"issueIdOrKey": "ACME-7"})

    assert answer.result["file"]["filename"] == "report.csv"
    assert answer.result["file"]["content_type"] == "text/csv"


async def _unsized() -> AsyncIterator[bytes]:
    yield b"hello"


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ({"data": _unsized}, 400, "Content-Length"),
        ({"headers": {"Idempotency-Key": "k-1"}}, 400, "takes no Idempotency-Key"),
        ({"params": {"issueIdOrKey": "ACME-7"}}, 422, "filename"),
        ({"params": {"filename": "hi.txt"}}, 422, "issueIdOrKey is missing"),
        ({"params": {**FILE, "colour": "red"}}, 422, "colour is not a param"),
        ({"params": {**FILE, "file": "aGk="}}, 422, "leave it out of the query"),
    ],
)
async def test_what_cannot_be_sent_is_refused(api, tracker, options, status, message):
    data = options.pop("data", None)
    options = {"params": FILE, **options}

    response = await api.call("POST", path_of(tracker), data=data() if data else b"hello", **options)

    assert response.status == status
    assert message in response.body.decode()


@pytest.mark.parametrize("entity", ["issues", "projects", "nothing"])
async def test_an_entity_that_takes_no_file_refuses_it(api, tracker, entity):
    response = await api.call("POST", f"{tracker.path}/upload/{entity}", params=FILE, data=b"hello")

    assert response.status == 422
    assert response.json()["code"] in ("invalid_params", "unknown_action", "unknown_entity")


async def test_a_file_beyond_the_limit_is_refused_before_it_comes(api, tracker):
    headers = {"Content-Length": str((1 << 30) + 1)}

    response = await api.call("POST", path_of(tracker), params=FILE, data=_unsized(), headers=headers)

    assert response.status == 413
    assert "GATEWAY_MAX_UPLOAD_BYTES" in response.body.decode()
