"""The cases of Harvest: cursors in links, reports with page numbers, an account id in a header."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

LISTS = (
    "users",
    "clients",
    "contacts",
    "projects",
    "tasks",
    "time_entries",
    "invoices",
    "invoice_item_categories",
    "estimates",
    "estimate_item_categories",
    "expenses",
    "expense_categories",
    "roles",
)
ASSIGNMENTS = ("user_assignments", "task_assignments")
PAGE = {"per_page": "50"}
PERIOD = {"from": "20260101", "to": "20260131"}
SINCE = {"updated_since": "2026-01-01T00:00:00Z"}
TIME = {"project_id": 3, "task_id": 4, "spent_date": "2026-03-21", "hours": 1.5}
PROJECT = {"client_id": 5, "name": "Site", "is_billable": True, "bill_by": "none", "budget_by": "none"}
COST = {"project_id": 3, "expense_category_id": 6, "spent_date": "2026-03-21", "total_cost": 13.59}
CALLS = [
    *(Call(f"{entity}.list", {}, f"/{entity}", PAGE) for entity in (*LISTS, *ASSIGNMENTS)),
    *(Call(f"{entity}.get", {"id": 7}, f"/{entity}/7") for entity in LISTS),
    Call("company.get", {}, "/company"),
    Call("time_projects.list", PERIOD, "/reports/time/projects", {**PERIOD, **PAGE}),
    Call("time_tasks.list", PERIOD, "/reports/time/tasks", {**PERIOD, **PAGE}),
    Call("time_tasks.list", {**PERIOD, "page": 2}, "/reports/time/tasks", {**PERIOD, "page": "2", **PAGE}),
    Call("time_entries.list", {"per_page": 5, "cursor": "c1", "is_billed": False, **SINCE}, "/time_entries",
         {"per_page": "5", "cursor": "c1", "is_billed": "false", **SINCE}),
    Call("invoices.list", {"state": "open", "client_id": 5}, "/invoices", {"state": "open", "client_id": "5", **PAGE}),
    Call("time_entries.create", TIME, "/time_entries", method="POST", body=TIME),
    Call("time_entries.update", {"id": 7, "notes": "Review"}, "/time_entries/7", method="PATCH",
         body={"notes": "Review"}),
    Call("time_entries.delete", {"id": 7}, "/time_entries/7", method="DELETE"),
    Call("time_entries.restart", {"id": 7}, "/time_entries/7/restart", method="PATCH"),
    Call("time_entries.stop", {"id": 7}, "/time_entries/7/stop", method="PATCH"),
    Call("clients.create", {"name": "Acme"}, "/clients", method="POST", body={"name": "Acme"}),
    Call("projects.create", PROJECT, "/projects", method="POST", body=PROJECT),
    Call("projects.update", {"id": 7, "budget": 120}, "/projects/7", method="PATCH", body={"budget": 120}),
    Call("tasks.create", {"name": "Design"}, "/tasks", method="POST", body={"name": "Design"}),
    Call("expenses.create", COST, "/expenses", method="POST", body=COST),
]  # fmt: skip
REFUSED = [
    Refused("clients.list", {"per_page": 2001}, "per_page", "at most 2000"),
    Refused("time_projects.list", {"from": "20260101"}, "to", "to is missing"),
    Refused("invoices.list", {"state": "late"}, "state", "paid"),
    Refused("time_entries.create", {"project_id": 3, "task_id": 4}, "spent_date", "spent_date is missing"),
]
NEXT = "https://api.harvestapp.com/v2/clients?cursor=c1&per_page=1&ref=next_cursor"
REPORT = "https://api.harvestapp.com/v2/reports/time/projects?from=20260101&page=2&per_page=1&to=20260131"
ANSWERS = [
    Answer("clients.list", {"clients": [{"id": 1}], "links": {"next": NEXT}}, [{"id": 1}], {"next_link": NEXT}),
    Answer("roles.list", {"roles": [], "links": {"next": None}}, [], {"next_link": None}),
    Answer("clients.get", {"id": 1, "name": "Acme"}, {"id": 1, "name": "Acme"}, None),
]
FAILURES = [
    Failure("clients.get", 401, {"error": "invalid_token", "error_description": "It failed"}, ReauthorizationRequired,
            "invalid_token", "It failed"),
    Failure("clients.get", 404, {"status": 404, "error": "Not Found"}, UpstreamNotFound, "Not Found", "Not Found"),
    *(
        Failure("clients.get", status, {"message": "It failed"}, error, None, "It failed", **more)
        for status, error, more in [
            (400, UpstreamRejected, {}),
            (403, UpstreamRejected, {}),
            (422, UpstreamRejected, {}),
            (429, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
            (500, UpstreamError, {}),
        ]
    ),
]  # fmt: skip
PAGES = [
    Pages(
        "clients.list",
        {"per_page": 1},
        [{"clients": [{"id": 2}], "links": {"next": NEXT}}, {"clients": [{"id": 1}], "links": {"next": None}}],
        [[{"id": 2}], [{"id": 1}]],
        ["/v2/clients?per_page=1", "/v2/clients?per_page=1&cursor=c1"],
    ),
    Pages(
        "time_projects.list",
        {**PERIOD, "per_page": 1},
        [
            {"results": [{"project_id": 2}], "links": {"next": REPORT}},
            {"results": [{"project_id": 1}], "links": {"next": None}},
        ],
        [[{"project_id": 2}], [{"project_id": 1}]],
        [
            "/v2/reports/time/projects?from=20260101&to=20260131&per_page=1",
            "/v2/reports/time/projects?from=20260101&to=20260131&page=2&per_page=1",
        ],
    ),
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s", "account_id": "1"}
CASES = Cases(
    "harvest",
    "https://api.harvestapp.com/v2",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"token": "t", "account_id": "1"}, "Bearer t"), (TOKENS, "Bearer t")],
    check=("/v2/company", {"name": "Acme"}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"token": "t"}, "account_id")],
)
