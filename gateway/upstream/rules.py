"""The named rules that specs refer to: behaviour of one application that a spec cannot describe as data.

Packages bring further ones by entry point (`gateway.kinds.rule_names`).

A rule is pure. It may change the params before they are placed, the request before it is sent,
and the records that come back.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace
from yarl import URL

from gateway.errors import FieldError, InternalError, InvalidParams, UpstreamInvalidResponse
from gateway.kinds.catalog import Operation
from gateway.kinds.rule_names import RULE_NAMES, package_rules
from gateway.upstream.property_names import with_our_names, with_their_names
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import OperationResult
from gateway.upstream.sql_statements import fault_of

Params = dict[str, Any]

#: records of a query without LIMIT (product document 2, crm-query rule 1)
_DEFAULT_LIMIT = 200
#: a query's strings (one left open goes to the end), its parentheses, and what is between them
_QUERY_TOKENS = re.compile(r"'(?:\\.|[^'\\])*'?|[()]|[^'()]+", re.DOTALL)
#: the clauses of a query that come after LIMIT
_AFTER_LIMIT = re.compile(
    r"\b(?:offset\s+[\d:]|for\s+(?:view|reference|update)\b|update\s+(?:tracking|viewstat)\b|all\s+rows\b)|;",
    re.IGNORECASE,
)
#: characters of a URL beyond which Airtable's own library sends a list by POST, and the members that stay in the query
#: then: https://github.com/Airtable/airtable.js. The application refuses URLs of more than 16,000
_LONGEST_URL, _KEPT_IN_QUERY = 15_000, ("timeZone", "userLocale")
#: the path of a query's next page: a locator and, after a hyphen, where in the result it stands
_NEXT_PAGE = re.compile(r"/services/data/v[0-9]+\.[0-9]+/query(All)?/[A-Za-z0-9-]+")


#: filters of Shopify's REST API as conditions of its search query
_CONDITIONS = {
    "since_id": "id:>{}",
    "created_at_min": "created_at:>='{}'",
    "created_at_max": "created_at:<='{}'",
    "updated_at_min": "updated_at:>='{}'",
    "updated_at_max": "updated_at:<='{}'",
    "status": "status:{}",
    "product_type": 'product_type:"{}"',
    "vendor": 'vendor:"{}"',
    "collection_id": "collection_id:{}",
    "product_id": "product_id:{}",
}


def _same_params(operation: Operation, params: Params) -> Params:
    return params


def _same_request(operation: Operation, params: Mapping[str, Any], request: UpstreamRequest) -> UpstreamRequest:
    return request


def _same_answer(operation: Operation, answer: OperationResult) -> OperationResult:
    return answer


@dataclass(frozen=True, slots=True)
class Rule:
    """The three hooks of a rule; by default each does nothing."""

    params: Callable[[Operation, Params], Params] = _same_params
    request: Callable[[Operation, Mapping[str, Any], UpstreamRequest], UpstreamRequest] = _same_request
    answer: Callable[[Operation, OperationResult], OperationResult] = _same_answer


NO_RULE = Rule()


def _with_limit(operation: Operation, params: Params) -> Params:
    """A query without LIMIT asks for the documented 200 records."""
    query = params.get("q")
    if not isinstance(query, str) or has_outer_limit(query) or is_one_row(query):
        return params
    later = _AFTER_LIMIT.search(_outer(query))
    position = later.start() if later else len(query)
    parts = (query[:position].rstrip(), f"LIMIT {_DEFAULT_LIMIT}", query[position:].rstrip())
    return {**params, "q": " ".join(part for part in parts if part)}


def _with_conditions(operation: Operation, params: Params) -> Params:
    """The filters are conditions of `query`, in addition to those of the caller."""
    conditions = [
        condition.format(re.sub(r"([\"'\\])", r"\\\1", str(params[name])))
        for name, condition in _CONDITIONS.items()
        if params.get(name) is not None
    ]
    if params.get("query"):
        conditions.append(f"({params['query']})" if conditions else params["query"])
    return {**params, "query": " AND ".join(conditions)} if conditions else params


def has_outer_limit(query: str) -> bool:
    """Whether the query itself has a LIMIT; those in strings and sub-queries do not count."""
    return re.search(r"\blimit\s+[\d:]", _outer(query), flags=re.IGNORECASE) is not None


def is_one_row(query: str) -> bool:
    """Whether the query adds up all rows into one; such a query may have no LIMIT."""
    clauses = re.match(r"\s*select\b(.*?)\bfrom\b(.*)", _outer(query), flags=re.IGNORECASE | re.DOTALL)
    if clauses is None or re.search(r"\bgroup\s+by\b", clauses[2], flags=re.IGNORECASE):
        return False
    return re.search(r"\b(count|count_distinct|sum|avg|min|max)\s*\(", clauses[1], flags=re.IGNORECASE) is not None


def _outer(query: str) -> str:
    """The query with strings and parentheses blanked out; all other characters keep their positions."""
    shown, depth = [], 0
    for token in _QUERY_TOKENS.findall(query):
        depth -= token == ")"
        shown.append(token if depth == 0 and token[0] != "'" else "'" * len(token))
        depth += token == "("
    return "".join(shown)


def _next_page(operation: Operation, params: Mapping[str, Any], request: UpstreamRequest) -> UpstreamRequest:
    """Replace the request's path by the previous page's `nextRecordsUrl`; rejects any path but that of a query."""
    path = params.get("nextRecordsUrl")
    if path is None:
        return request
    if not _NEXT_PAGE.fullmatch(path):
        raise UpstreamInvalidResponse(f"{operation}: the next page's address is not the path of a query")
    return replace(request, url=URL(f"{request.url.origin()}{path}", encoded=True))


def _by_post_if_long(operation: Operation, params: Mapping[str, Any], request: UpstreamRequest) -> UpstreamRequest:
    """Send a list whose URL is too long as `POST …/listRecords`, the members of its query as the body."""
    if len(str(request.url)) <= _LONGEST_URL:
        return request
    in_query = [each for each in operation.placements if each.where == "query" and each.name in params]
    placed = {each.wire: params[each.name] for each in in_query}
    kept = {name: placed.pop(name) for name in _KEPT_IN_QUERY if name in placed}
    # The application's names of lists end with brackets in the query alone.
    body = msgspec.json.encode({name.removesuffix("[]"): value for name, value in placed.items()})
    url = URL(f"{request.url.origin()}{request.url.raw_path}/listRecords", encoded=True).with_query(kept)
    return replace(
        request, method="POST", url=url, headers={**request.headers, "Content-Type": "application/json"}, body=body
    )


def _with_one_statement(operation: Operation, params: Params) -> Params:
    """The same params; raises InvalidParams if `statement` does more than its first word says."""
    statement = params.get("statement")
    fault = fault_of(statement) if isinstance(statement, str) else None
    if fault is not None:
        raise InvalidParams(faults=[FieldError("/params/statement", "statement", "pattern", f"statement {fault}")])
    return params


def _of_resource_names(operation: Operation, answer: OperationResult) -> OperationResult:
    """Records in place of the names of accounts, such as `customers/1234567890`."""
    records = [
        {"customer_id": each.rpartition("/")[2], "resource_name": each} if isinstance(each, str) else each
        for each in answer.decoded()
    ]
    return replace(answer, result=msgspec.Raw(msgspec.json.encode(records)))


#: every rule by the name that specs use
RULES: Mapping[str, Rule] = {
    "list_records": Rule(request=_by_post_if_long),
    "one_statement": Rule(params=_with_one_statement),
    "property_names": Rule(params=with_their_names, answer=with_our_names),
    "query_page": Rule(request=_next_page),
    "query_page_of_200": Rule(params=_with_limit, request=_next_page),
    "resource_names": Rule(answer=_of_resource_names),
    "search_conditions": Rule(params=_with_conditions),
}


@cache
def rule_named(name: str | None) -> Rule:
    """The rule that a spec names, of the gateway or an installed package; rules of long operations do nothing here.

    Raises InternalError for a name without a rule: the call would not do what its spec says.
    """
    if name is None:
        return NO_RULE
    added = package_rules().get(name)
    if added is None and name not in RULE_NAMES:
        raise InternalError(f"there is no rule {name}; install the package that has it")
    rule = added.load() if added is not None else RULES.get(name)
    return rule if isinstance(rule, Rule) else NO_RULE
