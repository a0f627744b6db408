"""The cases of incident management."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "01FCNDV6P870EA6S7TK1DSYDG0"

#: entity, path, the member that holds one record, records on a page at most (0: all in one answer)
RESOURCES = [
    ("incidents", "/v2/incidents", "incident", 250),
    ("alerts", "/v2/alerts", "alert", 50),
    ("escalations", "/v2/escalations", "escalation", 50),
    ("users", "/v2/users", "user", 10_000),
    ("incident_updates", "/v2/incident_updates", None, 250),
    ("incident_roles", "/v2/incident_roles", "incident_role", 0),
    ("incident_statuses", "/v1/incident_statuses", "incident_status", 0),
    ("incident_timestamps", "/v2/incident_timestamps", "incident_timestamp", 0),
    ("severities", "/v1/severities", "severity", 0),
    ("custom_fields", "/v2/custom_fields", "custom_field", 0),
    ("catalog_types", "/v3/catalog_types", "catalog_type", 0),
    ("schedules", "/v2/schedules", "schedule", 10_000),
    ("teams", "/v3/teams", "team", 250),
]

PAGED = [(entity, path, maximum) for entity, path, _, maximum in RESOURCES if maximum]
UNPAGED = [(entity, path) for entity, path, _, maximum in RESOURCES if not maximum]
SINGLE = [(entity, path, member) for entity, path, member, _ in RESOURCES if member]

#: what the application leaves out of a list unless it is asked for it
MODES = [("mode[one_of]", mode) for mode in ("standard", "retrospective", "test", "tutorial")]
WHOLE = {"incidents": MODES, "users": [("include_inactive", "true")]}

MODES_ON_THE_WIRE = (
    "mode%5Bone_of%5D=standard&mode%5Bone_of%5D=retrospective&mode%5Bone_of%5D=test&mode%5Bone_of%5D=tutorial"
)

CALLS = [
    *(Call(f"{entity}.list", {}, path, [*WHOLE.get(entity, []), ("page_size", "25")]) for entity, path, _ in PAGED),
    *(
        Call(
            f"{entity}.list",
            {"limit": maximum, "after": ID},
            path,
            [*WHOLE.get(entity, []), ("page_size", str(maximum)), ("after", ID)],
        )
        for entity, path, maximum in PAGED
    ),
    *(Call(f"{entity}.list", {"limit": 5}, path) for entity, path in UNPAGED),
    *(Call(f"{entity}.get", {"id": ID}, f"{path}/{ID}") for entity, path, _ in SINGLE),
]
REFUSED = [
    Refused("incidents.list", {"page_size": 251}, "page_size", "at most 250"),
    Refused("alerts.list", {"limit": 51}, "page_size", "at most 50"),
    Refused("escalations.list", {"page_size": 0}, "page_size", "at least 1"),
    Refused("severities.list", {"page_size": 5}, "page_size", "page_size is not a param"),
    Refused("severities.list", {"limit": 0}, "limit", "at least 1"),
    Refused("incidents.list", {"status": "closed"}, "status", "status is not a param"),
    Refused("incidents.get", {}, "id", "id is missing"),
    Refused("incidents.get", {"id": 4711}, "id", "expected string"),
]
#: a record is a member of its answer, and records are a member named like the entity
ANSWERS = [
    *(
        Answer(f"{entity}.get", {member: {"id": ID, "name": None}}, {"id": ID, "name": None}, None)
        for entity, _, member in SINGLE
    ),
    *(Answer(f"{entity}.list", {entity: [{"id": ID}]}, [{"id": ID}], {"next_cursor": None}) for entity, _, _ in PAGED),
    *(Answer(f"{entity}.list", {entity: [{"id": ID}]}, [{"id": ID}], None) for entity, _ in UNPAGED),
    Answer(
        "incidents.list",
        {"incidents": [], "pagination_meta": {"after": "01B", "page_size": 25, "total_record_count": 40}},
        [],
        {"next_cursor": "01B"},
    ),
    Answer("incidents.list", {"incidents": [], "pagination_meta": {"page_size": 25}}, [], {"next_cursor": None}),
]
FAILURES = [
    Failure(
        "users.list",
        status,
        {
            "type": type_,
            "status": status,
            "request_id": "r1",
            "errors": [{"code": "invalid", "message": "page_size is odd", "source": {"pointer": "page_size"}}],
            "rate_limit": {"name": "api", "limit": 1200, "remaining": 0},
        },
        error,
        type_,
        "page_size is odd",
        "r1",
        "page_size",
        headers={"retry-after": "7"},
    )
    for status, type_, error in [
        (401, "authentication_error", ReauthorizationRequired),
        (402, "plan_error", UpstreamRejected),
        (403, "authorization_error", UpstreamRejected),
        (404, "not_found", UpstreamNotFound),
        (422, "validation_error", UpstreamRejected),
        (429, "rate_limit_exceeded", UpstreamRateLimited),
        (500, "internal_error", UpstreamError),
    ]
]
BAD_CREDENTIALS = [
    BadCredentials({}, "api_key", "needs the credentials of one method: api_key"),
    BadCredentials({"api_key": "k", "access_token": "t"}, "access_token", "access_token is not a credential"),
]
PAGES = [
    Pages(
        "incidents.list",
        {"page_size": 1},
        [
            {"incidents": [{"id": "01A"}], "pagination_meta": {"after": "01A", "page_size": 1}},
            {"incidents": [{"id": "01B"}], "pagination_meta": {"page_size": 1}},
        ],
        [[{"id": "01A"}], [{"id": "01B"}]],
        [
            f"/v2/incidents?{MODES_ON_THE_WIRE}&page_size=1",
            f"/v2/incidents?{MODES_ON_THE_WIRE}&page_size=1&after=01A",
        ],
    )
]
CASES = Cases(
    "incident-management",
    "https://api.incident.io",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "inc_1"}, "Bearer inc_1")],
    check=("/v2/users?include_inactive=true&page_size=1", {"users": [], "pagination_meta": {"page_size": 1}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=BAD_CREDENTIALS,
)
