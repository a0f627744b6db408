"""Models of paging: which param turns the page of a list, and where an answer names the next one."""

from functools import cached_property
from typing import Any, Self

from pydantic import Field, model_validator

from gateway.contract.kinds import PagingStyle
from gateway.kinds.members import JsonPath, MetaPath, Model

#: prefixes of a MetaPath that names a header, a link, or a place beside the list of records
HEADER_PATH, LINK_PATH, BESIDE_RECORDS = "$header", "$link", "@"
#: styles whose next page follows from the page before: a response need not name it
_COUNTED_STYLES = (PagingStyle.PAGE, PagingStyle.OFFSET, PagingStyle.LAST_ID)
#: the Meta member of a next page that the response does not name
_COUNTED_NEXT = "next"


class Incomplete(Model):
    """How an answer says that the list it belongs to is not whole, though it may end."""

    #: the Meta member that says so; callers see it only then
    meta: str
    #: where it lies in the answer
    path: JsonPath
    #: members that it has then
    when: dict[str, Any]


class Paging(Model):
    """A named paging style of a kind: which param turns the page and which members of the answer are the Meta."""

    style: PagingStyle
    #: the param that asks for the next page
    param: str
    #: the param that sets how many records a page holds, where there is one
    size: str | None = None
    #: how many pages the application serves at most
    max_pages: int | None = None
    #: the Meta member whose value goes into `param` (a dotted path within Meta). By default `page`, `offset` and
    #: `last_id` count on until a page is short, and Meta has `next`
    next: JsonPath = ()
    #: the Meta member that must be true for a next page to exist, where the application has one
    has_more: str | None = None
    #: the Meta member that is true on the last page, where the application names a next one all the same
    end: str | None = None
    #: `offset`: the Meta member that holds the number of all records
    total: str | None = None
    #: the first page number (1) or offset (0)
    first: int | None = None
    #: `last_id`: the member of a record that goes into `param`
    id_field: JsonPath = ("id",)
    #: `link`: the name of the query member in the URL, where it is not `param`
    url_param: str | None = None
    #: the params that requests for further pages repeat; all by default. The others have no default there
    repeat_params: tuple[str, ...] | None = None
    #: every Meta member of the product documents, and where it lies in the response
    meta: dict[str, MetaPath] = Field(default_factory=dict)
    #: how an answer says that there is more than the application lists
    incomplete: Incomplete | None = None

    @model_validator(mode="after")
    def _names_the_next_page(self) -> Self:
        if not self.next and self.style not in _COUNTED_STYLES:
            raise ValueError(f"the style {self.style} needs `next`: the member of `meta` that names the next page")
        if not self.next:
            object.__setattr__(self, "next", (_COUNTED_NEXT,))
        return self

    @property
    def request_params(self) -> tuple[str, ...]:
        return tuple(name for name in (self.param, self.size) if name)

    @cached_property
    def is_counted(self) -> bool:
        """Whether the next page follows from the page before: no response names it."""
        return self.next[0] not in self.meta

    @property
    def members(self) -> tuple[str, ...]:
        """The members of Meta."""
        return (*self.meta, *((self.next[0],) if self.is_counted else ()))

    def beside(self, records: JsonPath) -> "Paging":
        """This style for a list at a path: `@` stands for the object that holds the list."""
        if all(path[:1] != (BESIDE_RECORDS,) for path in self.meta.values()):
            return self
        found = {
            name: (*records[:-1], *path[1:]) if path[:1] == (BESIDE_RECORDS,) else path
            for name, path in self.meta.items()
        }
        return self.model_copy(update={"meta": found})
