"""The console's overview (connectors, calls over time, jobs, copies) and its health page."""

import contextlib
from datetime import datetime, timedelta

from aiohttp import web

from gateway.access.audit.log import EntryFilter
from gateway.access.audit.usage import LATEST_CALLS, UsageShares
from gateway.access.identity.model import Scope
from gateway.contract.connectors import ConnectorSelection, ConnectorStatus
from gateway.contract.members import moment
from gateway.errors import BY_CODE, InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.jobs.model import JobFilter
from gateway.run.monitoring.organization_health import NEEDED, RECENT, organization_checks
from gateway.run.monitoring.statistics import read_own_copies, read_work_in_progress
from gateway.web.api.jobs import job_view
from gateway.web.console.page import connectors_by_id, console_page, see_other
from gateway.web.console.plots import plots_of_organization, since_of, span_of
from gateway.web.keys import CALLER, READINESS, REQUEST_ID, SERVICES

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
#: what calls are counted by, and maximum rows of it
_SHARED_BY, _SHARES = ("connector", "client"), 20


async def show_missing(request: web.Request) -> web.Response:
    """GET /console/…: 404 for an unknown page; `/console/` redirects to `/console`."""
    if not request.match_info["page"]:
        return see_other("/console")
    heading, request_id = "There is no such page", request[REQUEST_ID]
    return console_page(request, "missing.html", heading=heading, request_id=request_id, status=404)


async def overview(request: web.Request) -> web.Response:
    """GET /console."""
    caller, services = request[CALLER], request.app[SERVICES]
    by = request.query.get("by") if request.query.get("by") in _SHARED_BY else None
    since = since_of(span_of(request))
    in_progress = await read_work_in_progress(services.database, caller.organization_id, caller.client.workspaces)
    recent = await services.jobs.access.latest(caller, JobFilter(), _RECENT)
    causes = [
        *(("job", each) for each in await services.jobs.access.causes(caller, since, _RECENT)),
        *(
            ("call", each)
            for each in await services.logs.audit.causes(
                caller.organization_id, since, caller.client.workspaces, caller.person_id, _RECENT
            )
        ),
    ]
    counts = await services.connectors.access.count(caller)
    needs_reauth = ConnectorSelection(status=ConnectorStatus.NEEDS_REAUTH)
    attention = await services.connectors.access.find(caller, needs_reauth, limit=_ATTENTION)
    readiness = await request.app[READINESS]()
    return console_page(
        request,
        "overview.html",
        ended=await services.jobs.access.ended(caller, since),
        active="overview",
        **await plots_of_organization(request),
        counts={status.value: count for status, count in counts.items()},
        steps=await _first_steps(request, is_connected=any(counts.values())),
        attention=attention,
        disabled=await services.events.webhooks.disabled_by_gateway(caller, _ATTENTION),
        causes=sorted(causes, key=lambda each: -each[1].count),
        titles={code: error.title for code, error in BY_CODE.items()},
        shares=await _shares(request, since, by),
        latest_calls=LATEST_CALLS,
        by=by or "all",
        jobs=[job_view(request, job) for job in recent],
        in_progress=in_progress,
        oldest_synced_at=moment(in_progress.oldest_synced_at),
        missing=[NEEDED[name] for name, answers in readiness.checks.items() if not answers],
        connectors=await connectors_by_id(
            request, [*(job.connector_id for job in recent), *(each.connector_id for _, each in causes)]
        ),
    )


async def _shares(request: web.Request, since: datetime, by: str | None) -> UsageShares | None:
    """The calls of the busiest connectors or clients, and of the others; None if there are too many to be read."""
    if by is None:
        return None
    caller = request[CALLER]
    seen_by = None if Scope.ADMIN in caller.client.scopes else caller.client_id
    with contextlib.suppress(InvalidParams):
        audit = request.app[SERVICES].logs.audit
        return await audit.busiest(caller.organization_id, since, by, caller.client.workspaces, seen_by, _SHARES)
    return None


async def _first_steps(request: web.Request, *, is_connected: bool) -> dict[str, bool] | None:
    """The first steps, and whether each is done; None after the first call of an operation."""
    caller = request[CALLER]
    entries = await request.app[SERVICES].logs.audit.find(
        caller.organization_id,
        EntryFilter(outcome="succeeded", workspaces=caller.client.workspaces),
        limit=_SEARCHED_ENTRIES,
    )
    has_called = any(not entry.what.startswith(_ADMINISTRATION) for entry in entries)
    return None if has_called or len(entries) == _SEARCHED_ENTRIES else {"connect": is_connected}


async def health(request: web.Request) -> web.Response:
    """GET /console/health: checks of the gateway, and the organization's own jobs and copies."""
    services, caller = request.app[SERVICES], request[CALLER]
    seen = caller.organization_id, caller.client.workspaces
    in_progress = await read_work_in_progress(services.database, *seen)
    ended = await services.jobs.access.ended(caller, CLOCK.now() - RECENT)
    readiness = await request.app[READINESS]()
    return console_page(
        request,
        "health.html",
        active="health",
        checks=organization_checks(
            readiness.checks, in_progress, ended, await services.connectors.access.count(caller)
        ),
        in_progress=in_progress,
        ended=ended,
        copies=[
            (copy, CLOCK.now() - timedelta(seconds=copy.lag))
            for copy in await read_own_copies(services.database, *seen)
        ],
        applications={kind.name: kind.spec.application for kind in services.catalog},
    )
