"""The cases of CRM by query."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.harness.signing_keys import pem
from tests.upstream.kinds.cases import Answer, Call, Cases, Failure, Pages, Refused

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

#: the objects whose records can be created, changed and deleted
WRITTEN = {
    entity: name for entity, name in QUERIED.items() if entity not in ("content_versions", "attachments", "users")
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
    *(
        Call(
            f"{entity}.create",
            {"fields": {"Name": "Acme", "Own__c": None}},
            f"{API}/sobjects/{name}",
            method="POST",
            body={"Name": "Acme", "Own__c": None},
        )
        for entity, name in WRITTEN.items()
    ),
    *(
        Call(
            f"{entity}.update",
            {"id": ID, "fields": {"Amount": 5, "Own__c": None}},
            f"{API}/sobjects/{name}/{ID}",
            method="PATCH",
            body={"Amount": 5, "Own__c": None},
        )
        for entity, name in WRITTEN.items()
    ),
    *(
        Call(f"{entity}.delete", {"id": ID}, f"{API}/sobjects/{name}/{ID}", method="DELETE")
        for entity, name in WRITTEN.items()
    ),
    Call(
        "sobjects.get",
        {"object": "Invoice__c", "id": ID, "fields": "Total__c"},
        f"{API}/sobjects/Invoice__c/{ID}",
        {"fields": "Total__c"},
    ),
    Call(
        "sobjects.create",
        {"object": "Invoice__c", "fields": {"Total__c": 5}},
        f"{API}/sobjects/Invoice__c",
        method="POST",
        body={"Total__c": 5},
    ),
    Call(
        "sobjects.update",
        {"object": "Invoice__c", "id": ID, "fields": {"Total__c": None}},
        f"{API}/sobjects/Invoice__c/{ID}",
        method="PATCH",
        body={"Total__c": None},
    ),
    Call("sobjects.delete", {"object": "Invoice__c", "id": ID}, f"{API}/sobjects/Invoice__c/{ID}", method="DELETE"),
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
        "bulk_queries.run",
        {"query": "SELECT Id FROM Account", "operation": "queryAll"},
        f"{API}/jobs/query",
        method="POST",
        body={"operation": "queryAll", "query": "SELECT Id FROM Account"},
    ),
    Call(
        "bulk_writes.run",
        {"object": "Account", "operation": "upsert", "externalIdFieldName": "Key__c", "records": [{"Key__c": "1"}]},
        f"{API}/jobs/ingest",
        method="POST",
        body={
            "contentType": "CSV",
            "lineEnding": "LF",
            "object": "Account",
            "operation": "upsert",
            "externalIdFieldName": "Key__c",
        },
    ),
    Call(
        "reports.get",
        {"id": ID, "includeDetails": False},
        f"{API}/analytics/reports/{ID}/instances",
        {"includeDetails": "false"},
        "POST",
        {},
    ),
]

REFUSED = [
    Refused("accounts.list", {}, "", "at least one of q, nextRecordsUrl must be given"),
    Refused("accounts.list", {"q": ""}, "q", "at least 1 character"),
    Refused("accounts.list", {"q": 5}, "q", "expected string"),
    Refused("accounts.list", {"nextRecordsUrl": "https://evil.example" + NEXT_PAGE}, "nextRecordsUrl", "must match"),
    Refused("accounts.list", {"nextRecordsUrl": "//evil.example" + NEXT_PAGE}, "nextRecordsUrl", "must match"),
    Refused("accounts.list", {"nextRecordsUrl": "@evil.example" + NEXT_PAGE}, "nextRecordsUrl", "must match"),
    Refused("accounts.list", {"nextRecordsUrl": NEXT_PAGE + "\n"}, "nextRecordsUrl", "must match"),
    Refused("accounts.list", {"nextRecordsUrl": f"{API}/query/../sobjects"}, "nextRecordsUrl", "must match"),
    Refused("accounts.list", {"nextRecordsUrl": f"{API}/sobjects"}, "nextRecordsUrl", "must match"),
    Refused("accounts.list", {"soql": "SELECT Id FROM A", "q": "SELECT Id FROM A"}, "soql", "is not a param"),
    Refused("accounts.get", {}, "id", "id is missing"),
    Refused("accounts.get", {"id": "001"}, "id", "15 or 18 characters that begin with 001"),
    Refused("accounts.get", {"id": "../../sobjects0"}, "id", "must match"),
    Refused("accounts.get", {"id": ID, "fields": "Owner.Name"}, "fields", "for a path such as Owner.Name use list"),
    Refused("accounts.get", {"id": ID, "fields": "Id FROM User"}, "fields", "field names separated by commas"),
    Refused("accounts.api_search", {}, "q", "q is missing"),
    Refused("accounts.create", {"Name": "Acme"}, "fields", "fields is missing", ["Name"]),
    Refused("accounts.create", {"fields": {}}, "fields", "at least 1"),
    Refused("accounts.update", {"id": "../User/1", "fields": {"Name": "x"}}, "id", "must match"),
    Refused("accounts.delete", {"id": "001"}, "id", "15 or 18 characters that begin with 001"),
    Refused("sobjects.create", {"object": "../jobs", "fields": {"a": 1}}, "object", "must match"),
    Refused("reports.get", {"id": ID, "includeDetails": "no"}, "includeDetails", "expected boolean"),
]
ANSWERS = [
    Answer("sobjects.list", b'{"encoding":"UTF-8","sobjects":[{"name":"Account"}]}', [{"name": "Account"}], None),
    Answer(
        "accounts.list",
        b'{"totalSize":2,"done":false,"nextRecordsUrl":"/services/data/v59.0/query/0r8-1","records":[{"Id":"1"}]}',
        [{"Id": "1"}],
        {"done": False, "nextRecordsUrl": "/services/data/v59.0/query/0r8-1"},
    ),
    Answer("query.list", b'{"totalSize":0,"done":true,"records":[]}', [], {"done": True, "nextRecordsUrl": None}),
    Answer("accounts.get", b'{"Id":"1","Name":"Acme"}', {"Id": "1", "Name": "Acme"}, None),
    Answer("leads.api_search", b'{"searchRecords":[{"Id":"1"}]}', {"searchRecords": [{"Id": "1"}]}, None),
    Answer(
        "accounts.create",
        b'{"id":"001B000001IzPqrIAF","success":true,"errors":[]}',
        {"id": "001B000001IzPqrIAF", "success": True, "errors": []},
        None,
    ),
    Answer("accounts.update", b"", None, None),
    Answer("sobjects.delete", b"", None, None),
    Answer("reports.list", b'[{"id":"00O1","name":"Pipeline"}]', [{"id": "00O1", "name": "Pipeline"}], None),
]
FAILURES = [
    Failure(
        "accounts.list",
        400,
        b'[{"message":"unexpected token","errorCode":"MALFORMED_QUERY"}]',
        UpstreamRejected,
        "MALFORMED_QUERY",
        "unexpected token",
    ),
    Failure(
        "accounts.list", 400, b'[{"errorCode":"INVALID_QUERY_LOCATOR"}]', UpstreamRejected, "INVALID_QUERY_LOCATOR"
    ),
    Failure(
        "accounts.list", 401, b'[{"errorCode":"INVALID_SESSION_ID"}]', ReauthorizationRequired, "INVALID_SESSION_ID"
    ),
    Failure(
        "accounts.list", 403, b'[{"errorCode":"REQUEST_LIMIT_EXCEEDED"}]', UpstreamRateLimited, "REQUEST_LIMIT_EXCEEDED"
    ),
    Failure("accounts.list", 403, b'[{"errorCode":"API_DISABLED_FOR_ORG"}]', UpstreamRejected, "API_DISABLED_FOR_ORG"),
    Failure("accounts.list", 404, b'[{"errorCode":"NOT_FOUND"}]', UpstreamNotFound, "NOT_FOUND"),
    Failure("accounts.list", 414, b"<html>URI Too Long</html>", UpstreamRejected),
    Failure("accounts.list", 500, b'[{"errorCode":"UNKNOWN_EXCEPTION"}]', UpstreamError, "UNKNOWN_EXCEPTION"),
    Failure("accounts.list", 503, b'[{"errorCode":"SERVER_UNAVAILABLE"}]', UpstreamError, "SERVER_UNAVAILABLE"),
    Failure(
        "accounts.list",
        400,
        b'{"error":"invalid_grant","error_description":"expired"}',
        UpstreamRejected,
        "invalid_grant",
        "expired",
    ),
]
PAGES = [
    Pages(
        "query.list",
        {"q": "SELECT Id FROM Asset"},
        [
            {"done": False, "nextRecordsUrl": NEXT_PAGE, "records": [{"Id": "1"}]},
            {"done": True, "records": [{"Id": "2"}]},
        ],
        [[{"Id": "1"}], [{"Id": "2"}]],
        [f"{API}/query?q=SELECT%20Id%20FROM%20Asset", NEXT_PAGE],
    )
]
SIGNED = {"client_id": "app", "username": "agent@acme.example", "private_key": pem(), "access_token": "signed"}
CASES = Cases(
    "crm-query",
    INSTANCE,
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(CREDENTIALS, "Bearer bearing"), (SIGNED, "Bearer signed")],
    check=(f"{API}/sobjects", {"sobjects": []}),
    pages=PAGES,
    answers=ANSWERS,
    environment={"instance_url": INSTANCE},
)
