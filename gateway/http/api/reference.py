"""The reference for people: the contract with a form to try it, a page for each kind and for each error."""

import json
from typing import Any

from aiohttp import web

from gateway.errors import BY_CODE, NotFound
from gateway.http.api.kind_reference import kind_reference
from gateway.http.console.session import ForeignForm
from gateway.http.error_advice import ADVICE
from gateway.http.errors import MethodNotAllowed, problem, status_of
from gateway.http.keys import PAGES, REQUEST_ID, SERVICES
from gateway.http.pages.rendering import REFERENCE_POLICY
from gateway.http.responses import html_response
from gateway.kinds.suggestions import did_you_mean
from gateway.sign_in.model import ProviderUnavailable, SignInRefused

_NAVIGATION = (
    ("api", "/docs", "API"),
    ("kinds", "/docs/kinds", "Kinds"),
    ("errors", "/docs/errors", "Errors"),
)
_ON_PAGES = (MethodNotAllowed, ForeignForm, SignInRefused, ProviderUnavailable)
_CLASSES = {**BY_CODE, **{each.code: each for each in _ON_PAGES}}
#: the same for everybody, and for as long as the process runs
_HEADERS = {"Content-Security-Policy": REFERENCE_POLICY, "Cache-Control": "public, max-age=300"}


async def docs(request: web.Request) -> web.Response:
    """This document as a page: search, examples, and a form that sends requests with your token."""
    return _page(request, "api", "api", heading="API reference")


async def show_kinds(request: web.Request) -> web.Response:
    """GET /docs/kinds: what applications there are."""
    kinds = [kind.spec for kind in request.app[SERVICES].catalog]
    return _page(request, "kinds", "kinds", heading="Kinds", kinds=kinds)


async def show_kind(request: web.Request) -> web.Response:
    """GET /docs/kinds/{kind}: all that it can do; raises UnknownConnectorType."""
    kind = request.app[SERVICES].catalog.kind(request.match_info["kind"])
    return _page(request, "kind", "kinds", heading=kind.spec.title, kind=kind_reference(kind))


async def show_errors(request: web.Request) -> web.Response:
    """GET /docs/errors: every code."""
    errors = [(status_of(_CLASSES[code]()), code, advice) for code, advice in ADVICE.items()]
    return _page(request, "errors", "errors", heading="Errors", errors=errors)


async def show_error(request: web.Request) -> web.Response:
    """GET /docs/errors/{code}: what it means and what to do."""
    code = request.match_info["code"]
    if code not in ADVICE:
        raise NotFound(f"there is no error {code[:60]!r}; {did_you_mean(code, ADVICE)}")
    error = _CLASSES[code]()
    example = json.dumps(problem(error, request[REQUEST_ID]), indent=2)
    return _page(request, "error", "errors", heading=error.title, error=error, advice=ADVICE[code], example=example)


def _page(request: web.Request, template: str, active: str, **context: Any) -> web.Response:
    html = request.app[PAGES].render(f"reference/{template}.html", navigation=_NAVIGATION, active=active, **context)
    return html_response(html, _HEADERS)
