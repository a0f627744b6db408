"""Uploads over HTTP, in one request and resumed: responses, refusals and audit."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from yarl import URL

from gateway.access.identity.model import Scope
from gateway.client import Gateway
from gateway.errors import Conflict
from gateway.foundation.db.pruning import prune
from gateway.foundation.telemetry.metrics import EXECUTES
from gateway.operations.uploads.store import PRUNE
from gateway.upstream.transport import ANSWER_CAP
from gateway.upstream.upload_session import PIECE
from gateway.web.server.connection_guard import ConnectionLimits
from tests.harness.blocked_loop import divided
from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.cut_connections import CutConnections
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.sandbox import fault, received_requests
from tests.harness.waiting import eventually
from tests.web.test_routes import noted

CREDENTIALS = {"username": "ada@example.com", "password": "token"}
ENVIRONMENT = {"subdomain": "acme"}
FILE = {"issueIdOrKey": "ACME-7", "filename": "hi.txt"}


@pytest.fixture
async def tracker(api) -> ConnectorApi:
    return await api.connector("jira", CREDENTIALS, environment=ENVIRONMENT)


def path_of(connector: ConnectorApi) -> str:
    return f"{connector.path}/upload/issue_attachments"


async def test_a_file_is_uploaded_and_recorded(api, tracker):
    headers = {"Content-Type": "text/plain"}

    response = await api.call("POST", path_of(tracker), params=FILE, data=b"hello", headers=headers)

    assert response.status == 200, response.body
    assert response.json()["result"]["file"]["filename"] == "hi.txt"
    assert response.json()["result"]["file"]["content_type"] == "text/plain"
    assert (await noted(api, "issue_attachments.create"))["outcome"] == "succeeded"


async def test_the_python_client_uploads_a_file(front, tmp_path):
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
        ({"headers": {"Idempotency-Key": "k-1"}}, 400, "do not support Idempotency-Key"),
        ({"params": {"issueIdOrKey": "ACME-7"}}, 422, "filename"),
        ({"params": {"filename": "hi.txt"}}, 422, "issueIdOrKey is missing"),
        ({"params": {**FILE, "colour": "red"}}, 422, "colour is not a param"),
        ({"params": {**FILE, "file": "aGk="}}, 422, "leave it out of the query"),
    ],
)
async def test_an_invalid_upload_is_refused(api, tracker, options, status, message):
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


async def test_a_file_beyond_the_limit_is_refused_before_it_is_read(api, tracker):
    headers = {"Content-Length": str((1 << 30) + 1)}

    response = await api.call("POST", path_of(tracker), params=FILE, data=_unsized(), headers=headers)

    assert response.status == 413
    assert "GATEWAY_MAX_UPLOAD_BYTES" in response.body.decode()


async def sent_slowly(tracker: ConnectorApi, size: int, pause: float) -> int:
    """The status of an upload of 10 bytes, so many at a time."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(0, 10, size):
            yield b"x" * size
            await asyncio.sleep(pause)

    headers = {"Content-Length": "10"}
    return (await tracker.api.call("POST", path_of(tracker), params=FILE, data=chunks(), headers=headers)).status


async def test_a_file_may_take_longer_than_other_bodies_and_its_parts_may_not(
    tmp_path, database_url: str, redis_url: str
):
    limits = ConnectionLimits(body=0.2, mebibyte=1.0)
    async with (
        front_end(tmp_path, database_url, redis_url, connections=limits) as front,
        front.api() as api,
    ):
        tracker = await api.connector("jira", CREDENTIALS, environment=ENVIRONMENT)

        assert await sent_slowly(tracker, 5, 0.4) == 200
        assert await sent_slowly(tracker, 1, 0.3) == 400


DRIVE = {"access_token": "token", "refresh_token": "refresh"}
UPLOAD = {"filename": "film.bin", "file_mime_type": "video/mp4"}
CONTENT = bytes(number % 251 for number in range(1009)) * 5197
HASH = hashlib.sha256(CONTENT).hexdigest()
PART = {"Content-Type": "application/partial-upload"}


@pytest.fixture
async def drive(api) -> ConnectorApi:
    return await api.connector("google-drive", DRIVE)


async def begun(drive: ConnectorApi, size: int = len(CONTENT)) -> str:
    """The path of a new upload."""
    headers = {"Upload-Complete": "?0", "Upload-Length": str(size)}
    response = await drive.api.call("POST", f"{drive.path}/upload/files_upload", params=UPLOAD, headers=headers)
    assert response.status == 201, response.body
    assert response.headers["Upload-Offset"] == "0"
    return response.headers["Location"]


async def sent(api: Api, path: str, offset: int, content: bytes, *, complete: str = "?1") -> Answer:
    headers = {**PART, "Upload-Offset": str(offset), "Upload-Complete": complete}
    return await api.call("PATCH", path, data=BytesIO(content), headers=headers)


async def cut_off(front: FrontEnd, api: Api, method: str, path: str, headers: dict[str, str], content: bytes) -> bytes:
    """Send the head of a request and some of its body, and close the connection; returns the response until then."""
    host, port = URL(front.base_url).host, URL(front.base_url).port
    reader, writer = await asyncio.open_connection(host, port)
    lines = {"Host": f"{host}:{port}", **api.headers, **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content)
    await writer.drain()
    answered = await reader.readuntil(b"\r\n\r\n") if method == "POST" else b""
    writer.transport.abort()
    return answered


async def standing_at(api: Api, path: str, offset: int) -> Answer:
    """The upload, once the application has stored so many bytes."""
    async with asyncio.timeout(10):
        while (state := (await api.get(path))).json()["offset"] != offset:
            pass
    return state


async def test_an_upload_is_resumed_after_a_broken_connection(front, api, drive):
    path = await begun(drive)
    headers = {**PART, "Upload-Offset": "0", "Upload-Complete": "?1", "Content-Length": str(len(CONTENT))}
    await cut_off(front, api, method="PATCH", path=path, headers=headers, content=CONTENT[: 3 << 20])

    state = await standing_at(api, path, PIECE)
    head = await api.call("HEAD", path)
    answered = await sent(api, path, PIECE, CONTENT[PIECE:])

    assert (state.json()["complete"], state.json()["size"]) == (False, len(CONTENT))
    assert (head.headers["Upload-Offset"], head.headers["Upload-Complete"]) == (str(PIECE), "?0")
    assert answered.status == 200, answered.body
    assert answered.headers["Upload-Complete"] == "?1"
    assert answered.json()["result"]["sha256Checksum"] == HASH
    assert answered.json()["result"]["name"] == "film.bin"


async def test_an_upload_in_one_request_sends_its_location_before_the_file_is_read(front, api, drive):
    query = urlencode(UPLOAD)
    headers = {"Upload-Complete": "?1", "Content-Length": str(len(CONTENT))}

    interim = await cut_off(
        front,
        api,
        method="POST",
        path=f"{drive.path}/upload/files_upload?{query}",
        headers=headers,
        content=CONTENT[: 3 << 20],
    )
    path = re.search(rb"Location: (\S+)", interim)[1].decode()
    await standing_at(api, path, PIECE)
    answered = await sent(api, path, PIECE, CONTENT[PIECE:])

    assert interim.startswith(b"HTTP/1.1 104 ")
    assert answered.json()["result"]["sha256Checksum"] == HASH


@pytest.mark.parametrize("content", [CONTENT, b""])
async def test_an_upload_in_one_request_returns_the_answer(api, drive, content):
    path = f"{drive.path}/upload/files_upload"

    answered = await api.call("POST", path, params=UPLOAD, data=BytesIO(content), headers={"Upload-Complete": "?1"})

    assert answered.status == 200, answered.body
    assert answered.json()["result"]["sha256Checksum"] == hashlib.sha256(content).hexdigest()


async def test_an_upload_without_resumption_is_sent_in_pieces_too(front, api, drive):
    answered = await api.call("POST", f"{drive.path}/upload/files_upload", params=UPLOAD, data=BytesIO(CONTENT))

    sent_on = [each for each in await received_requests(front.sandbox_url) if each["kind"] == "google-drive"]
    assert answered.json()["result"]["sha256Checksum"] == HASH
    assert [each["method"] for each in sent_on][-4:] == ["POST", "PUT", "PUT", "PUT"]


async def test_a_wrong_offset_does_not_stop_another_request(front):
    organization_id, store = await front.organization(), front.services.operations.uploads.store
    async with front.api(organization_id) as api:
        drive = await api.connector("google-drive", DRIVE)
        path = await begun(drive)
        upload = await store.get(organization_id, UUID(drive.record["id"]), UUID(path.rsplit("/", 1)[1]))
        fence = await store.take(upload)

        assert (await sent(api, path, PIECE, CONTENT[PIECE:])).status == 409

    await store.ensure_held(upload, fence)


async def test_a_file_is_sent_in_parts(api, drive):
    path = await begun(drive)

    first = await sent(api, path, 0, CONTENT[: 1 << 20], complete="?0")
    last = await sent(api, path, 1 << 20, CONTENT[1 << 20 :])

    assert (first.status, first.headers["Upload-Offset"]) == (204, str(1 << 20))
    assert last.json()["result"]["sha256Checksum"] == HASH


async def test_the_open_uploads_of_a_connector_are_bounded(api, drive, sql):
    await begun(drive)
    for count in (998, 1):
        await sql(
            """
            INSERT INTO uploads
                (id, organization_id, connector_id, entity, size, key_id, wrapped_key, sealed, expires_at)
            SELECT gen_random_uuid(), organization_id, id, 'files', 1, 'k', '', '', now() + interval '1 hour'
            FROM connectors, generate_series(1, $2::integer) WHERE id = $1
            """,
            drive.record["id"],
            count,
        )
    headers = {"Upload-Complete": "?0", "Upload-Length": "10"}

    refused = await api.call("POST", f"{drive.path}/upload/files_upload", params=UPLOAD, headers=headers)
    other = await begun(await api.connector("google-drive", DRIVE))

    assert refused.status == 409
    assert "the connector has 1000 unfinished uploads" in refused.body.decode()
    assert other


async def test_the_open_uploads_of_an_organization_are_bounded(front, sql):
    organization_id = await front.organization()
    async with front.api(organization_id) as api, front.api() as stranger:
        first, others = await api.connector("google-drive", DRIVE), await stranger.connector("google-drive", DRIVE)
        await sql(
            """
            INSERT INTO uploads
                (id, organization_id, connector_id, entity, size, key_id, wrapped_key, sealed, expires_at)
            SELECT gen_random_uuid(), $1, $2, 'files', 1, 'k', '', '', now() + interval '1 hour'
            FROM generate_series(1, $3::integer)
            """,
            organization_id,
            UUID(first.record["id"]),
            5000,
        )
        headers = {"Upload-Complete": "?0", "Upload-Length": "10"}
        another = await api.connector("google-drive", DRIVE)

        refused = await api.call("POST", f"{another.path}/upload/files_upload", params=UPLOAD, headers=headers)

        assert refused.status == 409
        assert "the organization has 5000 unfinished uploads" in refused.body.decode()
        assert await begun(others)


async def test_the_files_of_one_organization_leave_slots_and_memory_to_the_others(tmp_path, database_url, redis_url):
    async with (
        front_end(tmp_path, database_url, redis_url, max_downloads=4) as front,
        front.api() as greedy,
        front.api() as polite,
    ):
        drive, other = await greedy.connector("google-drive", DRIVE), await polite.connector("google-drive", DRIVE)
        path = f"{drive.path}/upload/files_upload?{urlencode(UPLOAD)}"
        writers = [await sending(front, greedy, path) for _ in range(2)]
        await eventually(lambda: front.limits.pieces.in_use > PIECE)

        refused = await greedy.call("POST", path, data=b"hello")
        sent_by_other = await polite.call("POST", f"{other.path}/upload/files_upload", params=UPLOAD, data=b"hello")

        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
        assert sent_by_other.status == 200, sent_by_other.body
        for writer in writers:
            writer.transport.abort()
        await eventually(lambda: not front.limits.pieces.in_use)


async def test_the_pieces_of_one_organizations_files_leave_memory_to_the_others(tmp_path, database_url, redis_url):
    async with (
        front_end(tmp_path, database_url, redis_url, max_bodies_bytes=4 << 20, max_body_bytes=1 << 20) as front,
        front.api() as greedy,
        front.api() as polite,
    ):
        drive, other = await greedy.connector("google-drive", DRIVE), await polite.connector("google-drive", DRIVE)
        path = f"{drive.path}/upload/files_upload?{urlencode(UPLOAD)}"
        writers = [await sending(front, greedy, path) for _ in range(12)]
        await eventually(lambda: front.limits.pieces.in_use == 2 << 20)

        refused = await greedy.call("POST", path, data=bytes(1 << 20))
        sent_by_other = await polite.call("POST", f"{other.path}/upload/files_upload", params=UPLOAD, data=b"hello")

        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
        assert sent_by_other.status == 200, sent_by_other.body
        for writer in writers:
            writer.transport.abort()
        await eventually(lambda: not front.limits.pieces.in_use)


async def sending(front: FrontEnd, api: Api, path: str) -> asyncio.StreamWriter:
    """An upload of a large file of which nothing arrives."""
    _, writer = await asyncio.open_connection(URL(front.base_url).host, URL(front.base_url).port)
    lines = {"Host": "a", **api.headers, "Content-Length": str(64 << 20)}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode())
    return writer


async def test_a_large_answer_of_an_application_is_stored_without_holding_the_loop(front):
    organization_id, store = await front.organization(), front.services.operations.uploads.store
    async with front.api(organization_id) as api:
        drive = await api.connector("google-drive", DRIVE)
        path = await begun(drive)
    ids = organization_id, UUID(drive.record["id"]), UUID(path.rsplit("/", 1)[1])
    upload, answer = await store.get(*ids), b'{"name":"' + b'\\"' * (ANSWER_CAP // 2 - 10) + b'"}'

    # One statement stores the answer, whatever its size.
    assert await divided(store.complete(upload, answer), part=0.5)
    found = await divided(store.get(*ids), part=0.5)

    assert found.answer == answer


async def test_the_audit_log_has_the_beginning_and_the_end_of_an_upload_and_the_metrics_count_it_once(
    front, api, drive
):
    path = await begun(drive)
    headers = {**PART, "Upload-Offset": "0", "Upload-Complete": "?1", "Content-Length": str(len(CONTENT))}
    before = _executed()
    await cut_off(front, api, method="PATCH", path=path, headers=headers, content=CONTENT[: 3 << 20])
    await standing_at(api, path, PIECE)
    assert (await sent(api, path, 0, CONTENT)).status == 409

    answered = await sent(api, path, PIECE, CONTENT[PIECE:])
    repeated = await sent(api, path, PIECE, CONTENT[PIECE:])

    assert repeated.json()["result"] == answered.json()["result"]

    async def entries() -> list[dict[str, Any]]:
        found = (await api.get("/api/v1/audit")).json()["data"]
        return [each for each in found if each["connector_id"] == drive.record["id"]]

    await eventually(lambda: _ends_with(entries, 3))  # entries are written in batches
    recorded = await entries()
    assert [(each["what"], each["outcome"]) for each in recorded] == [
        ("files_upload.create", "succeeded"),
        ("files_upload.create", "accepted"),
        ("connector.create", "succeeded"),
    ]
    assert recorded[0]["target"] == answered.json()["result"]["id"]
    assert _executed() == before + 1


async def _ends_with(entries, count):
    return len(await entries()) == count


def _executed() -> float:
    [family] = EXECUTES.collect()
    return sum(sample.value for sample in family.samples if "files_upload" in sample.labels.values())


async def test_the_answer_is_kept_if_the_last_response_is_lost(front, api, drive):
    path = await begun(drive)
    headers = {**PART, "Upload-Offset": "0", "Upload-Complete": "?1", "Content-Length": str(len(CONTENT))}
    await cut_off(front, api, method="PATCH", path=path, headers=headers, content=CONTENT)

    state = await standing_at(api, path, len(CONTENT))

    assert state.json()["complete"]
    assert state.json()["answer"]["result"]["sha256Checksum"] == HASH


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize("trouble", [{"truncate_after_bytes": 0}, {"status": 503}, {"reset": True}])
async def test_the_offset_is_read_from_an_application_that_failed_within_a_piece(front, api, drive, trouble):
    path = await begun(drive)
    assert (await sent(api, path, 0, CONTENT[:PIECE], complete="?0")).status == 204

    async with fault(front.sandbox_url, kind="google-drive", method="PUT", times=1, **trouble):
        answered = await sent(api, path, PIECE, CONTENT[PIECE:])

    assert answered.status == 200, answered.body
    assert answered.json()["result"]["sha256Checksum"] == HASH


@pytest.mark.usefixtures("skipped_pauses")
async def test_an_unavailable_application_leaves_the_upload_at_its_offset(front, api, drive):
    path = await begun(drive)
    async with fault(front.sandbox_url, kind="google-drive", method="PUT", status=503):
        failed = await sent(api, path, 0, CONTENT)

    answered = await sent(api, path, 0, CONTENT)

    assert (failed.status, failed.json()["retryable"]) == (502, True)
    assert answered.json()["result"]["sha256Checksum"] == HASH


async def test_an_upload_is_not_found_by_another_organization_or_connector(front, api, drive):
    path = await begun(drive)
    other = await api.connector("google-drive", DRIVE)
    upload_id = path.rsplit("/", 1)[1]

    async with front.api() as stranger:
        answers = [
            await stranger.get(path),
            await sent(stranger, path, 0, CONTENT),
            await sent(api, f"{other.path}/uploads/{upload_id}", 0, CONTENT),
            await api.get(f"{other.path}/uploads/{upload_id}"),
        ]

    assert [answer.status for answer in answers] == [404] * 4


async def test_a_caller_without_the_scope_cannot_read_an_upload(front):
    organization_id = await front.organization()
    async with front.api(organization_id) as writer, front.api(organization_id, [Scope.READ]) as reader:
        path = await begun(await writer.connector("google-drive", DRIVE))
        answers = [await reader.get(path), await sent(reader, path, 0, CONTENT)]

    assert [answer.status for answer in answers] == [403, 403]


async def test_an_upload_that_expired_says_to_start_again(front, api, drive):
    path = await begun(drive)
    async with front.services.database.system() as connection:
        await connection.execute("UPDATE uploads SET expires_at = now() - interval '1 hour'")

    answers = [await api.get(path), await sent(api, path, 0, CONTENT)]
    await prune(front.services.database, PRUNE)
    kept = await api.get(path)
    async with front.services.database.system() as connection:
        await connection.execute("UPDATE uploads SET expires_at = now() - interval '2 days'")
    await prune(front.services.database, PRUNE)
    gone = await api.get(path)

    assert [answer.status for answer in (*answers, kept, gone)] == [410, 410, 410, 404]
    assert "start it again" in answers[0].json()["detail"]


async def test_an_upload_whose_session_ended_says_to_start_again(front, api, drive):
    path = await begun(drive)
    async with fault(front.sandbox_url, kind="google-drive", method="PUT", status=410):
        answer = await sent(api, path, 0, CONTENT)

    assert (answer.status, answer.json()["code"]) == (410, "upload_expired")
    assert (await noted(api, "files_upload.create"))["outcome"] == "upload_expired"


async def test_the_session_and_the_params_are_sealed(front, drive):
    await begun(drive)

    async with front.services.database.system() as connection:
        rows = await connection.fetch("SELECT uploads::text AS text FROM uploads")

    told = " ".join(row["text"] for row in rows) + " ".join(
        bytes.fromhex(found).decode("latin-1") for row in rows for found in re.findall(r"\\x([0-9a-f]+)", row["text"])
    )
    assert "googleapis" not in told
    assert "film.bin" not in told


async def test_of_two_concurrent_requests_the_later_one_continues(front):
    organization_id, store = await front.organization(), front.services.operations.uploads.store
    async with front.api(organization_id) as api:
        drive = await api.connector("google-drive", DRIVE)
        path = await begun(drive)
        upload = await store.get(organization_id, UUID(drive.record["id"]), UUID(path.rsplit("/", 1)[1]))
        earlier = await store.take(upload)

        answered = await sent(api, path, 0, CONTENT[: 1 << 20], complete="?0")

    assert answered.status == 204
    with pytest.raises(Conflict, match="another request continues"):
        await store.ensure_held(upload, earlier)


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({"Upload-Complete": "?0"}, 400, "Upload-Length"),
        ({"Upload-Complete": "yes"}, 400, "Upload-Complete must be ?1"),
        ({"Upload-Complete": "?1", "Upload-Length": "9"}, 400, "Upload-Length differs from Content-Length"),
        ({"Upload-Complete": "?0", "Upload-Length": str((1 << 30) + 1)}, 413, "GATEWAY_MAX_UPLOAD_BYTES"),
    ],
)
async def test_the_error_of_an_upload_that_cannot_begin_says_how_to_fix_it(api, drive, headers, status, message):
    response = await api.call("POST", f"{drive.path}/upload/files_upload", params=UPLOAD, headers=headers, data=b"x")

    assert response.status == status
    assert message in response.json()["detail"]


@pytest.mark.parametrize(
    ("headers", "size", "status", "message"),
    [
        ({"Upload-Offset": "0", "Upload-Complete": "?1"}, 9, 400, "send the rest of the file"),
        ({"Upload-Offset": "0", "Upload-Complete": "?0"}, 9, 400, "a multiple of 262144"),
        ({"Upload-Offset": "262144", "Upload-Complete": "?0"}, 262_144, 409, "continues at byte 0"),
        ({"Upload-Complete": "?1"}, 9, 400, "Upload-Offset"),
        ({"Upload-Offset": "0"}, 9, 400, "Upload-Complete must be ?1"),
        ({"Upload-Offset": "0", "Upload-Complete": "?1", "Content-Type": "text/plain"}, 9, 400, "partial-upload"),
    ],
)
async def test_the_error_of_an_invalid_part_says_why(api, drive, headers, size, status, message):
    path = await begun(drive)

    response = await api.call("PATCH", path, headers={**PART, **headers}, data=bytes(size))

    assert (response.status, message in response.json()["detail"]) == (status, True), response.json()


async def test_a_mismatch_names_the_offset_in_a_header(api, drive):
    response = await sent(api, await begun(drive), 7, CONTENT[7:])

    assert response.headers["Upload-Offset"] == "0"
    assert response.json()["expected_offset"] == 0


async def test_an_application_without_sessions_is_not_resumable(api, tracker):
    headers = {"Upload-Complete": "?0", "Upload-Length": "9"}

    response = await api.call("POST", path_of(tracker), params=FILE, headers=headers)

    assert (response.status, response.json()["code"]) == (422, "not_resumable")
    assert "leave out Upload-Complete" in response.json()["detail"]


async def test_the_python_client_resumes_after_a_broken_connection(front, tmp_path):
    file = tmp_path / "film.bin"
    file.write_bytes(CONTENT)

    async with Gateway(front.base_url, *await front.client(), "w") as direct:
        await direct.connectors.create("google-drive", DRIVE)
    async with (
        CutConnections(front.base_url, [3 << 20, 1 << 20]) as cut,
        Gateway(cut.url, direct.settings.client_id, direct.settings.client_secret, "w") as gateway,
    ):
        answer = await gateway.upload("google-drive", "files_upload", file)

    assert cut.cuts == []
    assert answer.result["sha256Checksum"] == HASH


async def test_the_python_client_sends_a_large_file_in_one_request_if_the_application_has_no_sessions(front, tmp_path):
    file = tmp_path / "film.bin"
    file.write_bytes(CONTENT)

    async with Gateway(front.base_url, *await front.client(), "w") as gateway:
        await gateway.connectors.create("jira", CREDENTIALS, environment=ENVIRONMENT)
        answer = await gateway.upload("jira", "issue_attachments", file, {"issueIdOrKey": "ACME-7"})

    assert answer.result["file"]["filename"] == "film.bin"
