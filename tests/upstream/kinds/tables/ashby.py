"""The cases of Ashby: every request is a POST, and an error may have status 200."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "0f3b9c5e-6d0c-4c5b-9a53-3a55b4a1d9f1"
#: entity → the application's name of it
LISTS = {
    "candidates": "candidate",
    "applications": "application",
    "jobs": "job",
    "departments": "department",
    "locations": "location",
    "users": "user",
    "job_postings": "jobPosting",
    "sources": "source",
    "archive_reasons": "archiveReason",
    "candidate_tags": "candidateTag",
    "custom_fields": "customField",
    "feedback_form_definitions": "feedbackFormDefinition",
}
#: entity → the param of get
IDS = {
    "candidates": "id",
    "applications": "applicationId",
    "jobs": "id",
    "departments": "departmentId",
    "locations": "locationId",
    "users": "userId",
    "job_postings": "jobPostingId",
}
ARCHIVED = ("departments", "locations", "sources", "archive_reasons", "candidate_tags", "custom_fields",
            "feedback_form_definitions")  # fmt: skip


def sent(action: str, path: str, **body: object) -> Call:
    return Call(action, body, path, method="POST", body=body)


CALLS = [
    *(Call(f"{entity}.list", {}, f"/{name}.list", method="POST", body={"limit": 100})
      for entity, name in LISTS.items()),
    *(sent(f"{entity}.list", f"/{name}.list", cursor="c1", limit=5) for entity, name in LISTS.items()),
    *(sent(f"{entity}.get", f"/{LISTS[entity]}.info", **{name: ID}) for entity, name in IDS.items()),
    *(sent(f"{entity}.list", f"/{LISTS[entity]}.list", limit=5, includeArchived=True) for entity in ARCHIVED),
    sent("candidates.list", "/candidate.list", limit=5, createdAfter=1767225600000),
    sent("candidates.api_search", "/candidate.search", email="ada@example.com"),
    sent("candidates.create", "/candidate.create", name="Ada Lovelace", email="ada@example.com"),
    sent("candidates.update", "/candidate.update", candidateId=ID, phoneNumber="+15005550006"),
    sent("candidates.add_tag", "/candidate.addTag", candidateId=ID, tagId="t1"),
    sent("candidate_notes.list", "/candidate.listNotes", candidateId=ID, limit=5),
    sent("candidate_notes.create", "/candidate.createNote", candidateId=ID, note="Called.", sendNotifications=False),
    sent("applications.list", "/application.list", limit=5, status="Active", jobId="j1"),
    sent("applications.create", "/application.create", candidateId=ID, jobId="j1", sourceId="s1"),
    sent("applications.change_stage", "/application.changeStage", applicationId=ID, interviewStageId="i1",
         archiveReasonId="r1"),
    sent("jobs.list", "/job.list", limit=5, status=["Open", "Draft"]),
    sent("users.list", "/user.list", limit=5, includeDeactivated=True),
]  # fmt: skip
REFUSED = [
    Refused("candidates.list", {"limit": 101}, "limit", "at most 100"),
    Refused("candidates.create", {"email": "ada@example.com"}, "name", "name is missing"),
    Refused("applications.list", {"status": "Rejected"}, "status", "Archived"),
    Refused("applications.change_stage", {"applicationId": ID}, "interviewStageId", "interviewStageId is missing"),
]
MORE = {"success": True, "moreDataAvailable": True, "nextCursor": "c1"}
LAST = {"success": True, "moreDataAvailable": False}
ANSWERS = [
    Answer("jobs.list", {**MORE, "results": [{"id": ID}]}, [{"id": ID}], {"cursor": "c1", "has_more": True}),
    Answer("candidates.get", {"success": True, "results": {"id": ID, "name": "Ada"}}, {"id": ID, "name": "Ada"}, None),
    Answer("candidates.api_search", {"success": True, "results": [{"id": ID}]}, [{"id": ID}], None),
]
FAILURES = [
    Failure("candidates.get", status, {"success": False, "errors": [code], "errorInfo": {"code": code,
            "requestId": "r1"}}, error, code, code, "r1", **more)
    for status, code, error, more in [
        (200, "invalid_input", UpstreamRejected, {}),
        (200, "candidate_not_found", UpstreamNotFound, {}),
        (400, "invalid_input", UpstreamRejected, {}),
        (401, "unauthorized", ReauthorizationRequired, {}),
        (404, "not_found", UpstreamNotFound, {}),
        (429, "rate_limit_exceeded", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "internal_server_error", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "candidates.list",
        {"limit": 1},
        [{**MORE, "results": [{"id": "2"}]}, {**LAST, "results": [{"id": "1"}]}],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/candidate.list", "/candidate.list"],
        [{"limit": 1}, {"limit": 1, "cursor": "c1"}],
    ),
]
CASES = Cases(
    "ashby",
    "https://api.ashbyhq.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "t"}, "Basic dDo=")],
    check=("/user.list", {**LAST, "results": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key")],
)
