"""The cases of CRM by records."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamBusy,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import BadCredentials, Call, Cases, Failure, Pages, Refused

ORIGIN = "https://api.hubapi.com"
OBJECTS = "/crm/v3/objects"
SCHEMAS = "/crm-object-schemas/v3/schemas"
PRIVATE_APP = {"private_app_token": "private"}
OAUTH = {"refresh_token": "renewing", "access_token": "bearing"}
RECORD_ENTITIES = {"contacts": "contactId", "companies": "companyId", "deals": "dealId", "tickets": "ticketId"}

READING = {
    "properties": "email, crm_object_id,crm_owner_id",
    "propertiesWithHistory": "crm_lastmodifieddate",
    "associations": "contacts,deals",
    "archived": True,
}

READ = {
    "properties": "email,hs_object_id,hubspot_owner_id",
    "propertiesWithHistory": "hs_lastmodifieddate",
    "associations": "contacts,deals",
    "archived": "true",
}

SEARCHING = {
    "filterGroups": [
        {
            "filters": [
                {"propertyName": "crm_pipeline_stage", "operator": "IN", "values": ["1", "2"]},
                {"propertyName": "amount", "operator": "BETWEEN", "value": "10", "highValue": "20"},
            ]
        },
        {"filters": [{"propertyName": "crm_owner_id", "operator": "NOT_HAS_PROPERTY"}]},
    ],
    "properties": ["crm_object_id", "subject"],
    "sorts": [{"propertyName": "crm_lastmodifieddate", "direction": "ASCENDING"}],
    "query": "fire",
    "after": "200",
    "limit": 200,
}

SEARCHED = {
    "filterGroups": [
        {
            "filters": [
                {"propertyName": "hs_pipeline_stage", "operator": "IN", "values": ["1", "2"]},
                {"propertyName": "amount", "operator": "BETWEEN", "value": "10", "highValue": "20"},
            ]
        },
        {"filters": [{"propertyName": "hubspot_owner_id", "operator": "NOT_HAS_PROPERTY"}]},
    ],
    "properties": ["hs_object_id", "subject"],
    "sorts": [{"propertyName": "hs_lastmodifieddate", "direction": "ASCENDING"}],
    "query": "fire",
    "after": "200",
    "limit": 200,
}

ASSOCIATIONS = [{"to": {"id": "201"}, "types": [{"associationCategory": "HUBSPOT_DEFINED", "associationTypeId": 279}]}]

CALLS = [
    *(
        Call(
            f"{entity}.list",
            {**READING, "limit": 50, "after": "NTI1Cg=="},
            f"{OBJECTS}/{entity}",
            {**READ, "limit": "50", "after": "NTI1Cg=="},
        )
        for entity in RECORD_ENTITIES
    ),
    Call("contacts.list", {}, f"{OBJECTS}/contacts", {"limit": "25"}),
    *(
        Call(
            f"{entity}.get",
            {member: "151", **READING, "idProperty": "crm_unique"},
            f"{OBJECTS}/{entity}/151",
            {**READ, "idProperty": "hs_unique"},
        )
        for entity, member in RECORD_ENTITIES.items()
    ),
    Call(
        "contacts.get",
        {"contactId": "ada@example.com", "idProperty": "email"},
        f"{OBJECTS}/contacts/ada@example.com",
        {"idProperty": "email"},
    ),
    *(
        Call(f"{entity}.api_search", SEARCHING, f"{OBJECTS}/{entity}/search", {}, "POST", SEARCHED)
        for entity in RECORD_ENTITIES
    ),
    *(
        Call(
            f"{entity}.create",
            {"properties": {"crm_owner_id": "7", "subject": "x"}, "associations": ASSOCIATIONS},
            f"{OBJECTS}/{entity}",
            method="POST",
            body={"properties": {"hubspot_owner_id": "7", "subject": "x"}, "associations": ASSOCIATIONS},
        )
        for entity in RECORD_ENTITIES
    ),
    *(
        Call(
            f"{entity}.update",
            {member: "151", "properties": {"crm_pipeline_stage": "4", "amount": ""}, "idProperty": "crm_unique"},
            f"{OBJECTS}/{entity}/151",
            {"idProperty": "hs_unique"},
            "PATCH",
            {"properties": {"hs_pipeline_stage": "4", "amount": ""}},
        )
        for entity, member in RECORD_ENTITIES.items()
    ),
    *(
        Call(f"{entity}.delete", {member: "151"}, f"{OBJECTS}/{entity}/151", method="DELETE")
        for entity, member in RECORD_ENTITIES.items()
    ),
    Call("deals.api_search", {}, f"{OBJECTS}/deals/search", {}, "POST", {"limit": 25}),
    Call(
        "objects.batch_read",
        {"objectType": "contacts", "inputs": [{"id": "1"}], "properties": ["email"], "idProperty": "email"},
        f"{OBJECTS}/contacts/batch/read",
        method="POST",
        body={"inputs": [{"id": "1"}], "properties": ["email"], "idProperty": "email"},
    ),
    Call(
        "objects.batch_create",
        {"objectType": "contacts", "inputs": [{"properties": {"email": "a@b.c"}}, {"properties": {}}]},
        f"{OBJECTS}/contacts/batch/create",
        method="POST",
        body={
            "inputs": [
                {"properties": {"email": "a@b.c"}, "objectWriteTraceId": "0"},
                {"properties": {}, "objectWriteTraceId": "1"},
            ]
        },
    ),
    Call(
        "objects.batch_update",
        {"objectType": "deals", "inputs": [{"id": "7", "properties": {"dealstage": "won"}}]},
        f"{OBJECTS}/deals/batch/update",
        method="POST",
        body={"inputs": [{"id": "7", "properties": {"dealstage": "won"}, "objectWriteTraceId": "0"}]},
    ),
    Call(
        "exports.create",
        {"objectType": "CONTACT", "exportName": "all", "objectProperties": ["email"]},
        "/crm/exports/2026-03/export/async",
        method="POST",
        body={
            "objectType": "CONTACT",
            "exportName": "all",
            "objectProperties": ["email"],
            "format": "CSV",
            "exportType": "VIEW",
            "language": "EN",
        },
    ),
    Call("exports.download", {"export_id": "9"}, "/crm/exports/2026-03/export/async/tasks/9/status"),
    Call(
        "objects.list",
        {"objectType": "2-3444025", **READING},
        f"{OBJECTS}/2-3444025",
        {**READ, "limit": "25"},
    ),
    Call(
        "objects.get",
        {"objectType": "p1_car", "objectId": "7", **READING, "idProperty": "crm_vin"},
        f"{OBJECTS}/p1_car/7",
        {**READ, "idProperty": "hs_vin"},
    ),
    Call("schemas.list", {"archived": False}, SCHEMAS, {"archived": "false"}),
    Call("schemas.get", {"objectType": "p1_car"}, f"{SCHEMAS}/p1_car"),
]

ONE_FILTER = {"filters": [{"propertyName": "email", "operator": "EQ", "value": "x"}]}
NEXT = {"paging": {"next": {"after": "25", "link": f"{ORIGIN}/next"}}}

REFUSED = [
    Refused("contacts.api_search", {"filterGroups": [ONE_FILTER] * 7}, "filterGroups", "at most 6 items"),
    Refused("contacts.api_search", {"query": "x" * 3001}, "query", "at most 3000 characters"),
    Refused("contacts.api_search", {"limit": 201}, "limit", "at most 200"),
    Refused(
        "contacts.api_search",
        {"filterGroups": [{"filters": [{"operator": "LIKE"}]}]},
        "filterGroups.0.filters.0.operator",
        "allowed: BETWEEN, CONTAINS_TOKEN, EQ",
    ),
    Refused(
        "contacts.api_search",
        {"filterGroups": [{"filters": [{"property": "email"}]}]},
        "filterGroups.0.filters.0.property",
        "did you mean propertyName?",
    ),
    Refused(
        "contacts.api_search",
        {"filterGroups": [{"filters": [{"value": 5}]}]},
        "filterGroups.0.filters.0.value",
        "expected string",
    ),
    Refused(
        "contacts.api_search",
        {"sorts": [{"propertyName": "email", "direction": "UP"}]},
        "sorts.0.direction",
        "ASCENDING, DESCENDING",
    ),
    Refused("contacts.api_search", {"properties": "email"}, "properties", "expected array"),
    Refused("contacts.create", {}, "properties", "properties is missing"),
    Refused("contacts.create", {"properties": {}}, "properties", "at least 1"),
    Refused("deals.create", {"properties": {"amount": 5}}, "properties.amount", "expected string"),
    Refused(
        "deals.create",
        {"properties": {"dealname": "x"}, "associations": [{"to": {"id": "1"}, "types": []}]},
        "associations.0.types",
        "at least 1",
    ),
    Refused("deals.update", {"dealId": "1"}, "properties", "properties is missing"),
    Refused("contacts.list", {"limit": 101}, "limit", "at most 100"),
    Refused(
        "contacts.list",
        {"limit": 51, "propertiesWithHistory": "email"},
        "limit",
        "at most 50 with propertiesWithHistory",
    ),
    Refused("objects.list", {}, "objectType", "objectType is missing"),
    Refused("contacts.list", {"properties": [["email"]]}, "properties", "expected string"),
    Refused("contacts.get", {"id": "1"}, "contactId", "contactId is missing", ["id"]),
]
FAILURES = [
    Failure(
        "contacts.list",
        status,
        {"status": "error", "message": "no", "correlationId": "c-1", "category": category},
        error,
        category,
        "no",
        "c-1",
    )
    for status, category, error in [
        (400, "VALIDATION_ERROR", UpstreamRejected),
        (401, "EXPIRED_AUTHENTICATION", ReauthorizationRequired),
        (403, "MISSING_SCOPES", UpstreamRejected),
        (404, "OBJECT_NOT_FOUND", UpstreamNotFound),
        (409, "CONFLICT", UpstreamRejected),
        (423, "LOCKED", UpstreamBusy),
        (429, "RATE_LIMITS", UpstreamRateLimited),
        (500, "INTERNAL", UpstreamError),
    ]
]
BAD_CREDENTIALS = [
    BadCredentials({"access_token": "x"}, "refresh_token"),
    BadCredentials({"private_app_token": ""}, "private_app_token"),
    BadCredentials({"private_app_token": "x", "api_key": "y"}, "api_key"),
]
PAGES = [
    Pages(
        "deals.list",
        {"limit": 1},
        [{"results": [{"id": "1"}], **NEXT}, {"results": [{"id": "2"}]}],
        [[{"id": "1"}], [{"id": "2"}]],
        [f"{OBJECTS}/deals?limit=1", f"{OBJECTS}/deals?limit=1&after=25"],
    )
]
CASES = Cases(
    "crm-records",
    ORIGIN,
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(PRIVATE_APP, "Bearer private"), (OAUTH, "Bearer bearing")],
    check=(f"{OBJECTS}/contacts?limit=1", {"results": []}),
    pages=PAGES,
    bad_credentials=BAD_CREDENTIALS,
)
