"""Groups in the console: the workspaces and scopes that their members have."""

from collections.abc import Mapping
from urllib.parse import urlencode

from aiohttp import web

from gateway.access.identity.model import Scope
from gateway.contract.people import GroupView
from gateway.errors import Conflict, InvalidParams, NotFound
from gateway.web.console.page import console_page, is_found, see_other
from gateway.web.console.rights import rights_fields, scopes_in, workspaces_in
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER

_PAGE, _LIMIT = "/console/groups", 25


async def list_groups(request: web.Request) -> web.Response:
    """GET /console/groups: the groups, and the form for a new one or, with `change`, for one of them."""
    name = request.query.get("change")
    if not name:
        return await _listed(request)
    if not name.isprintable():
        raise NotFound("there is no such group")
    group = await request.app[ACCESS].directory.group(request[CALLER], name)
    fields = {"name": group.name, **rights_fields(group.scopes, group.workspaces)}
    return await _listed(request, changed=group.name, fields=fields)


async def put_group(request: web.Request) -> web.Response:
    """POST /console/groups: create a group, or with `change` replace the rights of its members."""
    fields, directory = await read_console_form(request), request.app[ACCESS].directory
    changed = fields.get("change") or None
    name = changed or fields.get("name", "").strip()
    try:
        if changed is None and await is_found(request.app[ACCESS].directory.group(request[CALLER], name)):
            raise Conflict(f"there is a group {name!r} already; change it in the list")
        await directory.put_group(request[CALLER], GroupView(name, workspaces_in(fields), scopes_in(fields)))
    except (InvalidParams, Conflict) as error:
        return await _listed(request, changed=changed, fields=fields, problem=error.detail)
    return see_other(_PAGE)


async def _listed(
    request: web.Request,
    *,
    changed: str | None = None,
    fields: Mapping[str, str] | None = None,
    problem: str | None = None,
) -> web.Response:
    text = request.query.get("query", "").strip()
    page = await request.app[ACCESS].directory.groups(
        request[CALLER], containing=text or None, cursor=request.query.get("cursor"), limit=_LIMIT
    )
    return console_page(
        request,
        "groups.html",
        active="people",
        status=422 if problem else 200,
        groups=page.data,
        text=text,
        more=page.next_cursor and urlencode({**({"query": text} if text else {}), "cursor": page.next_cursor}),
        all_scopes=[scope.value for scope in Scope],
        changed=changed,
        fields=fields or {},
        problem=problem,
    )
