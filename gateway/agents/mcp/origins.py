"""Checks the `Origin` header, which browsers set and pages cannot change."""

from aiohttp import web
from yarl import URL


def is_origin_allowed(request: web.Request, allowed: frozenset[str]) -> bool:
    """Whether the request has no Origin, as one that is not from a browser, or an allowed one."""
    origin = request.headers.get("Origin")
    return origin is None or origin in allowed


def origins_of(*urls: str) -> frozenset[str]:
    """The origins of URLs, as browsers send them; a loopback URL has three, for `localhost` and both addresses."""
    names = ("localhost", "127.0.0.1", "[::1]")
    return frozenset(
        f"{url.scheme}://{name}" + ("" if url.is_default_port() else f":{url.port}")
        for url in map(URL, urls)
        for name in (names if url.host in ("localhost", "127.0.0.1", "::1") else (url.host or "",))
    )
