"""Every URL in one table: each route names its handler, its scope and its samples in the OpenAPI document."""

from gateway.web.console.routes import CONSOLE_ROUTES
from gateway.web.route import Route
from gateway.web.routes import (
    administration,
    agents,
    calls,
    connectors,
    discovery,
    events,
    jobs,
    oauth,
    pages,
    schedules,
    service,
)

#: routes are tried in this order, and most requests are for `execute`
ROUTES: tuple[Route, ...] = (
    *calls.ROUTES,
    *jobs.ROUTES,
    *schedules.ROUTES,
    *events.ROUTES,
    *connectors.ROUTES,
    *oauth.ROUTES,
    *discovery.ROUTES,
    *administration.ROUTES,
    *agents.ROUTES,
    *service.ROUTES,
    *pages.ROUTES,
    *CONSOLE_ROUTES,
)

_DESCRIBED_HEADS = {route.path for route in ROUTES if route.method == "HEAD"}


def methods_of(route: Route) -> tuple[str, ...]:
    """The methods of the route: with GET also HEAD (RFC 9110 §9.3.2).

    HEAD is not for steps of a consent, which work once and must not be taken by a program that previews links, nor for
    streams, which have no end.
    """
    has_head = route.method == "GET" and not (route.is_stream or route.is_browser_step)
    return ("GET", "HEAD") if has_head and route.path not in _DESCRIBED_HEADS else (route.method,)
