"""Recognizes the paging style of a list by params, members of the response and headers; the rest is `unknown`. Pure."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from gateway.kinds.importing.model import Finding, Node, SourceOperation, for_a_person, guessed
from gateway.kinds.importing.names import path_names, singular
from gateway.kinds.importing.references import Document, node_of
from gateway.kinds.importing.requests import RequestParts
from gateway.kinds.importing.responses import Shape, flattened
from gateway.kinds.importing.words import identifier

#: names of params in snake case, without `page_` and the like before them; the most certain first
_CURSORS = (
    "cursor", "page_token", "pagetoken", "next_token", "token", "next_page_token", "after", "starting_after",
    "start_cursor", "continuation_token", "continuation", "continue", "next_cursor", "bookmark", "marker", "scroll_id",
    "scroll", "after_id", "iterator", "anchor", "search_after", "after_cursor", "page_key", "start_key", "last_key",
    "exclusive_start_key", "last_evaluated_key", "cursor_mark", "next", "next_page", "next_key", "next_id",
    "starting_token", "starting_at", "start_from", "from", "start", "position", "page_id", "last_id", "since_id",
    "offset", "page", "key",
)  # fmt: skip
_PAGES = (
    "page", "page_number", "pagenumber", "page_no", "pageno", "page_index", "pageindex", "page_num", "number", "p",
    "current_page", "index",
)  # fmt: skip
_OFFSETS = (
    "offset", "skip", "start", "start_at", "startat", "start_index", "startindex", "from", "from_index", "first_result",
    "row_start", "page_offset", "start_offset", "start_row",
)  # fmt: skip
_LAST_IDS = ("starting_after", "after", "after_id", "last_id", "since_id", "start_after", "from_id")
#: params of the page size that are a sign of paging by themselves, and others
_STRONG_SIZES = (
    "per_page", "page_size", "pagesize", "limit", "perpage", "max_results", "maxresults", "page_limit",
    "results_per_page", "items_per_page", "max_page_size",
)  # fmt: skip
_SIZES = (*_STRONG_SIZES, "size", "count", "first", "top", "max", "take", "num", "rows", "length")
#: names of params that are a sign of paging
_LOOKS_PAGED = re.compile(
    r"(page|next|continuation)_?(token|cursor|key|number|no|id)|.*cursor|pagination.*|page|offset|skip|continuation|after"
    r"|continue|bookmark|marker|iterator|scroll(_id)?|starting_after|search_after|after_id|last_id|start_index|start_at"
)
#: the last names of members that have the next page: a token, a number or a URL
_NEXT = re.compile(
    r"next(_?page)?(_?(cursor|token|marker|key|id|page|after|offset|start|index|iterator|number|skip|url|uri|link|href))?"
    r"|((end|after|page|last)_)?(cursor|token)|after|starting_after|pagination_token|continuation(_?token)?|bookmark"
    r"|scroll_id|iterator|last_evaluated_key|cursor_mark|href|url|uri|link"
)
#: one of the names on the path of such a member
_FORWARD = re.compile(r"next|after|cursor|continu|bookmark|scroll|iterator|last_evaluated|page_?token|pagination_token")
#: names of params and of members of the response that may be the same token
_TOKEN = re.compile(
    r"(.*_)?(cursor|token|iterator|marker|bookmark|scroll|scroll_id|continuation|after|offset|anchor|key)"
)
#: words of params that select by time
_OF_TIME = re.compile(r"\b(date|dates|time|timestamp|datetime|ISO[ -]?8601|epoch|unix)\b", re.I)
#: words of params that set the size of a page
_OF_SIZE = re.compile(
    r"(max\w*|number|amount|count|how many)\b.{0,40}\b(return|per page|fetch|retrieve|include)|page size", re.I
)
#: keywords of a schema that a token of the application need not satisfy
_OF_TOKENS = ("pattern", "format", "minLength", "maxLength", "enum", "minimum", "maximum")
_BACKWARD = re.compile(r"(prev|previous|first|self|before|current|start_cursor).*|last|last_page")
_HAS_MORE = (
    "has_more", "hasmore", "more", "has_next_page", "hasnextpage", "has_next", "hasnext", "is_truncated",
    "more_results", "has_more_results", "has_more_items", "has_more_pages", "more_data", "next_page", "next",
    "more_available",    "has_additional_results", "more_records", "more_items_in_collection", "more_items",
)  # fmt: skip
_END = (
    "done",
    "is_last",
    "islast",
    "is_last_page",
    "last_page",
    "last",
    "end_of_list",
    "is_done",
    "finished",
    "is_end",
)
_TOTAL = (
    "total", "total_count", "totalcount", "total_results", "total_records", "total_items", "total_elements",
    "total_hits", "total_entries", "items_total", "total_size", "record_count", "total_number", "total_rows", "x_total",
    "x_total_count",
)  # fmt: skip
_TOTAL_PAGES = (
    "total_pages", "totalpages", "page_count", "pagecount", "pages", "num_pages", "last_page", "pages_total",
    "total_page_count", "max_page", "x_total_pages", "page_total",
)  # fmt: skip
#: levels of objects beside the list that are searched
_DEEPEST = 3
_ZERO = re.compile(r"(zero|\b0)[- ]?(based|index)|(starts?|starting|begins?) (at|from|with) (0|zero)\b", re.I)
_ONE = re.compile(r"(one|\b1)[- ]?(based|index)|(starts?|starting|begins?) (at|from|with) (1|one)\b", re.I)
_COUNTED = re.compile(
    r"page number|number of (the |a )?page|\b(zero|one|[01])[- ]?(based|index)|number of \w+ to skip", re.I
)

Paging = dict[str, Any]
Found = tuple[Paging, str] | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a response beside the list, or a header of it."""

    #: a MetaPath
    path: str
    #: the names on its path in snake case
    names: tuple[str, ...]
    type: str
    schema: Node

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def is_number(self) -> bool:
        return self.type in ("integer", "number")

    @property
    def texts(self) -> str:
        """Its description and its examples."""
        listed = self.schema.get("examples")
        shown = [
            *(listed if isinstance(listed, list) else ()),
            *(self.schema.get(name) for name in ("example", "default")),
        ]
        return " ".join(each for each in (self.schema.get("description"), *shown) if isinstance(each, str))

    @property
    def is_token(self) -> bool:
        """Whether nothing says that it may be a URL: its name names a token, and neither words nor format a URL."""
        is_named = (
            re.search(r"token|cursor|marker|bookmark|iterator|after|key|id\b|scroll|continu", self.name) is not None
        )
        is_url = (
            self.schema.get("format") in ("uri", "url") or re.search(r"https?://|\bURLs?\b", self.texts) is not None
        )
        return is_named and not is_url


@dataclass(frozen=True, slots=True, kw_only=True)
class PagingSigns:
    """The signs of pages of a list in a document."""

    operation: SourceOperation
    parts: RequestParts
    shape: Shape
    #: the params of query and body by their plain names
    names: Mapping[str, str]
    members: Sequence[Member]
    says_link_header: bool

    def param(self, wanted: Collection[str], condition: Callable[[str], bool] = lambda name: True) -> str | None:
        """The first param with one of these names, in their order, for which the condition holds."""
        return next((self.names[each] for each in wanted if each in self.names and condition(self.names[each])), None)

    def raw(self, param: str) -> Node:
        """The schema of a param as the document has it, with the words of the parameter."""
        wire = self.parts.params[param].get("as", param)
        found = next((each for each in self.operation.parameters if each.get("name") == wire), {})
        schema = {**self.parts.params[param], **node_of(found.get("schema", found))}
        return {**schema, "description": f"{found.get('description', '')} {schema.get('description', '')}"}

    def is_counted(self, param: str) -> bool:
        """Whether a param takes whole numbers, by its type, else by its values and words."""
        raw = self.raw(param)
        types = raw.get("type", ())
        types = [types] if isinstance(types, str) else types
        if not types or {"integer", "number"} & set(types):
            return True
        values = [raw.get("default"), raw.get("example"), *raw.get("examples", ())]
        is_numeric = any(re.fullmatch(r"\d{1,9}", str(each)) for each in values if each is not None)
        return is_numeric or _COUNTED.search(raw["description"]) is not None

    def member(self, wanted: Sequence[str], condition: Callable[[Member], bool]) -> Member | None:
        """The first member with one of these names, in their order, for which the condition holds."""
        return next((each for name in wanted for each in self.members if each.name == name and condition(each)), None)

    def is_of_time(self, param: str) -> bool:
        """Whether a param selects by time, by its format or words; one that is named a cursor does not."""
        raw = self.raw(param)
        is_named = re.search("cursor|token|page", identifier(param)) is not None
        return not is_named and (
            raw.get("format") in ("date", "date-time") or _OF_TIME.search(raw["description"]) is not None
        )

    @property
    def size(self) -> str | None:
        return self.param(_SIZES, self.is_counted)


def paging_of(
    operation: SourceOperation, parts: RequestParts, shape: Shape, document: Document
) -> tuple[Paging | None, list[Finding]]:
    """The paging style of a list, None if it has no sign of pages; and the findings about it."""
    members = (*_headers(shape), *_members(document, shape))
    evidence = PagingSigns(
        operation=operation,
        parts=parts,
        shape=shape,
        names=_by_plain_name(parts),
        members=members,
        says_link_header=document.says_link_header,
    )
    for recognize in (_by_link_header, _by_next, _by_offset, _by_page, _by_last_id, _by_undeclared):
        found = recognize(evidence)
        if found is not None:
            paging, doubt = found
            return _completed(evidence, paging), [guessed(operation, doubt, member="paging")] if doubt else []
    unknown = _unknown(evidence)
    if unknown is None:
        return None, []
    reason = "the list looks paged, but not how its next page is requested; its answers say that they may be incomplete"
    sign = unknown.get("param") or unknown["meta"][unknown["next"]]
    return _completed(evidence, unknown), [for_a_person(operation, reason, sign, member="paging")]


def _completed(evidence: PagingSigns, paging: Paging) -> Paging:
    """The style with the size and the order; counted params take integers, and the default of the size is sent."""
    size, params = evidence.size, evidence.parts.params
    counted = paging["style"] in ("page", "offset")
    if counted and paging["param"] in evidence.parts.required:
        first = paging.get("first", int(paging["style"] == "page"))
        evidence.parts.required.remove(paging["param"])
        params[paging["param"]] = {**params[paging["param"]], "default": first}
    for name in dict.fromkeys([size, paging["param"] if counted else None]):
        if name is not None and params[name].get("type") != "integer":
            kept = ("description", "minimum", "maximum", "in", "as", "deprecated", "default")
            params[name] = {"type": "integer", **{key: params[name][key] for key in kept if key in params[name]}}
    if size is not None:
        default = evidence.raw(size).get("default")
        if isinstance(default, int) and default > 0:
            params[size] = {**params[size], "default": default}
        if size != paging.get("param") or paging["style"] == "unknown":
            paging = {**{name: paging[name] for name in ("style", "param") if name in paging}, "size": size, **paging}
    if not counted and paging["style"] != "unknown" and (turned := params[paging["param"]]):
        # Each value comes from the application itself, so that the document's limits for it may only be wrong.
        free = {name: value for name, value in turned.items() if name not in _OF_TOKENS}
        if paging["style"] == "last_id" and free.get("type") in ("string", "integer"):
            free["type"] = ["string", "integer"]
        params[paging["param"]] = free
    return {**paging, "order": "unknown"}


def _by_plain_name(parts: RequestParts) -> dict[str, str]:
    """Params of query and body by their plain names: `page[size]` and `pagination.size` have `page_size` and `size`."""
    found: dict[str, str] = {}
    for name, schema in parts.params.items():
        if f"{{{name}}}" not in parts.path and schema.get("in", "query") in ("query", "body"):
            plain = identifier(str(schema.get("as", name)))
            found.setdefault(plain, name)
            found.setdefault(re.sub(r"^(page|paging|pagination|pager|list)_", "", plain), name)
    return found


def _headers(shape: Shape) -> Iterator[Member]:
    for name in sorted(shape.headers):
        yield Member(f"$header.{name}", (identifier(name),), "header", {})


def _members(document: Document, shape: Shape) -> Iterator[Member]:
    """The members beside a list, at the root of the response and in the object that holds the list."""
    list_path = shape.path.split(".")
    for path, schema in _inner(document, shape.root, (), _DEEPEST):
        if path == tuple(list_path) or path[: len(list_path)] == tuple(list_path):
            continue
        holder = tuple(list_path[:-1])
        is_beside = path[: len(holder)] == holder
        written = f"@.{'.'.join(path[len(holder) :])}" if is_beside else ".".join(path)
        types = schema.get("type")
        type_ = types if isinstance(types, str) else "string" if not types else str(types[0])
        if type_ == "array" or "items" in schema:
            items = node_of(flattened(document, schema.get("items")).get("properties"))
            if not {"rel", "href"} <= set(items):
                continue
            type_ = "links"
        yield Member(written, tuple(map(identifier, path)), type_, schema)


def _inner(
    document: Document, schema: Node, path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], Node]]:
    for name, value in node_of(schema.get("properties")).items():
        member = flattened(document, value)
        if "." in str(name):
            continue
        if node_of(member.get("properties")):
            if depth > 1:
                yield from _inner(document, member, (*path, str(name)), depth - 1)
        elif member.get("type") != "object" and "additionalProperties" not in member:
            yield (*path, str(name)), member
        elif identifier(str(name)) == "links":
            # The relations of HAL and JSON:API are not named: the next page is one of them.
            yield (*path, str(name), "next", "href"), {"type": "unnamed"}


def _is_next(member: Member) -> bool:
    """Whether a member has the next page: `next_cursor`, `paging.next.after`, `links.next.href`, `x-next-page`."""
    name = member.name.removeprefix("x_")
    if member.type in ("boolean", "links", "unnamed") or _NEXT.fullmatch(name) is None:
        return False
    return not any(_BACKWARD.fullmatch(each) for each in member.names) and any(map(_FORWARD.search, member.names))


def _by_link_header(evidence: PagingSigns) -> Found:
    """The Link header, only where the document has it."""
    is_said = "link" in evidence.shape.headers or (evidence.says_link_header and evidence.shape.path == "$")
    param = evidence.param((*_PAGES[:-1], *_CURSORS))
    if not is_said or param is None:
        return None
    doubt = "" if "link" in evidence.shape.headers else "the Link header comes from the description of the document"
    return {"style": "link", "param": param, "next": "next_url", "meta": {"next_url": "$link.next"}}, doubt


def _by_next(evidence: PagingSigns) -> Found:
    """A token, a number or a URL in the response or a header."""
    cursor = evidence.param(_CURSORS, lambda name: _is_token_param(evidence, name))
    page, offset = evidence.param(_PAGES, evidence.is_counted), evidence.param(_OFFSETS, evidence.is_counted)
    named = identifier(str(evidence.parts.params[cursor].get("as", cursor))) if cursor else ""
    is_token = _TOKEN.fullmatch(named) is not None
    following = [each for each in evidence.members if _is_next(each) or (is_token and _is_same(each, named))]
    if not following:
        return None
    numbers = [each for each in following if each.is_number or each.type == "header"]
    if cursor is None and page is not None and (number := _first(numbers, "page") or _first(numbers, "next")):
        return {"style": "page", "param": page, "next": "next_page", "meta": {"next_page": number.path}}, ""
    if cursor is None and offset is not None and (number := _first(numbers, "next")):
        meta = {"next_cursor": number.path}
        return {"style": "cursor", "param": offset, "next": "next_cursor", **_ending(evidence, meta)}, ""
    tokens = [each for each in following if not each.is_number]
    chosen = _nearest(tokens, named)
    if chosen is None:
        return None
    if cursor is not None and (chosen.is_token or chosen.name == named or chosen.type == "header"):
        meta = {"next_cursor": chosen.path}
        return {"style": "cursor", "param": cursor, "next": "next_cursor", **_ending(evidence, meta)}, ""
    turned = _in_url(evidence, chosen) or cursor or page or offset
    if turned is None:
        return None
    meta = {"next_url": chosen.path}
    doubt = (
        "" if turned == cursor or chosen.texts else "the URL of the next page is assumed to have the number of the page"
    )
    return {"style": "link", "param": turned, "next": "next_url", **_ending(evidence, meta)}, doubt


def _is_same(member: Member, named: str) -> bool:
    """Whether a member with the name of the param holds the next token."""
    return member.name == named and member.type == "string" and not any(map(_BACKWARD.fullmatch, member.names))


def _is_token_param(evidence: PagingSigns, name: str) -> bool:
    """Whether a param takes tokens: one that also may be counted does only if it is no number."""
    plain = identifier(str(evidence.parts.params[name].get("as", name)))
    may_be_counted = bool({plain, re.sub(r"^(page|paging|pagination)_", "", plain)} & {*_PAGES, *_OFFSETS})
    return not (may_be_counted and evidence.is_counted(name)) and not evidence.is_of_time(name)


def _first(members: Sequence[Member], part: str) -> Member | None:
    return next((each for each in members if part in each.name), None)


def _nearest(members: Sequence[Member], named: str) -> Member | None:
    """The member with the param's name, else one with `next`, tokens before URLs, else the first."""
    ranked = sorted(
        members,
        key=lambda each: (
            each.name != named,
            not any("next" in name for name in each.names),
            not (named and each.is_token),
            len(each.names),
        ),
    )
    return ranked[0] if ranked else None


def _in_url(evidence: PagingSigns, member: Member) -> str | None:
    """The param that an example of the URL has: a cursor, a page or an offset; undeclared ones are added."""
    found = re.search(r"\S*\?\S+", member.texts)
    if found is None:
        return None
    wires = [name for name, _ in parse_qsl(urlsplit(found[0]).query, keep_blank_values=True)]
    plain = {identifier(wire): wire for wire in wires}
    plain |= {re.sub(r"^(page|paging|pagination)_", "", name): wire for name, wire in plain.items()}
    for name in (*_CURSORS, *_PAGES, *_OFFSETS):
        wire = plain.get(name)
        if wire is not None:
            declared = {str(each.get("as", param)): param for param, each in evidence.parts.params.items()}
            schema = {"type": "string", "description": f"{name} from the URL of the next page"}
            added = identifier(wire) or "page"
            return declared.get(wire) or evidence.parts.add(added, schema, where="query", wire=wire)
    return None


def _ending(evidence: PagingSigns, meta: Mapping[str, str] | None = None, *, counted: bool = False) -> Paging:
    """The members of a style that prove the end of a list, with `meta`; those of counted styles have totals too."""
    found: Paging = {}
    sources = dict(meta or {})
    wanted: list[tuple[str, Sequence[str], Callable[[Member], bool]]] = [
        ("has_more", _HAS_MORE, lambda each: each.type == "boolean"),
        ("end", _END, lambda each: each.type == "boolean"),
    ]
    if counted:
        wanted.append(("total", _TOTAL, lambda each: each.is_number or each.type == "header"))
    for member, names, condition in wanted:
        source = evidence.member(names, condition)
        if source is not None:
            found[member] = member
            sources[member] = source.path
    return {**found, "meta": sources} if sources else found


def _by_offset(evidence: PagingSigns) -> Found:
    param = evidence.param(_OFFSETS, evidence.is_counted)
    if param is None or evidence.size is None:
        return None
    first = {"first": 1} if _begins_with(evidence, param, 1) else {}
    return {"style": "offset", "param": param, **first, **_ending(evidence, counted=True)}, ""


def _by_page(evidence: PagingSigns) -> Found:
    param = evidence.param(_PAGES, evidence.is_counted)
    if param is None:
        return None
    paging = {"style": "page", "param": param, **_ending(evidence, counted=True)}
    pages = evidence.member(_TOTAL_PAGES, lambda each: each.is_number or each.type == "header")
    if pages is not None:
        paging |= {"total_pages": "total_pages", "meta": {**paging.get("meta", {}), "total_pages": pages.path}}
    if _begins_with(evidence, param, 0):
        paging["first"] = 0
    return paging, ""


def _begins_with(evidence: PagingSigns, param: str, number: int) -> bool:
    """Whether the first page or offset has this number: by default, minimum, example or words."""
    raw = evidence.raw(param)
    pattern, other = (_ZERO, _ONE) if number == 0 else (_ONE, _ZERO)
    if pattern.search(raw["description"]):
        return True
    if other.search(raw["description"]):
        return False
    values = (raw.get("default"), raw.get("minimum"), raw.get("example"))
    known = next((each for each in values if each is not None and not isinstance(each, bool)), None)
    return str(known) == str(number)


def _by_last_id(evidence: PagingSigns) -> Found:
    """A param after a record: its id, or the last id that the response names."""
    param = evidence.param(_LAST_IDS, lambda name: not evidence.is_of_time(name))
    if param is None:
        return None
    ending = _ending(evidence)
    last = evidence.member(("last_id",), lambda each: not each.is_number)
    of_record = node_of(evidence.shape.record.get("properties"))
    groups = path_names(evidence.operation.path).groups
    own = f"{singular(groups[-1][-1])}_id" if groups else "id"
    id_field = next((name for name in ("id", "_id", own, "uuid", "uid") if name in of_record), None)
    if id_field is None and last is not None and "has_more" in ending:
        meta = {"next_cursor": last.path, **ending["meta"]}
        return {"style": "cursor", "param": param, "next": "next_cursor", "has_more": "has_more", "meta": meta}, ""
    if id_field is None:
        return None
    named = {} if id_field == "id" else {"id_field": id_field}
    doubt = "" if ending else "the id of the last record is used as the cursor"
    return {"style": "last_id", "param": param, **named, **ending}, doubt


def _by_undeclared(evidence: PagingSigns) -> Found:
    """The undeclared param of the next page, if the member of the response has the name of a usual param."""
    following = [each for each in evidence.members if _is_next(each) and not each.is_number and each.type != "header"]
    chosen = next((each for each in following if "next" in "".join(each.names)), None)
    name = chosen.path.rpartition(".")[2] if chosen else ""
    is_usual = identifier(name) in _CURSORS and not identifier(name).startswith("next")
    if chosen is None or not is_usual or evidence.operation.method != "GET" or evidence.param(_LAST_IDS):
        return None
    schema = {"type": "string", "description": f"{chosen.path.removeprefix('@.')} of the page before"}
    param = evidence.parts.add(name, schema, where="query")
    reason = "the param of the next page is not declared; it gets the name of the member in the response"
    meta = {"next_cursor": chosen.path}
    return {"style": "cursor", "param": param, "next": "next_cursor", **_ending(evidence, meta)}, reason


def _unknown(evidence: PagingSigns) -> Paging | None:
    """The style of a list that looks paged: the param and the member that look like it, and what proves its end."""
    looking = (name for plain, name in evidence.names.items() if _LOOKS_PAGED.fullmatch(plain))
    param = next((name for name in looking if not evidence.is_of_time(name)), None) or evidence.param(_STRONG_SIZES)
    param = param or evidence.param(_SIZES, lambda name: _OF_SIZE.search(evidence.raw(name)["description"]) is not None)
    ending = _ending(evidence, counted=True)
    following = [each for each in evidence.members if _is_next(each) or each.type in ("links", "unnamed")]
    signs = [*following[:1], *(each for each in evidence.members if each.path in ending.get("meta", {}).values())]
    if param is None and not signs:
        return None
    meta = dict(ending.get("meta", {}))
    paging: Paging = {"style": "unknown", **({"param": param} if param else {}), **ending}
    if following or param is None:
        paging |= {"next": "next_page", "meta": {"next_page": signs[0].path, **meta}}
    return paging
