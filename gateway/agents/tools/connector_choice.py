"""Chooses the connector of a call. Pure."""

from collections.abc import Sequence

from gateway.agents.tools.backend import ACTIVE, ConnectorInfo
from gateway.errors import ConnectorNotReady, InvalidParams
from gateway.kinds.catalog import Kind
from gateway.kinds.suggestions import did_you_mean


class NotConnected(ConnectorNotReady):
    """A person has to connect the application, for the first time or again."""

    def __init__(self, kind: Kind, connector: ConnectorInfo | None = None) -> None:
        self.kind = kind.name
        self.connector = connector
        reason = f"{_shown(kind)} is not connected" if connector is None else f"{connector.name} is {connector.status}"
        super().__init__(f"{reason}; a person has to connect it", extra={"kind": kind.name})


def choose(connectors: Sequence[ConnectorInfo], kind: Kind, name: str | None) -> ConnectorInfo:
    """The active connector of the kind with that name or id, or the only one: the caller's own before shared ones.

    Raises NotConnected and InvalidParams.
    """
    of_kind = [each for each in connectors if each.kind == kind.name]
    if name is not None:
        of_kind = _named(of_kind, kind, name)
    ready = [each for each in of_kind if each.status == ACTIVE]
    ready = [each for each in ready if each.is_personal] or ready
    if len(ready) == 1:
        return ready[0]
    if not ready:
        raise NotConnected(kind, of_kind[0] if of_kind else None)
    raise InvalidParams(f"there are several connectors of {_shown(kind)}; name one in connector: {_listed(ready)}")


def _named(connectors: Sequence[ConnectorInfo], kind: Kind, name: str) -> list[ConnectorInfo]:
    named = [each for each in connectors if name in (each.id, each.name)]
    if not named and connectors:
        hint = did_you_mean(name, (each.name for each in connectors))
        raise InvalidParams(f"there is no connector {name!r} of {_shown(kind)}; {hint}")
    return named


def _shown(kind: Kind) -> str:
    """The application and the kind: `Zendesk (support-desk)`."""
    return f"{kind.spec.application} ({kind.name})"


def _listed(connectors: Sequence[ConnectorInfo]) -> str:
    return ", ".join(f"{each.name} ({each.id}, workspace {each.workspace_name})" for each in connectors)
