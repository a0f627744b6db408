"""People at the console and at connect pages, in a real browser: every screen usable, nothing inline, nothing seriously
inaccessible."""

import re
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from playwright.async_api import Browser, Page, StorageState

from tests.harness.browser import (
    findings,
    findings_in_light_and_dark,
    needs_chromium,
    page_for_many,
    signed_in,
    taken,
    troubles_of,
)
from tests.harness.caller import Api, ConnectorApi
from tests.harness.sandbox import fault
from tests.harness.waiting import eventually

SCREENS = ("", "/connectors", "/playground?operation=support-desk.tickets.create", "/jobs", "/schedules", "/webhooks",
           "/search", "/audit", "/people", "/groups?change=support", "/sessions", "/issuers", "/scim", "/policies",
           "/budgets?change=support-agent", "/approvals/notice", "/grants", "/settings", "/health")  # fmt: skip
PAGES = (
    "connector",
    "copies",
    "operations",
    "settings of a connector",
    "failed job",
    "schedule",
    "webhook",
    "person",
    "policy",
    "search result",
    "found",
    "wrong search",
    "no page",
    "client",
    "new schedule",
    "change of a schedule",
    "batch",
    "sign-in",
    "choice",
    "form",
    "unknown link",
)
#: runs wherever it is taken for markup, a script or an address
SCRIPT = """"><script>ran=1</script><img src=x onerror="ran=1"><a href="javascript:ran=1">x</a>{{7*7}}"""

pytestmark = needs_chromium


@pytest.fixture(scope="module")
async def session(chromium: Browser, running) -> StorageState:
    """What a browser keeps of having signed in."""
    context = await chromium.new_context(base_url=running.base_url)
    await signed_in(await context.new_page(), running.client_id, running.client_secret)
    kept = await context.storage_state()
    await context.close()
    return kept


@pytest.fixture
async def page(chromium: Browser, running, session) -> AsyncIterator[Page]:
    """A page that is signed in, and fails the test for what its policy forbids or its scripts throw."""
    context = await chromium.new_context(base_url=running.base_url, storage_state=session)
    opened = await context.new_page()
    troubles = troubles_of(opened, running.base_url)
    yield opened
    await context.close()
    assert troubles == []


async def copied(desk: ConnectorApi) -> bool:
    """Whether the copy of the tickets is there."""
    return (await desk.api.get(f"{desk.path}/context-store")).json()["entities"]["tickets"]["status"] == "ready"


async def delivered(api: Api, webhook_id: str) -> bool:
    """Whether a delivery was attempted."""
    return any(each["attempts"] for each in (await api.get(f"/api/v1/webhooks/{webhook_id}/deliveries")).json()["data"])


async def acted_for(running, api: Api) -> str:
    """The id of a person of a group, for whom a client acts, and who has connected an own application."""
    await api.call("PUT", "/api/v1/groups/support", json={"workspaces": ["acme"], "scopes": ["read"]})
    scopes = [each for scope in ("read", "write", "delegate") for each in ("--scope", scope)]
    client = await running.admin("client", "create", "product", "--organization", running.organization_id, *scopes)
    async with Api.of(running.base_url, client["client_id"], client["client_secret"]) as product:
        members = {"person": {"subject": "user-7", "name": "Ada"}, "tools": {"deny": ["*.delete*"]}}
        person_id = (await product.post("/api/v1/sessions", members)).document(201)["person"]["id"]
    await api.call("PATCH", f"/api/v1/people/{person_id}", json={"email": "ada@example.com", "groups": ["support"]})
    await api.connector(name="Ada's desk", workspace_name="acme", owner=person_id)
    return person_id


@pytest.fixture(scope="module")
async def addresses(running) -> dict[str, str]:
    """Pages that are of something: a connector, its jobs, a person, links that are new, used and wrong."""
    async with Api.of(running.base_url, running.client_id, running.client_secret) as api:
        desk = await api.connector(name="Help desk", workspace_name="acme")
        job = await desk.submit("tickets", "get", {"ticket_id": 999_999_999})
        await api.get(f"/api/v1/jobs/{job['id']}/result?wait=60")
        schedule = {"name": "Every morning", "connector_id": desk.record["id"], "entity": "tickets", "action": "list"}
        schedule_id = (await api.post("/api/v1/schedules", {**schedule, "cron": "30 6 * * 1-5"})).json()["id"]
        webhook = {"url": "https://receiver.invalid/webhooks", "types": ["connector.*"]}
        webhook_id = (await api.post("/api/v1/webhooks", webhook)).json()["id"]
        person_id = await acted_for(running, api)
        cedar = '@id("no-writes")\nforbid(principal, action in Action::"write", resource);'
        policy = {"cedar": cedar, "mode": "shadow", "description": "What would change if agents only read?"}
        await api.call("PUT", "/api/v1/policies/no-writes", json=policy)
        budget = {"per": "month", "calls": 1_000_000, "workspace_name": "acme"}
        await api.call("PUT", "/api/v1/budgets/support-agent", json=budget)
        issuer = {"issuer": "https://login.example.com", "audience": "company-app", "groups_claim": "groups"}
        await api.post("/api/v1/issuers", issuer)
        await api.connector("Incident-Management", {"api_key": "key"}, name="On call", workspace_name="northwind")
        await eventually(lambda: delivered(api, webhook_id))
        await desk.api.post(f"{desk.path}/context-store/sync", {"entities": ["tickets"]})
        await eventually(lambda: copied(desk))
        link = (await api.post("/api/v1/connect/sessions", {"workspace_name": "acme"})).json()["url"]
        search = f"/console/search?connector={desk.record['id']}&entity=tickets"
        return {
            "connector": f"/console/connectors/{desk.record['id']}",
            "copies": f"/console/connectors/{desk.record['id']}?tab=copies",
            "operations": f"/console/connectors/{desk.record['id']}?tab=operations",
            "settings of a connector": f"/console/connectors/{desk.record['id']}?tab=settings&connected",
            "failed job": f"/console/jobs/{job['id']}",
            "schedule": f"/console/schedules/{schedule_id}",
            "webhook": f"/console/webhooks/{webhook_id}",
            "person": f"/console/people/{person_id}",
            "policy": "/console/policies/no-writes",
            "search result": f"{search}&field=status&operator=eq&value=open",
            "found": "/console/playground?query=close+a+ticket",
            "wrong search": f"{search}&field=no_such_field&operator=eq&value=1",
            "no page": "/console/connectors/6f1d7b8c-0000-4000-8000-000000000000",
            "client": f"/console/settings/clients/{running.client_id}",
            "new schedule": f"/console/schedules/new?connector={desk.record['id']}&operation=support-desk.tickets.list",
            "change of a schedule": f"/console/schedules/{schedule_id}/change",
            "batch": f"/console/batches?connector={desk.record['id']}&operation=support-desk.tickets.get",
            "sign-in": "/console/sign-in",
            "choice": link,
            "form": f"{link}?kind=support-desk",
            "unknown link": "/connect/unknown",
        }


@pytest.fixture(scope="module")
async def page_for_all(chromium: Browser, running, session) -> AsyncIterator[tuple[Page, list[str]]]:
    async with page_for_many(chromium, running.base_url, storage_state=session) as opened:
        yield opened


@pytest.mark.parametrize("screen", SCREENS)
async def test_every_screen_is_accessible_in_light_and_dark_and_fits_a_telephone(page_for_all, addresses, screen):
    name = screen.strip("/").partition("?")[0] or "overview"
    await _is_accessible_and_fits(*page_for_all, f"/console{screen}", name)


@pytest.mark.parametrize("name", PAGES)
async def test_every_other_page_is_accessible_in_light_and_dark_and_fits_a_telephone(page_for_all, addresses, name):
    await _is_accessible_and_fits(*page_for_all, addresses[name], name.replace(" ", "-"))


async def _is_accessible_and_fits(page: Page, troubles: list[str], address: str, name: str) -> None:
    troubles.clear()
    await page.goto(address)
    await taken(page, name)

    assert await findings_in_light_and_dark(page) == []
    await page.set_viewport_size({"width": 320, "height": 640})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    assert [each for each in troubles if "404" not in each] == []


async def test_a_bulk_update_is_followed_live_to_its_result(page, api):
    desk = await api.connector(name="Help desk")
    await page.goto("/console/playground?operation=support-desk.ticket_bulk_updates.create")
    await page.select_option("#connector", desk.record["id"])
    await page.fill("[name='p.ids']", ",".join(map(str, range(1, 121))))
    await page.fill("[name='p.ticket']", '{"status": "pending"}')

    await page.click("button[value=run]")

    await page.wait_for_url("**/console/jobs/*")
    await page.evaluate("window.isTheSamePage = true")
    await page.wait_for_selector("#job .status.succeeded", timeout=60_000)
    assert await page.evaluate("window.isTheSamePage")
    await page.wait_for_selector("#job progress[value='120']")
    assert await page.locator("#job section[aria-labelledby=result] table").count() == 1
    await taken(page, "job")


async def test_the_progress_of_a_job_is_shown_while_it_runs(page, api, running):
    desk = await api.connector(name="Help desk")
    ids = ",".join(map(str, range(1, 401)))
    await page.add_init_script(
        """window.seen = [];
        new MutationObserver(() => {
            const bar = document.querySelector("#job progress");
            if (bar) seen.push(bar.value);
        }).observe(document, {childList: true, subtree: true});"""
    )

    # Two of the four batches are done long before the others.
    async with fault(running.sandbox_url, path_prefix="/api/v2/job_statuses", latency_ms=5000, times=2):
        job = await desk.submit("ticket_bulk_updates", "create", {"ids": ids, "ticket": {"priority": "low"}})
        await page.goto(f"/console/jobs/{job['id']}")

        await page.wait_for_selector("#job .status.succeeded", timeout=60_000)

    seen = await page.evaluate("seen")
    assert seen == sorted(seen)
    assert (len(set(seen)) > 1, seen[-1]) == (True, 400)


async def test_work_is_begun_and_ended_without_scripts(chromium: Browser, running, session, api, tmp_path):
    desk = await api.connector(name="Help desk")
    file = tmp_path / "tickets.ndjson"
    file.write_text('{"ticket_id": 1}\n{"ticket_id": 2}\n')
    context = await chromium.new_context(base_url=running.base_url, storage_state=session, java_script_enabled=False)
    page = await context.new_page()

    await page.goto("/console/webhooks")
    await page.click("text=Create a webhook")
    await page.fill("#url", "https://receiver.invalid/own")
    await page.check("[name='type:job.failed']")
    await page.click("button:text-is('Create')")
    secret = await page.inner_text("[role=status] code")
    await page.click("summary:text-is('Delete')")
    await page.click("button:text-is('Delete the webhook')")
    await page.wait_for_url("**/console/webhooks")

    await page.goto(f"/console/schedules/new?connector={desk.record['id']}&operation=support-desk.tickets.list")
    await page.select_option("#every", label="every hour")
    await page.click("button:text-is('Show the next times')")
    times = await page.locator("section[aria-labelledby=times] li").count()
    await page.click("button:text-is('Create')")
    await page.click("summary:text-is('Delete')")
    await page.click("button:text-is('Delete the schedule')")
    await page.wait_for_url("**/console/schedules")

    await page.goto(f"/console/batches?connector={desk.record['id']}&operation=support-desk.tickets.get")
    await page.set_input_files("#file", file)
    await page.click("button:text-is('Start')")
    await page.wait_for_url("**/console/jobs/*")
    job_id = page.url.rpartition("/")[2]
    ended = (await api.get(f"/api/v1/jobs/{job_id}/result?wait=60")).json()

    await context.close()
    assert secret.startswith("whsec_")
    assert times == 5
    assert (ended["result"]["total"], ended["result"]["succeeded"]) == (2, 2)


async def test_on_a_telephone_a_row_is_a_card_with_its_status_first(page, api):
    desk = await api.connector(name="Help desk")
    await api.get(f"/api/v1/jobs/{(await desk.submit('tickets', 'list'))['id']}/result?wait=60")
    await page.set_viewport_size({"width": 360, "height": 800})

    await page.goto("/console/jobs")
    cells = await page.locator("table.cards tbody tr >> nth=0").locator("td, th").all()
    boxes = {await each.get_attribute("data-label"): await each.bounding_box() for each in cells}
    places = {label: box["y"] for label, box in boxes.items() if box is not None}  # empty cells are not shown

    assert min(places, key=places.__getitem__) == "Status"
    assert len(set(places.values())) == len(places) > 4


async def test_a_failed_job_is_understood_and_run_again(page, api):
    desk = await api.connector(name="Help desk")
    job = await desk.submit("tickets", "get", {"ticket_id": 999_999_999})
    await page.goto(f"/console/jobs/{job['id']}")
    await page.wait_for_selector("#job .status.failed", timeout=30_000)

    said = await page.inner_text("#job [role=alert]")
    await page.click("text=Run again")

    await page.wait_for_url(lambda url: not url.endswith(job["id"]))
    assert "RecordNotFound" in said or "not found" in said.lower()


async def test_a_person_connects_by_key_from_the_console(page):
    workspace = f"w-{uuid4().hex[:8]}"
    await page.goto("/console/connectors")
    await page.fill("#workspace_name", workspace)
    await page.fill("#new-name", "On call")
    await page.click("button:has-text('Connect an application')")
    await page.click("a[href$='kind=incident-management']")
    assert await findings(page) == []
    await page.fill("[name=api_key]", "any-key")

    await page.click("button:has-text('Connect')")

    await page.wait_for_selector("h1:text-is('On call')")
    assert "is connected" in await page.inner_text("[role=status]")
    assert await page.locator("a:text-is('Give it to an agent')").count() == 1
    await taken(page, "connected")
    await page.click("a:text-is('Try it')")
    assert await page.locator("a[href*='operation=incident-management.']").count() > 0
    await page.goto("/console/connectors")
    assert workspace in await page.inner_text("main")
    await taken(page, "connectors")


async def test_an_application_that_refuses_its_credentials_is_connected_again_from_the_overview(page, api, running):
    name = f"On call {uuid4().hex[:8]}"
    on_call = await api.connector("Incident-Management", {"api_key": "key"}, name=name)
    async with fault(running.sandbox_url, path_prefix="/", status=401):
        await on_call.send("incidents", "list")
    await page.goto("/console")

    await page.click(f".notice:has-text('{name}') button")
    await page.fill("[name=api_key]", "another-key")
    await page.click("button:has-text('Connect')")

    await page.wait_for_selector(f"h1:text-is('{name}')")
    assert await page.locator(".status.active").count() == 1


async def test_a_person_connects_by_consent_from_the_console(page, work_management_app):
    workspace = f"w-{uuid4().hex[:8]}"
    await page.goto("/console/connectors")
    await page.fill("#workspace_name", workspace)
    await page.select_option("#new-kind", "work-management")
    await page.click("button:has-text('Connect an application')")
    await page.click("button:has-text('Continue')")

    await page.click("#allow")

    await page.wait_for_selector("text=is connected")
    await page.goto("/console/connectors")
    row = page.locator("tr", has_text=workspace)
    assert await row.locator(".status.active").count() == 1


async def test_the_playground_shows_what_it_would_send_and_the_answer(page, api):
    await api.connector(name="Help desk")
    await page.goto("/console/playground?query=list+open+tickets")
    await page.goto("/console/playground?operation=support-desk.tickets.list")
    await page.fill("[name='p.per_page']", "3")
    await page.click("button[value=dry_run]")
    sent = await page.inner_text("main")

    await page.click("button[value=run]")

    assert "/api/v2/tickets.json" in sent
    assert await page.locator("table tbody tr").count() == 3
    await taken(page, "playground")


async def test_the_connect_page_works_without_scripts(chromium, running, api):
    body = {"workspace_name": f"w-{uuid4().hex[:8]}", "connector_types": ["incident-management"]}
    link = (await api.post("/api/v1/connect/sessions", body)).json()
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(link["url"])
    await page.fill("[name=api_key]", "any-key")

    await page.click("button")

    assert await page.locator("text=is connected").count() == 1
    await context.close()


async def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(80):
        await page.keyboard.press("Tab")
        if await page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"no Tab reaches {selector}")


async def test_an_administrator_needs_a_keyboard_and_a_telephone_only(chromium: Browser, running, session):
    """Adds a group with a person, and stores a policy, without a mouse and without scripts."""
    name = uuid4().hex[:8]
    context = await chromium.new_context(
        base_url=running.base_url,
        storage_state=session,
        java_script_enabled=False,
        viewport={"width": 360, "height": 740},
    )
    page = await context.new_page()
    keyboard = page.keyboard

    async def entered(fields: dict[str, str], boxes: tuple[str, ...] = ()) -> None:
        """Open the form, fill it, and send it."""
        await tab_to(page, "details > summary")
        await keyboard.press("Enter")
        for field, text in fields.items():
            await tab_to(page, field)
            await keyboard.type(text)
        for box in boxes:
            await tab_to(page, box)
            await keyboard.press("Space")
        await tab_to(page, "details button")
        await keyboard.press("Enter")

    await page.goto("/console/groups")
    await entered({"#name": name, "#workspaces": "acme"}, ("[name='scope:read']",))
    await page.wait_for_selector(f"th:text-is('{name}')")
    await page.goto("/console/people")
    await entered({"#name": f"Person {name}", "#groups": name})
    await page.wait_for_selector(f"h1:text-is('Person {name}')")
    groups = await page.input_value("#groups")
    await page.goto("/console/policies")
    await entered({"#name": name, "#cedar": 'permit(principal, action in Action::"read", resource);'})
    await page.wait_for_selector("h2:text-is('Effect over the last day')")

    assert groups == name
    assert await page.input_value("#mode") == "shadow"
    await context.close()


async def test_consent_needs_no_scripts(chromium: Browser, api, work_management_app):
    body = {"workspace_name": f"w-{uuid4().hex[:8]}", "connector_types": ["work-management"]}
    link = (await api.post("/api/v1/connect/sessions", body)).json()
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(link["url"])
    await page.click("button:has-text('Continue')")

    await page.click("#allow")

    await page.wait_for_selector("text=is connected")
    await context.close()


async def test_nothing_that_others_wrote_runs_as_a_script(page, api):
    desk = await api.connector(name=SCRIPT)
    params = {"ticket": {"subject": SCRIPT, "comment": {"body": SCRIPT}}}
    ticket = await desk.execute("tickets", "create", params)
    job = await desk.submit("tickets", "get", {"ticket_id": ticket["result"]["id"]})
    await api.get(f"/api/v1/jobs/{job['id']}/result?wait=60")
    places = [
        *(f"/console{screen}" for screen in SCREENS),
        f"/console/connectors/{desk.record['id']}",
        f"/console/jobs/{job['id']}",
        f"/console/search?connector={desk.record['id']}&entity=tickets&field=subject&operator=contains&value=ran",
    ]
    for place in places:
        await page.goto(place)
        assert await page.evaluate("typeof ran") == "undefined", place
        assert "49" not in await page.inner_text("h1"), place

    await page.goto("/console/playground?operation=support-desk.tickets.get")
    await page.select_option("#connector", desk.record["id"])
    await page.fill("[name='p.ticket_id']", str(ticket["result"]["id"]))
    await page.click("button[value=run]")

    assert SCRIPT in await page.inner_text("table")
    assert await page.evaluate("typeof ran") == "undefined"
    assert await page.locator("a[href^='javascript:']").count() == 0


async def test_the_console_cannot_be_shown_in_a_frame_of_another_page(chromium: Browser, running):
    context = await chromium.new_context(base_url=running.base_url)
    page = await context.new_page()
    await signed_in(page, running.client_id, running.client_secret)
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    await page.goto(running.sandbox_url + "/_sandbox/requests")

    await page.set_content(f"<iframe src='{running.base_url}/console/settings'></iframe>", wait_until="networkidle")

    assert any("frame-ancestors" in text for text in refused)
    assert await page.frames[1].locator("form").count() == 0
    await context.close()


async def test_the_overview_draws_calls_and_their_duration(page, api):
    await api.connector(name="Help desk")

    await page.goto("/console")

    await page.wait_for_selector(".plot canvas")
    assert await page.locator(".plot canvas").count() == 2
    await taken(page, "overview")


@pytest.mark.parametrize("span", ["hour", "day", "week", "month"])
async def test_the_times_of_plots_are_iso_8601(page, api, span):
    await api.connector(name="Help desk")
    await page.add_init_script("""
        const draw = CanvasRenderingContext2D.prototype.fillText;
        window.drawn = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
            window.drawn.push(text);
            return draw.call(this, text, ...rest);
        };
    """)

    await page.goto(f"/console?span={span}")
    await page.wait_for_function("window.drawn.length > 5")
    drawn = await page.evaluate("window.drawn")

    assert [text for text in drawn if re.fullmatch(r"\d\d:\d\d|\d{4}-\d\d-\d\d", text)]
    assert not [text for text in drawn if re.search(r"[ap]m|/", text)]
