"""The sandbox in the console: what it received, and its faults. Only if `GATEWAY_SANDBOX_URL` names one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from gateway.errors import InvalidParams, NotFound, Unavailable
from gateway.web.bodies import whole_number
from gateway.web.console.page import console_page, see_other
from gateway.web.console.session import read_console_form, read_form_once
from gateway.web.keys import SERVICES

PAGE = "/console/sandbox"
#: requests of the page; seconds for the response of the sandbox
_SHOWN, _TIMEOUT = 50, 5
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
#: the most calls that a fault of the form has
_MOST_TIMES = 1000


@dataclass(frozen=True, slots=True)
class _Breakage:
    """What a fault of the form does."""

    label: str
    members: Mapping[str, Any]


_EFFECTS = {
    "lose": _Breakage("do it, and lose the answer", {"reset": True}),
    "refuse": _Breakage("answer 503", {"status": 503}),
    "limit": _Breakage("answer 429, to wait 5 seconds", {"status": 429, "headers": {"Retry-After": "5"}}),
    "delay": _Breakage("answer 5 seconds later", {"latency_ms": 5000}),
    "cut": _Breakage("cut the answer after 100 bytes", {"truncate_after_bytes": 100}),
    "html": _Breakage("answer with a page of HTML", {"status": 200, "body": "<html>maintenance</html>"}),
}


async def show_sandbox(request: web.Request) -> web.Response:
    """GET /console/sandbox: the latest requests, the newest first, and the active faults."""
    kind = request.query.get("kind", "")
    found = await _ask(request, "GET", "requests", query={"kind": kind} if kind else {})
    faults, rude = await _ask(request, "GET", "faults"), await _ask(request, "GET", "rude")
    return console_page(
        request,
        "sandbox.html",
        active="sandbox",
        kinds=sorted((each.name, each.spec.application) for each in request.app[SERVICES].catalog),
        kind=kind,
        requests=[_shown(each) for each in reversed(found["requests"][-_SHOWN:])],
        faults=[json.dumps(each, ensure_ascii=False) for each in faults["faults"]],
        rude=rude["kinds"],
        methods=_METHODS,
        effects=_EFFECTS,
        most_times=_MOST_TIMES,
    )


async def add_fault(request: web.Request) -> web.Response:
    """POST /console/sandbox/faults: break the next calls that match."""
    fields = await read_form_once(request)
    effect, times = _EFFECTS.get(fields.get("effect", "")), whole_number(fields.get("times", ""))
    if effect is None or times is None or not 1 <= times <= _MOST_TIMES:
        raise InvalidParams(f"choose what happens, and how often: 1 to {_MOST_TIMES} times")
    conditions = {name: fields[name] for name in ("kind", "method") if fields.get(name)}
    await _ask(request, "POST", "faults", {**conditions, "times": times, **effect.members})
    return see_other(PAGE)


async def become_rude(request: web.Request) -> web.Response:
    """POST /console/sandbox/rude: make the lists of a kind rude, or those of all."""
    fields = await read_console_form(request)
    await _ask(request, "POST", "rude", {"kinds": [fields["kind"]] if fields.get("kind") else []})
    return see_other(PAGE)


async def calm_down(request: web.Request) -> web.Response:
    """POST /console/sandbox/calm: end all faults and rude behaviours; the records stay."""
    await read_console_form(request)
    await _ask(request, "DELETE", "faults")
    await _ask(request, "DELETE", "rude")
    return see_other(PAGE)


def _shown(received: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the page shows of a request; its headers have credentials."""
    shown = {name: received[name] for name in ("status", "method", "path", "kind")}
    return {**shown, "at": datetime.fromtimestamp(received["at"], UTC).isoformat()}


async def _ask(
    request: web.Request, method: str, path: str, document: object = None, query: Mapping[str, str] | None = None
) -> Any:
    """The sandbox's response; raises NotFound without a sandbox, InvalidParams for what it refuses, and Unavailable."""
    url = request.app[SERVICES].settings.sandbox_url
    if url is None:
        raise NotFound("there is no sandbox; start one with: gateway up --sandbox")
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT)) as http,
            http.request(method, f"{url.rstrip('/')}/_sandbox/{path}", json=document, params=query) as response,
        ):
            answer: Any = await response.json() if response.status != 204 else None
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise Unavailable("the sandbox does not answer") from error
    if response.status >= 400:
        raise InvalidParams(answer["error"])
    return answer
