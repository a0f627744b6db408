"""CRM by query, beside what is tested of every kind: limits, addresses, files and reports."""

import pytest
from yarl import URL

from gateway.errors import (
    ConnectorNotReady,
    InvalidCredentials,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
)
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.requests import checked_environment
from gateway.upstream.responses import UpstreamResponse
from gateway.upstream.rules import has_outer_limit, is_one_row
from gateway.upstream.run_context import InMemoryRunContext
from tests.upstream.judged import read
from tests.upstream.kinds.tables.crm_query import API, CREDENTIALS, ID, INSTANCE, NEXT_PAGE

KIND = load_kind(shipped_specs() / "crm-query")


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
def test_a_query_without_a_limit_of_its_own_requests_200_records(offline, query, sent):
    connector = offline("crm-query", instance_url=INSTANCE)

    [shown] = connector.dry_run("accounts", "list", {"q": query})

    assert URL(shown["url"]).query["q"] == sent


def test_what_a_query_says_is_read_outside_its_strings_and_sub_queries():
    assert has_outer_limit("SELECT Id FROM A LIMIT 1")
    assert not has_outer_limit("SELECT Id FROM A WHERE B = 'open LIMIT 1")
    assert is_one_row("select sum(B) from A")
    assert not is_one_row("SELECT Id, (SELECT COUNT() FROM Cs) FROM A")


def test_an_allowance_that_is_used_up_says_when_to_retry():
    used_up = UpstreamResponse(403, {}, b'[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"TotalRequests exceeded"}]')

    with pytest.raises(UpstreamRateLimited) as raised:
        read(KIND.operation("accounts", "list"), used_up)

    assert raised.value.retry_after > 0
    assert raised.value.upstream.message == "TotalRequests exceeded"


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
    assert KIND.spec.oauth.token_url.format_map(variables) == "https://login.salesforce.com/services/oauth2/token"


def test_a_sandbox_logs_in_elsewhere():
    variables = checked_environment(KIND.spec, {"login_host": "test.salesforce.com"})

    assert (
        KIND.spec.oauth.authorization_url.format_map(variables)
        == "https://test.salesforce.com/services/oauth2/authorize"
    )


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
    assert download.metadata_request == f"GET {described_by}"
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

    with pytest.raises(UpstreamError, match="the operation failed in the application: Error"):
        await connect("crm-query", CREDENTIALS, instance_url=INSTANCE).execute("reports", "get", {"id": ID})


async def test_a_report_under_way_is_followed_by_the_worker_that_continues(upstream, connect):
    upstream.answers(REPORT)
    connector = connect("crm-query", CREDENTIALS, instance_url=INSTANCE)
    run_context = InMemoryRunContext()
    await run_context.checkpoint({"started": {"0": "0LGxx"}})

    answer = await connector.run(
        PreparedCall.of(KIND.operation("reports", "get"), {"id": ID, "includeDetails": True}), run_context
    )

    assert answer.decoded() == REPORT
    assert [(asked.method, asked.url.path) for asked in upstream.received] == [("GET", f"{RUNS}/0LGxx")]
