"""The cases of Klaviyo: JSON:API with cursors in links, filters, a revision."""

from functools import partial

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "01GDDKASAP8TKDDA2GRZDSVP4H"
CURSOR = {"page[cursor]": "c1"}
EMAIL = {"filter": "equals(messages.channel,'email')"}
SIZES = {"profiles": "20", "lists": "10", "flows": "20", "email_templates": "10"}
PATHS = {"email_templates": "/templates"}
ADA = {"email": "ada@example.com", "properties": {"tier": "gold"}}
METRIC = {"data": {"type": "metric", "attributes": {"name": "Placed order"}}}
PERSON = {"data": {"type": "profile", "attributes": {"email": "ada@example.com"}}}
write = partial(Call, content_type="application/vnd.api+json")
CALLS = [
    *(Call(f"{entity}.list", {}, PATHS.get(entity, f"/{entity}"), {"page[size]": size})
      for entity, size in SIZES.items()),
    *(Call(f"{entity}.get", {"id": ID}, f"{PATHS.get(entity, f'/{entity}')}/{ID}")
      for entity in (*SIZES, "campaigns", "metrics")),
    Call("profiles.list", {"page[size]": 100, "filter": 'equals(email,"a@b.c")', "sort": "-created", **CURSOR},
         "/profiles", {"page[size]": "100", "filter": 'equals(email,"a@b.c")', "sort": "-created", **CURSOR}),
    Call("campaigns.list", {}, "/campaigns", EMAIL),
    Call("campaigns.list", {**EMAIL, **CURSOR}, "/campaigns", {**EMAIL, **CURSOR}),
    Call("metrics.list", {}, "/metrics"),
    Call("events.list", {}, "/events", {"page[size]": "20", "sort": "-datetime"}),
    write("profiles.create", {"attributes": ADA}, "/profiles", method="POST",
         body={"data": {"type": "profile", "attributes": ADA}}),
    write("profiles.update", {"id": ID, "attributes": ADA}, f"/profiles/{ID}", method="PATCH",
         body={"data": {"type": "profile", "id": ID, "attributes": ADA}}),
    write("lists.create", {"name": "News"}, "/lists", method="POST",
         body={"data": {"type": "list", "attributes": {"name": "News"}}}),
    write("lists.add_profiles", {"id": "Y6nRLr", "profiles": [{"type": "profile", "id": ID}]},
         "/lists/Y6nRLr/relationships/profiles", method="POST", body={"data": [{"type": "profile", "id": ID}]}),
    write("events.create", {"metric": METRIC, "profile": PERSON, "properties": {"order": 1}, "value": 9.5,
                           "unique_id": "u"}, "/events", method="POST",
         body={"data": {"type": "event", "attributes": {"metric": METRIC, "profile": PERSON, "properties": {"order": 1},
                                                        "value": 9.5, "unique_id": "u"}}}),
]  # fmt: skip
REFUSED = [
    Refused("profiles.list", {"page[size]": 101}, "page[size]", "at most 100"),
    Refused("lists.list", {"page[size]": 11}, "page[size]", "at most 10"),
    Refused("lists.create", {}, "name", "name is missing"),
    Refused("events.create", {"metric": METRIC, "profile": PERSON}, "properties", "properties is missing"),
]
NEXT = "https://a.klaviyo.com/api/profiles?page%5Bcursor%5D=c1"
ANSWERS = [
    Answer("profiles.list", {"data": [{"id": ID}], "links": {"next": NEXT}}, [{"id": ID}], {"next": NEXT}),
    Answer("lists.list", {"data": [], "links": {"next": None}}, [], {"next": None}),
    Answer("profiles.get", {"data": {"id": ID, "type": "profile"}}, {"id": ID, "type": "profile"}, None),
]
FAILURES = [
    Failure("profiles.get", status, {"errors": [{"id": "e", "status": status, "code": code, "title": "Failed",
            "detail": "It failed", "source": {"pointer": "/data/"}}]}, error, code, "It failed", field="/data/", **more)
    for status, code, error, more in [
        (400, "invalid", UpstreamRejected, {}),
        (401, "not_authenticated", ReauthorizationRequired, {}),
        (403, "permission_denied", UpstreamRejected, {}),
        (404, "not_found", UpstreamNotFound, {}),
        (409, "duplicate_profile", UpstreamRejected, {}),
        (429, "throttled", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "error", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "profiles.list",
        {"page[size]": 1},
        [{"data": [{"id": "2"}], "links": {"next": NEXT}}, {"data": [{"id": "1"}], "links": {"next": None}}],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/api/profiles?page%5Bsize%5D=1", "/api/profiles?page%5Bsize%5D=1&page%5Bcursor%5D=c1"],
    ),
]
CASES = Cases(
    "klaviyo",
    "https://a.klaviyo.com/api",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "pk_t"}, "Klaviyo-API-Key pk_t")],
    check=("/api/profiles?page%5Bsize%5D=1", {"data": [], "links": {"next": None}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key")],
    headers={"revision": "2026-01-15"},
)
