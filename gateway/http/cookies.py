"""Cookies of this host alone."""

from aiohttp import web

from gateway.http.keys import IS_HTTPS


def host_cookie(request: web.Request, name: str) -> tuple[str, bool]:
    """The cookie's name, and whether it travels by https only, as the gateway's own address does.

    Over https the name has the prefix that keeps other hosts from setting it (RFC 6265bis).
    """
    is_secure = request.app[IS_HTTPS]
    return (f"__Host-{name}" if is_secure else name), is_secure
