"""The console's first page: connectors, calls over time, the queue, workers, freshness; and the health of it all."""

import json
from datetime import timedelta

from aiohttp import web

from gateway.aio.clock import CLOCK
from gateway.contract.connectors import ConnectorStatus
from gateway.http.console.page import console_page
from gateway.http.keys import CALLER, READINESS, SERVICES
from gateway.jobs.model import JobFilter, moment
from gateway.monitoring.organization_health import organization_checks
from gateway.monitoring.statistics import read_in_hand, read_own_copies

#: connectors to authorize again that are named
_ATTENTION = 20
#: spans that the plots show: name → how far back, and the seconds between points
_SPANS = {
    "hour": (timedelta(hours=1), 60),
    "day": (timedelta(days=1), 1200),
    "week": (timedelta(days=7), 7200),
}


async def overview(request: web.Request) -> web.Response:
    """GET /console."""
    caller, services = request[CALLER], request.app[SERVICES]
    span = request.query.get("span", "hour")
    back, step = _SPANS.get(span, _SPANS["hour"])
    usage = await services.audit.usage(caller.organization_id, CLOCK.now() - back, step)
    in_hand = await read_in_hand(services.database, caller.organization_id)
    recent = await services.jobs.find(caller, JobFilter(), None, 8)
    plots = {
        "at": [round(point.at.timestamp()) for point in usage],
        "calls": [point.calls for point in usage],
        "errors": [point.errors for point in usage],
        "p50_ms": [point.p50_ms for point in usage],
        "p95_ms": [point.p95_ms for point in usage],
    }
    counts = await services.connectors.count(caller)
    attention = await services.connectors.find(caller, status=ConnectorStatus.NEEDS_REAUTH, limit=_ATTENTION)
    return console_page(
        request,
        "overview.html",
        active="overview",
        spans=list(_SPANS),
        span=span if span in _SPANS else "hour",
        plots=json.dumps(plots),
        calls=sum(point.calls for point in usage),
        errors=sum(point.errors for point in usage),
        counts={status.value: count for status, count in counts.items()},
        attention=attention,
        jobs=recent,
        in_hand=in_hand,
        stalest=moment(in_hand.stalest),
        checks=(await request.app[READINESS]()).checks,
    )


async def health(request: web.Request) -> web.Response:
    """GET /console/health: what keeps the gateway from working for this organization, and its own jobs and copies."""
    services, organization_id = request.app[SERVICES], request[CALLER].organization_id
    in_hand = await read_in_hand(services.database, organization_id)
    readiness = await request.app[READINESS]()
    return console_page(
        request,
        "health.html",
        active="health",
        checks=organization_checks(readiness.checks, in_hand),
        in_hand=in_hand,
        copies=await read_own_copies(services.database, organization_id),
    )
