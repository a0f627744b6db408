"""Style, scripts and icons of the pages for people."""

import asyncio

from aiohttp import web

from gateway.errors import NotFound
from gateway.http.keys import PAGES
from gateway.http.pages.static_files import StaticFile, static_files

#: bytes of a file from which on it is sent compressed
_LARGE = 100_000
# An address with a hash of the content never says anything else; without one it is asked about again.
_FOR_GOOD, _FOR_NOW = "public, max-age=31536000, immutable", "public, max-age=300"


async def static_file(request: web.Request) -> web.Response:
    """GET /static/{name}."""
    name, brand = request.match_info["name"], request.app[PAGES].brand
    own = {"brand.css": brand.style, "brand-logo": brand.logo}
    return await _served(request, own.get(name) or static_files().get(name))


async def connect_script(request: web.Request) -> web.Response:
    """GET /connect.js: what opens a connect link from any page."""
    return await _served(request, static_files()["connect.js"])


async def _served(request: web.Request, file: StaticFile | None) -> web.Response:
    if file is None:
        raise NotFound("there is no such file")
    tag = f'"{file.digest}"'
    is_fixed = request.query.get("v") == file.digest
    headers = {"Cache-Control": _FOR_GOOD if is_fixed else _FOR_NOW, "ETag": tag, "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    # A picture may come from the operator: whatever it holds, nothing in it runs.
    headers |= {
        "Content-Type": file.content_type,
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    if len(file.content) > _LARGE and "gzip" in request.headers.get("Accept-Encoding", ""):
        compressed = await asyncio.to_thread(lambda: file.compressed)
        return web.Response(body=compressed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=file.content, headers=headers)
