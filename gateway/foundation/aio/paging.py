"""The records of a paged list."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol


class RecordPage(Protocol):
    """One page of a list."""

    @property
    def records(self) -> Sequence[Any]:
        """Its records."""


async def records_of(pages: AsyncGenerator[RecordPage, None], limit: int | None) -> AsyncGenerator[Any, None]:
    """The records of all pages, at most `limit`; no page after the limit is requested."""
    left = limit
    async with aclosing(pages):
        async for page in pages:
            for record in page.records[:left]:
                yield record
            left = None if left is None else left - len(page.records)
            if left is not None and left <= 0:
                return
