"""Leads a browser to the sign-in page of the console, or to the sign-in provider; it works without scripts."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from aiohttp import web

from gateway.access.identity.console_sessions import LIFETIME
from gateway.access.identity.model import Caller
from gateway.access.identity.tokens import new_secret
from gateway.contract.oauth import SIGN_IN_SECONDS
from gateway.errors import GatewayError
from gateway.web.cookies import HostCookie
from gateway.web.keys import ACCESS, SERVICES
from gateway.web.pages.rendering import PAGES, html_response

#: binds a sign-in to one browser; Lax, because the browser returns by a navigation from the provider's site
SIGN_IN_BROWSER = HostCookie("gateway-sign-in", SIGN_IN_SECONDS)

#: the cookie of a console session
SESSION_COOKIE = HostCookie("gateway-console", LIFETIME)

#: the sign-in page of the console
SIGN_IN = "/console/sign-in"


class SignInRequired(GatewayError):
    """The browser has no session; it is redirected to the sign-in page."""


async def console_caller(request: web.Request) -> Caller | None:
    """Who is signed in to the console in this browser."""
    token = SESSION_COOKIE.secret(request)
    return await request.app[ACCESS].console_sessions.caller(token) if token else None


def sign_in_response(request: web.Request) -> web.Response:
    """A redirect to the sign-in page, which returns to this page; for a request of htmx it loads the whole page."""
    location = f"{SIGN_IN}?next={quote(request.path_qs if request.method == 'GET' else '/console')}"
    if "HX-Request" in request.headers:
        return web.Response(headers={"HX-Redirect": location})
    return web.Response(status=303, headers={"Location": location, "Cache-Control": "no-store"})


def sign_in_methods(request: web.Request) -> dict[str, Any]:
    """The ways to sign in: the provider's name, and whether a client's secret is accepted."""
    services = request.app[SERVICES]
    provider = services.settings.oidc_name if request.app[ACCESS].provider_sign_in else None
    return {"provider": provider, "takes_secret": services.settings.secret_sign_in}


async def provider_page(request: web.Request, purpose: Mapping[str, Any]) -> web.Response:
    """The page that leads to the provider; only this browser can finish the sign-in.

    Pending sign-ins are stored, so their number per IP address is limited. Raises RateLimited and ProviderUnavailable.

    It is a page instead of a redirect: browsers apply the form's policy to redirects, and the provider may redirect to
    further origins.
    """
    await request.app[ACCESS].attempts.require("sign-in at the provider", request.remote or "")
    browser = SIGN_IN_BROWSER.secret(request) or new_secret()
    address = await request.app[ACCESS].sign_in_provider.begin(browser, purpose)
    pages = request.app[PAGES]
    html = pages.render("leave.html", title=request.app[SERVICES].settings.oidc_name, address=address)
    response = html_response(html, pages.headers())
    SIGN_IN_BROWSER.set(request, response, browser)
    return response
