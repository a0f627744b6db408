"""The common base of the console's pages."""

import contextlib
from collections.abc import Awaitable, Iterable
from typing import Any
from uuid import UUID

from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.connectors import Connector, ConnectorSelection
from gateway.errors import NotFound
from gateway.web.keys import ACCESS, CALLER, SERVICES, SESSION
from gateway.web.pages.rendering import PAGES, html_response

#: maximum connectors of each kind in a choice
_CHOICES = 50

#: for people only
_ME = ("me", "/console/me", "My access")
NAVIGATION = (
    ("overview", "/console", "Overview"),
    ("connectors", "/console/connectors", "Connectors"),
    ("playground", "/console/playground", "Playground"),
    ("jobs", "/console/jobs", "Jobs"),
    ("approvals", "/console/approvals", "Approvals"),
    ("schedules", "/console/schedules", "Schedules"),
    ("webhooks", "/console/webhooks", "Webhooks"),
    ("search", "/console/search", "Search"),
    ("audit", "/console/audit", "Audit"),
    ("people", "/console/people", "People"),
    ("policies", "/console/policies", "Policies"),
    ("grants", "/console/grants", "Hosts"),
    ("settings", "/console/settings", "Clients"),
    ("health", "/console/health", "Health"),
)


def console_page(
    request: web.Request, template: str, *, active: str = "", status: int = 200, **context: Any
) -> web.Response:
    """A page, or a part of a page, for the signed-in client."""
    caller, pages = request[CALLER], request.app[PAGES]
    html = pages.render(
        f"console/{template}",
        navigation=NAVIGATION if caller.person_id is None else (*NAVIGATION[:1], _ME, *NAVIGATION[1:]),
        active=active,
        client=caller.client.name,
        scopes=sorted(caller.client.scopes),
        csrf=request.app[ACCESS].console_sessions.csrf_token(request[SESSION]),
        **context,
    )
    return html_response(html, pages.headers(), status)


async def connectors_to_choose(request: web.Request, chosen_id: UUID | None) -> list[Connector]:
    """The latest connectors of each kind and the chosen one, the oldest first."""
    connectors, caller = request.app[SERVICES].connectors.change, request[CALLER]
    offered = {each.id: each for each in await connectors.latest_of_each_kind(caller, _CHOICES)}
    if chosen_id is not None and str(chosen_id) not in offered:
        with contextlib.suppress(NotFound):
            offered[str(chosen_id)] = await connectors.get(caller, chosen_id)
    return sorted(offered.values(), key=lambda each: (each.created_at, each.id))


async def connectors_by_id(request: web.Request, ids: Iterable[UUID | str | None]) -> dict[str, Connector]:
    """The connectors with these ids that the caller can access; other and deleted ids are ignored."""
    wanted = [each for each in {id_of(str(each)) for each in ids} if each is not None]
    found = await request.app[SERVICES].connectors.change.find(request[CALLER], ConnectorSelection(ids=wanted))
    return {each.id: each for each in found.data}


def see_other(location: str) -> web.Response:
    """A redirect to a page after a form, so that reloading the page does not send the form again."""
    return web.Response(status=303, headers={"Location": location, "Cache-Control": "no-store"})


async def is_found(reading: Awaitable[object]) -> bool:
    """Whether what is read exists: a form for something new does not replace another of its name by mistake."""
    with contextlib.suppress(NotFound):
        await reading
        return True
    return False
