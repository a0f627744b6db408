"""The source of an export's records: a list of the application, or the search of the copy."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

import msgspec

from gateway.errors import UpstreamInvalidResponse
from gateway.kinds.catalog import Operation
from gateway.operations.call import OperationCall
from gateway.operations.copy_search import CopySearch
from gateway.upstream.connector import UpstreamConnector

Params = Mapping[str, Any]


class RecordPages(Protocol):
    """Pages of records."""

    async def page(self, params: Params) -> tuple[Sequence[msgspec.Raw], Params | None]:
        """The records of a page, and the params of the next; None after the last."""


class ListPages:
    """The pages of an application's list or search."""

    def __init__(self, connector: UpstreamConnector, operation: Operation) -> None:
        self._connector = connector
        self._operation = operation

    async def page(self, params: Params) -> tuple[Sequence[msgspec.Raw], Params | None]:
        """The page of the application; raises UpstreamRejected if it refuses the next page."""
        answer, following = await self._connector.page(self._operation, params)
        if following == params:
            raise UpstreamInvalidResponse(f"{self._operation}: the application returned a page as its own next page")
        return answer.records, following


class SearchPages:
    """The pages of a search of the synchronized copy."""

    def __init__(self, search: CopySearch, organization_id: UUID, call: OperationCall) -> None:
        self._search = search
        self._organization_id = organization_id
        self._call = call

    async def page(self, params: Params) -> tuple[Sequence[msgspec.Raw], Params | None]:
        page = await self._search.page(self._organization_id, msgspec.structs.replace(self._call, params=params))
        return page.data, {**params, "cursor": page.cursor} if page.has_more else None
