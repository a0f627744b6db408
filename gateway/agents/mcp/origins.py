"""Which pages may call from a browser: by the Origin that it sends, which a page cannot forge."""

from aiohttp import web
from yarl import URL


def is_origin_allowed(request: web.Request, allowed: frozenset[str]) -> bool:
    """Whether the Origin is allowed: none (not a browser's page), the gateway's own, or one of the operator's."""
    origin = request.headers.get("Origin")
    return origin is None or origin in allowed


def origins_of(*urls: str) -> frozenset[str]:
    """Origins as browsers send them; an origin on the loopback is allowed under each of its names."""
    names = ("localhost", "127.0.0.1", "[::1]")
    found = {url: URL(url) for url in urls}
    return frozenset(
        _origin(url.scheme, name, url)
        for url in found.values()
        for name in (names if url.host in ("localhost", "127.0.0.1", "::1") else (url.host or "",))
    )


def _origin(scheme: str, host: str, url: URL) -> str:
    return f"{scheme}://{host}" if url.is_default_port() else f"{scheme}://{host}:{url.port}"
