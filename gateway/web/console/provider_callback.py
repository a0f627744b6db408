"""The URL to which the sign-in provider redirects browsers."""

import logging
from collections.abc import Sequence

from aiohttp import web

from gateway.access.identity.model import Client
from gateway.access.identity.people import SignInRefused
from gateway.contract.oauth import SIGN_IN_CALLBACK
from gateway.errors import Forbidden, GatewayError, Unavailable
from gateway.web.api.authorization import AUTHORIZE_PAGE, signed_in_by_provider
from gateway.web.console.sign_in import console_signed_in_by_provider
from gateway.web.keys import ACCESS
from gateway.web.pages.sign_in import SIGN_IN_BROWSER
from gateway.web.route import Route

log = logging.getLogger(__name__)

_STALE = "This sign-in has expired, was used already, or was begun in another browser. Go back and start again."


async def finish_sign_in(request: web.Request) -> web.Response:
    """GET /sign-in/callback: continues with the page from which the person went to the provider."""
    provider = request.app[ACCESS].sign_in_provider
    query, browser = list(request.query.items()), SIGN_IN_BROWSER.secret(request)
    pending = await provider.resume(query, browser) if browser else None
    if pending is None:
        raise SignInRefused(_STALE)
    identified: Sequence[Client] | GatewayError
    try:
        identified = await provider.clients(pending, query)
    except (Forbidden, Unavailable) as error:
        log.warning("a sign-in failed", extra={"sign_in": "provider", "code": error.code, "reason": error.detail})
        identified = error
    if pending.purpose["page"] == AUTHORIZE_PAGE:
        return await signed_in_by_provider(request, pending.purpose, identified)
    return await console_signed_in_by_provider(request, pending.purpose, identified)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        SIGN_IN_CALLBACK,
        finish_sign_in,
        "The redirect URI for the sign-in provider",
        "Pages",
        audit="console.sign_in",
        is_open=True,
        is_page=True,
        is_browser_step=True,
    ),
)
