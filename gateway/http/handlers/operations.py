"""The gateway about itself: liveness, readiness, its OpenAPI document and a page that shows it."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from aiohttp import web

from gateway.http.keys import EXPORTER, IS_DRAINING, OPENAPI, READINESS
from gateway.http.responses import json_response

_SIGNPOST = {"name": "agent connector gateway", "api": "/api/v1", "openapi": "/openapi.json", "docs": "/docs"}


async def root(request: web.Request) -> web.Response:
    """GET /: a browser is led to the pages for people, a program is told where the API and its documents are."""
    if "text/html" in request.headers.get("Accept", ""):
        pages = {resource.canonical for resource in request.app.router.resources()}
        location = "/console" if "/console" in pages else "/docs"
        return web.Response(status=303, headers={"Location": location, "Vary": "Accept"})
    return json_response(_SIGNPOST, headers={"Vary": "Accept"})


async def healthz(request: web.Request) -> web.Response:
    """GET /healthz: the process runs."""
    return json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.Response:
    """GET /readyz: whether to send traffic here. Redis away does not stop the work; it is told all the same."""
    found = await request.app[READINESS]()
    checks = {**found.checks, "draining": request.app[IS_DRAINING].is_set()}
    is_ready = all(found.checks.values()) and not checks["draining"]
    document = {"status": "ready" if is_ready else "not_ready", "checks": checks}
    if found.reason is not None:
        document["reason"] = found.reason
    return json_response(document, 200 if is_ready else 503, {} if is_ready else {"Retry-After": "2"})


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics: what this process counts, and the statistics that all share, as Prometheus reads them."""
    return await request.app[EXPORTER].response()


async def openapi(request: web.Request) -> web.Response:
    """GET /openapi.json: this contract, as OpenAPI 3.1."""
    return web.Response(body=request.app[OPENAPI], content_type="application/json")


async def docs(request: web.Request) -> web.Response:
    """GET /docs: the contract as a page, with nothing loaded from elsewhere."""
    page, policy = _docs()
    return web.Response(text=page, content_type="text/html", headers={"Content-Security-Policy": policy})


@cache
def _docs() -> tuple[str, str]:
    """The page, and the policy that allows its own style and script by their digests and nothing else."""
    page = (files("gateway.http") / "docs.html").read_text("utf-8")
    style, script = (_digests(page, tag) for tag in ("style", "script"))
    own = "default-src 'none'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    return page, f"{own}; style-src {style}; script-src {script}"


def _digests(page: str, tag: str) -> str:
    """The sources of a policy (CSP 3 §2.3.1) for what the page holds in elements of that name."""
    texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts)
