"""Every URL in one table; each route is in the module of its handler."""

from itertools import chain

from gateway.web.api import (
    approvals,
    audit,
    authorization,
    batches,
    budgets,
    clients,
    connect,
    connectors,
    context_store,
    discovery,
    downloads,
    events,
    execute,
    grants,
    hooks,
    issuers,
    job_events,
    jobs,
    mcp,
    oauth,
    operation_search,
    operations,
    organization,
    pages,
    people,
    policies,
    requests,
    schedules,
    scim,
    scim_tokens,
    sessions,
    tokens,
    uploads,
    webhooks,
)
from gateway.web.console import me, provider_callback
from gateway.web.console.routes import CONSOLE_ROUTES
from gateway.web.docs_site import handlers as docs_site
from gateway.web.route import Route

#: routes are tried in this order, and most requests are for `execute`
ROUTES: tuple[Route, ...] = (
    *chain.from_iterable(
        module.ROUTES
        for module in (
            *(execute, batches, downloads, uploads, context_store, jobs, job_events, schedules, events, webhooks),
            *(connectors, hooks, connect, tokens, oauth, discovery, operation_search, audit, requests, clients),
            *(
                people,
                scim,
                scim_tokens,
                sessions,
                issuers,
                policies,
                approvals,
                budgets,
                organization,
                grants,
                mcp,
                authorization,
                operations,
                docs_site,
                pages,
                me,
                provider_callback,
            ),
        )
    ),
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
