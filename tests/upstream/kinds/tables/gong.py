"""The cases of Gong."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

CALL, USER, WORKSPACE = "7782342274025937895", "234599484848423", "623457276584334"
FROM, TO = "2026-02-01T00:00:00Z", "2026-02-08T00:00:00Z"
DAYS = {"filter": {"fromDate": "2026-01-01", "toDate": "2026-02-01", "userIds": [USER]}}
TIMES = {"filter": {"fromDateTime": FROM, "toDateTime": TO, "callIds": [CALL]}}
PARTS = {"context": "Extended", "exposedFields": {"parties": True, "content": {"brief": True}}}
REVIEWS = {"filter": {"reviewFromDate": "2026-01-01", "scorecardIds": ["6"]}}
MEDIA = {"filter": {"callIds": [CALL]}, "contentSelector": {"exposedFields": {"media": True}}}
NEW = {
    "clientUniqueId": "pbx-1",
    "actualStart": FROM,
    "direction": "Outbound",
    "primaryUser": USER,
    "parties": [{"userId": USER}, {"emailAddress": "ada@example.com"}],
    "downloadMediaUrl": "https://recordings.example.com/1.mp3",
}
COACHING = {"workspace-id": WORKSPACE, "manager-id": USER, "from": FROM, "to": TO}
ASSIGNMENT = {"crmProspectsIds": ["003"], "flowId": "8", "flowInstanceOwnerEmail": "ada@example.com"}


def posted(action: str, path: str, body: dict, **more) -> Call:
    """A POST whose params are its body."""
    return Call(action, body, path, method="POST", body=body, **more)


CALLS = [
    Call("users.list", {}, "/v2/users"),
    Call("users.list", {"cursor": "c1"}, "/v2/users", {"cursor": "c1"}),
    Call("users.list", {"includeAvatars": True}, "/v2/users", {"includeAvatars": "true"}),
    Call("users.get", {"id": USER}, f"/v2/users/{USER}"),
    Call("calls.list", {"fromDateTime": FROM, "toDateTime": TO, "cursor": "c1"}, "/v2/calls",
         {"fromDateTime": FROM, "toDateTime": TO, "cursor": "c1"}),
    Call("calls.list", {"workspaceId": WORKSPACE}, "/v2/calls", {"workspaceId": WORKSPACE}),
    Call("calls.get", {"id": CALL}, f"/v2/calls/{CALL}"),
    posted("calls.create", "/v2/calls", NEW),
    posted("calls_extensive.list", "/v2/calls/extensive", {**TIMES, "contentSelector": PARTS, "cursor": "c1"}),
    Call("call_audio.download", {"filter": {"callIds": [CALL]}}, "/v2/calls/extensive", method="POST", body=MEDIA),
    Call("call_video.download", {"filter": {"callIds": [CALL]}}, "/v2/calls/extensive", method="POST", body=MEDIA),
    posted("call_transcripts.list", "/v2/calls/transcript", {**TIMES, "cursor": "c1"}),
    Call("workspaces.list", {}, "/v2/workspaces"),
    posted("stats_activity_aggregate.list", "/v2/stats/activity/aggregate", DAYS),
    posted("stats_activity_aggregate.list", "/v2/stats/activity/aggregate", {**DAYS, "cursor": "c1"}),
    posted("stats_activity_day_by_day.list", "/v2/stats/activity/day-by-day", DAYS),
    posted("stats_interaction.list", "/v2/stats/interaction", DAYS),
    posted("stats_activity_scorecards.list", "/v2/stats/activity/scorecards", {**REVIEWS, "cursor": "c1"}),
    Call("settings_scorecards.list", {"workspaceId": WORKSPACE}, "/v2/settings/scorecards", {"workspaceId": WORKSPACE}),
    Call("settings_trackers.list", {"workspaceId": WORKSPACE}, "/v2/settings/trackers", {"workspaceId": WORKSPACE}),
    Call("library_folders.list", {"workspaceId": WORKSPACE}, "/v2/library/folders", {"workspaceId": WORKSPACE}),
    Call("library_folder_content.list", {"folderId": "3", "cursor": "c1"}, "/v2/library/folder-content",
         {"folderId": "3", "cursor": "c1"}),
    Call("coaching.list", COACHING, "/v2/coaching", COACHING),
    Call("flows.list", {"flowOwnerEmail": "ada@example.com", "cursor": "c1"}, "/v2/flows",
         {"flowOwnerEmail": "ada@example.com", "cursor": "c1"}),
    posted("flow_prospects.list", "/v2/flows/prospects", {"crmProspectsIds": ["003"]}),
    posted("flow_prospects.create", "/v2/flows/prospects/assign", ASSIGNMENT),
]  # fmt: skip
REFUSED = [
    Refused("calls.list", {"fromDateTime": "yesterday"}, "fromDateTime", "date-time"),
    Refused("calls.create", {**NEW, "direction": "in"}, "direction", "Inbound"),
    Refused("calls_extensive.list", {}, "filter", "filter is missing"),
    Refused("calls_extensive.list", {"filter": {"callIds": []}}, "filter.callIds", "at least 1"),
    Refused("call_audio.download", {"filter": {"callIds": ["1", "2"]}}, "filter.callIds", "at most 1"),
    Refused("stats_interaction.list", {"filter": {"fromDate": "2026-01-01"}}, "filter.toDate", "toDate is missing"),
    Refused("coaching.list", {**COACHING, "manager-id": "Ada"}, "manager-id", "^[0-9]+$"),
    Refused("flow_prospects.create", {**ASSIGNMENT, "crmProspectsIds": ["1"] * 201}, "crmProspectsIds", "at most 200"),
]
RECORDS = {"totalRecords": 2, "currentPageSize": 1, "currentPageNumber": 0, "cursor": "c1"}
META = {"cursor": "c1", "total_records": 2, "current_page_number": 0}
LAST = {"totalRecords": 2, "currentPageSize": 1, "currentPageNumber": 1}
ANSWERS = [
    Answer("users.list", {"requestId": "r", "records": RECORDS, "users": [{"id": USER}]}, [{"id": USER}], META),
    Answer("users.get", {"requestId": "r", "user": {"id": USER}}, {"id": USER}, None),
    Answer("calls.list", {"records": LAST, "calls": [{"id": CALL}]}, [{"id": CALL}], {**META, "cursor": None,
           "current_page_number": 1}),
    Answer("calls.create", {"requestId": "r", "callId": CALL}, {"requestId": "r", "callId": CALL}, None),
    Answer("call_transcripts.list", {"records": RECORDS, "callTranscripts": [{"callId": CALL}]}, [{"callId": CALL}],
           META),
    Answer("stats_interaction.list", {"records": RECORDS, "peopleInteractionStats": [{"userId": USER}]},
           [{"userId": USER}], META),
    Answer("settings_trackers.list", {"keywordTrackers": [{"trackerId": "1"}]}, [{"trackerId": "1"}], None),
    Answer("coaching.list", {"coachingData": [{"manager": {"id": USER}}]}, [{"manager": {"id": USER}}], None),
    Answer("flow_prospects.create", {"prospectsAssigned": [], "prospectsNotAssigned": [{"errorCode": "InvalidState"}]},
           {"prospectsAssigned": [], "prospectsNotAssigned": [{"errorCode": "InvalidState"}]}, None),
]  # fmt: skip
FAILURES = [
    Failure("users.get", status, {"requestId": "r1", "errors": ["It failed"]}, error, None, "It failed", "r1", **more)
    for status, error, more in [
        (400, UpstreamRejected, {}),
        (401, ReauthorizationRequired, {}),
        (403, UpstreamRejected, {}),
        (404, UpstreamNotFound, {}),
        (409, UpstreamRejected, {}),
        (429, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, UpstreamError, {}),
    ]
]
PAGES = [
    Pages(
        "users.list",
        {},
        [{"records": RECORDS, "users": [{"id": "1"}]}, {"records": LAST, "users": [{"id": "2"}]}],
        [[{"id": "1"}], [{"id": "2"}]],
        ["/v2/users", "/v2/users?cursor=c1"],
    ),
    Pages(
        "calls_extensive.list",
        {"filter": {}},
        [{"records": RECORDS, "calls": [{"metaData": {}}]}, {"records": LAST, "calls": []}],
        [[{"metaData": {}}], []],
        ["/v2/calls/extensive", "/v2/calls/extensive"],
        sent=[{"filter": {}}, {"filter": {}, "cursor": "c1"}],
    ),
]
CASES = Cases(
    "gong",
    "https://api.gong.io",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        ({"access_key": "k", "access_key_secret": "s"}, "Basic azpz"),
        ({"access_token": "t", "refresh_token": "r"}, "Bearer t"),
    ],
    check=("/v2/users", {"records": LAST, "users": [{"id": USER}]}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({"access_key": "k"}, "access_key_secret"),
        BadCredentials({"access_token": "t"}, "refresh_token"),
    ],
)
