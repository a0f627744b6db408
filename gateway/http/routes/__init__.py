"""Every URL in one table: each route says who handles it, what it needs and what the OpenAPI document says of it."""

from gateway.http.console.routes import CONSOLE_ROUTES
from gateway.http.route import Route
from gateway.http.routes import (
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
