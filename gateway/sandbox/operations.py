"""The operations of a spec in an application without own behaviour."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from gateway.contract.kinds import Effect, PagingStyle
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.members import COUNT, EVERY, JsonPath, MetaPath
from gateway.kinds.paging import HEADER_PATH, LINK_PATH, Paging
from gateway.kinds.placements import put
from gateway.kinds.requests import Action, RequestSpec
from gateway.sandbox import filters, paging
from gateway.sandbox.calls import Call, Record, Reply, nested
from gateway.sandbox.store import Row
from gateway.sandbox.world import World

#: maximum records on a page, if the spec sets none
_LARGEST_PAGE = 1000


class Operations(World):
    """Lists, gets and writes of records, with responses as the spec describes them."""

    #: query members that are not filters
    unfiltered: ClassVar[frozenset[str]] = frozenset()

    def list_records(self, operation: Operation, call: Call) -> Reply:
        rows = self.related(operation, call)
        names = [wire_name(operation, name) for name in operation.paging.request_params] if operation.paging else []
        return self.listed(operation, filters.matching(rows, call.query, {*names, *self.unfiltered}), call)

    def get_record(self, operation: Operation, call: Call) -> Reply:
        return self.one(operation, self.require_row(self.table_of(operation), last_param(operation, call)), call)

    def create_record(self, operation: Operation, call: Call) -> Reply:
        row = self.add_row(self.table_of(operation), self.body_of(operation, call), call.now)
        reply = self.one(operation, row, call)
        return Reply(reply.body, 201)

    def update_record(self, operation: Operation, call: Call) -> Reply:
        row = self.require_row(self.table_of(operation), last_param(operation, call))
        self.change(row, self.body_of(operation, call), call.now)
        return self.one(operation, row, call)

    def delete_record(self, operation: Operation, call: Call) -> Reply:
        row = self.require_row(self.table_of(operation), last_param(operation, call))
        self.store.table(self.table_of(operation)).remove(row.id)
        return Reply(None, 204)

    def related(self, operation: Operation, call: Call) -> Iterable[Row]:
        """The rows of a list: all rows of the table, or those of the parent that the path names."""
        table = self.table_of(operation)
        rows: Iterable[Row] = self.store.table(table)
        if table not in self.parents or not call.params:
            return rows
        relation, parent = self.parents[table]
        owner = self.require_row(parent, next(iter(call.params.values())))
        return [row for row in rows if str(row.refs.get(relation)) == owner.id]

    def size_of(self, operation: Operation, asked: Mapping[str, str], usual: int) -> int:
        """The requested number of records on a page, at most the maximum of the spec."""
        name = (operation.paging and operation.paging.size) or ""
        most = operation.action.params.get(name, {}).get("maximum", _LARGEST_PAGE)
        return paging.size_asked(asked, wire_name(operation, name), usual, most)

    def table_of(self, operation: Operation) -> str:
        return self.table_for(operation.entity_id)

    def body_of(self, operation: Operation, call: Call) -> Record:
        """The members that a write sets: those in the envelope that the response has too, else the whole body.

        The envelope may be a list with one item.
        """
        place = operation.action.record or ()
        inner = call.body.get(place[0]) if place else None
        if isinstance(inner, list):
            inner = next(iter(inner), None)
        return dict(inner if isinstance(inner, Mapping) else call.body)

    @staticmethod
    def _described(operation: Operation) -> JsonPath:
        """The path of the record in a response that has the URL of a file."""
        download = operation.action.download
        return download.url[:-1] if download and download.url else ()

    def shown(self, operation: Operation, row: Row, call: Call) -> Record:
        """The record in the response to this call."""
        return row.record

    def one(self, operation: Operation, row: Row, call: Call) -> Reply:
        """The response with one record."""
        return Reply(nested(operation.action.record or self._described(operation), self.shown(operation, row, call)))

    def listed(self, operation: Operation, rows: Sequence[Row], call: Call) -> Reply:
        """The response with a page of a list."""
        action = operation.action
        page, meta = self.page_in_its_style(operation, rows, call)
        items = self.items_of(operation, page.items, call)
        document = nested(action.records or (), items if action.columns is None else rows_of(items))
        if action.columns is not None and page.start == 0:
            put_columns(document, action.columns.names, items)
        reply = Reply(document, headers=meta_headers(meta, call))
        if isinstance(document, dict):
            for place, value in meta:
                if place[0] not in (HEADER_PATH, LINK_PATH):
                    put(document, place, value)
        return reply

    def items_of(self, operation: Operation, rows: Sequence[Row], call: Call) -> Any:
        """The records of a page, in the form of the response."""
        return [self.shown(operation, row, call) for row in rows]

    def page_in_its_style(
        self, operation: Operation, rows: Sequence[Row], call: Call
    ) -> tuple[paging.Page[Row], list[tuple[MetaPath, Any]]]:
        """A page in the paging style of the spec, and the members of Meta by path."""
        style = operation.paging
        if style is None:
            return paging.portion(rows, 0, len(rows)), []
        asked = {**call.query, **{name: str(value) for name, value in flat(call.body).items()}}
        name = wire_name(operation, style.param)
        if style.param in operation.action.required and not paging.is_cursor(asked.get(name, "")):
            del asked[name]  # a position from another operation of the application, such as a start page token
        # Callers cannot ask for smaller pages where there is no param for it.
        size = self.size_of(operation, asked, self.usual_count if style.size else self.usual_count // 2)
        counted = style.model_copy(update={"style": _counted_style(operation, style)})
        wanted = None if style.style is PagingStyle.UNKNOWN else asked.get(name)
        page, follow = paging.page_in_style(counted, rows, wanted, size, of=str(operation))
        place = style.meta.get(style.next[0], ("",)) if style.next else ("",)
        if style.style is PagingStyle.LINK or (place[0] == LINK_PATH and len(place) == 2):
            follow = paging.address(call, **{style.url_param or name: follow})
        meta: list[tuple[MetaPath, Any]] = []
        if page.has_more and style.next and not style.is_counted:
            meta.append((style.meta[style.next[0]] + style.next[1:], follow))
        if style.has_more is not None:
            meta.append((style.meta[style.has_more], page.has_more))
        if style.end is not None:
            meta.append((style.meta[style.end], not page.has_more))
        if style.total is not None:
            meta.append((style.meta[style.total], page.total))
        if style.total_pages is not None:
            meta.append(number_at(style.meta[style.total_pages], -(-page.total // size)))
        if style.stated_size is not None:
            meta.append((style.meta[style.stated_size], size))
        return page, meta

    # Long operations

    def work_on(self, operation: Operation, call: Call, item: Any, now: float) -> Row:
        """Process one item of a long operation: read, delete, change or create its record; raises Refusal."""
        table = self.table_of_call(operation, call)
        row_id = item.get("id") if isinstance(item, Mapping) else item
        if row_id is None:
            return self.add_row(table, self.members_of(item), now)
        row = self.require_row(table, row_id)
        if operation.method == "DELETE":
            self.store.table(table).remove(row.id)
        elif operation.action.effect != Effect.READ and isinstance(item, Mapping):
            self.change(row, self.members_of(item), now)
        return row

    def table_of_call(self, operation: Operation, call: Call) -> str:
        """The table of the records of a call."""
        return self.table_of(operation)

    def members_of(self, item: Mapping[str, Any]) -> Record:
        """The members that an item of a long operation sets in its record."""
        return dict(item)

    def long_records(self, operation: Operation, call: Call) -> Sequence[Any]:
        """The records that a long operation reads."""
        return [self.shown(operation, row, call) for row in self.store.table(self.table_of_call(operation, call))]

    def long_outcome(self, operation: Operation, call: Call, now: float) -> Record:
        """The members that the response has beside the state when a long operation without items has ended."""
        return {}


def synchronized_lists(kind: Kind) -> Iterator[Operation]:
    """The lists of a kind that the synchronizer reads; their params have the types of lists with the same request.

    In GraphQL all lists have the same request: the entity's own list comes first.
    """
    lists = [each for each in kind.operations.values() if each.is_list]
    known = {each.action.request: each.action.params for each in lists}
    own = {(each.entity_id, each.action.request): each.action.params for each in lists}
    for entity_id, entity in kind.spec.entities.items():
        for member, read in (entity.search.reads if entity.search else {}).items():
            members = {name: getattr(read, name) for name in RequestSpec.model_fields}
            paging_params = kind.spec.paging[read.paging].request_params if read.paging else ()
            names = [*re.findall(r"{(\w+)}", read.request), *paging_params]
            fixed = {
                name: {"enum": [value], "default": value} for name, value in read.params.items() if _is_fixed(value)
            }
            schemas = own.get((entity_id, read.request), known.get(read.request, {}))
            params = {name: schemas.get(name, {}) for name in names} | (
                fixed if read.request.startswith("GET ") else {}
            )
            action = Action(**members, effect=Effect.READ, description="A copy's list.", params=params)
            yield Operation(kind.spec, entity_id, member or "synchronize", action)


def rows_of(items: Sequence[Record | None]) -> list[list[Any] | None]:
    """Records as lists of their values."""
    return [None if item is None else list(item.values()) for item in items]


def put_columns(document: Any, place: JsonPath, items: Sequence[Record | None]) -> None:
    """Set the names of the columns of records; none are known of a list without records."""
    outer, inner = place[: place.index(EVERY)], place[place.index(EVERY) + 1 :]
    put(document, outer, [nested(inner, name) for name in next(filter(None, items), {})])


def number_at(place: MetaPath, number: int) -> tuple[MetaPath, Any]:
    """A member of Meta that is a number, or that many items if its path counts them."""
    return (place[:-1], [{} for _ in range(number)]) if place[-1] == COUNT else (place, number)


def _counted_style(operation: Operation, style: Paging) -> PagingStyle:
    """The style in which pages are numbered: links with an integer have a page, or from zero an offset."""
    schema = operation.action.params.get(style.param, {})
    declared = {**operation.spec.definitions.get(str(schema.get("$ref", "")).removeprefix("#/$defs/"), {}), **schema}
    if style.style is not PagingStyle.LINK or declared.get("type") != "integer":
        return style.style
    return PagingStyle.OFFSET if declared.get("minimum") == 0 else PagingStyle.PAGE


def _is_fixed(value: Any) -> bool:
    """Whether a param of the synchronizer has the same value in every request."""
    return isinstance(value, str | int) and "{" not in str(value)


def flat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a body, those of its objects by dotted names."""
    found = dict(body)
    for name, value in body.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": each for inner, each in flat(value).items()}
    return found


def wire_name(operation: Operation, param: str) -> str:
    """The application's name of a param."""
    return next((placement.wire for placement in operation.placements if placement.name == param), param)


def meta_headers(meta: Iterable[tuple[MetaPath, Any]], call: Call) -> dict[str, str]:
    """The headers for the members of Meta that are in headers; all links are in one header (RFC 8288)."""
    headers: dict[str, str] = {}
    links: dict[str, dict[str, str]] = {}
    for place, value in meta:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if place[0] == HEADER_PATH:
            headers[place[1]] = text
        elif place[0] == LINK_PATH:
            links.setdefault(place[1], {})[place[2] if len(place) > 2 else ""] = text
    if links:
        headers["Link"] = ", ".join(
            f'<{link.pop("", paging.address(call))}>; rel="{relation}"'
            + "".join(f'; {name}="{text}"' for name, text in link.items())
            for relation, link in links.items()
        )
    return headers


def last_param(operation: Operation, call: Call) -> str:
    """The value of the last param of the path; empty without one."""
    names = re.findall(r"{(\w+)}", operation.action.request)
    return call.params.get(names[-1], "") if names else ""
