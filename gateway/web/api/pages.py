"""Style, scripts and icons of the pages for people."""

from aiohttp import web

from gateway.errors import NotFound
from gateway.web.pages.rendering import PAGES
from gateway.web.pages.static_files import StaticFile, file_response, static_files
from gateway.web.route import Route

#: for a URL with the hash of the content, which never changes
_IMMUTABLE = "public, max-age=31536000, immutable"
_SHORT = "public, max-age=300"


async def favicon(request: web.Request) -> web.Response:
    """GET /favicon.ico: the icon, which browsers and programs request by themselves."""
    brand = request.app[PAGES].brand
    return await _serve(request, brand.logo or static_files()["mark.svg"])


async def static_file(request: web.Request) -> web.Response:
    """GET /static/{name}."""
    name, brand = request.match_info["name"], request.app[PAGES].brand
    own = {"brand.css": brand.style, "brand-logo": brand.logo}
    return await _serve(request, own.get(name) or static_files().get(name))


async def connect_script(request: web.Request) -> web.Response:
    """GET /connect.js: the script that opens a connect link from any page."""
    return await _serve(request, static_files()["connect.js"])


async def _serve(request: web.Request, file: StaticFile | None) -> web.Response:
    if file is None:
        raise NotFound("there is no such file")
    is_fixed = request.query.get("v") == file.digest
    # The logo comes from the operator: scripts in it must not run.
    headers = {
        "Cache-Control": _IMMUTABLE if is_fixed else _SHORT,
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    return await file_response(request, file, headers)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/connect.js",
        connect_script,
        "The script that opens a connect link from any page",
        "Pages",
        is_open=True,
        is_page=True,
    ),
    Route(
        "GET",
        "/static/{name:.+}",
        static_file,
        "Style, scripts and icons",
        "Pages",
        is_open=True,
        is_page=True,
    ),
    Route("GET", "/favicon.ico", favicon, "The icon of the pages", "Pages", is_open=True, is_page=True),
)
