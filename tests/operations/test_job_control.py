"""Jobs that callers cancel and retry, on a real PostgreSQL and Redis."""

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import msgspec
import pytest

from gateway.access.audit.log import Audit
from gateway.access.identity.model import PersonSession
from gateway.connectors.resolver import ConnectorResolver
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.foundation.vault.vault import Vault
from gateway.jobs.acceptance import JobAcceptance
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.sealing import JobSealing
from gateway.jobs.store import JobStore
from gateway.jobs.wakeup import Wakeup
from gateway.operations.job_control import JobControl
from tests.connectors.consent.conftest import KEY, World, catalog, opening, server, world  # noqa: F401 - fixtures

#: members in which a retry differs: its own id and data key, the call that asks for it, that a caller waits for it, and
#: that it is counted when it starts
OWN = {
    "id", "client_id", "session", "surface", "request_id", "is_background", "is_counted", "wrapped_key", "traceparent",
}  # fmt: skip
#: members of the first job that its row has, and no look-up reads
UNREAD = {"token_hash", "is_answer"}
#: members of a new job that are read again
SHARED = [name for name in NewJob.__struct_fields__ if name in StoredJob.__struct_fields__]
DEFAULTS = {
    each.name: each.default_factory() if each.default_factory is not msgspec.NODEFAULT else each.default
    for each in msgspec.structs.fields(NewJob)
    if not each.required
}


@pytest.fixture
async def control(world: World, redis_url: str) -> AsyncIterator[JobControl]:  # noqa: F811
    database, audit = world.database, Audit(world.database)
    jobs = JobStore(database, 3600, JobSealing(Vault([KEY])))
    resolver = ConnectorResolver(
        world.connectors, world.catalog, world.upstreams, world.oauth.authorizers, lambda: True
    )
    async with Wakeup.open(redis_url) as wakeup:
        yield JobControl(audit, resolver, jobs, JobAcceptance(database, jobs, wakeup, 100))


async def test_a_retry_has_every_member_of_the_job_but_its_own(control: JobControl, world: World) -> None:  # noqa: F811
    connector = await world.connector("work-management", world.server.pair())
    new = NewJob(
        id=uuid4(),
        organization_id=connector.organization_id,
        client_id=UUID(int=1),
        session=PersonSession(id=UUID(int=3), client_id=UUID(int=4)),
        connector_id=connector.id,
        workspace_name=connector.workspace_name,
        kind=connector.kind,
        entity="tasks",
        action="create",
        params={"name": "n"},
        selection={"fields": ["id"]},
        effect=Effect.WRITE,
        surface=Surface.MCP,
        is_background=True,
        labels={"label": "l"},
        request_id="r-1",
        callback=UUID(int=2),
        find_by="a list",
        target="42",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    job = (await control.jobs.accept(new)).job
    await world.sql("UPDATE jobs SET status = 'failed', finished_at = now() WHERE id = $1", job.id)
    failed = await control.jobs.get(job.organization_id, job.id)

    again = await control.retry(world.caller, failed, Surface.CONSOLE, confirm=False, request_id="r-2")

    stored = await control.jobs.get_stored(again.organization_id, again.id)
    assert {name for name in SHARED if getattr(stored, name) != getattr(job, name)} == OWN
    assert set(NewJob.__struct_fields__) - set(SHARED) == UNREAD
    assert [name for name in SHARED if getattr(job, name) == DEFAULTS.get(name)] == ["task", "is_inline", "is_counted"]
