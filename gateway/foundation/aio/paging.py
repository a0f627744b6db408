"""Reading a paged list to its end."""

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from gateway.errors import UpstreamInvalidResponse, UpstreamRejected

#: pages without records in a row, equal pages in a row, and pages, after which a list is taken for one without end
MAX_EMPTY_PAGES, MAX_EQUAL_PAGES, MAX_PAGES = 200, 4, 100_000
#: pages back to which a repeated next page is recognized
_REMEMBERED = 1000


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


class PageWalk:
    """The bounds of a list that is read page by page, and why records of it are missing."""

    def __init__(self, *, compares: bool = True) -> None:
        #: whether equal pages show that the application ignores the param of the page; selected fields may be equal
        self._compares = compares
        #: pages that were added
        self.pages = self._empty_pages = self._equal_pages = 0
        self._records: Sequence[Any] = ()
        self._named: deque[int] = deque(maxlen=_REMEMBERED)
        self._incomplete: str | None = None

    def add(self, following: Mapping[str, Any] | None, records: Sequence[Any], incomplete: str | None) -> None:
        """Count a page and remember the params of the next; raises UpstreamInvalidResponse for a list without end."""
        self.pages += 1
        self._empty_pages = 0 if records else self._empty_pages + 1
        self._equal_pages = self._equal_pages + 1 if records and records == self._records else 1
        self._records = records
        self._incomplete = self._incomplete or incomplete
        if following is not None:
            self._require_progress(hash(repr(sorted(following.items()))))

    def _require_progress(self, next_page: int) -> None:
        if next_page in self._named:
            raise UpstreamInvalidResponse("the application names a page as the next that it returned before")
        self._named.append(next_page)
        if self._compares and self._equal_pages >= MAX_EQUAL_PAGES:
            raise UpstreamInvalidResponse(f"the application returned the same page {MAX_EQUAL_PAGES} times")
        if self._empty_pages >= MAX_EMPTY_PAGES:
            raise UpstreamInvalidResponse(f"the application returned {MAX_EMPTY_PAGES} pages without records in a row")
        if self.pages >= MAX_PAGES:
            raise UpstreamInvalidResponse(f"the list has more than {MAX_PAGES} pages; ask for less or for larger pages")

    def require_complete(self) -> None:
        """Raises UpstreamRejected with the first reason if records of the list are or may be missing."""
        if self._incomplete is not None:
            raise UpstreamRejected(self._incomplete)
