"""The console: sign-in, every page, and forms that only its own pages can send."""

import asyncio
import re
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import aiohttp
import pytest

from gateway.kinds.search_operators import CONDITIONS
from gateway.web.console.csv_files import csv_response
from gateway.web.console.routes import CONSOLE_ROUTES
from tests.harness.caller import Api
from tests.harness.clients import EVERY_SCOPE
from tests.harness.console import ConsoleBrowser, new_browser, signed_in
from tests.harness.in_process import FrontEnd

PAGES = [
    route.path for route in CONSOLE_ROUTES if route.method == "GET" and "{" not in route.path and "." not in route.path
]
FORMS = [route.path for route in CONSOLE_ROUTES if route.method == "POST" and not route.is_open]


async def test_the_audit_log_and_a_search_are_downloaded_as_csv(browser: ConsoleBrowser, api: Api):
    connector = await api.connector()
    async with asyncio.timeout(10):
        while b"connector.create" not in (audit := await browser.get("/console/audit.csv")).body:
            pass

    found = await browser.get(f"/console/search.csv?connector={connector.record['id']}&entity=tickets")
    nothing = await browser.get("/console/search.csv?entity=tickets&connector=")

    header, *rows = audit.body.decode().splitlines()
    assert header.split(",")[:6] == ["at", "client", "application", "what", "record", "members"]
    assert any("Zendesk,connector.create" in row and "credentials." in row for row in rows)
    assert audit.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    assert (found.status, nothing.status) == (200, 200)
    assert found.headers["Content-Type"] == "text/csv; charset=utf-8"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("\uff1d1", "'\uff1d1"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff20x", "'\uff20x"),
        ("\t=1", "'\t=1"),
        ("a\r\n=1", '"a\r\n\'=1"'),
        ("a;=1", '"a;\'=1"'),
        ("plain", "plain"),
        ("", '""'),
    ],
)
def test_a_spreadsheet_runs_no_cell_and_no_column_as_a_formula(text: str, cell: str):
    assert csv_response("x.csv", [text], [[text]]).text == f"{cell}\r\n{cell}\r\n"


async def test_several_failed_jobs_are_run_again_with_one_form(browser: ConsoleBrowser, api: Api, front: FrontEnd):
    desk = await api.connector()
    jobs = [(await desk.submit("tickets", "get", {"ticket_id": number}))["id"] for number in (1, 2)]
    async with front.services.database.system() as connection:
        await connection.execute(
            "UPDATE jobs SET status = 'failed', finished_at = now() WHERE id = ANY($1)", list(map(UUID, jobs))
        )

    page = (await browser.get("/console/jobs?status=failed")).body.decode()
    boxes = {f"job:{job}": "on" for job in jobs}
    answer = await browser.send("/console/jobs/retry", csrf=await browser.csrf(), **boxes)

    assert all(f'name="{box}"' in page for box in boxes)
    assert answer.status == 303
    assert len((await api.get("/api/v1/jobs", params={"status": "queued"})).document()["data"]) == 2


async def test_an_unknown_job_runs_again_unconfirmed_only_if_that_does_no_harm(
    browser: ConsoleBrowser, api: Api, front: FrontEnd
):
    desk = await api.connector()
    safe, other, unsafe = [(await desk.submit("tickets", "get", {"ticket_id": number}))["id"] for number in (1, 2, 3)]
    async with front.services.database.system() as connection:
        for job, is_safe in ((safe, "true"), (other, "true"), (unsafe, "false")):
            await connection.execute(
                "UPDATE jobs SET status = 'unknown', finished_at = now(), error = $2 WHERE id = $1",
                UUID(job),
                f'{{"code": "outcome_unknown", "detail": "lost", "known": {{}}, "safe_to_retry": {is_safe}}}',
            )
    csrf = await browser.csrf()

    answers = [
        await browser.send("/console/jobs/retry", csrf=csrf, **{f"job:{safe}": "on"}),
        await browser.send(f"/console/jobs/{other}/retry", csrf=csrf),
        await browser.send("/console/jobs/retry", csrf=csrf, **{f"job:{unsafe}": "on"}),
        await browser.send(f"/console/jobs/{unsafe}/retry", csrf=csrf),
    ]

    assert [answer.status for answer in answers] == [303, 303, 409, 409]
    assert len((await api.get("/api/v1/jobs", params={"status": "queued"})).document()["data"]) == 2


async def test_a_client_is_disabled_but_not_by_itself(browser: ConsoleBrowser, front: FrontEnd, organization_id):
    client_id, _secret = await front.client(organization_id)
    page = (await browser.get("/console/settings")).body.decode()
    own = (set(re.findall(r"<code>([0-9a-f-]{36})</code>", page)) - {client_id}).pop()
    csrf = await browser.csrf()

    disabled = await browser.send(f"/console/settings/clients/{client_id}/disable", csrf=csrf)
    refused = await browser.send(f"/console/settings/clients/{own}/disable", csrf=csrf)

    assert (disabled.status, refused.status) == (303, 422)
    assert b"cannot disable itself" in refused.body
    assert (await front.services.identity.client(UUID(client_id))).client.disabled_at is not None


@pytest.fixture
async def organization_id(front: FrontEnd):
    return await front.organization()


@pytest.fixture
async def api(front: FrontEnd, organization_id) -> AsyncIterator[Api]:
    async with front.api(organization_id) as opened:
        yield opened


@pytest.fixture
async def browser(front: FrontEnd, organization_id) -> AsyncIterator[ConsoleBrowser]:
    """A browser in which a client with all scopes is signed in."""
    async with signed_in(front, *await front.client(organization_id)) as opened:
        yield opened


@pytest.mark.parametrize("path", [path for path in PAGES if path != "/console/sign-in"])
async def test_every_page_requires_a_session_and_sign_in_returns_to_it(front: FrontEnd, path: str):
    async with new_browser(front) as stranger:
        answer = await stranger.get(path)

    assert answer.status == 303
    assert answer.headers["Location"] == f"/console/sign-in?next={path}"


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_has_no_inline_scripts_or_styles(browser: ConsoleBrowser, path: str):
    answer = await browser.get(path)

    assert answer.status == 200
    assert "unsafe-inline" not in answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert not re.search(rb"<script(?![^>]*src=)|\son\w+=|\sstyle=", answer.body)


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_of_another_page_is_refused(browser: ConsoleBrowser, path: str):
    filled = re.sub(r"\{\w+\}", "6f1d7b8c-0000-4000-8000-000000000000", path)

    answer = await browser.send(filled, csrf="0" * 64)

    assert answer.status == 403
    assert b"not of this session" in answer.body


async def test_a_wrong_secret_does_not_sign_in(front: FrontEnd, organization_id):
    client_id, _ = await front.client(organization_id)
    async with new_browser(front) as stranger:
        answer = await stranger.send("/console/sign-in", client_id=client_id, client_secret="wrong")

    assert answer.status == 422
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null"])
async def test_a_form_of_another_site_cannot_sign_in(front: FrontEnd, organization_id, origin: str):
    client_id, secret = await front.client(organization_id, EVERY_SCOPE)
    fields = {"client_id": client_id, "client_secret": secret}
    async with new_browser(front) as browser:
        foreign = await browser.session.post("/console/sign-in", data=fields, headers={"Origin": origin})
        own = await browser.session.post(
            "/console/sign-in", data=fields, headers={"Origin": front.base_url}, allow_redirects=False
        )

    assert (foreign.status, foreign.cookies, own.status) == (403, {}, 303)


async def test_the_cookie_is_new_at_each_sign_in_and_invalid_after_sign_out(
    front: FrontEnd, browser: ConsoleBrowser, organization_id
):
    fixed = {"Cookie": "gateway-console=" + "a" * 43}
    client_id, secret = await front.client(organization_id)
    async with aiohttp.ClientSession(front.base_url, cookie_jar=aiohttp.DummyCookieJar()) as session:
        body = {"client_id": client_id, "client_secret": secret}
        async with session.post("/console/sign-in", data=body, headers=fixed, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"]
    held = {"Cookie": f"gateway-console={next(iter(browser.session.cookie_jar)).value}"}

    await browser.send("/console/sign-out", csrf=await browser.csrf())

    async with new_browser(front) as thief:
        answer = await thief.get("/console", headers=held)
    assert "a" * 43 not in cookie
    assert {"HttpOnly", "SameSite=Lax"} <= set(cookie.split("; "))
    assert answer.status == 303


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "/console\\@evil.example", "/api/v1/jobs"]
)
async def test_sign_in_redirects_only_to_pages_of_the_console(front: FrontEnd, organization_id, wanted: str):
    client_id, secret = await front.client(organization_id)
    async with new_browser(front) as stranger:
        answer = await stranger.send("/console/sign-in", client_id=client_id, client_secret=secret, next=wanted)

    assert answer.headers["Location"] == "/console"


async def test_a_client_with_the_scope_read_cannot_change_anything(front: FrontEnd, organization_id, api: Api):
    connector = await api.connector()
    client_id, secret = await front.client(organization_id, ["read"])
    async with new_browser(front) as reader:
        await reader.send("/console/sign-in", client_id=client_id, client_secret=secret)
        answer = await reader.send(
            f"/console/connectors/{connector.record['id']}", csrf=await reader.csrf(), name="renamed"
        )
        audit = await reader.get("/console/audit")

    assert (answer.status, audit.status) == (403, 403)


@pytest.fixture
async def other(front: FrontEnd) -> AsyncIterator[dict[str, str]]:
    """Ids of another organization's connector, job and client."""
    organization_id = await front.organization()
    client_id, _ = await front.client(organization_id)
    async with front.api(organization_id) as api:
        connector = await api.connector(name="OTHERS")
        job = await connector.submit("tickets", "list", {"per_page": 1})
        yield {"connector": connector.record["id"], "job": job["id"], "client": client_id}
        kept = (await api.get(connector.path)).json()
        assert (kept["name"], kept["status"]) == ("OTHERS", "active")


@pytest.mark.parametrize(
    "path",
    [
        "/console/connectors/{connector}",
        "/console/jobs/{job}",
        "/console/jobs/{job}/result",
        "/console/search?connector={connector}",
        "/console/search?connector={connector}&entity=tickets&field=",
        "/console/search.csv?connector={connector}&entity=tickets",
    ],
)
async def test_resources_of_another_organization_are_not_found(
    browser: ConsoleBrowser, other: dict[str, str], path: str
):
    answer = await browser.get(path.format(**other))

    assert answer.status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/console/audit?connector={connector}",
        "/console/playground?operation=support-desk.tickets.list&connector={connector}",
    ],
)
async def test_resources_of_another_organization_are_not_shown(
    browser: ConsoleBrowser, other: dict[str, str], path: str
):
    answer = await browser.get(path.format(**other))

    shown = answer.body.replace(f'value="{other["connector"]}"'.encode(), b"")
    assert answer.status == 200
    assert b"OTHERS" not in shown
    assert other["connector"].encode() not in shown


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/console/connectors/{connector}", {"name": "taken"}),
        ("/console/connectors/{connector}/check", {}),
        ("/console/connectors/{connector}/renew", {}),
        ("/console/connectors/{connector}/synchronize", {}),
        ("/console/connectors/{connector}/delete", {"name": "OTHERS"}),
        ("/console/jobs/{job}/cancel", {}),
        ("/console/jobs/{job}/retry", {"confirm": "yes"}),
        ("/console/settings/clients/{client}/secret", {}),
        ("/console/playground", {"operation": "support-desk.tickets.list", "connector": "{connector}", "do": "run"}),
    ],
)
async def test_resources_of_another_organization_are_not_changed(
    browser: ConsoleBrowser, other: dict[str, str], path: str, fields: dict[str, str]
):
    filled = {name: value.format(**other) for name, value in fields.items()}

    answer = await browser.send(path.format(**other), csrf=await browser.csrf(), **filled)

    assert answer.status == 404
    assert b"OTHERS" not in answer.body


async def test_a_connector_is_shown_renamed_disabled_and_enabled(browser: ConsoleBrowser, api: Api):
    record = (await api.connector()).record
    path, csrf = f"/console/connectors/{record['id']}", await browser.csrf()

    shown = await browser.get(path)
    await browser.send(path, csrf=csrf, name="Second desk")
    await browser.send(path, csrf=csrf, status="disabled")
    off = (await api.get(f"/api/v1/integrations/connectors/{record['id']}")).json()
    await browser.send(path, csrf=csrf, status="active")
    checked = await browser.send(f"{path}/check", csrf=csrf)

    assert shown.status == 200
    assert (off["name"], off["status"]) == ("Second desk", "disabled")
    assert b"accepts the credentials" in checked.body


async def test_deletion_requires_the_connectors_name(browser: ConsoleBrowser, api: Api):
    record = (await api.connector()).record
    path, csrf = f"/console/connectors/{record['id']}/delete", await browser.csrf()

    refused = await browser.send(path, csrf=csrf, name="other")
    deleted = await browser.send(path, csrf=csrf, name=record["name"])

    assert refused.status == 422
    assert deleted.headers["Location"].startswith("/console/jobs/")


async def test_an_operation_is_found_previewed_and_run(browser: ConsoleBrowser, api: Api):
    record = (await api.connector()).record
    fields = {"csrf": await browser.csrf(), "operation": "support-desk.tickets.list", "connector": record["id"]}

    found = await browser.get("/console/playground?query=list+tickets")
    form = await browser.get("/console/playground?operation=support-desk.tickets.list")
    dry = await browser.send("/console/playground", **fields, **{"p.per_page": "2", "do": "dry_run"})
    run = await browser.send("/console/playground", **fields, **{"p.per_page": "2", "do": "run"})

    assert b"support-desk.tickets.list" in found.body
    assert b'name="p.per_page"' in form.body
    assert b"/api/v2/tickets.json" in dry.body
    assert run.body.count(b"<tr>") == 3
    assert b"curl -sS" in run.body


async def test_the_error_of_a_param_is_shown_at_its_field(browser: ConsoleBrowser, api: Api):
    record = (await api.connector()).record
    fields = {"csrf": await browser.csrf(), "operation": "support-desk.tickets.list", "connector": record["id"]}

    wrong = {"p.sort_order": "up", "p.per_page": "many"}

    answer = await browser.send("/console/playground", **fields, **wrong, do="run")

    assert answer.status == 422
    assert re.search(rb'name="p.per_page"[^>]*value="many"[^>]*aria-invalid="true"', answer.body)
    assert b"per_page: it is a whole number" in answer.body


async def test_the_search_form_offers_every_operator_that_compares_a_field(browser: ConsoleBrowser, api: Api):
    record = (await api.connector()).record

    page = await browser.get(f"/console/search?connector={record['id']}")
    searched = await browser.get(
        f"/console/search?connector={record['id']}&entity=tickets&field=tags&operator=array_contains&value=vip"
    )

    select = page.body.decode().partition('name="operator"')[2].partition("</select>")[0]
    assert re.findall(r'<option value="(\w+)"', select) == list(CONDITIONS)
    assert b"&#34;array_contains&#34;: {\n          &#34;tags&#34;: &#34;vip&#34;" in searched.body
    assert b'role="alert"' not in searched.body


async def test_records_and_names_are_escaped(browser: ConsoleBrowser, api: Api):
    script = "<script>alert(1)</script>"
    record = (await api.connector()).record
    await api.call("PATCH", f"/api/v1/integrations/connectors/{record['id']}", json={"name": script})
    params = {"ticket": {"subject": script, "comment": {"body": script}}}
    body = {"entity": "tickets", "action": "create", "params": params}
    ticket = (await api.post(f"/api/v1/integrations/connectors/{record['id']}/execute", body)).json()["result"]
    fields = {"csrf": await browser.csrf(), "operation": "support-desk.tickets.get", "connector": record["id"]}

    run = await browser.send("/console/playground", **fields, **{"p.ticket_id": str(ticket["id"]), "do": "run"})
    pages = [run, await browser.get("/console/connectors"), await browser.get(f"/console/connectors/{record['id']}")]

    assert all(page.status == 200 for page in pages)
    assert all(script.encode() not in page.body for page in pages)
    assert b"&lt;script&gt;" in run.body


async def test_a_client_is_created_and_its_secret_is_shown_once(browser: ConsoleBrowser, front: FrontEnd):
    made = await browser.send("/console/settings/clients", csrf=await browser.csrf(), name="agent", read="on")
    found = re.search(rb"Client <code>([\w-]+)</code>, secret <code>([\w-]+)</code>", made.body)
    assert found is not None

    async with Api.of(front.base_url, found[1].decode(), found[2].decode()) as api:
        allowed = await api.get("/api/v1/jobs")

    assert allowed.status == 200
    assert found[2] not in (await browser.get("/console/settings")).body


async def test_health_shows_only_the_organizations_own_work(browser: ConsoleBrowser, api: Api, front: FrontEnd):
    async with front.api() as other:
        for _ in range(3):
            await (await other.connector()).submit("tickets", "list")
    await (await api.connector()).submit("tickets", "list")

    checks = (await api.get("/api/v1/health/checks")).json()["data"]
    page = await browser.get("/console/health")

    told = {each["what"]: (each["status"], each["message"]) for each in checks}
    assert set(told) == {"PostgreSQL", "Redis", "workers", "connectors", "jobs", "copies"}
    assert told["PostgreSQL"] == ("passed", "answers")
    assert told["workers"][0] == "failed"  # none runs in this test
    assert told["jobs"] == ("passed", "1 queued, 0 running, 0 waiting")
    assert b"<strong>Jobs</strong>: 1 queued" in page.body
    assert str(front.services.settings.data_dir).encode() not in page.body + str(checks).encode()


async def test_health_is_for_administrators(front: FrontEnd, organization_id):
    async with front.api(organization_id, ["read", "write"]) as other:
        assert (await other.get("/api/v1/health/checks")).status == 403


async def test_the_audit_log_is_filtered_by_client_and_time(
    browser: ConsoleBrowser, api: Api, front: FrontEnd, organization_id
):
    await api.connector()
    client_id, _ = await front.client(organization_id)
    async with asyncio.timeout(10):
        while b"connector.create" not in (shown := await browser.get("/console/audit")).body:
            pass

    by_others = await browser.get(f"/console/audit?actor={client_id}")
    before = await browser.get("/console/audit?until=2020-01-01T00:00&connector=")
    since = await browser.get("/console/audit?since=2020-01-01T00:00")
    wrong = await browser.get("/console/audit?since=yesterday")

    assert b" connector.create</span>" in shown.body
    assert b" connector.create</span>" in since.body
    assert b'value="2020-01-01T00:00"' in since.body
    assert b" connector.create</span>" not in by_others.body + before.body
    assert wrong.status == 422


async def test_usage_counts_calls(browser: ConsoleBrowser, api: Api):
    await api.connector()

    while b"<p>0 calls" in (page := await browser.get("/console")).body:
        pass

    assert re.search(rb"<p>[1-9]\d* calls", page.body)


async def test_a_page_shows_a_bounded_number_of_connectors(browser: ConsoleBrowser, front: FrontEnd, organization_id):
    workspace_id = await front.services.identity.workspace_named(organization_id, "w")
    async with front.services.database.tenant(organization_id) as connection:
        await connection.execute(
            "INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status, created_at)"
            " SELECT gen_random_uuid(), $1, $2, 'support-desk', 'connector ' || n, 'needs_reauth',"
            " now() + n * interval '1 second' FROM generate_series(1, 150) AS n",
            organization_id,
            workspace_id,
        )
        last = await connection.fetchval("SELECT id FROM connectors WHERE name = 'connector 150'")

    first = (await browser.get("/console/connectors")).body.decode()
    second = (await browser.get(re.search(r'href="(\?cursor=[^"]+)"', first)[1].join(("/console/connectors", "")))).body
    offered = [(await browser.get(f"/console/{page}")).body.count(b"<option value=") for page in ("audit", "search")]
    chosen = (await browser.get(f"/console/audit?connector={last}")).body.decode()
    overview = (await browser.get("/console")).body

    assert (first.count('scope="row"'), second.count(b'scope="row"')) == (100, 50)
    assert max(offered) < 150
    assert str(last) in chosen
    assert overview.count(b"must be authorized again") == 20
    assert re.search(rb"<strong>150</strong> connectors", overview)


async def test_a_jobs_history_shows_each_change_of_its_state_with_attempt_and_reason(
    browser: ConsoleBrowser, api: Api, front: FrontEnd
):
    desk = await api.connector()
    job = (await desk.submit("tickets", "get", {"ticket_id": 1}))["id"]
    async with front.services.database.system() as connection:
        for attempt, status, message in (
            (1, "running", None),
            (1, "waiting", "rate limit of Zendesk"),
            (2, "running", None),
        ):
            await connection.execute(
                "UPDATE jobs SET status = $2, attempt = $3, message = $4 WHERE id = $1",
                UUID(job),
                status,
                attempt,
                message,
            )

    page = (await browser.get(f"/console/jobs/{job}")).body.decode()

    section = page[page.index('id="history"') :].split("</section>")[0]
    steps = [
        re.sub(r"after \d+ ms", "after … ms", " ".join(re.sub(r"<[^>]+>", " ", step).split()))
        for step in re.findall(r"<li>.*?</li>", section, re.DOTALL)
    ]
    assert steps == [
        "Accepted just now",
        "running just now after … ms , attempt 1",
        "waiting just now after … ms , attempt 1: rate limit of Zendesk",
        "running just now after … ms , attempt 2",
    ]


async def test_an_unknown_page_of_the_console_is_a_404_with_its_menu(browser: ConsoleBrowser):
    missing = await browser.get("/console/nothing/at/all")
    front = await browser.get("/console/")

    assert missing.status == 404
    assert "There is no such page" in missing.body.decode()
    assert 'href="/console/jobs"' in missing.body.decode()
    assert (front.status, front.headers["Location"]) == (303, "/console")


async def test_the_list_of_jobs_has_titles_counts_and_links_that_keep_the_filters(browser: ConsoleBrowser, api: Api):
    workspace = f"w-{uuid4().hex[:8]}"
    desk = await api.connector(workspace_name=workspace)
    await desk.submit("ticket_bulk_updates", "create", {"ids": "1", "ticket": {"status": "pending"}})

    page = (await browser.get(f"/console/jobs?workspace={workspace}&period=day")).body.decode()
    others = (await browser.get("/console/jobs?workspace=another&period=day")).body.decode()

    assert "Create ticket bulk update</a>" in page
    assert f'href="?workspace={workspace}&amp;period=day&amp;status=queued"' in page
    assert re.search(r">queued <small>1</small>", page)
    assert "No job matches." in others


async def test_the_overview_counts_failures_by_cause(browser: ConsoleBrowser, api: Api, front: FrontEnd):
    desk = await api.connector()
    jobs = [(await desk.submit("tickets", "get", {"ticket_id": number}))["id"] for number in (1, 2)]
    async with front.services.database.system() as connection:
        await connection.execute(
            "UPDATE jobs SET status = 'failed', finished_at = now(), error = $2 WHERE id = ANY($1)",
            list(map(UUID, jobs)),
            '{"code": "rate_limited", "detail": "slow down"}',
        )

    page = (await browser.get("/console")).body.decode()

    failed = page[page.index('id="failed"') :].split("</section>")[0]
    row = next(each for each in failed.split("<tr>") if desk.record["id"] in each)
    assert re.search(r'<td class="number">2</td>', row)
    assert "rate_limited" in row


async def test_a_client_that_only_reads_sees_no_button_that_changes_and_is_refused(
    api: Api, front: FrontEnd, organization_id: UUID
):
    desk = await api.connector()
    address = f"/console/connectors/{desk.record['id']}"
    async with signed_in(front, *await front.client(organization_id, scopes=["read"])) as reader:
        pages = [
            (await reader.get(path)).body.decode()
            for path in ("/console", "/console/connectors", f"{address}?tab=settings")
        ]
        csrf = await reader.csrf()
        answers = [
            await reader.send("/console/connectors/connect", csrf=csrf, workspace_name="acme"),
            await reader.send(address, csrf=csrf, name="another"),
        ]

    actions = {action for page in pages for action in re.findall(r'<form method="post" action="([^"]+)"', page)}
    assert actions == {"/console/sign-out", f"{address}/check"}
    assert not any("/console/audit" in page or "/console/settings" in page for page in pages)
    assert [each.status for each in answers] == [403, 403]
