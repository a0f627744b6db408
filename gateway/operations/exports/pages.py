"""The source of an export's records: a list of the application, or the search of the copy."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from gateway.foundation.numbered_pages import Place
from gateway.kinds.catalog import Operation
from gateway.operations.call import OperationCall
from gateway.operations.copy_search import CopySearch
from gateway.operations.permission import Acting
from gateway.upstream.connector import UpstreamConnector

Params = Mapping[str, Any]


class ExportPage(NamedTuple):
    """The records of a page, and the params of the next; None after the last."""

    records: Sequence[msgspec.Raw]
    following: Params | None
    #: why records are or may be missing
    incomplete: str | None = None
    #: where the reading of a list continues whose pages overlap
    place: Place | None = None


class RecordPages(Protocol):
    """Pages of records."""

    async def page(self, params: Params, place: Place | None) -> ExportPage:
        """The page that these params request; `place` is that of the page before."""


class ListPages:
    """The pages of an application's list or search."""

    def __init__(self, connector: UpstreamConnector, operation: Operation) -> None:
        self._connector = connector
        self._operation = operation

    async def page(self, params: Params, place: Place | None) -> ExportPage:
        page, following, place = await self._connector.part(self._operation, params, place)
        return ExportPage(page.records, following, page.incomplete, place)


class SearchPages:
    """The pages of a search of the synchronized copy."""

    def __init__(self, search: CopySearch, acting: Acting, call: OperationCall) -> None:
        self._search = search
        self._acting = acting
        self._call = call

    async def page(self, params: Params, place: Place | None) -> ExportPage:
        page = await self._search.page(self._acting, msgspec.structs.replace(self._call, params=params))
        return ExportPage(page.data, {**params, "cursor": page.cursor} if page.has_more else None)
