"""A version of an imported kind, and the corrections of an administrator. Pure."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from gateway.contract.kinds import Effect
from gateway.errors import FieldError, InvalidParams
from gateway.kinds.catalog import Kind
from gateway.kinds.importing.importing import kind_of_documents


@dataclass(frozen=True, kw_only=True)
class ImportedKind:
    """A version of a kind: a draft until it is served."""

    kind: str
    version: int
    #: the address or the file name of the OpenAPI document
    source: str
    #: `connector` and `entities`: what the files of the kind hold
    document: Mapping[str, Any]
    report: str
    created_at: datetime
    served_at: datetime | None

    def as_kind(self) -> Kind:
        """The kind as the catalog serves it; the linter has checked its document."""
        return kind_of_documents(self.document["connector"], self.document["entities"])


def corrected(document: Mapping[str, Any], effects: Mapping[str, str], server: str | None) -> Mapping[str, Any]:
    """The document with these effects of operations (`entity.action` → effect) and this server.

    Raises InvalidParams for an operation that the kind does not have and for an unknown effect.
    """
    changed = copy.deepcopy(dict(document))
    faults = []
    for name, effect in effects.items():
        entity, _, action = name.partition(".")
        found = changed["entities"].get(entity, {}).get("actions", {}).get(action)
        if found is None or effect not in set(Effect):
            message = f"{name} is not an operation of the kind, or {effect} is not an effect"
            faults.append(FieldError(f"/{name}", name, "invalid", message))
        else:
            found["effect"] = effect
    if faults:
        raise InvalidParams(faults=faults)
    connector = changed["connector"]
    if server is not None and server != connector["server"]:
        before, now = urlsplit(connector["server"]).netloc, urlsplit(server).netloc
        connector["server"] = server
        if "hosts" in connector:
            connector["hosts"] = [now if host == before else host for host in connector["hosts"]]
    return changed
