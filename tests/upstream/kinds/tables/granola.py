"""The cases of Granola: notes and folders by cursors."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "not_1d3tmYTlCICgjy"
DATES = {"created_after": "2026-01-01", "created_before": "2026-02-01"}
CALLS = [
    Call("notes.list", {}, "/v1/notes", {"page_size": "10"}),
    Call("notes.list", {"page_size": 5, "cursor": "c1", **DATES}, "/v1/notes",
         {"page_size": "5", "cursor": "c1", **DATES}),
    Call("notes.list", {"updated_after": "2026-01-01T00:00:00Z", "folder_id": "fol_1"}, "/v1/notes",
         {"page_size": "10", "updated_after": "2026-01-01T00:00:00Z", "folder_id": "fol_1"}),
    Call("notes.get", {"note_id": ID}, f"/v1/notes/{ID}"),
    Call("notes.get", {"note_id": ID, "include": "transcript"}, f"/v1/notes/{ID}", {"include": "transcript"}),
    Call("folders.list", {}, "/v1/folders", {"page_size": "30"}),
]  # fmt: skip
REFUSED = [
    Refused("notes.list", {"page_size": 31}, "page_size", "at most 30"),
    Refused("notes.list", {"created_after": "yesterday"}, "created_after", "must match"),
    Refused("notes.get", {"note_id": ID, "include": "audio"}, "include", "transcript"),
]
MORE, LAST = {"hasMore": True, "cursor": "c1"}, {"hasMore": False, "cursor": None}
ANSWERS = [
    Answer("notes.list", {"notes": [{"id": ID}], **MORE}, [{"id": ID}], {"cursor": "c1", "has_more": True}),
    Answer("notes.get", {"id": ID, "title": "Budget"}, {"id": ID, "title": "Budget"}, None),
]
FAILURES = [
    Failure("notes.get", status, {"code": code, "message": "It failed"}, error, code, "It failed", **more)
    for status, code, error, more in [
        (400, "bad_request", UpstreamRejected, {}),
        (401, "unauthorized", ReauthorizationRequired, {}),
        (404, "not_found", UpstreamNotFound, {}),
        (429, "rate_limited", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "internal", UpstreamError, {}),
    ]
]
PAGES = [
    Pages(
        "notes.list",
        {"page_size": 1},
        [{"notes": [{"id": "2"}], **MORE}, {"notes": [{"id": "1"}], **LAST}],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/v1/notes?page_size=1", "/v1/notes?page_size=1&cursor=c1"],
    ),
]
CASES = Cases(
    "granola",
    "https://public-api.granola.ai",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "t"}, "Bearer t")],
    check=("/v1/notes?page_size=1", {"notes": [], **LAST}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key")],
)
