"""Rude answers to requests for lists, as real applications give them; they follow from the spec alone."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from email.utils import formatdate
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec
from multidict import MultiDict
from pydantic import BaseModel, ConfigDict, Field

from gateway.kinds.catalog import Operation
from gateway.kinds.members import EVERY
from gateway.kinds.paging import HEADER_PATH, LINK_PATH
from gateway.kinds.placements import put
from gateway.sandbox import paging
from gateway.sandbox.application import Application, Route
from gateway.sandbox.calls import Call, FileReply, Refusal, Reply
from gateway.sandbox.operations import flat, synchronized_lists, wire_name
from gateway.sandbox.store import Row

#: the smallest page, and the parts in which a table is listed
_LEAST, _PARTS = 3, 6
#: seconds that a rate limit asks to wait
_WAIT = 300
#: statuses with which applications refuse a cursor that is gone
_GONE = (400, 404, 410, 422)
#: continuations of a list after which the application refuses the next one
_SERVED = 2
#: movements of records in a table, for each of its ready-made records
_MOVES = 2
#: a text that becomes half of a surrogate pair, and texts that become numbers which no double holds
_HALF, _HUGE = "\ue000half\ue000", ("\ue000huge\ue000", "\ue000long\ue000")
_WRITTEN = {
    f"{_HALF}".encode(): rb"cut \ud83d",
    f'"{_HUGE[0]}"'.encode(): b"1e400",
    f'"{_HUGE[1]}"'.encode(): b"9" * 400,
}
#: members of records whose text may be cut
_TEXTS = ("name", "title", "subject", "summary", "description", "text", "body", "content")
_PAGE_OF_HTML = "<!doctype html><title>Sign in</title><p>Your session has ended."


class Behaviour(StrEnum):
    """What an application does that its documentation does not promise."""

    #: every page has fewer records than the request asks for
    SMALL_PAGES = "small_pages"
    #: between two pages a record is added, one of the records that were listed is changed, and one is removed
    MOVING_RECORDS = "moving_records"
    #: a page names itself as its next page, or numbers of pages are ignored
    SELF_NAMING_CURSORS = "self_naming_cursors"
    #: pages name as their next page one that came before
    REPEATED_CURSORS = "repeated_cursors"
    #: pages have items that are null
    NULL_ITEMS = "null_items"
    #: GraphQL answers have `errors` beside `data`, others say that they are incomplete; a record is missing then
    PARTIAL_ERRORS = "partial_errors"
    #: texts end with half of a surrogate pair
    HALF_SURROGATES = "half_surrogates"
    #: numbers are larger than any double
    HUGE_NUMBERS = "huge_numbers"
    #: bodies end in the middle
    CUT_BODIES = "cut_bodies"
    #: JSON is sent as another type
    WRONG_TYPES = "wrong_types"
    #: a page of HTML is sent with the status 200
    HTML_PAGES = "html_pages"
    #: requests are refused for a while, in each form that states it
    RATE_LIMITS = "rate_limits"
    #: a cursor is refused once: 400, 404, 410 or 422
    EXPIRING_CURSORS = "expiring_cursors"
    #: the application refuses to continue a list after some pages
    ENDING_LISTS = "ending_lists"


#: behaviours that replace an answer; if several are on, they take turns
_REPLACING = (
    *(Behaviour.CUT_BODIES, Behaviour.HTML_PAGES, Behaviour.RATE_LIMITS),
    *(Behaviour.EXPIRING_CURSORS, Behaviour.ENDING_LISTS),
)


class RudeRequest(BaseModel):
    """Which kinds are rude from now on, and how."""

    model_config = ConfigDict(extra="forbid")

    #: the kinds; by default all
    kinds: list[str] = Field(default_factory=list)
    #: by default all
    behaviours: list[Behaviour] = Field(default_factory=lambda: list(Behaviour))


class Rude:
    """An application that answers as told; without behaviours as the application alone does."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.behaviours: frozenset[Behaviour] = frozenset()
        self._turns: Counter[str] = Counter()
        self._moves: Counter[str] = Counter()
        self._continued: Counter[str] = Counter()
        self._first_named: dict[str, Any] = {}
        self._expired: set[str] = set()
        self._refusals = 0

    def become(self, behaviours: frozenset[Behaviour]) -> None:
        """Behave like this from now on."""
        self.behaviours = behaviours
        self.application.invalidate_cache()
        for memory in (self._turns, self._moves, self._continued, self._first_named, self._expired):
            memory.clear()

    def answer(self, route: Route, call: Call) -> Reply | FileReply:
        """The answer of the application, or a rude one if the call reads a list."""
        operation = self._list_of(route, call) if self.behaviours else None
        if operation is None:
            return self.application.answer(route, call)
        asked, key = _position(operation, call), f"{operation} {_own_params(operation, call)}"
        is_inner = asked is not None or operation.paging is None
        self._continued[key] = self._continued[key] + 1 if asked is not None else 0
        if asked is None:
            self._first_named.pop(key, None)
        behaviour = self._replacing(key) if is_inner else None
        refusal = None if behaviour is None else self._refusal(behaviour, operation, key, call)
        if refusal is not None:
            return self.application.refused(refusal)
        reply = self._polite(route, operation, call)
        if isinstance(reply, FileReply) or reply.status >= 300:
            return reply
        if Behaviour.MOVING_RECORDS in self.behaviours:
            self._move(operation, reply, call)
        reply = self._renamed(operation, reply, call, asked, key)
        return _spoilt(self._with_odd_records(operation, reply), behaviour, self.behaviours)

    def _polite(self, route: Route, operation: Operation, call: Call) -> Reply | FileReply:
        """The application's own answer, with fewer records if the behaviour asks for it."""
        is_counted = operation.paging is not None and operation.paging.is_counted
        if is_counted and self.behaviours & {Behaviour.SELF_NAMING_CURSORS, Behaviour.REPEATED_CURSORS}:
            call = _at_beginning(operation, call)
        most = max(_LEAST, self.application.count_of(self.application.table_of(operation)) // _PARTS)
        is_small = Behaviour.SMALL_PAGES in self.behaviours
        with paging.at_most(most) if is_small else nullcontext():
            reply = self.application.answer(route, call)
        if isinstance(reply, FileReply):
            return reply
        # Answers are changed below, and cached ones are bytes; records themselves are those of the store.
        body = reply.body if isinstance(reply.body, bytes) else msgspec.json.encode(reply.body)
        return replace(reply, body=msgspec.json.decode(body) if body else None)

    # Which list a call reads

    def _list_of(self, route: Route, call: Call) -> Operation | None:
        """The list that a call reads, also by a path that continues it: `/query` and `/query/{locator}`."""
        shape = _shape(route.path)
        found = self._lists.get((route.method, shape)) or []
        if not found and not route.operations and shape.endswith("/{}"):
            found = self._lists.get((route.method, shape.removesuffix("/{}"))) or []
        return self.application.list_of(found, call) if len(found) > 1 else next(iter(found), None)

    @cached_property
    def _lists(self) -> Mapping[tuple[str, str], list[Operation]]:
        """The lists by method and shape of the path."""
        found: dict[tuple[str, str], list[Operation]] = {}
        known = self.application.kind.operations.values()
        for operation in chain(known, synchronized_lists(self.application.kind)):
            if operation.is_list and operation.action.long_running is None:
                for line in (operation.action.request, *(each.request for each in operation.action.alternatives)):
                    for method, path in self.application.addresses_of(line, operation):
                        found.setdefault((method, _shape(path)), []).append(operation)
        return found

    # Refusals

    def _replacing(self, key: str) -> Behaviour | None:
        """The behaviour that replaces this answer."""
        active = [each for each in _REPLACING if each in self.behaviours]
        if not active:
            return None
        self._turns[key] += 1
        return active[(self._turns[key] - 1) % len(active)]

    def _refusal(self, behaviour: Behaviour, operation: Operation, key: str, call: Call) -> Refusal | None:
        self._refusals += 1
        match behaviour:
            case Behaviour.RATE_LIMITS:
                dialects = list(_dialects(operation, call.now))
                return dialects[self._refusals % len(dialects)]
            case Behaviour.EXPIRING_CURSORS if key not in self._expired and self._continued[key]:
                self._expired.add(key)
                return Refusal(_GONE[self._refusals % len(_GONE)], message="the cursor has expired")
            case Behaviour.ENDING_LISTS if self._continued[key] > _SERVED:
                return Refusal(_GONE[self._refusals % len(_GONE)], message="only the first results can be listed")
            case _:
                return None

    # Records and names of pages

    def _move(self, operation: Operation, reply: Reply, call: Call) -> None:
        """Change the table of a list whose page was answered, as its users do meanwhile."""
        application, name = self.application, self.application.table_of(operation)
        table, member = application.store.table(name), application.id_member_of(name)
        shown = [table.get(_within(operation, item).get(member)) for item in _items(operation, reply.body)]
        known = [row for row in shown if row is not None]
        # The last record stays: a cursor may stand after it. Users stop at some time, so that a list has an end.
        is_at_rest = self._moves[name] >= _MOVES * application.count_of(name)
        if len(known) < 3 or len(known) == len(table) or is_at_rest:
            return
        self._moves[name] += 1
        application.change(known[0], {}, call.now)
        table.remove(known[1].id)
        number = application.store.next_number(name, application.count_of(name))
        new_id = application.id_of(name, number)
        table.put(Row(str(new_id), {**known[-1].record, member: new_id}, dict(known[-1].refs), call.now))
        application.invalidate_cache()

    def _renamed(self, operation: Operation, reply: Reply, call: Call, asked: Any, key: str) -> Reply:
        """The answer, whose next page is one that came before."""
        style = operation.paging
        if asked is None or style is None or style.is_counted or not style.next or style.next[0] not in style.meta:
            return reply
        first = self._first_named.setdefault(key, asked)
        if Behaviour.SELF_NAMING_CURSORS in self.behaviours:
            named = asked
        elif Behaviour.REPEATED_CURSORS in self.behaviours and self._continued[key] > 1:
            named = first
        else:
            return reply
        place = (*style.meta[style.next[0]], *style.next[1:])
        url_param = style.url_param or wire_name(operation, style.param)
        if place[0] == LINK_PATH:
            current = reply.headers.get("Link", "")
            if len(place) == 2 and 'rel="next"' in current:
                link = f'<{paging.address(call, **{url_param: named})}>; rel="next"'
                return replace(reply, headers={**reply.headers, "Link": link})
            return reply
        if place[0] == HEADER_PATH:
            return replace(reply, headers={**reply.headers, place[1]: str(named)})
        if not isinstance(reply.body, dict) or _at(reply.body, place) in (None, ""):
            return reply
        is_url = "://" in str(_at(reply.body, place)) or str(_at(reply.body, place)).startswith("/")
        put(reply.body, place, paging.address(call, **{url_param: named}) if is_url else named)
        return reply

    def _with_odd_records(self, operation: Operation, reply: Reply) -> Reply:
        """The answer with null items, missing records, cut texts and huge numbers."""
        items, ours = _items(operation, reply.body), self.behaviours
        for number, item in enumerate(items):
            record = _within(operation, item)
            if Behaviour.HALF_SURROGATES in ours:
                record[self._text_of(record)] = _HALF
            if Behaviour.HUGE_NUMBERS in ours:
                record[self._number_of(record)] = _HUGE[number % 2]
        if Behaviour.PARTIAL_ERRORS in ours and items:
            self._lose(operation, reply.body, items)
        if Behaviour.NULL_ITEMS in ours and operation.action.map_key is None and isinstance(items, list):
            items.insert(0, None)
        return reply

    def _lose(self, operation: Operation, document: Any, items: list[Any]) -> None:
        incomplete = operation.paging.incomplete if operation.paging else None
        if operation.action.graphql is not None:
            items[-1] = None
            path = [0 if each == EVERY else each for each in (operation.action.records or ())[1:]] + [len(items) - 1]
            error = {"type": "FORBIDDEN", "message": "Resource not accessible", "path": path}
            put(document, ("errors",), [error])
        elif incomplete is not None and isinstance(document, dict):
            items.pop()
            when = True if incomplete.when is None else incomplete.when
            put(document, incomplete.path, dict(when) if isinstance(when, dict) else when)

    def _text_of(self, record: Mapping[str, Any]) -> str:
        names = (name for name in _TEXTS if isinstance(record.get(name), str) and name not in self._identifying)
        return next(names, "rude_text")

    def _number_of(self, record: Mapping[str, Any]) -> str:
        for name, value in record.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and name not in self._identifying and not name.lower().endswith("id"):
                return name
        return "rude_number"

    @cached_property
    def _identifying(self) -> frozenset[str]:
        """Members by which records are told apart, or their own records are found."""
        found = {"id", "key", self.application.id_member}
        for name, entity in self.application.kind.spec.entities.items():
            found.add(self.application.id_member_of(name))
            if entity.search is not None:
                found.add(entity.search.primary_key)
                parent = entity.search.sync.parent if entity.search.sync else None
                found |= {path[0] for path in parent.params.values()} if parent else set()
        return frozenset(found)


def _dialects(operation: Operation, now: float) -> Iterator[Refusal]:
    """The forms in which an application says that requests are too many."""
    moment = int(now) + _WAIT
    for wait in (str(_WAIT), str(moment), str(1000 * moment), formatdate(moment, usegmt=True)):
        yield Refusal(429, message="too many requests", headers={"Retry-After": wait})
    for allowance in operation.spec.rate_limit.allowances:
        if allowance.remaining and allowance.reset and not allowance.per_endpoint:
            headers = {allowance.remaining: "0", allowance.reset: str(int(now) + _WAIT)}
            yield Refusal(403, message="API rate limit exceeded", headers=headers)
    for code in operation.spec.failure.codes.get("upstream_rate_limited", ()):
        if not code.isdigit():
            yield Refusal(429, code, headers={"Retry-After": str(_WAIT)})


def _spoilt(reply: Reply, replacing: Behaviour | None, behaviours: frozenset[Behaviour]) -> Reply:
    """The answer as bytes, cut or of another type."""
    if replacing is Behaviour.HTML_PAGES:
        return replace(reply, body=_PAGE_OF_HTML, content_type="text/html")
    body = msgspec.json.encode(reply.body)
    for text, written in _WRITTEN.items():
        body = body.replace(text, written)
    if replacing is Behaviour.CUT_BODIES:
        body = body[: len(body) // 2]
    return replace(
        reply, body=body, content_type="text/plain" if Behaviour.WRONG_TYPES in behaviours else "application/json"
    )


def _shape(path: str) -> str:
    return re.sub(r"{\w+}", "{}", path)


def _position(operation: Operation, call: Call) -> Any:
    """What a call asks to continue from; None for the first page."""
    style = operation.paging
    if style is None or not style.param:
        return None
    if len(call.params) > len(re.findall(r"{\w+}", operation.action.request)):
        return next(reversed(list(call.params.values())))  # the path continues the list
    name = wire_name(operation, style.param)
    given = _given(operation, call, name)
    first = style.first if style.first is not None else 0
    return None if given in (None, "", "0", 0, str(first), first, "*") else given


def _given(operation: Operation, call: Call, name: str) -> Any:
    body = call.body.get("variables") or {} if operation.action.graphql is not None else call.body
    return call.query[name] if name in call.query else flat(body).get(name)


def _own_params(operation: Operation, call: Call) -> list[str]:
    """The values of the path that name a list, without the one by which another path continues it."""
    return list(call.params.values())[: len(re.findall(r"{\w+}", operation.action.request))]


def _at_beginning(operation: Operation, call: Call) -> Call:
    """The call for the first page."""
    assert operation.paging is not None
    name = wire_name(operation, operation.paging.param)
    query = MultiDict((each, value) for each, value in call.query.items() if each != name)
    return replace(call, query=query, body={each: value for each, value in call.body.items() if each != name})


def _at(document: Any, place: tuple[str, ...]) -> Any:
    for member in place:
        if member == EVERY:
            document = document[0] if isinstance(document, list) and document else None
        else:
            document = document.get(member) if isinstance(document, Mapping) else None
    return document


def _items(operation: Operation, document: Any) -> list[Any]:
    """The items of a page as they are sent; the values of a map."""
    found = _at(document, operation.action.records or ())
    return list(found.values()) if isinstance(found, dict) else found if isinstance(found, list) else []


def _within(operation: Operation, item: Any) -> dict[str, Any]:
    """The record in an item of a list; an empty object if it is none."""
    found = _at(item, operation.action.unwrap)
    return found if isinstance(found, dict) else {}
