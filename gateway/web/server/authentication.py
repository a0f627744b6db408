"""Who sends a request, by the token in `Authorization`."""

from aiohttp import web
from aiohttp.hdrs import AUTHORIZATION
from multidict import istr

from gateway.access.identity.model import Caller
from gateway.access.identity.tokens import bearer_token
from gateway.errors import MalformedRequest, Unauthorized
from gateway.web.keys import ACCESS, SERVICES

#: an `istr`, because multidict lowercases a plain text at each look-up
_ORGANIZATION = istr("X-Organization-Id")


async def by_token(request: web.Request) -> Caller:
    """The caller and the organization; every invalid token gets the same error."""
    services = request.app[SERVICES]
    client = await request.app[ACCESS].tokens.verify(token_of(request))
    if client.resource is not None and not _is_within(request.path, client.resource, services.settings.base_url):
        raise Unauthorized("the token is for another resource (RFC 8707)")
    return client.caller(request.headers.get(_ORGANIZATION))


def token_of(request: web.Request) -> str:
    """The bearer token; raises Unauthorized without one, and MalformedRequest for one in the query string."""
    token = bearer_token(request.headers.get(AUTHORIZATION))
    if request.query_string and "access_token" in request.query:
        raise MalformedRequest("a token must not be in the query string; send it in the Authorization header")
    return token


def _is_within(path: str, resource: str, base_url: str) -> bool:
    within = resource.removeprefix(base_url)
    return path == within or path.startswith(f"{within}/")
