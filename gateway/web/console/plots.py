"""Plots of calls and their duration: of the organization, a connector or a client."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from aiohttp import web

from gateway.access.audit.usage import UsagePoint
from gateway.errors import InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.web.console.page import SPANS
from gateway.web.keys import CALLER, SERVICES

#: seconds between the points of the plots of each time span
_STEPS = {"hour": 60, "day": 1200, "week": 7200, "month": 28_800}
_USUAL = "hour"


def span_of(request: web.Request) -> str:
    """The chosen time span."""
    chosen = request.query.get("span", _USUAL)
    return chosen if chosen in SPANS else _USUAL


def since_of(span: str) -> datetime:
    """When the time span begins."""
    return CLOCK.now() - SPANS[span]


async def plots_of_organization(request: web.Request) -> Mapping[str, Any]:
    """The plots of the chosen time span, for the template; none if a limited client's workspaces have too many calls
    to be read.
    """
    span, caller, usage = span_of(request), request[CALLER], None
    with contextlib.suppress(InvalidParams):
        audit = request.app[SERVICES].logs.audit
        usage = await audit.usage(caller.organization_id, since_of(span), _STEPS[span], caller.client.workspaces)
    return _shown(span, usage)


async def plots_of(request: web.Request, of: str, id_: UUID) -> Mapping[str, Any]:
    """The plots of one `connector` or `client`, for the template; none if it has too many calls to be read."""
    span, usage = span_of(request), None
    with contextlib.suppress(InvalidParams):
        audit = request.app[SERVICES].logs.audit
        usage = await audit.usage_of(request[CALLER].organization_id, since_of(span), _STEPS[span], of, id_)
    return _shown(span, usage)


def _shown(span: str, usage: Sequence[UsagePoint] | None) -> Mapping[str, Any]:
    points = usage or ()
    series = {
        "at": [round(point.at.timestamp()) for point in points],
        "calls": [point.calls for point in points],
        "errors": [point.errors for point in points],
        "p50_ms": [point.p50_ms for point in points],
        "p95_ms": [point.p95_ms for point in points],
    }
    return {
        "span": span,
        "spans": list(SPANS),
        "plots": None if usage is None else json.dumps(series),
        "calls": sum(point.calls for point in points),
        "errors": sum(point.errors for point in points),
        "slowest": max((point.p95_ms for point in points if point.p95_ms is not None), default=None),
    }
