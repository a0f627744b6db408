"""A connector in the caller's process: calls, lists, files."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

from gateway.errors import UnknownAction
from gateway.foundation.aio.paging import records_of
from gateway.foundation.saving.save import Downloaded, Progress, save
from gateway.in_process.saving import FileSource
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.field_selection import EVERYTHING, FieldSelection, ensure_declared, selected, selected_of
from gateway.upstream.prepared import effect_of
from gateway.upstream.responses import OperationResult


@dataclass(frozen=True)
class Page:
    """The result of one call: the records of a list, or one record; and the Meta of a paged list."""

    answer: OperationResult

    @property
    def meta(self) -> dict[str, Any] | None:
        """The Meta, with the members that the product documents name; None if the operation has none."""
        return self.answer.meta

    @cached_property
    def result(self) -> Any:
        """The records or the record, parsed."""
        return self.answer.decoded()

    @property
    def records(self) -> list[Any]:
        """The records of a list; a single record as a list of one."""
        return self.result if isinstance(self.result, list) else [self.result]

    @property
    def record(self) -> Any:
        """The record of a get, create or update."""
        return self.result


class LocalConnector:
    """A connector whose credentials stay in the caller's process."""

    def __init__(self, connector: UpstreamConnector) -> None:
        self._connector = connector

    @property
    def kind(self) -> Kind:
        """The kind, with its entities and operations."""
        return self._connector.kind

    async def execute(
        self,
        entity: str,
        action: str,
        params: Mapping[str, Any] | None = None,
        *,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> Page:
        """Run one operation until it finishes, also a long operation; raises `gateway.errors.GatewayError`."""
        selection = self._selection(entity, action, select, exclude)
        answer = await self._connector.execute(entity, action, params)
        effect = effect_of(self.kind.operation(entity, action), params or {})
        return Page(await selected_of(effect, answer, selection))

    async def pages(
        self,
        entity: str,
        action: str = "list",
        params: Mapping[str, Any] | None = None,
        *,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> AsyncGenerator[Page, None]:
        """Every page of a list, with any paging style of the application, until the caller stops."""
        selection = self._selection(entity, action, select, exclude)
        async for page in self._connector.pages(entity, action, params):
            yield Page(await selected(page, selection))

    async def records(
        self,
        entity: str,
        action: str = "list",
        params: Mapping[str, Any] | None = None,
        *,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Any, None]:
        """The records of every page one by one, at most `limit` of them."""
        pages = self.pages(entity, action, params, select=select, exclude=exclude)
        async with aclosing(records_of(pages, limit)) as records:
            async for record in records:
                yield record

    async def download(
        self, entity: str, params: Mapping[str, Any] | None = None, *, range_header: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a file or a range (`bytes=0-99`) as they arrive; raises UpstreamTruncated if they end early."""
        async with self._connector.download(entity, params, range_header=range_header) as file:
            async for piece in file:
                yield piece

    async def save(
        self,
        entity: str,
        params: Mapping[str, Any],
        to: str | PathLike[str],
        *,
        sha256: str | None = None,
        on_progress: Progress | None = None,
    ) -> Downloaded:
        """Save a file to the path or in the folder `to`; resumes an interrupted download."""
        return await save(FileSource(self._connector, entity, params), to, sha256=sha256, on_progress=on_progress)

    async def check(self) -> None:
        """Ask the application whether it accepts the credentials; raises its error."""
        await self._connector.check()

    def dry_run(self, entity: str, action: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The exact requests that a call would send, secrets as `***`; nothing is sent."""
        return self._connector.dry_run(entity, action, params)

    def _selection(
        self, entity: str, action: str, select: Sequence[str] | None, exclude: Sequence[str] | None
    ) -> FieldSelection:
        """The selected fields; raises InvalidParams for a field that no record has."""
        if action == SEARCH_ACTION:
            raise UnknownAction(
                f"{entity}.{SEARCH_ACTION} searches the synchronized copy, which only the hosted mode has; "
                "create a connector on a gateway, or use list or api_search here"
            )
        selection = FieldSelection(select, exclude)
        if selection != EVERYTHING:
            operation = self.kind.operation(entity, action)
            ensure_declared(selection, str(operation), operation.fields, operation.example)
        return selection
