"""Kinds from OpenAPI documents in the console: import, review, serve, export, delete. Works without scripts."""

import io
import zipfile
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote, urlsplit

from aiohttp import web

from gateway.access.identity.tokens import hashed
from gateway.contract.connectors import MCP
from gateway.contract.kinds import Effect
from gateway.contract.oauth import CONSOLE_RETURN_PATH, ConsentRequest, ServerToSignInTo
from gateway.errors import GatewayError, InvalidParams, NotFound
from gateway.foundation.aio.turns import in_thread
from gateway.upstream.import_process import ImportRequest
from gateway.upstream.mcp_servers import McpAddress
from gateway.web.console.page import console_page, see_other
from gateway.web.console.session import name_in, read_console_form, read_form_once
from gateway.web.keys import ACCESS, CALLER, SERVICES, SESSION
from gateway.web.pages.rendering import PAGES, html_response

_PAGE = "/console/kinds"
_EFFECT = "effect:"
#: maximum operations, lines of the report and differences on the page of a version
_SHOWN = 500


async def list_kinds(request: web.Request) -> web.Response:
    """GET /console/kinds: the imported kinds, and the form for another document; consents of this page return here."""
    query = request.query
    if query.get("state") != _state(request):
        return await _listed(request)
    if "connector_id" in query:
        return see_other(f"/console/connectors/{quote(query['connector_id'], safe='')}")
    reason = query.get("error_description") or query.get("error", "")
    return await _listed(request, problem=f"The sign-in has not connected the server: {reason}")


async def import_kind(request: web.Request) -> web.Response:
    """POST /console/kinds: map an OpenAPI document, and redirect to the review of the draft."""
    fields = await read_form_once(request)
    text, imports = fields.get("text", "").strip(), request.app[SERVICES].connectors.imports
    try:
        if fields.get("mcp", "").strip() and fields.get("sign_in"):
            return await _left_to_sign_in(request, fields)
        if fields.get("mcp", "").strip():
            draft = await imports.draft_server(request[CALLER], _server_address(fields))
            return see_other(f"{_PAGE}/{draft.kind}/{draft.version}")
        draft = await imports.draft(
            request[CALLER],
            ImportRequest(
                source=fields.get("source", "").strip(),
                text=text or None,
                kind=fields.get("kind", "").strip() or None,
                server=fields.get("server", "").strip() or None,
                variables=_variables(fields.get("variables", "")),
            ),
        )
    except NotFound:
        raise
    except GatewayError as error:
        return await _listed(request, problem=error.detail, fields=fields)
    return see_other(f"{_PAGE}/{draft.kind}/{draft.version}")


async def _left_to_sign_in(request: web.Request, fields: dict[str, str]) -> web.Response:
    """The page that leads to the sign-in of an MCP server; a redirect from a form may not go to another origin."""
    services, pages = request.app[SERVICES], request.app[PAGES]
    workspace = name_in(fields, "workspace_name")
    if not workspace:
        raise InvalidParams("enter the workspace of the connector that the sign-in creates")
    url = fields["mcp"].strip()
    requested = ConsentRequest(
        workspace_name=workspace,
        connector_type=MCP,
        redirect_url=services.settings.base_url + CONSOLE_RETURN_PATH,
        state=_state(request),
        mcp_server=ServerToSignInTo(url=url, kind=fields.get("mcp_kind", "").strip() or None),
    )
    started = await services.connectors.oauth.flows.initiate(request[CALLER], requested)
    html = pages.render("leave.html", title=urlsplit(url).hostname, address=started.consent_url)
    return html_response(html, pages.headers())


def _state(request: web.Request) -> str:
    """The state of consents that this session begins, so that no link can make this page say what it did not."""
    return hashed(request.app[ACCESS].console_sessions.csrf_token(request[SESSION])).hex()


def _server_address(fields: dict[str, str]) -> McpAddress:
    token, header, kind = (fields.get(name, "").strip() or None for name in ("token", "header", "mcp_kind"))
    return McpAddress(url=fields["mcp"].strip(), token=token, header=header, kind=kind)


async def show_version(request: web.Request) -> web.Response:
    """GET /console/kinds/{kind}/{version}: what was mapped and what changes, with fields for corrections."""
    return await _reviewed(request)


async def serve_version(request: web.Request) -> web.Response:
    """POST /console/kinds/{kind}/{version}: serve the version with the corrections of the form."""
    fields, (kind, version) = await read_console_form(request), _version(request)
    effects = {name.removeprefix(_EFFECT): value for name, value in fields.items() if name.startswith(_EFFECT)}
    imports = request.app[SERVICES].connectors.imports
    try:
        server = fields.get("server", "").strip() or None
        await imports.serve(request[CALLER], kind, version, effects, server)
    except InvalidParams as error:
        return await _reviewed(request, problem=error.detail)
    return see_other(f"/console/connectors?served={kind}")


async def export_version(request: web.Request) -> web.Response:
    """GET /console/kinds/{kind}/{version}/folder.zip: the folder that `gateway specs import` would write."""
    kind, version = _version(request)
    files = await request.app[SERVICES].connectors.imports.files(request[CALLER], kind, version)
    body = await in_thread(partial(_zipped, kind), files)
    headers = {"Content-Disposition": f'attachment; filename="{kind}.zip"', "Cache-Control": "no-store"}
    return web.Response(body=body, content_type="application/zip", headers=headers)


def _zipped(folder: str, files: Sequence[tuple[str, str]]) -> bytes:
    """The folder as a ZIP file; of a kind with 5,000 operations it takes a second."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files:
            archive.writestr(f"{folder}/{name}", text)
    return packed.getvalue()


async def delete_kind(request: web.Request) -> web.Response:
    """POST /console/kinds/{kind}/delete: delete all versions; connectors of the kind become unserved."""
    await read_console_form(request)
    await request.app[SERVICES].connectors.imports.delete(request[CALLER], request.match_info["kind"])
    return see_other(_PAGE)


def _version(request: web.Request) -> tuple[str, int]:
    text = request.match_info["version"]
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise NotFound("there is no such version of an imported kind")
    return request.match_info["kind"], int(text)


def _variables(text: str) -> dict[str, str]:
    """The variables of servers, `name=value` on a line; raises InvalidParams."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if wrong := [line for line in lines if "=" not in line]:
        raise InvalidParams(f"write each variable as name=value; this line has no `=`: {wrong[0][:100]}")
    return dict(line.split("=", 1) for line in lines)


async def _listed(
    request: web.Request, *, problem: str | None = None, fields: dict[str, str] | None = None
) -> web.Response:
    services = request.app[SERVICES]
    imports = services.connectors.imports
    may_import = imports.may(request[CALLER])
    versions = await imports.all(request[CALLER]) if may_import else ()
    return console_page(
        request,
        "kinds.html",
        active="connectors",
        status=422 if problem else 200,
        may_import=may_import,
        versions=versions,
        served=set(services.catalog.kinds),
        fields=fields or {},
        problem=problem,
    )


async def _reviewed(request: web.Request, *, problem: str | None = None) -> web.Response:
    review = await request.app[SERVICES].connectors.imports.review(request[CALLER], *_version(request))
    spec, operations = review.kind.spec, list(review.kind.operations.values())
    return console_page(
        request,
        "kind_version.html",
        active="connectors",
        status=422 if problem else 200,
        version=review.version,
        spec=spec,
        operations=operations[:_SHOWN],
        more=max(0, len(operations) - _SHOWN),
        effects=[effect.value for effect in Effect],
        changes=None if review.changes is None else [str(change) for change in review.changes[:_SHOWN]],
        report=review.version.report.splitlines()[:_SHOWN],
        problem=problem,
    )
