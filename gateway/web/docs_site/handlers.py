"""The pages of the site; they are the same for all readers and need no token."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from aiohttp import web

from gateway.access.identity.people import ProviderUnavailable, SignInRefused
from gateway.errors import BY_CODE
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.suggestions import nearest
from gateway.web.console.session import ForeignForm, FormSentTwice
from gateway.web.docs_site.packed_page import PackedPage, page_response
from gateway.web.docs_site.search import kinds_with, search, words_of
from gateway.web.docs_site.served import DOCS_SITE
from gateway.web.error_advice import ADVICE
from gateway.web.errors import MethodNotAllowed, problem, status_of
from gateway.web.keys import SERVICES
from gateway.web.pages.rendering import DOCS_POLICY, PAGES
from gateway.web.route import Route

_ON_PAGES = (MethodNotAllowed, ForeignForm, FormSentTwice, SignInRefused, ProviderUnavailable)
_CLASSES = {**BY_CODE, **{each.code: each for each in _ON_PAGES}}
#: cached for five minutes, because the pages change with the process
_HEADERS = {"Content-Security-Policy": DOCS_POLICY, "Cache-Control": "public, max-age=300"}
#: a page that is missing may exist after the next start
_MISSING_HEADERS = {**_HEADERS, "Cache-Control": "no-store"}
_SENT = (*_HEADERS, "ETag", "Vary")
#: maximum results of a search
_RESULTS = 30
#: minimum similarity of a suggested URL path; it is high, because all begin with the same folders
_LIKENESS = 0.75


async def docs(request: web.Request) -> web.Response:
    """The documentation: how-to pages, reference and the API, with a search."""
    return await _document(request, "/docs")


async def show_document(request: web.Request) -> web.Response:
    """GET /docs/{page}: a document; a path with a trailing slash redirects to the path without one."""
    path = request.match_info["page"]
    if path.endswith("/") or not path:
        return web.Response(status=308, headers={"Location": f"/docs/{path.strip('/')}".rstrip("/")})
    return await _document(request, f"/docs/{path}")


async def _document(request: web.Request, address: str) -> web.Response:
    site = await request.app[DOCS_SITE]()
    page = site.pages.get(address)
    if page is None:
        return await _missing(request, [*site.pages, "/docs/api", "/docs/kinds", "/docs/errors"])
    return await _page(request, address, "document", "documents", heading=page.title, page=page)


async def search_docs(request: web.Request) -> web.Response:
    """GET /docs/search: the sections that contain the words."""
    site, phrase = await request.app[DOCS_SITE](), request.query.get("q", "").strip()[:200]
    hits = await in_thread(partial(search, phrase=phrase, limit=_RESULTS), site.entries)
    page = await _packed(request, "/docs/search", "search", "", heading="Search", phrase=phrase, hits=hits)
    return page_response(request, page, _HEADERS)


async def show_api(request: web.Request) -> web.Response:
    """GET /docs/api: the groups of operations."""
    return await _page(request, "/docs/api", "api", "api", heading="API reference")


async def show_api_group(request: web.Request) -> web.Response:
    """GET /docs/api/{group}: operations with params, responses and examples."""
    groups = {each.address: each for each in (await request.app[DOCS_SITE]()).api.groups}
    address = f"/docs/api/{request.match_info['group']}"
    if address not in groups:
        return await _missing(request, groups)
    group = groups[address]
    return await _page(request, address, "api_group", "api", heading=group.name, group=group)


async def show_api_schemas(request: web.Request) -> web.Response:
    """GET /docs/api/schemas: the members of all requests and responses."""
    return await _page(request, "/docs/api/schemas", "api_schemas", "api", heading="Schemas")


async def show_kinds(request: web.Request) -> web.Response:
    """GET /docs/kinds: all applications, or with `q` those whose words include all of its words."""
    site, wanted = await request.app[DOCS_SITE](), request.query.get("q", "").strip()[:200]
    context = {
        "heading": "Applications",
        "wanted": wanted,
        "shown": kinds_with(site.kinds, wanted),
        "words_of": words_of,
    }
    if not wanted:
        return await _page(request, "/docs/kinds", "kinds", "kinds", **context)
    return page_response(request, await _packed(request, "/docs/kinds", "kinds", "kinds", **context), _HEADERS)


async def show_kind(request: web.Request) -> web.Response:
    """GET /docs/kinds/{kind}: how to connect it, and its entities; raises UnknownConnectorType."""
    kind = request.app[SERVICES].catalog.kind(request.match_info["kind"])
    return await _page(
        request, f"/docs/kinds/{kind.name}", "kind", "kinds", heading=kind.spec.application, described=kind
    )


async def show_entity(request: web.Request) -> web.Response:
    """GET /docs/kinds/{kind}/{entity}: its operations; raises UnknownConnectorType and UnknownEntity."""
    kind, entity = request.app[SERVICES].catalog.kind(request.match_info["kind"]), request.match_info["entity"]
    kind.entity(entity)
    context = {"heading": f"{entity} · {kind.spec.application}", "described": kind, "entity_name": entity}
    return await _page(request, f"/docs/kinds/{kind.name}/{entity}", "kind_entity", "kinds", **context)


async def show_errors(request: web.Request) -> web.Response:
    """GET /docs/errors: every code."""
    errors = [(status_of(_CLASSES[code]()), code, advice) for code, advice in ADVICE.items()]
    return await _page(request, "/docs/errors", "errors", "errors", heading="Errors", errors=errors)


async def show_error(request: web.Request) -> web.Response:
    """GET /docs/errors/{code}: the meaning of the code, and what to do."""
    code = request.match_info["code"]
    if code not in ADVICE:
        return await _missing(request, [f"/docs/errors/{each}" for each in ADVICE])
    error = _CLASSES[code]()
    example = json.dumps(problem(error, "0b8f6a523c1e4f4b9d0e6f2f7a1c5d11"), indent=2)
    context = {"heading": error.title, "error": error, "advice": ADVICE[code], "example": example}
    return await _page(request, f"/docs/errors/{code}", "error", "errors", **context)


async def _missing(request: web.Request, known: Iterable[str]) -> web.Response:
    """The 404 page, with the nearest page, the contents and the search."""
    closest = await in_thread(partial(nearest, request.path, likeness=_LIKENESS), known)
    page = await _packed(request, "", "missing", "", heading="There is no such page", nearest=closest)
    return page_response(request, page, _MISSING_HEADERS, 404)


async def _page(request: web.Request, address: str, template: str, active: str, **context: Any) -> web.Response:
    """The page at an address, rendered at the first request and cached, because it is the same for all readers."""
    site = await request.app[DOCS_SITE]()
    page = site.rendered.get(address)
    if page is None:
        page = site.rendered[address] = await _packed(request, address, template, active, **context)
    return page_response(request, page, _HEADERS)


async def _packed(request: web.Request, address: str, template: str, active: str, **context: Any) -> PackedPage:
    """A page, rendered and compressed outside the event loop: it may have dozens of examples or all applications."""
    site = await request.app[DOCS_SITE]()
    return await in_thread(
        lambda pages: PackedPage.of(site.render(pages, address, template, active, **context)), request.app[PAGES]
    )


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/docs",
        docs,
        "The documentation",
        "Operations",
        answers={200: "OK", 304: "It has not changed"},
        media={200: ("text/html",)},
        sends={200: _SENT, 304: _SENT},
        is_open=True,
    ),
    *(
        Route("GET", path, handler, summary, "Pages", is_open=True, is_page=True)
        for path, handler, summary in (
            ("/docs/api", show_api, "The groups of the API's operations"),
            ("/docs/api/schemas", show_api_schemas, "The members of requests and responses"),
            ("/docs/api/{group}", show_api_group, "The operations of a group"),
            ("/docs/kinds", show_kinds, "The kinds of applications"),
            ("/docs/kinds/{kind}", show_kind, "A kind with its entities"),
            ("/docs/kinds/{kind}/{entity}", show_entity, "An entity of a kind with its operations"),
            ("/docs/errors", show_errors, "All error codes"),
            ("/docs/errors/{code}", show_error, "The meaning of an error code, and what to do"),
            ("/docs/search", search_docs, "A search of the documents"),
            ("/docs/{page:.*}", show_document, "A document"),
        )
    ),
)
