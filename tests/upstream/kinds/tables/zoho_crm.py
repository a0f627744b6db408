"""The cases of Zoho CRM: numbered pages, records in lists of one, errors within responses of success."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "3652397000003852095"
PAGE = {"page": "1", "per_page": "200"}
MODULES = {
    name: name.capitalize()
    for name in (
        *("leads", "contacts", "accounts", "deals", "campaigns", "tasks", "events", "calls", "products", "quotes"),
        *("invoices", "notes"),
    )
}
WRITTEN = {
    "leads": {"lead": {"Last_Name": "Burns", "Email": "a@b.cd", "My_Field": 5}},
    "contacts": {"contact": {"Last_Name": "Burns", "Account_Name": {"id": ID}}},
    "accounts": {"account": {"Account_Name": "Example"}},
    "deals": {"deal": {"Deal_Name": "Renewal", "Stage": "Qualification", "Amount": 50}},
    "tasks": {"task": {"Subject": "Call", "Due_Date": "2026-12-01", "What_Id": {"id": ID}, "$se_module": "Deals"}},
}
NOTE = {"Note_Content": "Wants a demo", "Parent_Id": ID, "se_module": "Leads"}
CALLS = [
    *(Call(f"{name}.list", {}, f"/crm/v2/{module}", PAGE) for name, module in MODULES.items()),
    *(Call(f"{name}.get", {"id": ID}, f"/crm/v2/{module}/{ID}") for name, module in MODULES.items()),
    Call("leads.list", {"page": 2, "per_page": 5, "sort_by": "Modified_Time", "sort_order": "desc"}, "/crm/v2/Leads",
         {"page": "2", "per_page": "5", "sort_by": "Modified_Time", "sort_order": "desc"}),
    Call("deals.list", {"page_token": "t", "fields": ["Stage", "Amount"]}, "/crm/v2/Deals",
         {**PAGE, "page_token": "t", "fields": "Stage,Amount"}),
    *(
        Call(f"{name}.api_search", {"word": "Burns"}, f"/crm/v2/{MODULES[name]}/search", {"word": "Burns", **PAGE})
        for name in ("leads", "contacts", "accounts", "deals")
    ),
    *(
        Call(f"{name}.create", given, f"/crm/v2/{MODULES[name]}", method="POST", body={"data": [*given.values()]})
        for name, given in WRITTEN.items()
    ),
    *(
        Call(f"{name}.update", {"id": ID, **given}, f"/crm/v2/{MODULES[name]}/{ID}", method="PUT",
             body={"data": [*given.values()]})
        for name, given in WRITTEN.items()
    ),
    *(Call(f"{name}.delete", {"id": ID}, f"/crm/v2/{MODULES[name]}/{ID}", method="DELETE") for name in WRITTEN),
    Call("leads.create", {**WRITTEN["leads"], "trigger": ["workflow"]}, "/crm/v2/Leads", method="POST",
         body={"data": [WRITTEN["leads"]["lead"]], "trigger": ["workflow"]}),
    Call("notes.create", {"note": NOTE}, "/crm/v2/Notes", method="POST", body={"data": [NOTE]}),
]  # fmt: skip
REFUSED = [
    Refused("leads.list", {"per_page": 201}, "per_page", "at most 200"),
    Refused("leads.create", {"lead": {"Company": "Example"}}, "lead.Last_Name", "lead.Last_Name is missing"),
    Refused("deals.update", {"id": ID, "deal": {}}, "deal", "at least 1 members"),
    Refused("contacts.api_search", {}, "", "exactly one of criteria, email, phone, word"),
    Refused("leads.get", {"id": "a"}, "id", "must match"),
]
LAST = {"more_records": False, "page": 1}
DONE = {"code": "SUCCESS", "details": {"id": ID}, "message": "record added", "status": "success"}
ANSWERS = [
    Answer("leads.list", {"data": [{"id": ID}], "info": {**LAST, "count": 1}}, [{"id": ID}], LAST),
    Answer("leads.get", {"data": [{"id": ID}]}, {"id": ID}, None),
    Answer("leads.create", {"data": [DONE]}, DONE, None),
]
REFUSAL = {"code": "MANDATORY_NOT_FOUND", "details": {"api_name": "Last_Name"}, "message": "no", "status": "error"}
FAILURES = [
    *(
        Failure("leads.get", status, {"code": code, "details": {}, "message": "no", "status": "error"}, error, code,
                "no", **more)
        for status, code, error, more in [
            (400, "INVALID_DATA", UpstreamRejected, {}),
            (401, "INVALID_TOKEN", ReauthorizationRequired, {}),
            (403, "NO_PERMISSION", UpstreamRejected, {}),
            (404, "INVALID_URL_PATTERN", UpstreamNotFound, {}),
            (429, "TOO_MANY_REQUESTS", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
            (500, "INTERNAL_ERROR", UpstreamError, {}),
        ]
    ),
    *(
        Failure("leads.create", status, {"data": [REFUSAL]}, UpstreamRejected, "MANDATORY_NOT_FOUND", "no",
                field="Last_Name")
        for status in (200, 202, 400)
    ),
]  # fmt: skip
PAGES = [
    Pages(
        "leads.list",
        {"per_page": 1},
        [
            {"data": [{"id": "2"}], "info": {"more_records": True, "page": 1}},
            {"data": [{"id": "1"}], "info": {"more_records": False, "page": 2}},
        ],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/crm/v2/Leads?page=1&per_page=1", "/crm/v2/Leads?page=2&per_page=1"],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "zoho-crm",
    "https://www.zohoapis.eu",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Zoho-oauthtoken t")],
    check=("/crm/v2/Leads?page=1&per_page=1", {"data": [], "info": LAST}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
    environment={"dc_region": "eu"},
)
