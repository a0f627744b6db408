"""Recognizes the paging style of a list by params, members of the response and headers. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.spec_import.model import Finding, Node, SourceOperation, for_a_person, guessed
from gateway.spec_import.references import Document, node_of
from gateway.spec_import.requests import RequestParts
from gateway.spec_import.responses import Shape, flattened
from gateway.spec_import.words import identifier

#: names of params in snake case, the most certain first
_CURSORS = (
    "cursor", "page_token", "next_token", "pagetoken", "next_page_token", "page_cursor", "after", "starting_after",
    "start_cursor", "continuation_token", "continuation", "next_cursor", "bookmark", "marker", "scroll_id", "after_id",
    "next", "token", "since",
)  # fmt: skip
_PAGES = ("page", "page_number", "pagenumber", "page_no", "pageno", "page_index", "page_num", "p")
_OFFSETS = ("offset", "skip", "start", "start_at", "startat", "start_index", "from_index", "first_result")
_LAST_IDS = ("starting_after", "after_id", "last_id", "since_id")
_SIZES = (
    "per_page", "page_size", "pagesize", "limit", "perpage", "size", "max_results", "maxresults", "count", "page_limit",
    "first", "top", "max", "take", "results_per_page", "num",
)  # fmt: skip
#: the last members of paths in responses that name the next page, in snake case
_NEXT_CURSOR = re.compile(
    r"next|next_?(page)?_?(cursor|token|marker|key|id|page|after)|cursor|after|starting_after|end_cursor|page_token"
    r"|continuation_?token|bookmark|scroll_id|next_start"
)
_NEXT_URL = re.compile(r"next|next_?(page)?_?(url|uri|link|href)|next_page|href|url")
_HAS_MORE = ("has_more", "more", "has_next_page", "has_next", "hasmore", "is_truncated", "more_results", "incomplete")
_TOTAL = ("total", "total_count", "totalcount", "total_results", "total_records", "count")
#: levels of objects beside the list that are searched
_DEEPEST = 3

Paging = dict[str, Any]


def paging_of(
    operation: SourceOperation, parts: RequestParts, shape: Shape, document: Document
) -> tuple[Paging | None, list[Finding]]:
    """The paging style of a list, None if it has none; and the findings about it."""
    names = _by_plain_name(parts)
    size = _first(names, _SIZES)
    beside = dict(_members(document, shape.around))
    for recognize in (_by_link_header, _by_body, _by_offset, _by_page, _by_last_id, _by_hidden_link):
        found = recognize(names, beside, shape)
        if found is not None:
            paging, doubt = found
            if paging["style"] in ("page", "offset") and "next" not in paging and not _is_counted(parts, paging):
                paging, doubt = (
                    {"style": "unknown", "param": paging["param"]},
                    "a param that is no number is not counted",
                )
            _keep_default(operation, parts, size)
            if size is not None and size != paging["param"]:
                paging = {"style": paging["style"], "param": paging["param"], "size": size, **paging}
            paging = {**paging, "order": "unknown"}
            return paging, [guessed(operation, doubt, member="paging")] if doubt else []
    left = [names[name] for name in (*_CURSORS, *_PAGES) if name in names]
    if left and size is not None:
        reason = "a param looks like paging, but the response does not show how the next page is found"
        return None, [guessed(operation, reason, left[0], member="paging")]
    named = [path for path in beside if _is_next(path, _NEXT_CURSOR) and "next" in path.lower()]
    return _by_undeclared(operation, parts, named[0]) if named else (None, [])


def _is_counted(parts: RequestParts, paging: Paging) -> bool:
    """Whether the param of a counted style takes integers."""
    types = parts.params[paging["param"]].get("type", ())
    return "integer" in ([types] if isinstance(types, str) else types)


def _by_undeclared(operation: SourceOperation, parts: RequestParts, path: str) -> tuple[Paging | None, list[Finding]]:
    """Add the undeclared param of the next page, if the member of the response has the name of a usual param."""
    name = path.rpartition(".")[2]
    if identifier(name) not in _CURSORS or identifier(name).startswith("next") or operation.method != "GET":
        reason = "the response names a next page, but no param requests it"
        return None, [for_a_person(operation, reason, path, member="paging")]
    reason = "the param of the next page is not declared; it gets the name of the member in the response"
    param = parts.add(name, {"type": "string", "description": f"{path} of the page before"}, where="query")
    paging = {"style": "cursor", "param": param, "next": "next_cursor", "meta": {"next_cursor": _meta_path(path)}}
    paging |= {"order": "unknown"}
    return paging, [guessed(operation, reason, name, member="paging")]


def _keep_default(operation: SourceOperation, parts: RequestParts, size: str | None) -> None:
    """Keep the default of the page size, so that it is sent: with it the gateway recognizes a short page."""
    declared = {each["name"]: node_of(each.get("schema", each)) for each in operation.parameters}
    default = declared.get(parts.params[size].get("as", size), {}).get("default") if size is not None else None
    if size is not None and isinstance(default, int) and default > 0:
        parts.params[size] = {**parts.params[size], "default": default}


def _by_plain_name(parts: RequestParts) -> dict[str, str]:
    """Names of params by their plain names in snake case: `page[size]` has the plain name `page_size`."""
    found: dict[str, str] = {}
    for name, schema in parts.params.items():
        if f"{{{name}}}" not in parts.path and schema.get("in", "query") in ("query", "body"):
            found.setdefault(identifier(str(schema.get("as", name))), name)
    return found


def _members(document: Document, schema: Node, path: str = "", depth: int = _DEEPEST) -> Iterator[tuple[str, str]]:
    """The paths and types of the members beside a list; members of list items are left out."""
    for name, value in node_of(schema.get("properties")).items():
        member = flattened(document, value)
        if "." in str(name):
            continue
        types = member.get("type")
        listed = [types] if isinstance(types, str) else types or []
        if "object" in listed or "properties" in member:
            if depth > 1:
                yield from _members(document, member, f"{path}{name}.", depth - 1)
        elif "array" not in listed:
            yield f"{path}{name}", next((each for each in listed if each != "null"), "string")


Found = tuple[Paging, str] | None


def _first(names: Mapping[str, str], wanted: tuple[str, ...]) -> str | None:
    return next((names[each] for each in wanted if each in names), None)


def _by_link_header(names: Mapping[str, str], beside: Mapping[str, str], shape: Shape) -> Found:
    if "link" not in shape.headers:
        return None
    param = _first(names, (*_PAGES, *_CURSORS))
    if param is None:
        return None
    return {"style": "link", "param": param, "next": "next_url", "meta": {"next_url": "$link.next"}}, ""


def _by_body(names: Mapping[str, str], beside: Mapping[str, str], shape: Shape) -> Found:
    """A cursor or a URL in the body."""
    param = _first(names, _CURSORS)
    page = _first(names, _PAGES)
    cursors = [path for path, type_ in beside.items() if type_ != "boolean" and _is_next(path, _NEXT_CURSOR)]
    urls = [path for path in beside if _is_next(path, _NEXT_URL) and _is_url(path)]
    chosen = None if param is None else _nearest(cursors, param)
    if chosen is not None and chosen not in urls:
        ending = _ending(beside)
        meta = {"next_cursor": _meta_path(chosen), **ending.get("meta", {})}
        return {"style": "cursor", "param": param, "next": "next_cursor", **ending, "meta": meta}, ""
    if urls and (param or page):
        turned = param if param and identifier(param) != "since" else page or param
        paging = {"style": "link", "param": turned, "next": "next_url", "meta": {"next_url": _meta_path(urls[0])}}
        return paging, "" if turned == param else "the URL of the next page is assumed to have the page number"
    numbers = [path for path in cursors if beside[path] == "integer" and "page" in identifier(path)]
    if page is not None and numbers:
        return {"style": "page", "param": page, "next": "next_page", "meta": {"next_page": _meta_path(numbers[0])}}, ""
    return None


def _is_next(path: str, pattern: re.Pattern[str]) -> bool:
    """Whether a path names the next page: `next_cursor`, `paging.next.after`, `links.next.href`, `cursor`."""
    names = [identifier(part) for part in path.split(".")]
    if pattern.fullmatch(names[-1]) is None or any(re.match(r"prev|first|last|self", name) for name in names):
        return False
    return any(re.search(r"next|after|cursor|continuation|bookmark|scroll", name) for name in names)


def _is_url(path: str) -> bool:
    names = [identifier(part) for part in path.split(".")]
    return names[-1] in ("next", "next_page", "href", "url") or re.search(r"url|uri|link|href", names[-1]) is not None


def _nearest(paths: list[str], param: str) -> str | None:
    """The path that ends with the param's name, else one with `next`, else the first."""
    plain = identifier(param)
    ranked = sorted(
        paths,
        key=lambda path: (identifier(path.rpartition(".")[2]) != plain, "next" not in path.lower(), path.count(".")),
    )
    return ranked[0] if ranked else None


def _named(beside: Mapping[str, str], wanted: tuple[str, ...]) -> str | None:
    for name in wanted:
        for path in beside:
            if identifier(path.rpartition(".")[2]) == name:
                return path
    return None


def _meta_path(path: str | None) -> str:
    """The MetaPath of a member beside the list of records."""
    return f"@.{path}"


def _ending(beside: Mapping[str, str]) -> Paging:
    """The paging's parts for the member that says whether there is a next page; empty without such a member."""
    more = _named(beside, _HAS_MORE)
    return {"has_more": "has_more", "meta": {"has_more": _meta_path(more)}} if more else {}


def _by_offset(names: Mapping[str, str], beside: Mapping[str, str], shape: Shape) -> Found:
    param = _first(names, _OFFSETS)
    if param is None or _first(names, _SIZES) is None:
        return None
    ending, total = _ending(beside), _named(beside, _TOTAL)
    is_counted = total and beside[total] in ("integer", "number") and identifier(total.rpartition(".")[2]) != "count"
    if not ending and is_counted:
        ending = {"total": "total", "meta": {"total": _meta_path(total)}}
    return {"style": "offset", "param": param, **ending}, ""


def _by_page(names: Mapping[str, str], beside: Mapping[str, str], shape: Shape) -> Found:
    param = _first(names, _PAGES)
    if param is None:
        return None
    return {"style": "page", "param": param, **_ending(beside)}, ""


def _by_last_id(names: Mapping[str, str], beside: Mapping[str, str], shape: Shape) -> Found:
    param = _first(names, _LAST_IDS)
    if param is None or "id" not in node_of(shape.record.get("properties")):
        return None
    ending = _ending(beside)
    doubt = "" if ending else "the id of the last record is used as the cursor"
    return {"style": "last_id", "param": param, **ending}, doubt


def _by_hidden_link(names: Mapping[str, str], beside: Mapping[str, str], shape: Shape) -> Found:
    """The response is only a list, but there is a cursor param: the next page must be in an undeclared header."""
    param = _first(names, ("cursor", "after"))
    if shape.path != "$" or param is None:
        return None
    meta = {"next_url": "$link.next", "has_more": "$link.next.results"}
    paging = {"style": "link", "param": param, "next": "next_url", "has_more": "has_more", "meta": meta}
    return paging, "the next page is expected in a Link header that the document does not declare"
