"""`verify` accepts only deliveries that the gateway signed; the receivers in the how-to work as printed."""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestClient, TestServer

from gateway.client.webhooks import verify
from gateway.errors import Unauthorized
from gateway.events.signing import new_secret, signed_headers
from tests.harness.processes import Program, free_port

BODY = b'{"id":7,"type":"record.updated","at":"2026-03-01T09:00:00Z","data":{"entity":"tickets","record_id":"1"}}'
HOW_TO = (Path(__file__).parents[2] / "docs" / "how-to" / "events.md").read_text("utf-8")
RECEIVER = re.compile(r"```python receiver\n(.*?)```", re.DOTALL)
TYPESCRIPT_RECEIVER = re.compile(r"```typescript receiver\n(.*?)```", re.DOTALL)
#: the folder with node 22 and the packages of TypeScript programs, set by `.ci/run`
NPM = os.environ.get("TYPESCRIPT_CLIENT")


def signed(*secrets, at=None, body=BODY):
    return signed_headers("msg_1", at or datetime.now(UTC), secrets, body)


def test_a_delivery_signed_with_the_secret_is_an_event():
    secret = new_secret()

    event = verify(BODY, signed(secret), secret)

    assert (event.id, event.type, event.data["record_id"]) == (7, "record.updated", "1")


def test_a_test_event_verifies_too():
    secret, body = new_secret(), BODY.replace(b"record.updated", b"webhook.test")

    assert verify(body, signed(secret, body=body), secret).type == "webhook.test"


def test_during_a_rotation_either_secret_verifies():
    old, new = new_secret(), new_secret()
    headers = signed(new, old)

    assert [verify(BODY, headers, each).id for each in (old, new, [new_secret(), old])] == [7, 7, 7]


@pytest.mark.parametrize(
    ("change", "body"),
    [
        ({}, BODY + b" "),
        ({"webhook-id": "msg_2"}, BODY),
        ({"webhook-timestamp": "1"}, BODY),
        ({"webhook-signature": "v1,AAAA"}, BODY),
        ({"webhook-signature": "nonsense"}, BODY),
        ({"webhook-signature": ""}, BODY),
    ],
)
def test_a_changed_delivery_is_refused(change, body):
    secret = new_secret()

    with pytest.raises(Unauthorized):
        verify(body, {**signed(secret), **change}, secret)


@pytest.mark.parametrize("minutes", [-6, 6])
def test_an_old_or_future_delivery_is_refused(minutes):
    secret = new_secret()

    with pytest.raises(Unauthorized, match="too"):
        verify(BODY, signed(secret, at=datetime.now(UTC) + timedelta(minutes=minutes)), secret)


async def test_the_receiver_of_the_how_to_accepts_only_signed_deliveries(capsys):
    names: dict = {}
    exec(RECEIVER.search(HOW_TO)[1], names)
    secret = new_secret()
    with patch.dict(os.environ, {"WEBHOOK_SECRET": secret}):
        async with TestClient(TestServer(names["app"])) as client:
            taken = await client.post("/webhooks", data=BODY, headers=signed(secret))
            refused = await client.post("/webhooks", data=BODY, headers=signed(new_secret()))

    assert (taken.status, refused.status) == (204, 401)
    assert "record.updated" in capsys.readouterr().out


@pytest.mark.processes
@pytest.mark.skipif(NPM is None, reason="TYPESCRIPT_CLIENT names no folder with node 22 and standardwebhooks")
async def test_the_receiver_in_typescript_accepts_only_signed_deliveries(tmp_path):
    (tmp_path / "receiver.mts").write_text(TYPESCRIPT_RECEIVER.search(HOW_TO)[1])
    packages = Path(NPM) / "node_modules"
    (tmp_path / "node_modules").symlink_to(packages)
    secret, url = new_secret(), f"http://127.0.0.1:{(port := free_port())}/webhooks"
    node = Program(
        *(
            str(packages / "node" / "bin" / "node"),
            "--disable-warning=ExperimentalWarning",
            str(tmp_path / "receiver.mts"),
        ),
        environment={**os.environ, "WEBHOOK_SECRET": secret, "PORT": str(port)},
        log=tmp_path / "receiver.log",
    )
    await node.start()
    try:
        await node.answers(url)
        async with ClientSession() as session:
            taken = await session.post(url, data=BODY, headers=signed(secret))
            refused = await session.post(url, data=BODY, headers=signed(new_secret()))
    finally:
        await node.kill()

    assert (taken.status, refused.status) == (204, 401)
    assert "record.updated" in (tmp_path / "receiver.log").read_text()
