"""Imports OpenAPI documents as kinds of this gateway, and serves them in every process without a restart."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.connectors.imports.model import ImportedKind, corrected
from gateway.connectors.imports.store import ImportedKindStore
from gateway.contract.connectors import MCP
from gateway.errors import Conflict, InvalidParams, NotFound
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.importing.changes import Change, changes_between, with_confirmed_effects
from gateway.kinds.importing.importing import kind_of_documents
from gateway.kinds.importing.writing import texts_of
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.import_process import ImportRequest, imported
from gateway.upstream.mcp_servers import McpAddress, described
from gateway.upstream.upstreams import Upstreams

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Review:
    """A version for an administrator who decides whether it is served."""

    version: ImportedKind
    kind: Kind
    #: the differences from the version that is served; None if no version is
    changes: Sequence[Change] | None


class ImportedKinds:
    """Keeps the imported kinds of the catalog as they are stored."""

    def __init__(self, store: ImportedKindStore, catalog: Catalog, on_change: Callable[[], None]) -> None:
        self._store = store
        self._catalog = catalog
        self._on_change = on_change
        self._is_stale = asyncio.Event()

    def on_notify(self, _: str = "") -> None:
        """The served kinds changed, perhaps in another process."""
        self._is_stale.set()

    async def follow(self) -> None:
        """Load the kinds once they have changed; one that cannot be read is left out, so that the others are served."""
        await self._is_stale.wait()
        self._is_stale.clear()
        await self.load()

    async def load(self) -> None:
        """Serve the stored kinds; raises Unavailable."""
        stored = await self._store.served()
        before = self._catalog.version
        kinds = await asyncio.to_thread(lambda: list(_readable(stored)))
        self._catalog.serve_imported(each for each in kinds if not self._catalog.is_of_folder(each.name))
        if kinds or before > 1:
            self._on_change()


def _changes(served: Kind, drafted: Kind) -> list[Change]:
    return list(changes_between(served, drafted))


def _readable(stored: Sequence[ImportedKind]) -> Iterator[Kind]:
    for each in stored:
        try:
            yield each.as_kind()
        except Exception:
            log.exception("an imported kind cannot be read", extra={"kind": each.kind, "version": each.version})


class Imports:
    """Imports for administrators of the organizations that the operator names; the whole gateway serves the kinds."""

    def __init__(
        self,
        audit: Audit,
        store: ImportedKindStore,
        catalog: Catalog,
        following: ImportedKinds,
        upstreams: Upstreams,
        organizations: frozenset[UUID],
    ) -> None:
        self._audit = audit
        self._following = following
        self._upstreams = upstreams
        self._store = store
        self._catalog = catalog
        self._organizations = organizations

    def may(self, caller: Caller) -> bool:
        """Whether the caller may import kinds."""
        return caller.organization_id in self._organizations and Scope.ADMIN in caller.client.scopes

    async def all(self, caller: Caller) -> Sequence[ImportedKind]:
        """All versions, the newest of each kind first; raises NotFound for callers that may not import."""
        self.require(caller)
        return await self._store.all()

    async def draft(self, caller: Caller, request: ImportRequest) -> ImportedKind:
        """Map a document and store it as a draft; raises InvalidParams with the reasons if it cannot be mapped."""
        self.require(caller)
        document, report = await self._mapped(request)
        source = request.source if request.text is None else "a document of the administrator"
        return await self._store_draft(caller, source, document, report)

    async def draft_server(self, caller: Caller, address: McpAddress) -> ImportedKind:
        """Read the tools of an MCP server and store them as a draft; raises as `draft` and `described` do."""
        self.require(caller)
        document, report = await self._mapped_server(address)
        return await self._store_draft(caller, address.url, document, report)

    async def serve_server(self, caller: Caller, address: McpAddress) -> str:
        """The kind of an MCP server, whose tools the caller accepts with this call if nobody has accepted any yet.

        All of them are writes. Raises Conflict if they differ from the accepted ones; a draft then shows how.
        """
        self.require(caller)
        document, report = await self._mapped_server(address)
        name: str = document["connector"]["kind"]
        if name not in self._catalog.kinds:
            try:
                return await self._serve_first(caller, address, document, report)
            except Conflict:  # another process has served a kind of this name, perhaps of another server
                await self._following.load()
                if name not in self._catalog.kinds:
                    raise
        served = self._catalog.kinds[name]
        drafted = await in_thread(partial(kind_of_documents, document["connector"]), document["entities"])
        changes = await in_thread(partial(_changes, served), drafted)
        if not changes:
            return name
        draft = await self._store_draft(caller, address.url, document, report)
        raise Conflict(
            f"the tools of {name} differ from those that were accepted; review /console/kinds/{name}/"
            f"{draft.version}, or give another name of the kind: {changes[0]}"
        )

    async def _serve_first(self, caller: Caller, address: McpAddress, document: Mapping[str, Any], report: str) -> str:
        """Serve the first version of a kind; raises Conflict if another one is served meanwhile."""
        draft = await self._store_draft(caller, address.url, document, report)
        await self.serve(caller, draft.kind, draft.version, {}, None, is_first=True)
        await self._following.load()
        return draft.kind

    async def _mapped(self, request: ImportRequest) -> tuple[Mapping[str, Any], str]:
        """The document as a kind, and the report; raises InvalidParams if it is none, or if its name is taken."""
        made = await imported(request)
        assert made.document is not None
        self.require_free(made.document["connector"]["kind"])
        return made.document, made.report

    def require_free(self, name: str) -> None:
        """Raise InvalidParams for a name that an imported kind cannot have."""
        if self._catalog.is_of_folder(name) or name == MCP:
            raise InvalidParams(f"{name} is a kind of this gateway already; choose another name")
        if name not in self._catalog.kinds and self._catalog.is_application(name):
            raise InvalidParams(f"{name} is an application of this gateway already; choose another name")

    def require_same_server(self, spec: ConnectorSpec) -> None:
        """Raise InvalidParams if the name of a stranger's MCP server is that of a kind of another server.

        The OAuth apps of a kind are found by its name.
        """
        served = self._catalog.kinds.get(spec.kind)
        if served is not None and (served.spec.mcp is None or served.spec.server != spec.server):
            raise InvalidParams(f"{spec.kind} is a kind of another server already; choose another name with kind")

    async def _mapped_server(self, address: McpAddress) -> tuple[Mapping[str, Any], str]:
        if address.kind is not None:
            self.require_free(address.kind)
        address = self._with_sign_in(address)
        text = msgspec.json.encode(await described(self._upstreams, address)).decode()
        document, report = await self._mapped(ImportRequest(source=address.url, text=text, kind=address.kind))
        served = self._catalog.kinds.get(document["connector"]["kind"])
        if served is not None:
            document = {
                **document,
                "entities": with_confirmed_effects(document["connector"], document["entities"], served),
            }
        return document, report

    def _with_sign_in(self, address: McpAddress) -> McpAddress:
        """A token that is given for a kind with sign-in leaves the sign-in as it is."""
        served = self._catalog.kinds.get(address.kind or "")
        is_bearer = address.token is not None and address.header is None and address.query is None
        if served is None or served.spec.oauth is None or address.oauth is not None or not is_bearer:
            return address
        return replace(address, oauth=served.spec.oauth.model_dump(mode="json", exclude_defaults=True))

    async def _store_draft(self, caller: Caller, source: str, document: Mapping[str, Any], report: str) -> ImportedKind:
        name: str = document["connector"]["kind"]
        with self._audit.record("kind.import", caller) as entry:
            version = await self._store.add(
                document, source, report, organization_id=caller.organization_id, client_id=caller.client_id
            )
            entry.target = f"{name}/{version}"
        return await self._store.get(name, version)

    async def review(self, caller: Caller, kind: str, version: int) -> Review:
        """A version, and its differences from the served one; raises NotFound."""
        self.require(caller)
        found = await self._store.get(kind, version)
        drafted = await in_thread(ImportedKind.as_kind, found)
        served = self._catalog.kinds.get(kind)
        changes = None if served is None else await in_thread(partial(_changes, served), drafted)
        return Review(version=found, kind=drafted, changes=changes)

    async def serve(
        self,
        caller: Caller,
        kind: str,
        version: int,
        effects: Mapping[str, str],
        server: str | None,
        *,
        is_first: bool = False,
    ) -> None:
        """Serve a version with corrections; the linter checks it again.

        Raises InvalidParams, NotFound, and Conflict if it should be the first version but another one is served.
        """
        self.require(caller)
        with self._audit.record("kind.serve", caller, target=f"{kind}/{version}", changed=sorted(effects)):
            found = await self._store.get(kind, version)
            document = corrected(found.document, effects, server)
            await imported(ImportRequest(source=found.source, document=dict(document)))
            await self._store.serve(kind, version, document, is_first=is_first)

    async def delete(self, caller: Caller, kind: str) -> None:
        """Delete a kind; its connectors become unserved. Raises NotFound."""
        self.require(caller)
        with self._audit.record("kind.delete", caller, target=kind):
            await self._store.delete(kind)

    async def files(self, caller: Caller, kind: str, version: int) -> Sequence[tuple[str, str]]:
        """The name and the text of each file, as `gateway specs import` writes them; raises NotFound."""
        self.require(caller)
        found = await self._store.get(kind, version)
        document = found.document
        texts = partial(texts_of, document["connector"], document["entities"])
        return await in_thread(lambda source: list(texts(source)), found.source)

    def require(self, caller: Caller) -> None:
        """Raise NotFound for callers that may not import."""
        if not self.may(caller):
            raise NotFound("kinds cannot be imported here; the operator can set GATEWAY_IMPORT_ORGANIZATIONS")
