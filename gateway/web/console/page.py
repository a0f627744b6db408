"""The common base of the console's pages."""

import contextlib
from collections.abc import Awaitable, Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from aiohttp import web

from gateway.access.identity.model import Scope, id_of
from gateway.contract.connectors import Connector, ConnectorSelection
from gateway.errors import NotFound
from gateway.web.keys import ACCESS, CALLER, REQUEST_ID, SERVICES, SESSION
from gateway.web.pages.rendering import PAGES, html_response

#: maximum connectors of each kind in a choice
_CHOICES = 50

#: time spans to choose from: name → length
SPANS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}
#: for people only
_ME = ("me", "/console/me", "My access", Scope.READ)
#: only if a sandbox takes the place of the applications
_SANDBOX = ("sandbox", "/console/sandbox", "Sandbox", Scope.ADMIN)
#: name, address and label of each page, and the scope that it needs
NAVIGATION = (
    ("overview", "/console", "Overview", Scope.READ),
    ("connectors", "/console/connectors", "Connectors", Scope.READ),
    ("playground", "/console/playground", "Playground", Scope.READ),
    ("jobs", "/console/jobs", "Jobs", Scope.READ),
    ("approvals", "/console/approvals", "Approvals", Scope.APPROVE),
    ("schedules", "/console/schedules", "Schedules", Scope.READ),
    ("webhooks", "/console/webhooks", "Webhooks", Scope.READ),
    ("search", "/console/search", "Search", Scope.READ),
    ("audit", "/console/audit", "Audit", Scope.ADMIN),
    ("people", "/console/people", "People", Scope.ADMIN),
    ("policies", "/console/policies", "Policies", Scope.ADMIN),
    ("grants", "/console/grants", "Hosts", Scope.ADMIN),
    ("settings", "/console/settings", "Clients", Scope.ADMIN),
    ("health", "/console/health", "Health", Scope.ADMIN),
)


def console_page(
    request: web.Request, template: str, *, active: str = "", status: int = 200, **context: Any
) -> web.Response:
    """A page, or a part of a page, for the signed-in client."""
    caller, pages = request[CALLER], request.app[PAGES]
    html = pages.render(
        f"console/{template}",
        navigation=_navigation(request),
        active=active,
        client=caller.client.name,
        scopes=sorted(caller.client.scopes),
        csrf=request.app[ACCESS].console_sessions.csrf_token(request[SESSION]),
        key=uuid4(),
        **context,
    )
    return html_response(html, pages.headers(), status)


def error_page(request: web.Request, heading: str, text: str, status: int) -> web.Response:
    """An error with the navigation bar and the id of the request.

    If the caller is not known, because the database does not answer, the bar has the pages that everybody may see.
    """
    shown = {"heading": heading, "text": text, "request_id": request[REQUEST_ID]}
    if CALLER in request and SESSION in request:
        return console_page(request, "error.html", status=status, **shown)
    pages = request.app[PAGES]
    navigation = [(name, address, label) for name, address, label, scope in NAVIGATION if scope is Scope.READ]
    html = pages.render("console/error.html", navigation=navigation, active="", client=None, scopes=[], **shown)
    return html_response(html, pages.headers(), status)


def _navigation(request: web.Request) -> list[tuple[str, str, str]]:
    """The pages that the caller may see."""
    caller = request[CALLER]
    own = () if caller.person_id is None else (_ME,)
    sandbox = () if request.app[SERVICES].settings.sandbox_url is None else (_SANDBOX,)
    pages = (*NAVIGATION[:1], *own, *NAVIGATION[1:], *sandbox)
    return [(name, address, label) for name, address, label, scope in pages if scope in caller.client.scopes]


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
