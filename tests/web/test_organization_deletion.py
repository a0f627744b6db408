"""Deletion of an organization: nothing of it is left, others keep everything, and the certificate can be verified."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway.foundation.db.pruning import prune
from gateway.operations.organization_deletion import PRUNE_ORGANIZATIONS
from tests.harness.caller import Api, ConnectorApi
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually
from tests.web.test_policies import EVERYTHING, UPDATE, put, run_jobs

PATH = "/api/v1/organization"
_TABLES = """
    SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace
      AND attname = 'organization_id'
"""
#: what is kept: the job with its events, the membership of the caller, and what logs have of the deletion itself
KEPT = {"jobs", "job_events", "job_results", "client_organizations", "events", "event_feeds", "usage_counts"}
KEPT |= {"audit", "audit_chain", "audit_heads", "audit_checkpoints"}


@dataclass(frozen=True)
class Busy:
    """An organization that has something of every sort."""

    front: FrontEnd
    id: UUID
    name: str
    admin: Api
    other: Api
    desk: ConnectorApi

    async def rows(self) -> dict[str, int]:
        """The number of rows by table."""
        async with self.front.services.database.system() as connection:
            tables = [row["relname"] for row in await connection.fetch(_TABLES)]
            counts = {
                name: await connection.fetchval(f'SELECT count(*) FROM "{name}" WHERE organization_id = $1', self.id)
                for name in tables
            }
        return {name: count for name, count in counts.items() if count}

    async def delete(self, confirm: str | None = None, api: Api | None = None) -> Any:
        return await (api or self.admin).call("DELETE", PATH, params={"confirm": confirm or self.name})


@pytest.fixture
async def busy(front: FrontEnd) -> AsyncIterator[Busy]:
    organization_id = await front.organization()
    async with front.services.database.system() as connection:
        name = await connection.fetchval("SELECT name FROM organizations WHERE id = $1", organization_id)
    async with front.api(organization_id) as admin, front.api(organization_id) as other:
        desk = await admin.connector()
        await put(admin, f"{EVERYTHING} forbid(principal, action, resource) when {{ context.writes.today > 90 }};")
        await desk.execute("tickets", "update", UPDATE)
        await desk.submit("tickets", "list", {"per_page": 2})
        await desk.send("tickets", "list", {"per_page": 100}, output={"file": "csv"})
        await admin.post(f"{desk.path}/batch", {"operations": [{"entity": "tickets", "action": "list"}]})
        await admin.post(f"{desk.path}/context-store/sync", {"entities": ["tickets"]})
        await run_jobs(front)
        cron = {"name": "s", "connector_id": desk.record["id"], "entity": "tickets", "action": "list"}
        await admin.post("/api/v1/schedules", {**cron, "cron": "0 6 * * *"})
        await admin.post("/api/v1/webhooks", {"url": "https://hooks.example/", "types": ["job.*"]})
        await admin.post("/api/v1/people", {"email": f"{organization_id.hex}@example.com", "scopes": ["read"]})
        await admin.call("PUT", "/api/v1/budgets/b", json={"per": "day", "calls": 1000})
        await admin.call("PUT", "/api/v1/groups/g", json={"scopes": ["read"], "workspaces": []})
        yield Busy(front, organization_id, name, admin, other, desk)


async def test_nothing_is_left_of_a_deleted_organization(busy: Busy, api: Api):
    others = await api.connector()
    before = await busy.rows()

    job = (await busy.delete()).document(202)["job"]
    await run_jobs(busy.front)
    ended = (await busy.admin.get(f"/api/v1/jobs/{job['id']}")).document()
    after = await busy.rows()

    assert ended["status"] == "succeeded", ended["error"]
    assert {"connectors", "schedules", "webhooks", "policies", "budgets", "groups", "audit"} <= before.keys()
    assert after.keys() <= KEPT
    assert (after["jobs"], after["client_organizations"]) == (1, 1)
    assert after.get("audit", 0) <= 2
    assert (await others.send("tickets", "list", {"per_page": 1})).status == 200


async def test_the_certificate_says_what_was_deleted_and_is_signed(busy: Busy):
    before = await busy.rows()
    job = (await busy.delete()).document(202)["job"]
    await run_jobs(busy.front)

    certificate = (await busy.admin.get(f"/api/v1/jobs/{job['id']}/result")).document()["result"]
    async with busy.front.api() as elsewhere:
        [key] = (await elsewhere.get("/api/v1/audit/keys")).document()

    assert certificate["organization"] == {"id": str(busy.id), "name": busy.name}
    deleted = certificate["deleted"]
    assert deleted["connectors"] == 1
    assert deleted["jobs"] >= 4
    assert all(deleted[name] == before[name] for name in ("policies", "budgets", "schedules", "webhooks", "groups"))
    signature = base64.b64decode(certificate.pop("signature"))
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key["public_key"]))
    public.verify(signature, rfc8785.dumps(certificate))
    assert certificate["key_id"] == key["key_id"]


async def test_everybody_is_refused_at_once_and_the_caller_only_reads(busy: Busy):
    assert (await busy.other.get("/api/v1/jobs")).status == 200

    await busy.delete()

    async def is_refused() -> bool:
        return (await busy.other.get("/api/v1/jobs")).status in (401, 403)

    async def only_reads() -> bool:
        return (await busy.admin.get("/api/v1/audit")).status == 403

    await eventually(is_refused)
    await eventually(only_reads)
    assert (await busy.admin.get("/api/v1/integrations/connectors")).document()["data"] == []
    async with busy.front.services.database.system() as connection:
        assert await connection.fetchval("SELECT id FROM organizations WHERE name = $1", busy.name) is None


async def test_only_the_name_confirms(busy: Busy):
    wrong = await busy.delete("another")
    missing = await busy.admin.call("DELETE", PATH)
    async with busy.front.api(busy.id, ["read", "write"]) as writer:
        forbidden = await busy.delete(api=writer)

    assert (wrong.status, missing.status, forbidden.status) == (422, 422, 403)
    assert (await busy.desk.send("tickets", "list", {"per_page": 1})).status == 200


async def test_a_deletion_that_ended_early_is_done_by_another_job(busy: Busy):
    deletion = busy.front.services.operations.organization_deletion
    job = (await busy.delete()).document(202)["job"]
    async with busy.front.services.database.system() as connection:
        await connection.execute(
            "UPDATE jobs SET status = 'failed', finished_at = now() WHERE id = $1", UUID(job["id"])
        )

    replaced = await deletion.resume()
    await run_jobs(busy.front)

    assert replaced == 1
    assert await deletion.resume() == 0
    assert "connectors" not in await busy.rows()


async def test_the_organization_itself_is_deleted_when_the_result_has_expired(busy: Busy):
    database = busy.front.services.database
    job = (await busy.delete()).document(202)["job"]
    await run_jobs(busy.front)
    await prune(database, PRUNE_ORGANIZATIONS)
    async with database.system() as connection:
        kept = await connection.fetchval("SELECT count(*) FROM organizations WHERE id = $1", busy.id)
        await connection.execute("DELETE FROM jobs WHERE id = $1", UUID(job["id"]))

    await prune(database, PRUNE_ORGANIZATIONS)

    async with database.system() as connection:
        left = await connection.fetchval("SELECT count(*) FROM organizations WHERE id = $1", busy.id)
    assert (kept, left) == (1, 0)
    assert (await busy.admin.get("/api/v1/jobs")).status in (401, 403)


async def test_what_logs_write_later_is_deleted_too(busy: Busy):
    await busy.delete()
    await run_jobs(busy.front)
    async with busy.front.services.database.system() as connection:
        await connection.execute(
            """INSERT INTO audit (organization_id, at, what, outcome, entry_kind)
               VALUES ($1, now() - interval '1 hour', 'tickets.list', 'succeeded', 'event')""",
            busy.id,
        )

    await busy.front.services.operations.organization_deletion.resume()

    async with busy.front.services.database.system() as connection:
        left = "SELECT count(*) FROM audit WHERE organization_id = $1 AND what = 'tickets.list'"
        assert await connection.fetchval(left, busy.id) == 0
