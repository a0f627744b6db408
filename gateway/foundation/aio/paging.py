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

    def add(
        self,
        following: Mapping[str, Any] | None,
        records: Sequence[Any],
        incomplete: str | None,
        *,
        may_repeat: bool = False,
    ) -> None:
        """Count a page and remember the params of the next; raises UpstreamInvalidResponse for a list without end.

        `may_repeat`: whether a page may be requested again.
        """
        self.pages += 1
        self._empty_pages = 0 if records else self._empty_pages + 1
        self._compare(records)
        self._incomplete = self._incomplete or incomplete
        if following is None:
            self._incomplete = self._incomplete or self._repeated()
        else:
            self._require_progress(None if may_repeat else hash(repr(sorted(following.items()))))

    def ended(self, records: Sequence[Any]) -> str | None:
        """Why records are missing although this page is the last; None if nothing shows that some are."""
        self._compare(records)
        return self._repeated()

    def _compare(self, records: Sequence[Any]) -> None:
        self._equal_pages = self._equal_pages + 1 if records and records == self._records else 1
        self._records = records

    def _repeated(self) -> str | None:
        if not self._compares or self._equal_pages == 1:
            return None
        return f"the application returned the same page {self._equal_pages} times in place of others"

    def _require_progress(self, next_page: int | None) -> None:
        if next_page is not None and next_page in self._named:
            raise UpstreamInvalidResponse("the application names a page as the next that it returned before")
        if next_page is not None:
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
