"""Files through the gateway: by POST, as a plain resource, stored, and in chunks."""

import hashlib

from gateway.sandbox import files
from tests.journeys.conftest import Api, ConnectorApi


async def test_a_file_comes_through_whole(support_desk: ConnectorApi):
    answer = await support_desk.send("attachments", "download", {"attachment_id": 2})

    assert answer.status == 200
    assert answer.headers["Content-Length"] == str(2 << 20)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="file-2.bin"'
    assert hashlib.sha256(answer.body).hexdigest() == files.sha256_of(2)


async def test_a_part_of_a_file_comes_by_header_or_param(support_desk: ConnectorApi):
    params = {"attachment_id": files.number_for(1000)}
    whole = await support_desk.send("attachments", "download", params)

    by_header = await support_desk.send("attachments", "download", params, headers={"Range": "bytes=10-19"})
    by_param = await support_desk.send("attachments", "download", {**params, "range_header": "bytes=10-19"})

    assert [by_header.status, by_param.status] == [206, 206]
    assert by_header.headers["Content-Range"] == "bytes 10-19/1000"
    assert by_header.body == by_param.body == whole.body[10:20]


async def test_a_stored_file_is_the_result_of_its_job(api: Api, support_desk: ConnectorApi):
    accepted = await support_desk.send(
        "attachments", "download", {"attachment_id": 3}, headers={"Prefer": "respond-async"}
    )

    result = await api.get(f"/api/v1/jobs/{accepted.json()['job']['id']}/result?wait=30")

    assert accepted.status == 202
    assert result.status == 200
    assert result.headers["ETag"] == f'"{files.sha256_of(3)}"'
    assert hashlib.sha256(result.body).hexdigest() == files.sha256_of(3)
