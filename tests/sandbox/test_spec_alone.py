"""A kind that the sandbox knows by its spec alone: credentials and pages as the spec says."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import yaml
from aiohttp.test_utils import TestServer

from gateway.errors import ReauthorizationRequired
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.spec import ConnectorSpec
from gateway.sandbox.app import create_sandbox
from gateway.upstream.auth import StaticAuthorizer, headers_for
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.sandbox.conftest import GADGET_MAKER, GADGETS

Playing = Callable[..., AbstractAsyncContextManager[UpstreamConnector]]


@asynccontextmanager
async def playing(
    list_: dict[str, Any] | None = None, credentials: dict[str, str] | None = None, **spec: Any
) -> AsyncIterator[UpstreamConnector]:
    """A connector of gadget-maker at a sandbox, with another list or other members of connector.yaml."""
    entity = yaml.safe_load(GADGETS)
    entity["actions"]["list"] |= list_ or {}
    document = {**yaml.safe_load(GADGET_MAKER), "entities": {"gadgets": entity}, **spec}
    kind = Kind(ConnectorSpec.model_validate(document))
    [method] = kind.spec.authentication.values()
    async with TestServer(create_sandbox(Catalog([kind]))) as server:
        origin = server.make_url("/").origin()
        async with Transport(EgressPolicy.of([origin])) as transport:
            authorizer = StaticAuthorizer(headers_for(method, credentials or {"token": "token"}))
            upstreams, scope = Upstreams(transport, {kind.name: origin}), RateScope("gadgets", kind.name)
            yield upstreams.connector(kind, {}, authorizer, scope)


STYLES: dict[str, dict[str, Any]] = {
    "page": {"style": "page", "param": "after", "size": "size"},
    "page from zero": {"style": "page", "param": "after", "size": "size", "first": 0},
    "page by link": {"style": "page", "param": "after", "size": "size", "next": "n", "meta": {"n": "$link.next"}},
    "offset": {"style": "offset", "param": "after", "size": "size", "total": "total", "meta": {"total": "@.total"}},
    "last id": {"style": "last_id", "param": "after", "size": "size", "has_more": "more", "meta": {"more": "more"}},
    "link": {"style": "link", "param": "after", "size": "size", "next": "n", "meta": {"n": "links.next"}},
    "link that is always there": {
        "style": "link",
        "param": "after",
        "size": "size",
        "next": "n",
        "has_more": "more",
        "meta": {"n": "$link.next", "more": "$link.next.results"},
    },
    "cursor in a header": {
        "style": "cursor",
        "param": "after",
        "size": "size",
        "next": "n",
        "meta": {"n": "$header.x-next"},
    },
}


@pytest.mark.parametrize("style", STYLES)
async def test_pages_are_turned_as_the_spec_says(style):
    async with playing({"records": "data.gadgets"}, paging={"next": STYLES[style]}) as connector:
        pages = [page.decoded() async for page in connector.pages("gadgets", "list", {"size": 25})]

    assert [len(page) for page in pages] == [25, 15]
    assert len({record["id"] for page in pages for record in page}) == 40


@pytest.mark.parametrize(
    "method",
    [
        {"scheme": "api_key", "headers": {"X-Key": "{token}"}},
        {"scheme": "api_key", "headers": {"Authorization": "Token token={token}"}},
        {"scheme": "api_key", "query": {"key": "{token}"}},
        {"scheme": "basic", "username": "{token}", "password": "X"},
    ],
)
async def test_credentials_are_wanted_as_the_spec_says(method):
    fields = {"token": {"description": "a token", "required": True, "secret": True}}
    authentication = {"key": {"title": "Key", "credentials": fields, **method}}

    async with playing(authentication=authentication) as connector:
        await connector.check()
    async with playing(authentication=authentication, credentials={"token": "bad-token"}) as refused:
        with pytest.raises(ReauthorizationRequired):
            await refused.check()
