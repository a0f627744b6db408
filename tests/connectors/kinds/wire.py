"""One action as it goes over the wire: the case that tests of kinds are tables of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yarl import URL

from gateway.connectors.connector import UpstreamConnector


@dataclass(frozen=True)
class Call:
    """An action, its params, and the one request that they make."""

    action: str
    params: Mapping[str, Any]
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: Any = None
    #: beside those of every request
    headers: Mapping[str, str] = field(default_factory=dict)

    def assert_sent_by(self, connector: UpstreamConnector, address: str) -> None:
        """The connector makes this request and no other, at the application's address."""
        [shown] = connector.dry_run(*self.action.split("."), self.params)
        url = URL(shown["url"])
        sent = (shown["method"], str(url.with_query(None)), dict(url.query), shown["body"])
        assert sent == (self.method, f"{address}{self.path}", self.query, self.body)
        of_body = {} if self.body is None else {"Content-Type": "application/json"}
        assert shown["headers"] == {"Accept": "application/json", "Authorization": "***", **of_body, **self.headers}
