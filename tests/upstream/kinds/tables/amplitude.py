"""The cases of Amplitude: days in queries, one object in place of a list, annotations in two versions of the API."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Refused

DAYS = {"start": "20260101", "end": "20260131"}
LABEL = {"label": "Version 2", "start": "2026-01-31T09:00:00Z"}
COHORT = {"name": "Beta", "app_id": 5, "id_type": "BY_USER_ID", "ids": ["ada"], "owner": "a@b.cd", "published": True}
CALLS = [
    Call("annotations.list", {}, "/2/annotations"),
    Call("annotations.get", {"annotation_id": 7}, "/3/annotations/7"),
    Call("annotations.create", LABEL, "/3/annotations", method="POST", body=LABEL),
    Call("annotations.update", {"annotation_id": 7, "label": "V"}, "/3/annotations/7", method="PUT",
         body={"label": "V"}),
    Call("annotations.delete", {"annotation_id": 7}, "/3/annotations/7", method="DELETE"),
    Call("cohorts.list", {}, "/3/cohorts"),
    Call("cohorts.get", {"cohort_id": "c1"}, "/3/cohorts/c1"),
    Call("cohorts.upload", COHORT, "/3/cohorts/upload", method="POST", body=COHORT),
    Call("events_list.list", {}, "/2/events/list"),
    Call("active_users.list", DAYS, "/2/users", {**DAYS, "m": "active", "i": "1"}),
    Call("active_users.list", {**DAYS, "m": "new", "i": 7, "g": "country"}, "/2/users",
         {**DAYS, "m": "new", "i": "7", "g": "country"}),
    Call("average_session_length.list", DAYS, "/2/sessions/average", DAYS),
    Call("event_segmentation.list", {**DAYS, "e": {"event_type": "Play Song"}}, "/2/events/segmentation",
         {**DAYS, "e": '{"event_type":"Play Song"}', "m": "uniques", "i": "1"}),
    Call("users.api_search", {"user": "ada"}, "/2/usersearch", {"user": "ada"}),
    Call("users.activity", {"user": 7}, "/2/useractivity", {"user": "7", "limit": "100", "direction": "latest"}),
]  # fmt: skip
REFUSED = [
    Refused("active_users.list", {**DAYS, "i": 2}, "i", "allowed: 1, 7, 30"),
    Refused("active_users.list", {**DAYS, "start": "2026-01-01"}, "start", "such as 20260101"),
    Refused("event_segmentation.list", {"e": {}}, "e.event_type", "e.event_type is missing"),
    Refused("annotations.update", {"annotation_id": 7}, "", "at least 2 members"),
]
SERIES = {"series": [[12, 15]], "xValues": ["2026-01-01", "2026-01-02"]}
ANSWERS = [
    Answer("annotations.list", {"data": [{"id": 7}]}, [{"id": 7}], None),
    Answer("annotations.get", {"data": {"id": 7}}, {"id": 7}, None),
    Answer("cohorts.list", {"cohorts": [{"id": "c1"}]}, [{"id": "c1"}], None),
    Answer("active_users.list", {"data": SERIES}, [SERIES], None),
]
FAILURES = [
    Failure("cohorts.get", status, {"error": {"type": "said", "message": "It failed"}}, error, "said", "It failed",
            **more)
    for status, error, more in [
        (400, UpstreamRejected, {}),
        (401, ReauthorizationRequired, {}),
        (404, UpstreamNotFound, {}),
        (429, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, UpstreamError, {}),
    ]
]  # fmt: skip
KEYS = {"api_key": "ada", "secret_key": "secret"}
CASES = Cases(
    "amplitude",
    "https://amplitude.com/api",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(KEYS, "Basic YWRhOnNlY3JldA==")],
    check=("/api/2/annotations", {"data": []}),
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"api_key": "ada"}, "secret_key")],
)
