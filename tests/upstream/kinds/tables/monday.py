"""The cases of monday.com: GraphQL, numbered pages without an end, items within their board, errors with status 200."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, GraphQL, Pages, Refused

BOARD, ITEM, POST = {"board_id": "1"}, {"item_id": "2"}, {"id": "3"}
DONE, AS_TEXT = {"column_values": {"status": {"label": "Done"}}}, {"column_values": '{"status":{"label":"Done"}}'}
#: lists with numbered pages, and how many records a page has by default
NUMBERED = {"users": 1000, "boards": 25, "updates": 25, "workspaces": 25}
MUTATIONS = [
    ("boards.create", {"board_name": "Launch"}, "create_board(", {"board_name": "Launch", "board_kind": "public"}),
    ("boards.archive", BOARD, "archive_board(", BOARD),
    ("boards.delete", BOARD, "delete_board(", BOARD),
    ("boards.create_group", {**BOARD, "group_name": "Next"}, "create_group(", {**BOARD, "group_name": "Next"}),
    ("items.create", {**BOARD, "item_name": "Call", **DONE}, "create_item(", {**BOARD, "item_name": "Call", **AS_TEXT}),
    ("items.create_subitem", {"parent_item_id": "2", "item_name": "Call"}, "create_subitem(",
     {"parent_item_id": "2", "item_name": "Call"}),
    ("items.update", {**BOARD, **ITEM, **DONE}, "change_multiple_column_values(", {**BOARD, **ITEM, **AS_TEXT}),
    ("items.move", {**ITEM, "group_id": "topics"}, "move_item_to_group(", {**ITEM, "group_id": "topics"}),
    ("items.archive", ITEM, "archive_item(", ITEM),
    ("items.delete", ITEM, "delete_item(", ITEM),
    ("tags.create", {"tag_name": "urgent"}, "create_or_get_tag(", {"tag_name": "urgent"}),
    ("updates.create", {**ITEM, "body": "Hi", "parent_id": "3"}, "create_update(",
     {**ITEM, "body": "Hi", "parent_id": "3"}),
    ("updates.update", {**POST, "body": "Hi"}, "edit_update(", {**POST, "body": "Hi"}),
    ("updates.delete", POST, "delete_update(", POST),
    ("workspaces.create", {"name": "Brand"}, "create_workspace(", {"name": "Brand", "kind": "open"}),
]  # fmt: skip
QUERIES = [
    *((f"{entity}.list", {}, f"{entity}(page", {"page": 1, "limit": size}) for entity, size in NUMBERED.items()),
    *((f"{entity}.get", {"id": "7"}, f"{entity}(ids", {"ids": "7"}) for entity in (*NUMBERED, "items", "teams")),
    ("users.list", {"page": 2, "limit": 5}, "users(page", {"page": 2, "limit": 5}),
    ("teams.list", {}, "teams {", {}),
    ("tags.list", {}, "tags {", {}),
    ("items.list", BOARD, "items_page(limit", {"boardId": "1", "limit": 100}),
    ("items.list", {**BOARD, "limit": 5, "cursor": "c1"}, "items_page(limit",
     {"boardId": "1", "limit": 5, "cursor": "c1"}),
    ("activity_logs.list", BOARD, "activity_logs(limit", {"boardIds": "1"}),
    ("activity_logs.list", {**BOARD, "limit": 5, "page": 2, "from": "2026-01-31T00:00:00Z"}, "activity_logs(limit",
     {"boardIds": "1", "limit": 5, "page": 2, "from": "2026-01-31T00:00:00Z"}),
]  # fmt: skip
CALLS = [
    Call(action, params, "/v2", {}, "POST", GraphQL(text, variables))
    for action, params, text, variables in QUERIES + MUTATIONS
]
REFUSED = [
    Refused("users.list", {"limit": 1001}, "limit", "at most 1000"),
    Refused("items.list", {}, "board_id", "board_id is missing"),
    Refused("items.update", {**BOARD, **ITEM, "column_values": {}}, "column_values", "at least 1"),
    Refused("boards.create", {"board_name": "Launch", "board_kind": "secret"}, "board_kind", "private"),
]


def items_of(items: list[dict[str, str]], cursor: str | None) -> dict[str, object]:
    return {"data": {"boards": [{"items_page": {"cursor": cursor, "items": items}}]}}


ANSWERS = [
    Answer("users.get", {"data": {"users": [{"id": "7"}]}}, {"id": "7"}, None),
    Answer("users.list", {"data": {"users": [{"id": "7"}]}}, [{"id": "7"}], None),
    Answer("items.list", items_of([{"id": "2"}], "c1"), [{"id": "2"}], {"cursor": "c1"}),
    Answer("items.list", {"data": {"boards": []}}, [], {"cursor": None}),
    Answer("activity_logs.list", {"data": {"boards": [{"activity_logs": [{"id": "9"}]}]}}, [{"id": "9"}], None),
    Answer("items.create", {"data": {"create_item": {"id": "2"}}}, {"id": "2"}, None),
]
FAILURES = [
    Failure("users.get", status, {"errors": [{"message": "It failed", "extensions": {"code": code}}],
                                  "extensions": {"request_id": "r1"}}, error, code, "It failed", "r1", **more)
    for status, code, error, more in [
        (200, "UserUnauthorizedException", UpstreamRejected, {}),
        (200, "InvalidColumnIdException", UpstreamRejected, {}),
        (401, "NOT_AUTHENTICATED", ReauthorizationRequired, {}),
        (200, "ResourceNotFoundException", UpstreamNotFound, {}),
        (200, "COMPLEXITY_BUDGET_EXHAUSTED", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (429, "IP_RATE_LIMIT_EXCEEDED", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "INTERNAL_SERVER_ERROR", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "items.list",
        {**BOARD, "limit": 1},
        [items_of([{"id": "2"}], "c1"), items_of([{"id": "1"}], None)],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/v2", "/v2"],
        [
            GraphQL("items_page(", {"boardId": "1", "limit": 1}),
            GraphQL("items_page(", {"boardId": "1", "limit": 1, "cursor": "c1"}),
        ],
    ),
    Pages(
        "users.list",
        {"limit": 1},
        [{"data": {"users": [{"id": "2"}]}}, {"data": {"users": []}}],
        [[{"id": "2"}], []],
        ["/v2", "/v2"],
        [GraphQL("users(", {"page": 1, "limit": 1}), GraphQL("users(", {"page": 2, "limit": 1})],
    ),
]
CASES = Cases(
    "monday",
    "https://api.monday.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "t"}, "Bearer t"), ({"access_token": "t"}, "Bearer t")],
    check=("/v2", {"data": {"users": [{"id": "7"}]}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"client_id": "app"}, "access_token")],
    headers={"API-Version": "2026-07"},
)
