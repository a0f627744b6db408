"""The named rules that specs refer to: oddities of one application that data cannot say.

A rule is pure. It may change the params before they are placed, the request before it is sent,
and the records that come back.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from yarl import URL

from gateway.connectors.catalog import Operation
from gateway.connectors.requests import UpstreamRequest
from gateway.connectors.responses import Answer

Params = dict[str, Any]

#: records of a query without a LIMIT of its own (product document 2, crm-query rule 1)
_DEFAULT_LIMIT = 200


def _same_params(operation: Operation, params: Params) -> Params:
    return params


def _same_request(operation: Operation, params: Mapping[str, Any], request: UpstreamRequest) -> UpstreamRequest:
    return request


def _same_answer(operation: Operation, answer: Answer) -> Answer:
    return answer


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rule does at each of its three moments; by default nothing."""

    params: Callable[[Operation, Params], Params] = _same_params
    request: Callable[[Operation, Mapping[str, Any], UpstreamRequest], UpstreamRequest] = _same_request
    answer: Callable[[Operation, Answer], Answer] = _same_answer


def _with_upstream_names(operation: Operation, params: Params) -> Params:
    """Property names of ours into the application's, wherever a param names properties."""
    names = operation.spec.property_names
    changed = dict(params)
    for name in ("properties", "propertiesWithHistory"):
        if name in params:
            changed[name] = _renamed_list(params[name], names)
    if "idProperty" in params:
        changed["idProperty"] = names.get(params["idProperty"], params["idProperty"])
    if "sorts" in params:
        changed["sorts"] = [_renamed_property(sort, names) for sort in params["sorts"]]
    if "filterGroups" in params:
        changed["filterGroups"] = [_renamed_filters(group, names) for group in params["filterGroups"]]
    return changed


def _renamed_list(value: str | list[str], names: Mapping[str, str]) -> str | list[str]:
    if isinstance(value, str):
        return ",".join(names.get(name.strip(), name.strip()) for name in value.split(","))
    return [names.get(name, name) for name in value]


def _renamed_property(entry: Params, names: Mapping[str, str]) -> Params:
    name = entry.get("propertyName")
    return {**entry, "propertyName": names.get(name, name)} if isinstance(name, str) else entry


def _renamed_filters(group: Params, names: Mapping[str, str]) -> Params:
    return {**group, "filters": [_renamed_property(entry, names) for entry in group.get("filters", [])]}


def _with_our_names(operation: Operation, answer: Answer) -> Answer:
    """The application's property names into ours, in every record's property maps."""
    ours = {theirs: name for name, theirs in operation.spec.property_names.items()}
    decoded = answer.decoded()
    if isinstance(decoded, list):
        renamed: Any = [_renamed_record(record, ours) for record in decoded]
    else:
        renamed = _renamed_record(decoded, ours)
    return replace(answer, result=msgspec.Raw(msgspec.json.encode(renamed)))


def _renamed_record(record: Any, ours: Mapping[str, str]) -> Any:
    if not isinstance(record, dict):
        return record
    return {
        name: {ours.get(key, key): value for key, value in member.items()}
        if name in ("properties", "propertiesWithHistory") and isinstance(member, dict)
        else member
        for name, member in record.items()
    }


def _with_limit(operation: Operation, params: Params) -> Params:
    """A query without a LIMIT of its own asks for the documented 200 records."""
    query = params.get("q")
    if not isinstance(query, str) or has_outer_limit(query):
        return params
    return {**params, "q": f"{query.rstrip().rstrip(';')} LIMIT {_DEFAULT_LIMIT}"}


def has_outer_limit(query: str) -> bool:
    """Whether the query itself has a LIMIT; those in strings and sub-queries do not count."""
    depth, outer = 0, []
    for piece in re.findall(r"'(?:\\.|[^'\\])*'|[()]|[^'()]+", query, flags=re.DOTALL):
        depth += (piece == "(") - (piece == ")")
        if depth == 0 and piece[0] not in "'()":
            outer.append(piece)
    return re.search(r"\blimit\s+[\d:]", " ".join(outer), flags=re.IGNORECASE) is not None


def _next_page(operation: Operation, params: Mapping[str, Any], request: UpstreamRequest) -> UpstreamRequest:
    """`nextRecordsUrl` of the last page is the request; the spec's pattern lets only query paths through."""
    path = params.get("nextRecordsUrl")
    if path is None:
        return request
    return replace(request, url=URL(f"{request.url.origin()}{path}", encoded=True))


#: every rule by the name that specs use
RULES: Mapping[str, Rule] = {
    "property_names": Rule(params=_with_upstream_names, answer=_with_our_names),
    "query_page": Rule(request=_next_page),
    "query_page_of_200": Rule(params=_with_limit, request=_next_page),
}
