"""CRM by query: every action as it goes over the wire, and every answer as it comes back."""

import pytest
from yarl import URL

from gateway.connectors.prepared import PreparedCall
from gateway.connectors.requests import checked_environment
from gateway.connectors.responses import UpstreamResponse
from gateway.connectors.rules import has_outer_limit, is_one_row
from gateway.connectors.run_context import MemoryJournal
from gateway.errors import (
    ConnectorNotReady,
    GatewayError,
    InvalidCredentials,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.catalog import load_kind, shipped_specs
from gateway.kinds.params import validated
from tests.connectors.judged import read
from tests.connectors.kinds.wire import Call

KIND = load_kind(shipped_specs() / "crm-query")
INSTANCE = "https://acme.my.salesforce.com"
API = "/services/data/v59.0"
CREDENTIALS = {"refresh_token": "renewing", "access_token": "bearing"}
NEXT_PAGE = f"{API}/query/0r8xx000000abcd-2000"
ID = "001B000001IzPqrIAF"


QUERIED = {
    "accounts": "Account",
    "contacts": "Contact",
    "leads": "Lead",
    "opportunities": "Opportunity",
    "tasks": "Task",
    "events": "Event",
    "campaigns": "Campaign",
    "cases": "Case",
    "notes": "Note",
    "content_versions": "ContentVersion",
    "attachments": "Attachment",
    "users": "User",
}
SEARCHED = ("accounts", "contacts", "leads", "opportunities", "tasks", "events", "campaigns", "cases", "notes")
CALLS = [
    Call("sobjects.list", {}, f"{API}/sobjects"),
    *(
        Call(
            f"{entity}.list",
            {"q": f"SELECT Id FROM {name}"},
            f"{API}/query",
            {"q": f"SELECT Id FROM {name} LIMIT 200"},
        )
        for entity, name in QUERIED.items()
    ),
    Call(
        "opportunity_stages.list",
        {"q": "SELECT Id FROM OpportunityStage"},
        f"{API}/query",
        {"q": "SELECT Id FROM OpportunityStage"},
    ),
    Call("query.list", {"q": "SELECT Id FROM Asset"}, f"{API}/query", {"q": "SELECT Id FROM Asset"}),
    Call("accounts.list", {"nextRecordsUrl": NEXT_PAGE}, NEXT_PAGE),
    Call("query.list", {"q": "SELECT Id FROM Asset", "nextRecordsUrl": NEXT_PAGE}, NEXT_PAGE),
    Call("query.list", {"nextRecordsUrl": f"{API}/queryAll/01gD-400"}, f"{API}/queryAll/01gD-400"),
    *(
        Call(
            f"{entity}.get",
            {"id": ID, "fields": "Id,My_Field__c"},
            f"{API}/sobjects/{name}/{ID}",
            {"fields": "Id,My_Field__c"},
        )
        for entity, name in {**QUERIED, "opportunity_stages": "OpportunityStage"}.items()
    ),
    Call("accounts.get", {"id": ID[:15]}, f"{API}/sobjects/Account/{ID[:15]}"),
    *(
        Call(
            f"{entity}.api_search",
            {"q": "FIND {a\\-b} RETURNING X(Id)"},
            f"{API}/search",
            {"q": "FIND {a\\-b} RETURNING X(Id)"},
        )
        for entity in SEARCHED
    ),
    Call(
        "attachments.download",
        {"id": ID, "range_header": "bytes=0-9"},
        f"{API}/sobjects/Attachment/{ID}/Body",
        headers={"Range": "bytes=0-9"},
    ),
    Call(
        "content_versions.download",
        {"id": ID, "range_header": "bytes=0-9"},
        f"{API}/sobjects/ContentVersion/{ID}/VersionData",
        headers={"Range": "bytes=0-9"},
    ),
    Call("reports.list", {}, f"{API}/analytics/reports"),
    Call(
        "reports.get",
        {"id": ID, "includeDetails": False},
        f"{API}/analytics/reports/{ID}/instances",
        {"includeDetails": "false"},
        "POST",
        {},
    ),
]


def test_every_action_has_a_case():
    assert {call.action for call in CALLS} == {str(operation) for operation in KIND.operations.values()}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.action)
def test_an_action_makes_its_request(offline, call):
    call.assert_sent_by(offline("crm-query", instance_url=INSTANCE), INSTANCE)


@pytest.mark.parametrize("operation", KIND.operations.values(), ids=str)
def test_every_example_is_valid(operation):
    assert validated(operation, operation.action.example).keys() >= operation.action.example.keys()


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("SELECT Id FROM A LIMIT 5", "SELECT Id FROM A LIMIT 5"),
        ("SELECT Id FROM A limit\n5", "SELECT Id FROM A limit\n5"),
        ("SELECT Id FROM A LIMIT :n", "SELECT Id FROM A LIMIT :n"),
        ("SELECT Id FROM A LIMIT 5 OFFSET 10", "SELECT Id FROM A LIMIT 5 OFFSET 10"),
        ("SELECT Id FROM A WHERE B = 'c'LIMIT 5", "SELECT Id FROM A WHERE B = 'c'LIMIT 5"),
        ("SELECT Id FROM A  ", "SELECT Id FROM A LIMIT 200"),
        ("SELECT Id FROM A;", "SELECT Id FROM A LIMIT 200 ;"),
        ("SELECT Id FROM A ORDER BY B OFFSET 10", "SELECT Id FROM A ORDER BY B LIMIT 200 OFFSET 10"),
        ("SELECT Id FROM A FOR VIEW", "SELECT Id FROM A LIMIT 200 FOR VIEW"),
        ("SELECT Id FROM A offset 5 for reference", "SELECT Id FROM A LIMIT 200 offset 5 for reference"),
        ("SELECT Id FROM A FOR UPDATE", "SELECT Id FROM A LIMIT 200 FOR UPDATE"),
        ("SELECT Id FROM A UPDATE TRACKING", "SELECT Id FROM A LIMIT 200 UPDATE TRACKING"),
        ("SELECT Id FROM A ALL ROWS", "SELECT Id FROM A LIMIT 200 ALL ROWS"),
        ("SELECT Id FROM A WITH SECURITY_ENFORCED", "SELECT Id FROM A WITH SECURITY_ENFORCED LIMIT 200"),
        ("SELECT Id FROM A WHERE B = 'LIMIT 5'", "SELECT Id FROM A WHERE B = 'LIMIT 5' LIMIT 200"),
        ("SELECT Id FROM A WHERE B = 'O\\'C LIMIT 5'", "SELECT Id FROM A WHERE B = 'O\\'C LIMIT 5' LIMIT 200"),
        ("SELECT Id FROM A WHERE B = 'c\\\\' LIMIT 5", "SELECT Id FROM A WHERE B = 'c\\\\' LIMIT 5"),
        ("SELECT Id FROM A WHERE B = ') FOR VIEW'", "SELECT Id FROM A WHERE B = ') FOR VIEW' LIMIT 200"),
        ("SELECT Id, (SELECT Id FROM Cs LIMIT 5) FROM A", "SELECT Id, (SELECT Id FROM Cs LIMIT 5) FROM A LIMIT 200"),
        ("SELECT Id FROM A WHERE C IN (SELECT D FROM E)", "SELECT Id FROM A WHERE C IN (SELECT D FROM E) LIMIT 200"),
        ("SELECT FIELDS(ALL) FROM A", "SELECT FIELDS(ALL) FROM A LIMIT 200"),
        ("SELECT Limit__c, Offset__c FROM A", "SELECT Limit__c, Offset__c FROM A LIMIT 200"),
        ("SELECT B, COUNT(Id) FROM A GROUP BY B", "SELECT B, COUNT(Id) FROM A GROUP BY B LIMIT 200"),
        ("SELECT COUNT() FROM A", "SELECT COUNT() FROM A"),
        ("SELECT MAX(B) top FROM A WHERE C = 1", "SELECT MAX(B) top FROM A WHERE C = 1"),
    ],
)
def test_a_query_without_a_limit_of_its_own_asks_for_200_records(offline, query, sent):
    connector = offline("crm-query", instance_url=INSTANCE)

    [shown] = connector.dry_run("accounts", "list", {"q": query})

    assert URL(shown["url"]).query["q"] == sent


def test_what_a_query_says_is_read_outside_its_strings_and_sub_queries():
    assert has_outer_limit("SELECT Id FROM A LIMIT 1")
    assert not has_outer_limit("SELECT Id FROM A WHERE B = 'open LIMIT 1")
    assert is_one_row("select sum(B) from A")
    assert not is_one_row("SELECT Id, (SELECT COUNT() FROM Cs) FROM A")


@pytest.mark.parametrize(
    ("action", "params", "field", "said"),
    [
        ("accounts.list", {}, "", "at least one of q, nextRecordsUrl must be given"),
        ("accounts.list", {"q": ""}, "q", "at least 1 character"),
        ("accounts.list", {"q": 5}, "q", "expected string"),
        ("accounts.list", {"nextRecordsUrl": "https://evil.example" + NEXT_PAGE}, "nextRecordsUrl", "must match"),
        ("accounts.list", {"nextRecordsUrl": "//evil.example" + NEXT_PAGE}, "nextRecordsUrl", "must match"),
        ("accounts.list", {"nextRecordsUrl": "@evil.example" + NEXT_PAGE}, "nextRecordsUrl", "must match"),
        ("accounts.list", {"nextRecordsUrl": NEXT_PAGE + "\n"}, "nextRecordsUrl", "must match"),
        ("accounts.list", {"nextRecordsUrl": f"{API}/query/../sobjects"}, "nextRecordsUrl", "must match"),
        ("accounts.list", {"nextRecordsUrl": f"{API}/sobjects"}, "nextRecordsUrl", "must match"),
        ("accounts.list", {"soql": "SELECT Id FROM A", "q": "SELECT Id FROM A"}, "soql", "is not a param"),
        ("accounts.get", {}, "id", "id is missing"),
        ("accounts.get", {"id": "001"}, "id", "15 or 18 characters that begin with 001"),
        ("accounts.get", {"id": "../../sobjects0"}, "id", "must match"),
        ("accounts.get", {"id": ID, "fields": "Owner.Name"}, "fields", "for a path such as Owner.Name use list"),
        ("accounts.get", {"id": ID, "fields": "Id FROM User"}, "fields", "field names separated by commas"),
        ("accounts.api_search", {}, "q", "q is missing"),
        ("reports.get", {"id": ID, "includeDetails": "no"}, "includeDetails", "expected boolean"),
    ],
)
def test_params_that_cannot_be_sent_are_refused_with_the_way_to_mend_them(action, params, field, said):
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation(*action.split(".")), params)

    [fault] = refused.value.faults
    assert fault.field == field
    assert said in fault.message


@pytest.mark.parametrize(
    ("action", "body", "records", "meta"),
    [
        ("sobjects.list", b'{"encoding":"UTF-8","sobjects":[{"name":"Account"}]}', [{"name": "Account"}], None),
        (
            "accounts.list",
            b'{"totalSize":2,"done":false,"nextRecordsUrl":"/services/data/v59.0/query/0r8-1","records":[{"Id":"1"}]}',
            [{"Id": "1"}],
            {"done": False, "nextRecordsUrl": "/services/data/v59.0/query/0r8-1"},
        ),
        ("query.list", b'{"totalSize":0,"done":true,"records":[]}', [], {"done": True, "nextRecordsUrl": None}),
        ("accounts.get", b'{"Id":"1","Name":"Acme"}', {"Id": "1", "Name": "Acme"}, None),
        ("leads.api_search", b'{"searchRecords":[{"Id":"1"}]}', {"searchRecords": [{"Id": "1"}]}, None),
        ("reports.list", b'[{"id":"00O1","name":"Pipeline"}]', [{"id": "00O1", "name": "Pipeline"}], None),
    ],
)
def test_an_answer_is_read_into_records_and_meta(action, body, records, meta):
    answer = read(KIND.operation(*action.split(".")), UpstreamResponse(200, {}, body))

    assert answer.decoded() == records
    assert answer.meta == meta


@pytest.mark.parametrize(
    ("status", "body", "error", "code"),
    [
        (400, b'[{"message":"unexpected token","errorCode":"MALFORMED_QUERY"}]', UpstreamRejected, "MALFORMED_QUERY"),
        (400, b'[{"errorCode":"INVALID_QUERY_LOCATOR"}]', UpstreamRejected, "INVALID_QUERY_LOCATOR"),
        (401, b'[{"errorCode":"INVALID_SESSION_ID"}]', ReauthorizationRequired, "INVALID_SESSION_ID"),
        (403, b'[{"errorCode":"REQUEST_LIMIT_EXCEEDED"}]', UpstreamRateLimited, "REQUEST_LIMIT_EXCEEDED"),
        (403, b'[{"errorCode":"API_DISABLED_FOR_ORG"}]', UpstreamRejected, "API_DISABLED_FOR_ORG"),
        (404, b'[{"errorCode":"NOT_FOUND"}]', UpstreamNotFound, "NOT_FOUND"),
        (414, b"<html>URI Too Long</html>", UpstreamRejected, None),
        (500, b'[{"errorCode":"UNKNOWN_EXCEPTION"}]', UpstreamError, "UNKNOWN_EXCEPTION"),
        (503, b'[{"errorCode":"SERVER_UNAVAILABLE"}]', UpstreamError, "SERVER_UNAVAILABLE"),
        (400, b'{"error":"invalid_grant","error_description":"expired"}', UpstreamRejected, "invalid_grant"),
    ],
)
def test_a_failure_is_read_for_what_it_means(status, body, error, code):
    with pytest.raises(GatewayError) as raised:
        read(KIND.operation("accounts", "list"), UpstreamResponse(status, {}, body))

    assert type(raised.value) is error
    assert raised.value.upstream.code == code


def test_an_allowance_that_is_used_up_says_when_to_come_back():
    used_up = UpstreamResponse(403, {}, b'[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"TotalRequests exceeded"}]')

    with pytest.raises(UpstreamRateLimited) as raised:
        read(KIND.operation("accounts", "list"), used_up)

    assert raised.value.retry_after > 0
    assert raised.value.upstream.message == "TotalRequests exceeded"


async def test_a_request_carries_the_access_token(upstream, connect):
    upstream.answers({"sobjects": []})

    await connect("crm-query", CREDENTIALS, instance_url=INSTANCE).check()

    [asked] = upstream.received
    assert (asked.method, asked.url.raw_path_qs) == ("GET", f"{API}/sobjects")
    assert asked.headers["Authorization"] == "Bearer bearing"


async def test_the_next_page_is_fetched_with_its_own_path(upstream, connect):
    upstream.answers({"done": False, "nextRecordsUrl": NEXT_PAGE, "records": [{"Id": "1"}]})
    upstream.answers({"done": True, "records": [{"Id": "2"}]})
    connector = connect("crm-query", CREDENTIALS, instance_url=INSTANCE)

    pages = [page.decoded() async for page in connector.pages("query", "list", {"q": "SELECT Id FROM Asset"})]

    assert pages == [[{"Id": "1"}], [{"Id": "2"}]]
    assert [asked.url.raw_path_qs for asked in upstream.received] == [
        f"{API}/query?q=SELECT%20Id%20FROM%20Asset",
        NEXT_PAGE,
    ]


@pytest.mark.parametrize(
    "address", ["@evil.example/x", ".evil.example/x", "https://evil.example/x", f"{NEXT_PAGE}?a=b"]
)
async def test_a_next_page_elsewhere_is_not_followed(upstream, connect, address):
    upstream.answers({"done": False, "nextRecordsUrl": address, "records": []})
    connector = connect("crm-query", CREDENTIALS, instance_url=INSTANCE)

    with pytest.raises(UpstreamInvalidResponse):
        [page async for page in connector.pages("query", "list", {"q": "SELECT Id FROM Asset"})]

    assert len(upstream.received) == 1


def test_where_users_log_in_has_a_default():
    variables = checked_environment(KIND.spec, {"instance_url": f"{INSTANCE}/"})

    assert variables == {"instance_url": INSTANCE, "login_host": "login.salesforce.com"}
    assert KIND.spec.oauth.token.format_map(variables) == "https://login.salesforce.com/services/oauth2/token"


def test_a_sandbox_logs_in_elsewhere():
    variables = checked_environment(KIND.spec, {"login_host": "test.salesforce.com"})

    assert KIND.spec.oauth.authorize.format_map(variables) == "https://test.salesforce.com/services/oauth2/authorize"


@pytest.mark.parametrize(
    "environment",
    [
        {"instance_url": "http://acme.my.salesforce.com"},
        {"instance_url": "https://acme.my.salesforce.com.evil.example"},
        {"instance_url": "https://acme.my.salesforce.com/path"},
        {"instance_url": "https://user@acme.my.salesforce.com"},
        {"instance_url": "https://acme.my.salesforce.com:8443"},
        {"instance_url": "https://127.0.0.1"},
        {"login_host": "login.salesforce.com.evil.example"},
        {"login_host": "login.salesforce.com/x"},
        {"login_host": ""},
    ],
)
def test_addresses_that_are_not_the_applications_are_refused(environment):
    with pytest.raises(InvalidCredentials) as refused:
        checked_environment(KIND.spec, environment)

    assert [fault.field for fault in refused.value.faults] == list(environment)


def test_an_operators_override_may_be_the_instance():
    variables = checked_environment(KIND.spec, {"instance_url": "http://127.0.0.1:9001"}, URL("http://127.0.0.1:9001"))

    assert variables["instance_url"] == "http://127.0.0.1:9001"


def test_before_the_first_token_a_connector_does_not_know_its_address(offline):
    connector = offline("crm-query")

    with pytest.raises(ConnectorNotReady, match="no instance_url yet"):
        connector.dry_run("sobjects", "list")


@pytest.mark.parametrize(
    ("entity", "described_by", "places"),
    [
        (
            "attachments",
            "/sobjects/Attachment/{id}?fields=Name,ContentType,BodyLength",
            (("BodyLength",), ("Name",), None),
        ),
        (
            "content_versions",
            "/sobjects/ContentVersion/{id}?fields=Title,FileExtension,ContentSize",
            (("ContentSize",), ("Title",), ("FileExtension",)),
        ),
    ],
)
def test_a_file_is_described_by_its_record(entity, described_by, places):
    download = KIND.operation(entity, "download").action.download

    assert download.url is None
    assert download.described_by == f"GET {described_by}"
    assert (download.size, download.name, download.extension) == places


REPORT = {"attributes": {"status": "Success", "reportId": ID}, "factMap": {"T!T": {}}, "allData": True}
RUNS = f"{API}/analytics/reports/{ID}/instances"


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_report_is_run_in_the_background_and_followed_to_its_end(upstream, connect):
    upstream.answers({"id": "0LGxx", "status": "New"})
    upstream.answers({"attributes": {"status": "Running"}})
    upstream.answers(REPORT)

    answer = await connect("crm-query", CREDENTIALS, instance_url=INSTANCE).execute("reports", "get", {"id": ID})

    assert answer.decoded() == REPORT
    assert [(asked.method, asked.url.raw_path_qs) for asked in upstream.received] == [
        ("POST", f"{RUNS}?includeDetails=true"),
        ("GET", f"{RUNS}/0LGxx"),
        ("GET", f"{RUNS}/0LGxx"),
    ]
    assert upstream.received[0].headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("status", "code"), [(404, "NOT_FOUND"), (405, "METHOD_NOT_ALLOWED"), (403, "INSUFFICIENT_ACCESS")]
)
async def test_a_report_that_cannot_run_in_the_background_is_run_at_once(upstream, connect, status, code):
    upstream.answers([{"errorCode": code}], status)
    upstream.answers(REPORT)
    connector = connect("crm-query", CREDENTIALS, instance_url=INSTANCE)

    answer = await connector.execute("reports", "get", {"id": ID, "includeDetails": False})

    assert answer.decoded() == REPORT
    asked = upstream.received[-1]
    assert (asked.method, asked.url.raw_path_qs) == ("GET", f"{API}/analytics/reports/{ID}?includeDetails=false")


async def test_a_report_beyond_the_days_allowance_is_not_tried_again(upstream, connect):
    upstream.answers([{"errorCode": "REQUEST_LIMIT_EXCEEDED"}], 403)

    with pytest.raises(UpstreamRateLimited):
        await connect("crm-query", CREDENTIALS, instance_url=INSTANCE).execute("reports", "get", {"id": ID})

    assert len(upstream.received) == 1


async def test_a_report_that_the_application_gives_up_is_an_error(upstream, connect):
    upstream.answers({"id": "0LGxx"})
    upstream.answers({"attributes": {"status": "Error"}})

    with pytest.raises(UpstreamError, match="could not run the report"):
        await connect("crm-query", CREDENTIALS, instance_url=INSTANCE).execute("reports", "get", {"id": ID})


async def test_a_report_under_way_is_followed_by_whoever_goes_on(upstream, connect):
    upstream.answers(REPORT)
    connector = connect("crm-query", CREDENTIALS, instance_url=INSTANCE)
    journal = MemoryJournal()
    await journal.save({"instance": "0LGxx"})

    answer = await connector.run(
        PreparedCall.of(KIND.operation("reports", "get"), {"id": ID, "includeDetails": True}), journal
    )

    assert answer.decoded() == REPORT
    assert [(asked.method, asked.url.path) for asked in upstream.received] == [("GET", f"{RUNS}/0LGxx")]
