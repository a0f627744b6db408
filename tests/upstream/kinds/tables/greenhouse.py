"""The cases of Greenhouse: cursors in links that stand alone in the query, lists of ids, bodies of JSON."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

PAGE = {"per_page": "100"}
SINCE = "gte|2026-01-01T00:00:00Z"
LISTS = ("candidates", "applications", "departments", "interviews", "job_posts", "jobs", "notes", "offers", "offices")
WITH_IDS = ("attachments", "sources")
DATED = ("candidates", "applications", "interviews", "job_posts", "jobs", "notes", "offers", "users", "attachments")
GOT = ("candidates", "applications", "interviews", "job_posts", "jobs", "offers", "users")
USERS = {"show_service_accounts": "true"}
EMAIL = [{"value": "ada@example.com", "type": "personal"}]
REJECTION = {"email_template_id": 3, "send_email_at": "2026-12-01T09:00:00Z"}
CURSOR = "sends the page size with a cursor, which the application refuses"
CALLS = [
    *(Call(f"{each}.list", {}, f"/{each}", PAGE) for each in (*LISTS, *WITH_IDS)),
    *(Call(f"{each}.list", {"ids": [1, 2]}, f"/{each}", {"ids": "1,2", **PAGE}) for each in (*LISTS, *WITH_IDS)),
    *(
        Call(f"{each}.list", {"updated_at": SINCE, "per_page": 5}, f"/{each}",
             {"updated_at": SINCE, "per_page": "5", **(USERS if each == "users" else {})})
        for each in DATED
    ),
    *(Call(f"{each}.get", {"id": 7}, f"/{each}", {"ids": "7"}) for each in GOT),
    Call("candidates.list", {"cursor": "c1"}, "/candidates", {"cursor": "c1"}, sdk_differs=CURSOR),
    Call("job_posts.list", {"active": True}, "/job_posts", {"active": "true", **PAGE}),
    Call("users.list", {"show_service_accounts": False}, "/users", {"show_service_accounts": "false", **PAGE}),
    Call("attachments.list", {"application_ids": [7], "candidate_ids": [8, 9], "type": "resume"}, "/attachments",
         {"application_ids": "7", "candidate_ids": "8,9", "type": "resume", **PAGE}),
    Call("attachments.download", {"ids": [301]}, "/attachments", {"ids": "301"}),
    Call("candidates.create", {"first_name": "Ada", "last_name": "L", "email_addresses": EMAIL,
                               "application": {"job_id": 42}}, "/candidates", method="POST",
         body={"first_name": "Ada", "last_name": "L", "email_addresses": EMAIL, "application": {"job_id": 42}}),
    Call("candidates.update", {"id": 7, "tags": ["vip"]}, "/candidates/7", method="PATCH", body={"tags": ["vip"]}),
    Call("candidates.delete", {"id": 7}, "/candidates/7", method="DELETE"),
    Call("applications.create", {"candidate_id": 7, "job_id": 42}, "/applications", method="POST",
         body={"candidate_id": 7, "job_id": 42}),
    Call("applications.update", {"id": 9, "recruiter_id": 4}, "/applications/9", method="PATCH",
         body={"recruiter_id": 4}),
    Call("applications.delete", {"id": 9}, "/applications/9", method="DELETE"),
    Call("applications.move", {"id": 9, "from_stage_id": 41}, "/applications/9/move", method="POST",
         body={"from_stage_id": 41}),
    Call("applications.reject", {"id": 9, "rejection_reason_id": 8, "rejection_email": REJECTION},
         "/applications/9/reject", method="POST", body={"rejection_reason_id": 8, "rejection_email": REJECTION}),
    Call("applications.unreject", {"id": 9}, "/applications/9/unreject", method="POST", body={}),
    Call("jobs.create", {"template_job_id": 42, "number_of_openings": 2, "office_ids": [1]}, "/jobs", method="POST",
         body={"template_job_id": 42, "number_of_openings": 2, "office_ids": [1]}),
    Call("offers.create", {"application_id": 9, "starts_on": "2026-12-01"}, "/offers", method="POST",
         body={"application_id": 9, "starts_on": "2026-12-01"}),
    Call("offers.update", {"id": 5, "starts_on": "2026-12-15"}, "/offers/5", method="PATCH",
         body={"starts_on": "2026-12-15"}),
    Call("notes.create", {"candidate_id": 7, "body": "Great"}, "/notes", method="POST",
         body={"candidate_id": 7, "body": "Great", "visibility": "public", "note_type": "NOTE"}),
]  # fmt: skip
REFUSED = [
    Refused("candidates.list", {"per_page": 501}, "per_page", "at most 500"),
    Refused("candidates.create", {"first_name": "Ada"}, "last_name", "last_name is missing"),
    Refused("candidates.update", {"id": 7}, "", "at least 2 members"),
    Refused("attachments.download", {"ids": [1, 2]}, "ids", "at most 1 items"),
    Refused("applications.reject", {"id": 9}, "rejection_reason_id", "rejection_reason_id is missing"),
]
ANSWERS = [
    Answer("candidates.list", [{"id": 7}], [{"id": 7}], {"next": None}),
    Answer("candidates.get", [{"id": 7}], {"id": 7}, None),
    Answer("candidates.create", {"candidate": {"id": 7}, "application": None}, {"id": 7}, None),
    Answer("applications.create", {"id": 9, "job_id": 42}, {"id": 9, "job_id": 42}, None),
]
FAILURES = [
    Failure("jobs.list", status, {"message": "It failed"}, error, None, "It failed", **more)
    for status, error, more in [
        (401, ReauthorizationRequired, {}),
        (403, UpstreamRejected, {}),
        (404, UpstreamNotFound, {}),
        (429, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, UpstreamError, {}),
    ]
] + [
    Failure("notes.create", 422, {"message": "Validation error", "errors": [{"message": "is empty", "field": "body"}]},
            UpstreamRejected, None, "Validation error; is empty", field="body"),
]  # fmt: skip
NEXT = '<https://harvest.greenhouse.io/v3/candidates?cursor=c1>; rel="next"'
PAGES = [
    Pages(
        "candidates.list",
        {"per_page": 1, "ids": [1, 2]},
        [[{"id": 2}], [{"id": 1}]],
        [[{"id": 2}], [{"id": 1}]],
        ["/v3/candidates?per_page=1&ids=1%2C2", "/v3/candidates?cursor=c1"],
        headers=[{"link": NEXT}, {}],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "greenhouse",
    "https://harvest.greenhouse.io/v3",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t")],
    check=("/v3/candidates?per_page=1", []),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
)
