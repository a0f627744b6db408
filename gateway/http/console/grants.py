"""What people let agents' hosts do, in the console."""

from aiohttp import web

from gateway.http.bodies import path_id
from gateway.http.console.host_configurations import host_configurations
from gateway.http.console.page import console_page, see_other
from gateway.http.console.session import read_console_form
from gateway.http.keys import CALLER, SERVICES
from gateway.http.responses import cursor_of, read_time_cursor
from gateway.jobs.model import moment

_PAGE, _LIMIT = "/console/grants", 50


async def list_grants(request: web.Request) -> web.Response:
    """GET /console/grants: which hosts may act for whom."""
    store, after = request.app[SERVICES].authorization.store, read_time_cursor(request.query.get("cursor"))
    grants = await store.grants(request[CALLER].organization_id, after, _LIMIT + 1)
    page = grants[:_LIMIT]
    return console_page(
        request,
        "grants.html",
        active="grants",
        grants=[{"grant": each, "since": moment(each.created_at)} for each in page],
        hosts=host_configurations(request.app[SERVICES].settings.base_url),
        cursor=cursor_of((page[-1].created_at, page[-1].id)) if len(grants) > len(page) else None,
    )


async def revoke_grant(request: web.Request) -> web.Response:
    """POST /console/grants/{grant_id}/revoke: the host is out at once."""
    await read_console_form(request)
    authorization = request.app[SERVICES].authorization
    await authorization.revoke(request[CALLER], path_id(request, "grant_id"))
    return see_other(_PAGE)
