"""Routes behave as they are declared: token, scope, audit, methods."""

import asyncio
import json
import re
from typing import get_args, get_type_hints
from uuid import UUID, uuid4

import aiohttp
import pytest
from markupsafe import escape
from msgspec import Struct

from gateway.access.identity.model import Scope
from gateway.errors import BY_CODE
from gateway.kinds.param_rows import param_rows
from gateway.web.routes import ROUTES, methods_of
from tests.harness.catalog import shipped_catalog

CHANGING = [route for route in ROUTES if route.method not in ("GET", "HEAD") and not route.is_open]
CLOSED = [route for route in ROUTES if not route.is_open and not route.path.startswith("/console")]
#: routes whose response is the same for every organization
OF_NO_ORGANIZATION = {"Discovery"}
BY_OPERATION = {"batch", "execute", "mcp"}


def named(route):
    return f"{route.method} {route.path}"


def path_of(route):
    """The path with existing names and unknown ids."""
    known = {
        "entity": "attachments",
        "kind": "support-desk",
        "connector_type": "support-desk",
        "code": "not_found",
        "group": "jobs",
        "page": "concepts",
    }
    return re.sub(r"{(\w+)(:[^}]*)?}", lambda variable: known.get(variable[1]) or str(uuid4()), route.path)


async def status_and_code(session, route, headers):
    """The status and the code of a response; SCIM has errors without codes."""
    async with session.request(route.method, path_of(route), headers=headers) as response:
        has_code = route.method != "HEAD" and not route.is_scim
        return response.status, (await response.json())["code"] if has_code else None


@pytest.mark.parametrize("route", CHANGING, ids=named)
def test_a_route_that_changes_something_has_an_audit_name(route):
    assert route.audit


@pytest.mark.parametrize("route", CLOSED, ids=named)
def test_a_closed_route_names_its_scope_unless_the_operation_determines_it(route):
    assert route.scope is not None or route.audit in BY_OPERATION or route.tag in OF_NO_ORGANIZATION


@pytest.mark.parametrize("route", [route for route in ROUTES if not route.is_page], ids=named)
def test_a_handler_returns_the_struct_of_its_route(route):
    answered = get_type_hints(route.handler)["return"]
    structs = {each for each in (answered, *get_args(answered)) if isinstance(each, type) and issubclass(each, Struct)}

    assert structs <= {route.response_of(status) for status in route.answers}


@pytest.mark.parametrize("route", CLOSED, ids=named)
async def test_a_closed_route_requires_a_token(api, route):
    status, code = await status_and_code(api.session, route, {})

    assert (status, code) in ((401, "unauthorized"), (401, None))


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.scope and not route.path.startswith("/console")], ids=named
)
async def test_a_client_without_the_scope_is_refused_before_the_request_is_read(front, route):
    others = [scope.value for scope in Scope if scope is not route.scope]

    async with front.api(scopes=others) as api:
        status, code = await status_and_code(api.session, route, api.headers)

    assert (status, code) in ((403, "insufficient_scope"), (403, None))


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/integrations/connectors/oauth%2Fcallback",
        "/api/v1/integrations/connectors/oauth%2fcallback?code=a&state=b",
        "/api/v1/jobs/..%2F..%2F..%2Fhealthz",
    ],
)
async def test_a_path_that_only_decodes_to_an_open_one_requires_a_token(front, api, path):
    url = aiohttp.client.URL(front.base_url + path, encoded=True)

    async with aiohttp.ClientSession() as session, session.get(url) as without_token:
        without = without_token.status
    async with aiohttp.ClientSession() as session, session.get(url, headers=api.headers) as with_token:
        assert (without, with_token.status) == (401, 404)


async def noted(api, what):
    """The first entry of the audit log with that name; waits, because entries are written in batches."""
    async with asyncio.timeout(10):
        while True:
            entries = (await api.get("/api/v1/audit")).json()["data"]
            found = [entry for entry in entries if entry["what"] == what]
            if found:
                return found[0]


async def test_the_audit_entry_has_action_target_and_outcome(api, support_desk):
    connector_id = support_desk.record["id"]
    workspaces = await api.get(f"/api/v1/workspaces?name_contains={support_desk.record['workspace_name']}")
    workspace_id = workspaces.json()["data"][0]["id"]
    job_id = (await support_desk.submit("tickets", "list"))["id"]

    await api.post(f"/api/v1/jobs/{job_id}/cancel")
    await api.post(f"/api/v1/jobs/{job_id}/retry")
    await api.call("PATCH", support_desk.path, json={"name": "renamed"})
    await support_desk.send("tickets", "get", {"ticket_id": 10**9})
    await api.call("DELETE", support_desk.path)
    await api.call("DELETE", f"/api/v1/workspaces/{workspace_id}")

    expected = {
        "connector.create": ("succeeded", connector_id, connector_id),
        "tickets.list": ("canceled", connector_id, None),  # the job's end has an entry too
        "job.cancel": ("accepted", connector_id, job_id),
        "job.retry": ("accepted", connector_id, job_id),
        "connector.update": ("succeeded", connector_id, connector_id),
        "tickets.get": ("upstream_not_found", connector_id, str(10**9)),
        "connector.delete": ("accepted", connector_id, connector_id),
        "workspace.delete": ("accepted", None, workspace_id),
    }
    entries = {what: await noted(api, what) for what in reversed(expected)}
    assert {
        what: (entry["outcome"], entry["connector_id"], entry["target"]) for what, entry in entries.items()
    } == expected


async def test_a_refusal_for_a_missing_scope_is_recorded_too(front, api):
    async with front.api(await organization_of(front, api), ["read"]) as reader:
        await reader.call("DELETE", f"/api/v1/workspaces/{uuid4()}")

    assert (await noted(api, "workspace.delete"))["outcome"] == "insufficient_scope"


async def organization_of(front, api) -> UUID:
    client = await front.access.tokens.verify(api.headers["Authorization"].removeprefix("Bearer "))
    return next(iter(client.organization_ids))


async def test_a_dry_run_refuses_the_fields_that_the_call_would_refuse(support_desk):
    call = ("tickets", "list", {})
    dry = await support_desk.send(*call, dry_run=True, select_fields=["subjekt"])
    real = await support_desk.send(*call, select_fields=["subjekt"])

    assert dry.status == real.status == 422
    assert dry.json()["errors"] == real.json()["errors"]


async def test_a_dry_run_is_not_recorded(api, support_desk):
    await support_desk.execute("tickets", "get", {"ticket_id": 1}, dry_run=True)
    await support_desk.execute("tickets", "list")

    await noted(api, "tickets.list")
    entries = (await api.get("/api/v1/audit")).json()["data"]
    assert "tickets.get" not in {entry["what"] for entry in entries}


async def test_a_dry_run_needs_the_scope_of_the_operation(front, api, support_desk):
    async with front.api(await organization_of(front, api), ["read"]) as reader:
        body = {"entity": "tickets", "action": "create", "params": {"ticket": {"subject": "s"}}, "dry_run": True}
        written = await reader.post(f"{support_desk.path}/execute", body)
        read = await reader.post(
            f"{support_desk.path}/execute", {"entity": "tickets", "action": "list", "dry_run": True}
        )

    assert (written.status, written.json()["code"]) == (403, "insufficient_scope")
    assert read.status == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/healthz", {"GET", "HEAD"}),
        ("PUT", "/api/v1/jobs", {"GET", "HEAD"}),
        ("GET", "/oauth/token", {"POST"}),
        ("PUT", "/api/v1/integrations/connectors", {"GET", "HEAD", "POST"}),
        ("HEAD", "/api/v1/events/stream", {"GET"}),
        ("HEAD", "/api/v1/integrations/connectors/oauth/callback", {"GET"}),
    ],
)
async def test_an_unsupported_method_gets_a_405_with_the_supported_ones(api, method, path, allowed):
    async with api.session.request(method, path) as response:
        body = await response.read()

    assert response.status == 405
    assert method == "HEAD" or json.loads(body)["code"] == "method_not_allowed"
    assert set(response.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("route", [route for route in ROUTES if "HEAD" in methods_of(route)], ids=named)
async def test_head_is_get_without_the_body(api, route):
    options = {"headers": api.headers, "allow_redirects": False}
    async with api.session.get(path_of(route), **options) as response:
        got = response
    async with api.session.head(path_of(route), **options) as response:
        assert (response.status, await response.read()) == (got.status, b"")
        # Only while the content is generated these are known (RFC 9110 §9.3.2).
        of_content = {"Content-Length", "Transfer-Encoding"}
        assert set(response.headers) | of_content == set(got.headers) | of_content
        assert response.headers.get("Content-Type") == got.headers.get("Content-Type")


async def test_head_has_the_length_and_the_etag_of_get(api, support_desk):
    path = f"/api/v1/jobs/{(await support_desk.submit('tickets', 'list'))['id']}"
    got, head = await api.get(path), await api.call("HEAD", path)
    unchanged = await api.call("HEAD", path, headers={"If-None-Match": head.headers["ETag"]})

    assert (head.status, head.body, unchanged.status) == (200, b"", 304)
    assert [head.headers[name] for name in ("Content-Length", "ETag")] == [str(len(got.body)), got.headers["ETag"]]


async def test_the_root_redirects_a_browser_and_gives_a_program_the_urls(api):
    browser = await api.get("/", headers={"Accept": "text/html,*/*;q=0.8"}, allow_redirects=False)
    program = await api.get("/", headers={"Accept": "*/*"})

    assert browser.status == 303
    assert (await api.get(browser.headers["Location"])).status == 200
    assert program.json()["openapi"] == "/openapi.json"
    assert (await api.get(program.json()["docs"])).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/docs", "/api/v1/jobs", "/api/v1/nothing"])
async def test_every_response_has_nosniff_and_no_server_software(api, path):
    response = await api.get(path)

    assert "Server" not in response.headers
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["X-Request-Id"]


@pytest.mark.parametrize("path", ["/docs", "/docs/kinds", "/docs/kinds/Support-Desk", "/docs/errors/not_found"])
async def test_the_reference_has_a_strict_content_security_policy(api, path):
    response = await api.get(path)

    policy = dict(part.strip().partition(" ")[::2] for part in response.headers["Content-Security-Policy"].split(";"))
    assert response.status == 200
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert {policy[name] for name in ("default-src", "frame-ancestors", "base-uri")} == {"'none'"}
    assert {policy[name] for name in ("script-src", "style-src", "form-action", "connect-src")} == {"'self'"}
    assert b"//" not in response.body.partition(b"<main")[0]


async def test_every_error_links_to_its_page_and_every_code_has_one(api):
    refused = (await api.get(f"/api/v1/jobs/{uuid4()}")).json()
    page = await api.get(refused["docs"])

    assert (page.status, refused["docs"]) == (200, "/docs/errors/not_found")
    assert [code for code in BY_CODE if (await api.get(f"/docs/errors/{code}")).status != 200] == []
    assert (await api.get("/docs/errors/nothing_like_it")).status == 404


async def test_the_pages_of_entities_have_every_param_with_its_description(api):
    kind = shipped_catalog().kind("support-desk")
    pages = [(await api.get(f"/docs/kinds/support-desk/{name}")).body.decode() for name in kind.spec.entities]
    page = "".join(pages)

    rows = [row for operation in kind.operations.values() for row in param_rows(operation.schema)]
    assert [
        row.name for row in rows if f"<code>{row.name}</code>" not in page or str(escape(row.meaning)) not in page
    ] == []
    assert all(f'id="{operation}"' in page for operation in kind.operations.values())


async def test_links_do_not_use_the_host_header(api, support_desk):
    job = await support_desk.submit("tickets", "list", headers={"Host": "evil.example"})

    assert "evil.example" not in job["url"]


async def test_only_an_administrator_sets_and_sees_the_organizations_own_oauth_app(front):
    app = {"connector_type": "team-chat", "configuration": {"client_id": "app", "client_secret": "secret"}}

    async def statuses(scope: Scope) -> list[int]:
        async with front.api(scopes=[scope]) as caller:
            return [
                (await caller.call("PUT", "/api/v1/oauth/credentials", json=app)).status,
                (await caller.get("/api/v1/oauth/credentials")).status,
                (await caller.call("DELETE", "/api/v1/oauth/credentials/connector_type/team-chat")).status,
            ]

    assert await statuses(Scope.ADMIN) == [200, 200, 204]
    assert await statuses(Scope.WRITE) == [403, 403, 403]
    assert await statuses(Scope.READ) == [403, 403, 403]
