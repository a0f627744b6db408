"""The one way to reach applications: every caller opens a session here and names the rate scope of its requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from yarl import URL

from gateway.contract.connectors import MCP
from gateway.kinds.catalog import Kind
from gateway.kinds.failures import Failure
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.auth import Authorizer
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.session import UpstreamSession
from gateway.upstream.transport import Transport


@dataclass(frozen=True)
class Upstreams:
    """Opens sessions with all applications."""

    transport: Transport
    #: by kind, the operator's replacement of scheme, host and port of its URLs
    overrides: Mapping[str, URL] = field(default_factory=dict)

    def override_of(self, kind: str | None) -> URL | None:
        """The operator's replacement for a kind; for an MCP server whose kind has no name yet, GATEWAY_UPSTREAM_MCP."""
        return self.overrides.get(kind or MCP)

    def session(
        self,
        spec: ConnectorSpec,
        environment: Mapping[str, str],
        authorizer: Authorizer,
        scope: RateScope,
        *,
        failure: Failure | None = None,
    ) -> UpstreamSession:
        """A session for one account; `failure` if its endpoint reports errors in another way than the kind."""
        return UpstreamSession(
            spec=spec,
            environment=environment,
            authorizer=authorizer,
            scope=scope,
            transport=self.transport,
            override=self.overrides.get(spec.kind),
            failure=failure,
        )

    def connector(
        self, kind: Kind, environment: Mapping[str, str], authorizer: Authorizer, scope: RateScope
    ) -> UpstreamConnector:
        """The operations of a kind for one account."""
        return UpstreamConnector(kind, self.session(kind.spec, environment, authorizer, scope))
