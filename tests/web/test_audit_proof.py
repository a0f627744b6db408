"""The audit log is exported with a proof that anybody can check."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.foundation.proof import hash_of, verified
from tests.harness.caller import Api, ConnectorApi
from tests.harness.command_line import invoked
from tests.harness.in_process import FrontEnd
from tests.harness.processes import bare_environment
from tests.harness.waiting import eventually

EXPORT = "/api/v1/audit/export"
UPDATE = {"ticket_id": 1, "ticket": {"status": "solved"}}
VERIFIER = Path(__file__).with_name("verify_audit.mjs")


async def exported(api: Api, query: str = "") -> list[str]:
    answer = await api.get(EXPORT + query)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
    return answer.body.decode().splitlines()


async def noted(api: Api, lists: int = 1) -> None:
    """Wait until the log has so many calls of the list: processes write entries in batches."""

    async def are_there() -> bool:
        entries = (await api.get("/api/v1/audit?operation=tickets.list")).document()["data"]
        return len(entries) == lists

    await eventually(are_there)


async def keys_of(api: Api) -> list[str]:
    return [each["public_key"] for each in (await api.get("/api/v1/audit/keys")).document()]


@pytest.fixture
async def busy(api: Api, support_desk: ConnectorApi) -> ConnectorApi:
    await support_desk.execute("tickets", "update", UPDATE)
    await support_desk.execute("tickets", "list", {"per_page": 1})
    return support_desk


async def test_an_exported_log_is_a_chain_with_intents_and_settlements(front: FrontEnd, api: Api, busy: ConnectorApi):
    await noted(api)

    lines = await exported(api)

    documents = [json.loads(line) for line in lines]
    entries = [each for each in documents if not each.get("checkpoint")]
    assert [each["seq"] for each in entries] == list(range(1, len(entries) + 1))
    assert entries[0]["previous"] == "0" * 64
    for each in entries:
        assert each["hash"] == hash_of({name: value for name, value in each.items() if name != "hash"})
    update = [each for each in entries if each["what"] == "tickets.update"]
    assert [each["kind"] for each in update] == ["intent", "settlement"]
    assert update[0]["call_id"] == update[1]["call_id"]
    assert update[1]["actor"]["client"]["id"]
    assert documents[-1]["checkpoint"]
    assert verified(lines, await keys_of(api)).fault is None


async def test_a_period_is_exported_without_gaps(front: FrontEnd, api: Api, busy: ConnectorApi):
    await noted(api)
    lines = await exported(api)
    entries = [each for each in map(json.loads, lines) if not each.get("checkpoint")]

    part = await exported(api, f"?since={entries[1]['at']}")

    assert verified(part, await keys_of(api)).fault is None
    assert [each["seq"] for each in map(json.loads, part) if not each.get("checkpoint")] == [
        each["seq"] for each in entries[1:]
    ]
    assert await exported(api, "?until=2020-01-01T00:00:00Z") == []


async def test_chains_continue_and_are_each_of_one_organization(front: FrontEnd, api: Api, busy: ConnectorApi):
    await noted(api)
    before = await exported(api)
    async with front.api() as stranger:
        await (await stranger.connector()).execute("tickets", "list", {"per_page": 1})
        await noted(stranger)
        others = await exported(stranger)
    await busy.execute("tickets", "list", {"per_page": 1})
    await noted(api, 2)

    after = await exported(api)

    first = [line for line in before if '"checkpoint"' not in line]
    assert [line for line in after if '"checkpoint"' not in line][: len(first)] == first
    assert len(after) > len(before)
    assert not {json.loads(line)["hash"] for line in others} & {json.loads(line)["hash"] for line in after}


async def test_pruned_entries_leave_a_chain_that_can_be_checked(front: FrontEnd, api: Api, busy: ConnectorApi):
    await noted(api)
    lines = await exported(api)
    oldest = json.loads(lines[0])["id"]
    async with front.services.database.system() as connection:
        await connection.execute("RESET ROLE")
        await connection.execute("DELETE FROM audit WHERE id = $1", int(oldest))

    left = await exported(api)

    assert json.loads(left[0])["seq"] == 2
    assert verified(left, await keys_of(api)).fault is None


async def test_only_administrators_of_the_whole_organization_export(front: FrontEnd):
    async with front.api(None, ["read", "write"]) as other:
        answers = [await other.get(EXPORT), await other.get("/api/v1/audit/keys")]

    assert [each.document(403)["code"] for each in answers] == ["insufficient_scope"] * 2


async def test_the_command_line_exports_and_verifies(front: FrontEnd, busy: ConnectorApi, api: Api, tmp_path: Path):
    await noted(api)
    file, key = tmp_path / "audit.ndjson", (await keys_of(api))[0]
    file.write_text("\n".join(await exported(api)) + "\n")

    whole = await invoked(
        "audit", "verify", str(file), "--key", key, environment=bare_environment(), directory=tmp_path
    )
    file.write_text(file.read_text().replace("tickets.update", "tickets.delete", 1))
    altered = await invoked(
        "audit", "verify", str(file), "--key", key, environment=bare_environment(), directory=tmp_path
    )

    assert (whole.code, "whole and unaltered" in whole.err) == (0, True)
    assert (altered.code, "was altered" in altered.err) == (1, True)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
async def test_a_verifier_in_another_language_agrees(front: FrontEnd, busy: ConnectorApi, api: Api, tmp_path: Path):
    """It is written from docs/how-to/audit-proof.md alone."""
    await noted(api)
    file, key = tmp_path / "audit.ndjson", (await keys_of(api))[0]
    file.write_text("\n".join(await exported(api)) + "\n")

    def run() -> int:
        return subprocess.run(["node", str(VERIFIER), str(file), key], check=False, timeout=60).returncode

    text = file.read_text()
    codes = []
    for altered in (text, text.replace("tickets.update", "tickets.delete", 1), text.replace("{", '{"what":"none",', 1)):
        file.write_text(altered)
        codes.append(run())

    assert codes == [0, 1, 1]
