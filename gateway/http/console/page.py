"""What the console's pages have in common."""

from typing import Any

from aiohttp import web

from gateway.http.keys import CALLER, PAGES, SERVICES, SESSION
from gateway.http.responses import html_response

NAVIGATION = (
    ("overview", "/console", "Overview"),
    ("connectors", "/console/connectors", "Connectors"),
    ("playground", "/console/playground", "Playground"),
    ("jobs", "/console/jobs", "Jobs"),
    ("search", "/console/search", "Search"),
    ("audit", "/console/audit", "Audit"),
    ("grants", "/console/grants", "Agents' hosts"),
    ("settings", "/console/settings", "Clients and apps"),
    ("health", "/console/health", "Health"),
)


def console_page(
    request: web.Request, template: str, *, active: str = "", status: int = 200, **context: Any
) -> web.Response:
    """A page, or a part of one, for who is signed in."""
    caller, pages = request[CALLER], request.app[PAGES]
    html = pages.render(
        f"console/{template}",
        navigation=NAVIGATION,
        active=active,
        client=caller.client.name,
        scopes=sorted(caller.client.scopes),
        csrf=request.app[SERVICES].console_sessions.csrf_token(request[SESSION]),
        **context,
    )
    return html_response(html, pages.headers(), status)


def see_other(location: str) -> web.Response:
    """On to a page after a form, so that loading it again sends nothing."""
    return web.Response(status=303, headers={"Location": location, "Cache-Control": "no-store"})
