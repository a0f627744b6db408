"""Every page of the console for an empty organization, and for one in which everything failed."""

import re
from collections.abc import AsyncIterator
from typing import NoReturn
from uuid import UUID, uuid4

import pytest

from gateway.context_store import entities
from gateway.context_store.sync import schedule, sources
from gateway.contract.events import DeliveryStatus, EventType, NewWebhook
from gateway.contract.kinds import Effect
from gateway.contract.people import GroupView, NewPerson
from gateway.contract.policies import PolicyMode
from gateway.contract.schedules import ScheduleDefinition
from gateway.errors import GatewayError, UpstreamError, UpstreamFault, UpstreamTimeout
from gateway.events.model import Event
from gateway.events.store import WebhookStore
from gateway.events.webhook import Delivery, TurnResult
from gateway.foundation.aio.clock import CLOCK
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.run_context import JobRunContext, Work
from gateway.web.console.routes import CONSOLE_ROUTES
from tests.harness.clients import caller_of
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd

#: results and CSV files are downloads, not pages
PAGES = [
    route.path
    for route in CONSOLE_ROUTES
    if route.method == "GET" and not route.is_open and not route.path.endswith(("/result", ".csv", "{page:.*}", ".zip"))
]
#: a name that pages must escape
REASON = "the application said <no> to everything"
REFUSED = UpstreamError(REASON, upstream=UpstreamFault(status=403, message=REASON))
LOST = UpstreamTimeout(REASON)
_REFUSE = "UPDATE connectors SET status = 'needs_reauth', status_reason = $2 WHERE id = $1"


async def refused(_job: StoredJob, _run_context: JobRunContext) -> NoReturn:
    raise REFUSED


async def lost(_job: StoredJob, run_context: JobRunContext) -> NoReturn:
    await run_context.mark_in_flight()
    raise LOST


class FailingWorld:
    """An organization in which everything failed, created through the stores and the job runner."""

    def __init__(self, front: FrontEnd, organization_id: UUID) -> None:
        self.services = front.services
        self.front = front
        self.organization_id = organization_id

    async def connector(self) -> UUID:
        """A connector whose synchronizations all failed and whose credentials the application refuses."""
        async with self.front.api(self.organization_id) as api:
            connector_id = UUID((await api.connector()).record["id"])
        kind = self.services.catalog.kind("support-desk")
        names = sources.synchronized(kind)
        async with self.services.database.tenant(self.organization_id) as connection, connection.transaction():
            for entity in await schedule.register_all(connection, connector_id, self.organization_id, kind, names):
                await entities.fail(connection, entity, REFUSED, None)
        async with self.services.database.system() as connection:
            await connection.execute(_REFUSE, connector_id, REASON)
        return connector_id

    async def schedule(self, connector_id: UUID) -> UUID:
        """A schedule with a slot that was due while its connector could not be called."""
        definition = ScheduleDefinition(
            name="<no>", connector_id=connector_id, entity="tickets", action="list", cron="@daily"
        )
        caller = caller_of(self.organization_id)
        made = await self.services.operations.schedules.create(caller, definition)
        async with self.services.database.system() as connection:
            await connection.execute("UPDATE schedules SET next_run_at = now() WHERE id = $1", made.id)
        await self.services.operations.due_runs.start()
        return UUID(made.id)

    async def webhook(self) -> UUID:
        """A webhook that was disabled after a delivery failed."""
        request = NewWebhook(url="https://app.example.com/webhooks", types=["job.*"])
        made = await self.services.events.webhooks.create(caller_of(self.organization_id), request)
        store = WebhookStore(self.services.database, self.services.keys.vault)
        webhook = await store.get(self.organization_id, UUID(made.id), None)
        event = Event(id=1, type=EventType.JOB_FAILED, at=CLOCK.now(), data={"job_id": str(uuid4())})
        delivery = Delivery(
            event=event,
            status=DeliveryStatus.FAILED,
            attempts=3,
            response_status=500,
            duration_ms=41,
            response_body=REASON,
        )
        result = TurnResult(
            deliveries=[delivery],
            position=webhook.position,
            failures=3,
            failing_since=CLOCK.now(),
            hold=0.0,
            disabled_because=REASON,
        )
        assert await store.finish(webhook, result)
        return webhook.id

    async def person(self) -> UUID:
        """A person who may do nothing, of a group that may do nothing, and a policy about them that was only tried."""
        caller = caller_of(self.organization_id)
        await self.front.access.directory.put_group(caller, GroupView("<no>", [], []))
        person = await self.front.access.directory.create(caller, NewPerson(name="<no>", groups=["<no>"]))
        await self.services.policy.change.put(
            caller, "never", "forbid(principal, action, resource);", PolicyMode.SHADOW, "<no>", None
        )
        return UUID(person.id)

    async def job(self, connector_id: UUID, work: Work, effect: Effect) -> UUID:
        """A job whose run raised an error."""
        new = NewJob(
            id=uuid4(),
            organization_id=self.organization_id,
            connector_id=connector_id,
            entity="tickets",
            action="update",
            effect=effect,
        )
        accepted = await self.services.jobs.store.accept(new, claimed_by=self.services.jobs.runner.worker)
        with pytest.raises(GatewayError):
            await self.services.jobs.runner.run(accepted.job, work)
        return new.id


@pytest.fixture(scope="module")
async def failing(front: FrontEnd) -> AsyncIterator[tuple[ConsoleBrowser, dict[str, UUID]]]:
    """A browser signed in to an organization in which everything failed, and the ids of its resources."""
    world = FailingWorld(front, await front.organization())
    connector_id = await world.connector()
    ids = {
        "connector_id": connector_id,
        "schedule": await world.schedule(connector_id),
        "webhook": await world.webhook(),
        "person": await world.person(),
        "failed": await world.job(connector_id, refused, Effect.READ),
        "unknown": await world.job(connector_id, lost, Effect.WRITE),
        "repeatable": await world.job(connector_id, lost, Effect.IDEMPOTENT),
    }
    client_id, secret = await front.client(world.organization_id)
    async with signed_in(front, client_id, secret) as browser:
        yield browser, {**ids, "client": UUID(client_id)}


@pytest.fixture(scope="module")
async def empty(front: FrontEnd) -> AsyncIterator[ConsoleBrowser]:
    """A browser signed in to an organization that has nothing but its client."""
    async with signed_in(front, *await front.client()) as browser:
        yield browser


@pytest.mark.parametrize("path", [path for path in PAGES if "{" not in path])
async def test_a_page_is_shown_for_an_empty_organization(empty: ConsoleBrowser, path: str):
    answer = await empty.get(path)

    assert answer.status == 200
    assert b"</html>" in answer.body


@pytest.mark.parametrize("path", [path for path in PAGES if "{" in path])
async def test_the_page_of_something_unknown_is_an_error_page(empty: ConsoleBrowser, path: str):
    answer = await empty.get(
        path.format(
            connector_id=uuid4(),
            job_id=uuid4(),
            schedule_id=uuid4(),
            webhook_id=uuid4(),
            approval_id=uuid4(),
            person_id=uuid4(),
            client_id=uuid4(),
            kind="parcels",
            version=1,
            name="unknown",
        )
    )

    assert answer.status == 404
    assert b"</html>" in answer.body


@pytest.mark.parametrize("job", ["failed", "unknown", "repeatable"])
@pytest.mark.parametrize(
    "path", [path for path in PAGES if not {"{kind}", "{approval_id}"} & {*re.findall(r"{\w+}", path)}]
)
async def test_a_page_is_shown_after_everything_failed(failing, path: str, job: str):
    browser, ids = failing

    answer = await browser.get(
        path.format(
            connector_id=ids["connector_id"],
            job_id=ids[job],
            schedule_id=ids["schedule"],
            webhook_id=ids["webhook"],
            person_id=ids["person"],
            client_id=ids["client"],
            name="never",
        )
    )

    assert answer.status == 200
    assert b"</html>" in answer.body
    assert b"<no>" not in answer.body


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/console", b"must be authorized again"),
        ("/console/connectors", b"the application said &lt;no&gt; to everything"),
        ("/console/connectors/{connector_id}", b"the application said &lt;no&gt; to everything"),
        ("/console/jobs", b"the application said &lt;no&gt; to everything"),
        ("/console/jobs/{failed}", b"What went wrong"),
        ("/console/jobs/{unknown}", b"It may have been done already. Run it again although that may be done twice"),
        ("/console/jobs/{repeatable}", b"Running it again does no harm."),
        ("/console", b"copies for search, 20 of them failed"),
        ("/console", b"<strong>2</strong> are unknown"),
        ("/console/health", b"the last synchronization of 20 of 20 entities failed"),
        ("/console/health", b"of the last day, 1 failed and 2 are unknown"),
        ("/console/schedules", b"its connector is needs_reauth"),
        ("/console/schedules/{schedule}", b"was not run: its connector is needs_reauth"),
        ("/console", b"is disabled: the application said &lt;no&gt; to everything"),
        ("/console/webhooks", b"the application said &lt;no&gt; to everything"),
        ("/console/webhooks/{webhook}", b"<pre>the application said &lt;no&gt; to everything</pre>"),
        ("/console/webhooks/{webhook}?status=pending", b"No delivery has this status"),
        ("/console/health", b"does not answer"),
        ("/console/search?connector={connector_id}&entity=tickets&field=no_such&operator=eq&value=a", b'role="alert"'),
    ],
)
async def test_a_page_shows_what_failed(failing, path: str, shown: bytes):
    browser, ids = failing

    answer = await browser.get(path.format(**ids))

    assert answer.status == 200
    assert shown in answer.body


async def test_each_entity_whose_synchronization_failed_shows_its_error(failing):
    browser, ids = failing

    answer = await browser.get(f"/console/connectors/{ids['connector_id']}?tab=copies")

    rows = answer.body.decode().partition('id="copies"')[2].split("<tr>")[2:]
    assert rows
    assert all("failed" in row and "the application said &lt;no&gt; to everything" in row for row in rows)


async def test_the_playground_shows_the_error_of_a_call(failing):
    browser, ids = failing
    fields = {"operation": "support-desk.tickets.list", "connector": str(ids["connector_id"]), "do": "run"}

    answer = await browser.send("/console/playground", csrf=await browser.csrf(), **fields)

    assert answer.status == 422
    assert b'<p class="notice" role="alert">' in answer.body


async def test_the_result_of_a_failed_job_is_an_error_page(failing):
    browser, ids = failing

    answer = await browser.get(f"/console/jobs/{ids['failed']}/result")

    assert answer.status == 502
    assert b"</html>" in answer.body


async def test_an_unknown_job_is_offered_to_run_again_by_what_a_repetition_does(failing):
    browser, ids = failing

    pages = {job: (await browser.get(f"/console/jobs/{ids[job]}")).body for job in ("unknown", "repeatable")}
    listed = (await browser.get("/console/jobs")).body.decode()

    assert (b'name="confirm"' in pages["unknown"], b'name="confirm"' in pages["repeatable"]) == (True, False)
    assert (b"does no harm" in pages["unknown"], b"may be done twice" in pages["repeatable"]) == (False, False)
    assert all(b">Run again</button>" in page for page in pages.values())
    assert [job for job in ("failed", "unknown", "repeatable") if f'name="job:{ids[job]}"' in listed] == [
        "failed",
        "repeatable",
    ]


async def test_the_checks_tell_failed_copies_and_jobs(failing):
    browser, _ids = failing

    document = (await browser.get("/console/health")).body.decode()

    assert re.findall(r'class="status (\w+)">\w+</span> <strong>(Jobs|Copies)</strong>', document) == [
        ("warning", "Jobs"),
        ("warning", "Copies"),
    ]
