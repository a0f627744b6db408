"""A form of the console that is sent twice, as by a double click, does its work once."""

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from gateway.foundation.aio.loops import every, running
from gateway.web.console.routes import CONSOLE_ROUTES
from tests.events.receiver import Receiver
from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.waiting import eventually
from tests.kinds.importing.documents import RECORD, answer, document
from tests.web.test_me import browser_of
from tests.web.test_personal_connectors import person_of

#: the last words of the audit names of forms that may be repeated: the second one finds nothing left to do
REPEATABLE = [
    "delete",
    "end",
    "revoke",
    "update",
    "check",
    "serve",
    "cancel",
    "decide",
    "put",
    "rude",
    "calm",
    "disable",
    "sign_out",
]
DOCUMENT = json.dumps(document({"/parcels": {"get": {"operationId": "getParcels", "responses": answer(RECORD)}}}))
TICKET = json.dumps({"subject": "Sent twice", "comment": {"body": "once"}})


@dataclass(frozen=True)
class Form:
    """Where a form stands, and what a person types; names in braces are those of the setting."""

    page: str
    typed: Mapping[str, str]
    #: the table whose rows are counted, or the name of the audit entries that are
    counted: str


#: by the path of the route: all forms that create or send something
FORMS: Mapping[str, Form] = {
    "/console/me/connect": Form("/console/me", {}, "connect_sessions"),
    "/console/connectors/connect": Form("/console/connectors", {"workspace_name": "acme"}, "connect_sessions"),
    "/console/connectors/{connector_id}/renew": Form(
        "/console/connectors/{connector_id}?tab=settings", {}, "connect_sessions"
    ),
    "/console/connectors/{connector_id}/synchronize": Form("/console/connectors/{connector_id}?tab=copies", {}, "jobs"),
    "/console/kinds": Form("/console/kinds", {"text": DOCUMENT, "kind": "sent-twice"}, "imported_kinds"),
    "/console/playground": Form(
        "/console/playground?operation=support-desk.tickets.create&connector={connector_id}",
        {"connector": "{connector_id}", "p.ticket": TICKET, "do": "run"},
        "jobs",
    ),
    "/console/jobs/retry": Form("/console/jobs?status=failed", {"job:{job_id}": "on"}, "jobs"),
    "/console/jobs/{job_id}/retry": Form("/console/jobs/{job_id}", {}, "jobs"),
    "/console/batches": Form(
        "/console/batches?connector={connector_id}",
        {"lines": '{"entity": "tickets", "action": "list", "params": {}}'},
        "jobs",
    ),
    "/console/schedules/new": Form(
        "/console/schedules/new?connector={connector_id}&operation=support-desk.tickets.list",
        {"name": "twice", "every": "@hourly", "timezone": "UTC", "overlap": "skip", "catch_up": "one"},
        "schedules",
    ),
    "/console/schedules/{schedule_id}/run": Form("/console/schedules/{schedule_id}", {}, "jobs"),
    "/console/webhooks": Form(
        "/console/webhooks", {"url": "https://app.example.com/hooks", "type:job.failed": "on"}, "webhooks"
    ),
    "/console/webhooks/{webhook_id}/test": Form("/console/webhooks/{webhook_id}", {}, "webhook.test"),
    "/console/webhooks/{webhook_id}/rotate": Form("/console/webhooks/{webhook_id}", {}, "webhook.rotate"),
    "/console/webhooks/{webhook_id}/deliveries/{event_id}/resend": Form(
        "/console/webhooks/{webhook_id}", {}, "webhook.resend"
    ),
    "/console/people": Form("/console/people", {"email": "twice@example.com"}, "people"),
    "/console/issuers": Form(
        "/console/issuers",
        {"issuer": "https://login.example.com", "audience": "https://g.example.com"},
        "trusted_issuers",
    ),
    "/console/scim": Form("/console/scim", {"name": "Okta", "subject": "userName"}, "scim_tokens"),
    "/console/sandbox/faults": Form("/console/sandbox", {"effect": "refuse", "times": "1"}, "sandbox.fault"),
    "/console/settings/clients": Form("/console/settings", {"name": "twice", "read": "on"}, "clients"),
    "/console/settings/clients/{client_id}/secret": Form(
        "/console/settings/clients/{client_id}", {}, "client.rotate_secret"
    ),
}


@dataclass(frozen=True)
class Setting:
    """Two people's browsers, and what the forms act on."""

    front: FrontEnd
    api: Api
    browser: ConsoleBrowser
    person: ConsoleBrowser
    names: Mapping[str, str]

    def named(self, text: str) -> str:
        """The text with the names of the setting in place of the braces."""
        return re.sub(r"\{(\w+)\}", lambda found: self.names[found[1]], text)

    async def count(self, counted: str) -> int:
        """The rows of the table, or the audit entries of that name."""
        if "." in counted:
            return await self._entries(counted)
        async with self.front.services.database.system() as connection:
            return int(await connection.fetchval(f"SELECT count(*) FROM {counted}"))

    async def _entries(self, what: str) -> int:
        """Entries are written in order, so that those before the last one are written too."""
        await self.api.call("PUT", f"/api/v1/groups/{what}", json={"workspaces": None, "scopes": []})
        async with asyncio.timeout(10):
            while True:
                entries = (await self.api.get("/api/v1/audit", params={"limit": 100})).document()["data"]
                if any((each["what"], each["target"]) == ("group.update", what) for each in entries):
                    break
        return sum(each["what"] == what and each["outcome"] in ("succeeded", "accepted") for each in entries)


@pytest.fixture
async def setting(
    front: FrontEnd, receiver: Receiver, tmp_path: Path, database_url: str, redis_url: str
) -> AsyncIterator[Setting]:
    organization_id = await front.organization()
    settings = {"import_organizations": (organization_id,), "webhook_origins": (receiver.url,)}
    async with (
        front_end(tmp_path, database_url, redis_url, **settings) as own,
        own.api(organization_id) as api,
        signed_in(own, *await own.client(organization_id)) as browser,
    ):
        hook = {"url": f"{receiver.url}/{organization_id}", "types": ["connector.*"]}
        webhook = (await api.post("/api/v1/webhooks", hook)).document(201)
        receiver.secrets[f"/{organization_id}"] = webhook["secret"]
        receiver.answers[f"/{organization_id}"] = lambda _: 200
        desk = await api.connector()
        async with running(every(0, own.services.events.deliverer.deliver, name="deliveries")):
            await eventually(lambda: is_delivered(api, webhook))
        await own.services.events.deliverer.close()
        job = await desk.submit("tickets", "list")
        async with own.services.database.system() as connection:
            await connection.execute(
                "UPDATE jobs SET status = 'failed', finished_at = now() WHERE id = $1", UUID(job["id"])
            )
        schedule = await api.post(
            "/api/v1/schedules",
            {
                "connector_id": desk.record["id"],
                "entity": "tickets",
                "action": "list",
                "params": {},
                "name": "run",
                "cron": "@yearly",
            },
        )
        person_id, _ = await person_of(own, api, ["read", "write"])
        names = {
            "connector_id": desk.record["id"],
            "job_id": job["id"],
            "schedule_id": schedule.document(201)["id"],
            "webhook_id": webhook["id"],
            "event_id": str(receiver.received[f"/{organization_id}"][0]["id"]),
            "client_id": (await own.client(organization_id))[0],
        }
        async with browser_of(own, person_id, organization_id) as person:
            yield Setting(own, api, browser, person, names)


async def is_delivered(api: Api, webhook: dict) -> bool:
    """Whether the webhook's first delivery is stored as done."""
    deliveries = await api.get(f"/api/v1/webhooks/{webhook['id']}/deliveries", params={"status": "succeeded"})
    return bool(deliveries.document()["data"])


async def hidden_of(browser: ConsoleBrowser, page: str, action: str) -> dict[str, str]:
    """The hidden fields of the page's form with this action, as a browser would send them."""
    answer = await browser.get(page)
    assert answer.status == 200
    forms = re.findall(r'<form method="post" action="([^"]+)"[^>]*>(.*?)</form>', answer.body.decode(), re.DOTALL)
    fields = next(inner for address, inner in forms if html.unescape(address) == action)
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', fields))


def test_every_form_may_be_repeated_or_is_tested_here():
    forms = {each.path: each.audit or "" for each in CONSOLE_ROUTES if each.method == "POST" and not each.is_open}

    assert set(FORMS) == {path for path, audit in forms.items() if audit.rpartition(".")[2] not in REPEATABLE}


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_that_is_sent_twice_does_its_work_once(setting: Setting, path: str):
    form, action = FORMS[path], setting.named(path)
    browser = setting.person if path.startswith("/console/me") else setting.browser
    typed = {setting.named(name): setting.named(text) for name, text in form.typed.items()}
    fields = {**await hidden_of(browser, setting.named(form.page), action), **typed}
    before = await setting.count(form.counted)

    answers = await asyncio.gather(*(browser.send(action, **fields) for _ in range(2)))
    later = await browser.send(action, **fields)

    assert sum(each.status in (200, 303) for each in answers) >= 1
    assert all(each.status < 500 for each in (*answers, later))
    assert await setting.count(form.counted) == before + 1
