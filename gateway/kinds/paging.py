"""Models of paging: which param selects the page of a list, and where a response names the next page."""

from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from gateway.contract.kinds import PagingStyle
from gateway.kinds.members import JsonPath, MetaPath, Model

#: prefix of a MetaPath that names a header
HEADER_PATH = "$header"
#: prefix of a MetaPath that names a link
LINK_PATH = "$link"
#: prefix of a MetaPath that names a place next to the list of records
BESIDE_RECORDS = "@"
#: styles that compute the next page from the page before: a response need not name it
_COUNTED_STYLES = (PagingStyle.PAGE, PagingStyle.OFFSET, PagingStyle.LAST_ID)
#: the Meta member of a next page that the response does not name
_COUNTED_NEXT = "next"


class Incomplete(Model):
    """How a response reports that the application has more records than its list returns."""

    #: the Meta member that shows it; unless it is a member of `meta` too, callers get it only if the list is incomplete
    meta: str
    #: the path of that member in the response
    path: JsonPath
    #: the value if the list is incomplete, or the members that it then has; without it the value is then true
    when: dict[str, Any] | int | str | None = None

    def applies(self, value: Any) -> bool:
        """Whether the value of the member says that the list is incomplete."""
        if self.when is None:
            return value in (True, "true")
        if not isinstance(self.when, dict):
            return bool(value == self.when)
        return isinstance(value, dict) and value.items() >= self.when.items()


class TimeOrder(Model):
    """A list that is sorted by a time of its records, from which it can be continued."""

    #: the path of that time in a record
    by_time: JsonPath
    #: the param that selects the records from a time on, if there is one; page numbers then count within one moment
    since: str | None = None
    #: the format of times in `since`
    format: Literal["iso", "seconds", "milliseconds"] = "iso"
    #: whether the newest record comes first
    newest_first: bool = False


def _order(value: object) -> object:
    if isinstance(value, str) and value not in ("stable", "unknown"):
        raise ValueError("must be `stable`, `unknown` or `{by_time: …}`")
    return value


#: `stable`: a record that exists during the whole reading is on one of the pages, whatever changes meanwhile.
#: `unknown`: changes may move a record to a page that was read before
Order: TypeAlias = Annotated[Literal["stable", "unknown"] | TimeOrder, BeforeValidator(_order)]


class Paging(Model):
    """A named paging style of a kind: the param that selects the page, and the members of the response in Meta."""

    style: PagingStyle
    #: the param that selects the page; of the style `unknown` one that looks like it, if there is one
    param: str = ""
    #: the param that sets the number of records on a page, if there is one
    size: str | None = None
    #: the order of the lists in this style that declare none
    order: Order | None = None
    #: maximum number of pages that the application returns
    max_pages: int | None = Field(None, ge=1)
    #: maximum number of records that the application returns of a list, however many pages they are on
    max_records: int | None = Field(None, ge=1)
    #: how callers get the records beyond `max_pages` and `max_records`
    beyond: str | None = None
    #: the path within Meta of the value for `param`. Without it, `page`, `offset` and `last_id` compute the next value
    #: until the end is proved, and Meta gets the member `next`
    next: JsonPath = ()
    #: the Meta member that is false on the last page, if there is one
    has_more: str | None = None
    #: the Meta member that is true on the last page, if the response names a next page even then
    end: str | None = None
    #: the Meta member that holds the number of all records
    total: str | None = None
    #: `page`: the Meta member that holds the number of all pages
    total_pages: str | None = None
    #: the Meta member that holds the number of records that a full page of this response has: a shorter one is the last
    stated_size: str | None = None
    #: the vendor's page that documents that a page with fewer records than requested by `size` is the last
    short_page: str | None = Field(None, pattern="^https://")
    #: `cursor`: whether the application itself keeps the position of the list, so that every page may name the same
    #: value; the list ends with a page without records
    scrolls: bool = False
    #: the first page number (1) or offset (0)
    first: int | None = None
    #: `last_id`: the member of a record that goes into `param`
    id_field: JsonPath = ("id",)
    #: `last_id`: the further params that the next page needs, and the members of the last record that they get
    last_fields: dict[str, JsonPath] = Field(default_factory=dict)
    #: the name of the query member in the URL of the next page, if it is not the application's name of `param`
    url_param: str | None = None
    #: the params that requests for further pages repeat, by default all; defaults of the others are not sent with them
    repeat_params: tuple[str, ...] | None = None
    #: the params of requests for further pages, and the members of Meta that they carry there because only the first
    #: response has them; Meta then has them on every page
    carried: dict[str, str] = Field(default_factory=dict)
    #: the members of Meta and their paths in the response
    meta: dict[str, MetaPath] = Field(default_factory=dict)
    #: how a response reports that the list has more records than the application returns
    incomplete: Incomplete | None = None

    @model_validator(mode="after")
    def _names_the_next_page(self) -> Self:
        if self.style is PagingStyle.UNKNOWN:
            if not self.param and not self.next and self.max_records is None:
                raise ValueError("the style unknown needs what looks like paging: `param`, `next` or `max_records`")
            return self
        if not self.param:
            raise ValueError(f"the style {self.style} needs `param`: the param that selects the page")
        if not self.next and self.style not in _COUNTED_STYLES:
            raise ValueError(f"the style {self.style} needs `next`: the member of `meta` that names the next page")
        if not self.next:
            object.__setattr__(self, "next", (_COUNTED_NEXT,))
        return self

    @property
    def request_params(self) -> tuple[str, ...]:
        return tuple(name for name in (self.param, self.size, *self.last_fields, *self.carried) if name)

    @cached_property
    def is_counted(self) -> bool:
        """Whether the next page is computed from the page before: responses do not name it."""
        return self.style in _COUNTED_STYLES and self.next[0] not in self.meta

    @property
    def members(self) -> tuple[str, ...]:
        """The members of Meta."""
        return (*self.meta, *((self.next[0],) if self.is_counted else ()))

    def beside(self, records: JsonPath) -> "Paging":
        """This style for a list at `records`: `@` becomes the path of the object that holds the list."""
        if all(path[:1] != (BESIDE_RECORDS,) for path in self.meta.values()):
            return self
        found = {
            name: (*records[:-1], *path[1:]) if path[:1] == (BESIDE_RECORDS,) else path
            for name, path in self.meta.items()
        }
        return self.model_copy(update={"meta": found})
