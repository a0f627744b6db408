"""The connector and the operation that a form of a schedule or a batch is for, chosen in two steps without scripts."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.connectors import Connector
from gateway.errors import InvalidParams
from gateway.kinds.find.entries import OperationEntry, entry_of
from gateway.web.console.page import connectors_to_choose
from gateway.web.keys import SERVICES


@dataclass(frozen=True, slots=True)
class Choice:
    """What is chosen, and what may be."""

    connectors: Sequence[Connector]
    connector: Connector | None
    #: an operation of the connector's kind
    entry: OperationEntry | None
    #: entity → the actions of the connector's kind
    operations: Mapping[str, Sequence[str]]


async def choice_of(request: web.Request, chosen: Mapping[str, str]) -> Choice:
    """The choice of the members `connector`, an id, and `operation`, `kind.entity.action`; others count as none."""
    connector_id, catalog = id_of(chosen.get("connector")), request.app[SERVICES].catalog
    connectors = await connectors_to_choose(request, connector_id)
    connector = next((each for each in connectors if id_of(each.id) == connector_id), None)
    kind = None if connector is None else catalog.kinds.get(connector.kind)
    if kind is None:
        return Choice(connectors, connector, None, {})
    entry = None
    if name := chosen.get("operation"):
        with contextlib.suppress(InvalidParams):
            entry = entry_of(catalog, name)
    return Choice(
        connectors=connectors,
        connector=connector,
        entry=entry if entry is not None and entry.kind.name == kind.name else None,
        operations={entity: kind.actions_of(entity) for entity in kind.spec.entities},
    )
