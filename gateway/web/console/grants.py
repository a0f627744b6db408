"""The grants of people to agents' hosts, in the console."""

from aiohttp import web

from gateway.contract.members import moment
from gateway.web.bodies import path_id
from gateway.web.console.host_configurations import host_configurations
from gateway.web.console.page import console_page, see_other
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER, SERVICES

_PAGE, _LIMIT = "/console/grants", 50


async def list_grants(request: web.Request) -> web.Response:
    """GET /console/grants: the hosts that people gave access, and configurations for hosts."""
    services, cursor = request.app[SERVICES], request.query.get("cursor")
    page = await request.app[ACCESS].authorization.grants(request[CALLER], cursor, _LIMIT)
    return console_page(
        request,
        "grants.html",
        active="grants",
        grants=[{"grant": each, "since": moment(each.created_at)} for each in page.data],
        hosts=host_configurations(services.settings.base_url, registers=services.settings.registers_hosts),
        cursor=page.next_cursor,
    )


async def revoke_grant(request: web.Request) -> web.Response:
    """POST /console/grants/{grant_id}/revoke: revoke a grant and its tokens."""
    await read_console_form(request)
    authorization = request.app[ACCESS].authorization
    await authorization.revoke(request[CALLER], path_id(request, "grant_id"))
    return see_other(_PAGE)
