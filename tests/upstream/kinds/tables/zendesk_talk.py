"""The cases of Zendesk Talk: lists by page numbers, exports of changes, statistics of one object."""

from base64 import b64encode

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

AT = "https://acme.zendesk.com/api/v2/channels/voice"
API_TOKEN = {"email": "ada@example.com", "api_token": "secret"}
#: lists with records of their own: the path, and the param of get with a value
LISTS = {
    "phone_numbers": ("phone_numbers", "phone_number_id", 7),
    "addresses": ("addresses", "address_id", 7),
    "greetings": ("greetings", "greeting_id", "7"),
    "greeting_categories": ("greeting_categories", "greeting_category_id", 7),
    "ivrs": ("ivr", "ivr_id", 7),
}
STATISTICS = ("agents_activity", "agents_overview", "account_overview", "current_queue_activity")
CALLS = [
    *(Call(f"{entity}.list", {}, f"/{path}") for entity, (path, _, _) in LISTS.items()),
    *(Call(f"{entity}.list", {"page": 2}, f"/{path}", {"page": "2"}) for entity, (path, _, _) in LISTS.items()),
    *(Call(f"{entity}.get", {name: value}, f"/{path}/7") for entity, (path, name, value) in LISTS.items()),
    *(Call(f"{entity}.list", {}, f"/stats/{entity}") for entity in STATISTICS),
    Call("calls.list", {"start_time": 1}, "/stats/incremental/calls", {"start_time": "1"}),
    Call("call_legs.list", {"start_time": 1}, "/stats/incremental/legs", {"start_time": "1"}),
    Call("availabilities.get", {"agent_id": 7}, "/availabilities/7"),
    Call("availabilities.update", {"agent_id": 7, "agent_state": "away", "via": "client"}, "/availabilities/7",
         method="PUT", body={"availability": {"agent_state": "away", "via": "client"}}),
]  # fmt: skip
REFUSED = [
    Refused("calls.list", {}, "start_time", "start_time is missing"),
    Refused("phone_numbers.list", {"page": 0}, "page", "at least 1"),
    Refused("availabilities.update", {"agent_id": 7, "agent_state": "busy"}, "agent_state", "transfers_only"),
]
NEXT = f"{AT}/stats/incremental/calls?start_time=9"
ANSWERS = [
    Answer("phone_numbers.list", {"phone_numbers": [{"id": 7}], "next_page": None}, [{"id": 7}], {"next_page": None}),
    Answer("phone_numbers.get", {"phone_number": {"id": 7}}, {"id": 7}, None),
    Answer("ivrs.get", {"ivr": {"id": 7, "menus": []}}, {"id": 7, "menus": []}, None),
    Answer("calls.list", {"calls": [{"id": 7}], "next_page": NEXT, "count": 1}, [{"id": 7}],
           {"next_page": NEXT, "count": 1}),
    Answer("current_queue_activity.list", {"current_queue_activity": {"calls_waiting": 2}},
           [{"statistic": "current_queue_activity", "calls_waiting": 2}], None),
    Answer("availabilities.get", {"availability": {"agent_state": "away"}}, {"agent_state": "away"}, None),
]  # fmt: skip
FAILURES = [
    Failure("phone_numbers.get", status, {"error": code, "description": "It failed"}, error, code, "It failed", **more)
    for status, code, error, more in [
        (400, "InvalidValue", UpstreamRejected, {}),
        (401, "invalid_token", ReauthorizationRequired, {}),
        (403, "Forbidden", UpstreamRejected, {}),
        (404, "RecordNotFound", UpstreamNotFound, {}),
        (429, "APIRateLimitExceeded", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "InternalError", UpstreamError, {}),
    ]
]
PAGES = [
    Pages(
        "phone_numbers.list",
        {},
        [
            {"phone_numbers": [{"id": 2}], "next_page": f"{AT}/phone_numbers?page=2"},
            {"phone_numbers": [{"id": 1}], "next_page": None},
        ],
        [[{"id": 2}], [{"id": 1}]],
        ["/api/v2/channels/voice/phone_numbers", "/api/v2/channels/voice/phone_numbers?page=2"],
    ),
    Pages(
        "calls.list",
        {"start_time": 1},
        [
            {"calls": [{"id": 1}], "next_page": NEXT, "count": 1},
            {"calls": [], "next_page": None, "count": 0},
        ],
        [[{"id": 1}], []],
        [
            "/api/v2/channels/voice/stats/incremental/calls?start_time=1",
            "/api/v2/channels/voice/stats/incremental/calls?start_time=9",
        ],
    ),
]
CASES = Cases(
    "zendesk-talk",
    AT,
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        (API_TOKEN, f"Basic {b64encode(b'ada@example.com/token:secret').decode()}"),
        ({"access_token": "t"}, "Bearer t"),
    ],
    check=("/api/v2/channels/voice/phone_numbers", {"phone_numbers": [], "next_page": None}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"email": "ada@example.com"}, "api_token")],
    environment={"subdomain": "acme"},
)
