"""Cookies that are sent to this host only; each contains a secret that the gateway created."""

import re
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

from gateway.web.keys import IS_HTTPS

#: the form of a `new_secret`
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class HostCookie:
    """A cookie that scripts cannot read; it is `Secure` if the gateway's URL is https."""

    name: str
    #: seconds
    max_age: int
    same_site: Literal["Lax", "Strict"] = "Lax"

    def secret(self, request: web.Request) -> str | None:
        """The secret that the browser has sent; None for any other value."""
        value = request.cookies.get(self._name(request), "")
        return value if _SECRET.fullmatch(value) else None

    def set(self, request: web.Request, response: web.Response, secret: str) -> None:
        """Set the cookie to the secret."""
        response.set_cookie(
            self._name(request),
            secret,
            max_age=self.max_age,
            path="/",
            secure=request.app[IS_HTTPS],
            httponly=True,
            samesite=self.same_site,
        )

    def delete(self, request: web.Request, response: web.Response) -> None:
        """Delete the cookie."""
        response.del_cookie(
            self._name(request), path="/", secure=request.app[IS_HTTPS], httponly=True, samesite=self.same_site
        )

    def _name(self, request: web.Request) -> str:
        """The cookie's name; over https with the prefix that keeps other hosts from setting it (RFC 6265bis)."""
        return f"__Host-{self.name}" if request.app[IS_HTTPS] else self.name
