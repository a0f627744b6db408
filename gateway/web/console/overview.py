"""The console's overview (connectors, calls over time, jobs, copies) and its health page."""

import json
from datetime import timedelta

from aiohttp import web

from gateway.access.audit.log import EntryFilter
from gateway.contract.connectors import ConnectorSelection, ConnectorStatus
from gateway.contract.gateway_state import RequestSelection
from gateway.contract.members import moment
from gateway.foundation.aio.clock import CLOCK
from gateway.jobs.model import JobFilter
from gateway.run.monitoring.organization_health import NEEDED, RECENT, organization_checks
from gateway.run.monitoring.statistics import read_own_copies, read_work_in_progress
from gateway.web.api.jobs import job_view
from gateway.web.console.page import connectors_by_id, console_page, see_other
from gateway.web.keys import ACCESS, CALLER, READINESS, SERVICES

#: maximum connectors that must be authorized again, and disabled webhooks, on the overview
_ATTENTION = 20
#: prefixes of audit names that are not operations of applications
_ADMINISTRATION = (
    "agent.",
    "approval.",
    "budget.",
    "client.",
    "connect",
    "console.",
    "context_store.",
    "group.",
    "hook.",
    "issuer.",
    "job.",
    "kind.",
    "oauth",
    "person.",
    "policy.",
    "schedule",
    "scim_token.",
    "session.",
    "webhook.",
    "workspace.",
)
#: maximum jobs and requests of each list
_RECENT = 8
#: maximum audit entries that are searched for the first call
_SEARCHED_ENTRIES = 50
#: time spans of the plots: name → length, and the seconds between points
_SPANS = {
    "hour": (timedelta(hours=1), 60),
    "day": (timedelta(days=1), 1200),
    "week": (timedelta(days=7), 7200),
}


async def show_missing(request: web.Request) -> web.Response:
    """GET /console/…: 404 for an unknown page; `/console/` redirects to `/console`."""
    if not request.match_info["page"]:
        return see_other("/console")
    return console_page(request, "missing.html", heading="There is no such page", status=404)


async def overview(request: web.Request) -> web.Response:
    """GET /console."""
    caller, services = request[CALLER], request.app[SERVICES]
    span = request.query.get("span", "hour")
    back, step = _SPANS.get(span, _SPANS["hour"])
    usage = await services.logs.audit.usage(caller.organization_id, CLOCK.now() - back, step, caller.client.workspaces)
    in_progress = await read_work_in_progress(services.database, caller.organization_id, caller.client.workspaces)
    recent = await services.jobs.access.latest(caller, JobFilter(), _RECENT)
    failed = await services.jobs.access.latest(
        caller, JobFilter(statuses=["failed", "unknown"], created_after=CLOCK.now() - back), _RECENT
    )
    requests = await services.logs.requests.find(
        caller.organization_id,
        RequestSelection(
            status="failed",
            since=CLOCK.now() - back,
            workspaces=caller.client.workspaces,
            person_id=caller.person_id,
        ),
        limit=_RECENT,
    )
    plots = {
        "at": [round(point.at.timestamp()) for point in usage],
        "calls": [point.calls for point in usage],
        "errors": [point.errors for point in usage],
        "p50_ms": [point.p50_ms for point in usage],
        "p95_ms": [point.p95_ms for point in usage],
    }
    counts = await services.connectors.access.count(caller)
    needs_reauth = ConnectorSelection(status=ConnectorStatus.NEEDS_REAUTH)
    attention = await services.connectors.access.find(caller, needs_reauth, limit=_ATTENTION)
    readiness = await request.app[READINESS]()
    return console_page(
        request,
        "overview.html",
        ended=await services.jobs.access.ended(caller, CLOCK.now() - back),
        active="overview",
        spans=list(_SPANS),
        span=span if span in _SPANS else "hour",
        plots=json.dumps(plots),
        calls=sum(point.calls for point in usage),
        errors=sum(point.errors for point in usage),
        counts={status.value: count for status, count in counts.items()},
        steps=await _first_steps(request, is_connected=any(counts.values())),
        attention=attention,
        disabled=await services.events.webhooks.disabled_by_gateway(caller, _ATTENTION),
        failed=[job_view(request, job) for job in failed],
        requests=requests.data,
        jobs=[job_view(request, job) for job in recent],
        in_progress=in_progress,
        oldest_synced_at=moment(in_progress.oldest_synced_at),
        missing=[NEEDED[name] for name, answers in readiness.checks.items() if not answers],
        connectors=await connectors_by_id(request, (job.connector_id for job in (*failed, *recent))),
    )


async def _first_steps(request: web.Request, *, is_connected: bool) -> dict[str, bool] | None:
    """The first steps, and whether each is done; None if all are done, or if the organization made many calls."""
    caller, services = request[CALLER], request.app[SERVICES]
    entries = await services.logs.audit.find(
        caller.organization_id,
        EntryFilter(outcome="succeeded", workspaces=caller.client.workspaces),
        limit=_SEARCHED_ENTRIES,
    )
    grants = await request.app[ACCESS].authorization.grants(caller, None, 1)
    steps = {
        "connect": is_connected,
        "try": any(not entry.what.startswith(_ADMINISTRATION) for entry in entries),
        "agent": bool(grants.data),
    }
    return None if all(steps.values()) or len(entries) == _SEARCHED_ENTRIES else steps


async def health(request: web.Request) -> web.Response:
    """GET /console/health: checks of the gateway, and the organization's own jobs and copies."""
    services, organization_id = request.app[SERVICES], request[CALLER].organization_id
    in_progress = await read_work_in_progress(services.database, organization_id, request[CALLER].client.workspaces)
    ended = await services.jobs.access.ended(request[CALLER], CLOCK.now() - RECENT)
    readiness = await request.app[READINESS]()
    return console_page(
        request,
        "health.html",
        active="health",
        checks=organization_checks(
            readiness.checks, in_progress, ended, await services.connectors.access.count(request[CALLER])
        ),
        in_progress=in_progress,
        ended=ended,
        copies=[
            (copy, CLOCK.now() - timedelta(seconds=copy.lag))
            for copy in await read_own_copies(services.database, organization_id)
        ],
        applications={kind.name: kind.spec.application for kind in services.catalog},
    )
