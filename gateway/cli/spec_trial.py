"""Calls one action of a kind in a sandbox in this process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from yarl import URL

from gateway.errors import GatewayError
from gateway.kinds.catalog import Kind
from gateway.kinds.spec import ConnectorSpec
from gateway.sandbox.trial import playing
from gateway.upstream.auth import StaticAuthorizer, headers_for
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy, parse_override
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams

#: the value of every credential and variable; the sandbox accepts any that does not begin with `bad`
_ANY = "sandbox"


async def try_action(
    kind: Kind, entity: str, action: str, params: Mapping[str, Any]
) -> tuple[dict[str, Any], GatewayError | None]:
    """Call an action: the requests that the sandbox received with the response or the error, and the error."""
    shown: dict[str, Any] = {}
    failure: GatewayError | None = None
    async with playing(kind) as (address, received), _connected(kind, address) as connector:
        try:
            if kind.operation(entity, action).is_download:
                async with connector.download(entity, params) as file:
                    shown["response"] = {"bytes": sum([len(chunk) async for chunk in file])}
            else:
                result = await connector.execute(entity, action, params)
                page = {"next": result.next, "incomplete": result.incomplete}
                shown["response"] = {"result": result.decoded(), "meta": result.meta, **page}
        except GatewayError as error:
            failure = error
            shown["error"] = {"code": error.code, "detail": error.detail}
        return {"requests": [asdict(each) for each in received()], **shown}, failure


@asynccontextmanager
async def _connected(kind: Kind, address: str) -> AsyncIterator[UpstreamConnector]:
    """A connector of a kind at a sandbox, with invented credentials for its first authentication method."""
    override = parse_override(address)
    method = next(iter(kind.spec.authentication.values()))
    credentials = dict.fromkeys([*method.credentials, method.token or _ANY], _ANY)
    async with Transport(EgressPolicy.of([override])) as transport:
        upstreams = Upstreams(transport, {kind.name: override})
        authorizer = StaticAuthorizer(headers_for(method, credentials))
        scope = RateScope.of_credentials(kind.spec, credentials)
        yield upstreams.connector(kind, _variables(kind.spec, override), authorizer, scope)


def _variables(spec: ConnectorSpec, override: URL) -> Mapping[str, str]:
    """A value for every variable of a kind."""
    of_type = {
        "dns_label": _ANY,
        "text": _ANY,
        "host": spec.hosts[0].replace("*", _ANY),
        "origin": str(override.origin()),
    }
    return {
        name: variable.default or of_type[variable.type]
        for name, variable in spec.environment.items()
        if name not in spec.server_with
    }
