"""Pages of a list as they are turned, record by record."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol


class RecordPage(Protocol):
    """One page of a list."""

    @property
    def records(self) -> Sequence[Any]:
        """Its records."""


async def records_of(pages: AsyncGenerator[RecordPage, None], limit: int | None) -> AsyncGenerator[Any, None]:
    """The records of every page one by one, at most `limit` of them; no page is turned beyond those."""
    left = limit
    async with aclosing(pages):
        async for page in pages:
            for record in page.records[:left]:
                yield record
            left = None if left is None else left - len(page.records)
            if left is not None and left <= 0:
                return
