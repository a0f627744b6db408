"""The cases of Exa: searches by POST, without pages."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Refused

SINCE = "2026-02-01T00:00:00Z"
PAGE = "https://arxiv.org/abs/2307.06435"
SEARCH = {"type": "auto", "numResults": 10, "moderation": False}
FILTERS = {
    "numResults": 5,
    "includeDomains": ["arxiv.org"],
    "excludeDomains": ["example.com"],
    "startPublishedDate": SINCE,
    "endPublishedDate": SINCE,
    "startCrawlDate": SINCE,
    "endCrawlDate": SINCE,
    "contents": {"text": {"maxCharacters": 1000}, "highlights": True, "summary": {"query": "What is new?"}},
}
DEEP = {"query": "batteries", "type": "deep", "category": "news", "moderation": True, **FILTERS}
LIKE = {"url": PAGE, **FILTERS}
READ = {"urls": [PAGE], "text": True, "highlights": {"query": "q"}, "summary": {}}
CALLS = [
    Call("search_results.list", {"query": "x"}, "/search", method="POST", body={"query": "x", **SEARCH}),
    Call("search_results.list", DEEP, "/search", method="POST", body=DEEP),
    Call("similar_results.list", {"url": PAGE}, "/findSimilar", method="POST", body={"url": PAGE, "numResults": 10}),
    Call("similar_results.list", LIKE, "/findSimilar", method="POST", body=LIKE),
    Call("contents.list", {"urls": [PAGE]}, "/contents", method="POST", body={"urls": [PAGE]}),
    Call("contents.list", READ, "/contents", method="POST", body=READ),
]
REFUSED = [
    Refused("search_results.list", {"query": "x", "numResults": 101}, "numResults", "at most 100"),
    Refused("search_results.list", {}, "query", "query is missing"),
    Refused("contents.list", {"urls": []}, "urls", "at least 1"),
    Refused("similar_results.list", {"url": PAGE, "startCrawlDate": "yesterday"}, "startCrawlDate", "date-time"),
]
RESULT = {"id": PAGE, "url": PAGE, "title": "A paper"}
ANSWERS = [
    Answer("search_results.list", {"requestId": "r", "results": [RESULT]}, [RESULT], None),
    Answer("contents.list", {"results": [], "statuses": [{"id": PAGE, "status": "error"}]}, [], None),
]
FAILURES = [
    Failure("search_results.list", status, {"requestId": "r1", "error": "It failed", "tag": tag}, error, tag,
            "It failed", "r1", **more)
    for status, tag, error, more in [
        (400, "INVALID_REQUEST_BODY", UpstreamRejected, {}),
        (401, "INVALID_API_KEY", ReauthorizationRequired, {}),
        (402, "NO_MORE_CREDITS", UpstreamRejected, {}),
        (403, "ACCESS_DENIED", UpstreamRejected, {}),
        (429, "RATE_LIMIT", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "INTERNAL_ERROR", UpstreamError, {}),
    ]
]  # fmt: skip
CASES = Cases(
    "exa",
    "https://api.exa.ai",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "t"}, "t")],
    check=("/contents", {"results": []}),
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key")],
)
