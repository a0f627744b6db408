"""The cases of Zendesk Chat: lists that are the whole response, bans in two lists, exports of changes."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

AT = "https://acme.zendesk.com/api/v2/chat"
#: records that are read and deleted by a number: the path, and the param
NUMBERED = {
    "departments": "department_id",
    "goals": "goal_id",
    "roles": "role_id",
    "skills": "skill_id",
}
EXPORT = {"limit": "1000"}
SHORTCUT = {"message": "Hi", "tags": ["a"]}
DEFINITION = {
    "event": "page_enter",
    "condition": ["eq", "@visitor_country_code", "de"],
    "actions": [["setTriggered", 1]],
}
CALLS = [
    Call("accounts.get", {}, "/account"),
    Call("agents.list", {}, "/agents", {"limit": "100"}),
    Call("agents.list", {"limit": 5, "since_id": 7}, "/agents", {"limit": "5", "since_id": "7"}),
    Call("agents.get", {"agent_id": 7}, "/agents/7"),
    Call("agents.update", {"agent_id": 7, "enabled": False}, "/agents/7", method="PUT", body={"enabled": False}),
    Call("agent_timeline.list", {"start_time": 1}, "/incremental/agent_timeline",
         {"start_time": "1", "fields": "agent_timeline(*)", **EXPORT}),
    Call("bans.list", {"since_id": 7}, "/bans", {"limit": "100", "since_id": "7"}),
    Call("bans.get", {"ban_id": 7}, "/bans/7"),
    Call("bans.create", {"type": "visitor", "visitor_id": "v1", "reason": "Spam"}, "/bans", method="POST",
         body={"type": "visitor", "visitor_id": "v1", "reason": "Spam"}),
    Call("bans.delete", {"ban_id": 7}, "/bans/7", method="DELETE"),
    Call("chats.list", {}, "/incremental/chats", {"fields": "chats(*)", **EXPORT}),
    Call("chats.list", {"start_time": 1, "limit": 10}, "/incremental/chats",
         {"start_time": "1", "limit": "10", "fields": "chats(*)"}),
    Call("chats.get", {"chat_id": "1.2.Ty"}, "/chats/1.2.Ty"),
    Call("chats.api_search", {"q": "refund", "page": 2}, "/chats/search", {"q": "refund", "page": "2"}),
    Call("chats.delete", {"chat_id": "1.2.Ty"}, "/chats/1.2.Ty", method="DELETE"),
    *(Call(f"{entity}.list", {}, f"/{entity}") for entity in (*NUMBERED, "shortcuts", "triggers")),
    *(Call(f"{entity}.get", {name: 7}, f"/{entity}/7") for entity, name in NUMBERED.items()),
    *(Call(f"{entity}.delete", {name: 7}, f"/{entity}/7", method="DELETE")
      for entity, name in NUMBERED.items() if entity != "roles"),
    *(Call(f"{entity}.create", {"name": "Sales", "members": [1]}, f"/{entity}", method="POST",
           body={"name": "Sales", "members": [1]}) for entity in ("departments", "skills")),
    *(Call(f"{entity}.update", {NUMBERED[entity]: 7, "enabled": True}, f"/{entity}/7", method="PUT",
           body={"enabled": True}) for entity in ("departments", "skills")),
    Call("routing_settings.get", {}, "/routing_settings/account"),
    Call("routing_settings.update", {"routing_mode": "assigned"}, "/routing_settings/account", method="PATCH",
         body={"routing_mode": "assigned"}),
    Call("shortcuts.get", {"shortcut_id": 7}, "/shortcuts/7"),
    Call("shortcuts.get", {"shortcut_id": "hello you"}, "/shortcuts/hello%20you"),
    Call("shortcuts.create", {"name": "hello", **SHORTCUT}, "/shortcuts", method="POST",
         body={"name": "hello", **SHORTCUT}),
    Call("shortcuts.update", {"shortcut_id": "hello", **SHORTCUT}, "/shortcuts/hello", method="PUT", body=SHORTCUT),
    Call("shortcuts.delete", {"shortcut_id": "hello"}, "/shortcuts/hello", method="DELETE"),
    Call("triggers.create", {"name": "Greeting", "definition": DEFINITION}, "/triggers", method="POST",
         body={"name": "Greeting", "definition": DEFINITION}),
    Call("triggers.update", {"trigger_id": 7, "enabled": False}, "/triggers/7", method="PUT", body={"enabled": False}),
    Call("triggers.delete", {"trigger_id": 7}, "/triggers/7", method="DELETE"),
]  # fmt: skip
REFUSED = [
    Refused("agents.list", {"limit": 101}, "limit", "at most 100"),
    Refused("chats.list", {"start_time": -1}, "start_time", "at least 0"),
    Refused("shortcuts.create", {"name": "a/b", "message": "Hi"}, "name", "^[^/"),
    Refused("bans.create", {"type": "visitor", "reason": "Spam"}, "", "visitor_id"),
]
NEXT = f"{AT}/incremental/chats?start_time=9"
BANS = {"visitor": [{"id": 7, "type": "visitor"}], "ip_address": [{"id": 8, "type": "ip_address"}]}
ANSWERS = [
    Answer("agents.list", [{"id": 7}], [{"id": 7}], None),
    Answer("bans.list", BANS, [{"id": 7, "type": "visitor"}, {"id": 8, "type": "ip_address"}], None),
    Answer("bans.list", {"visitor": [], "ip_address": []}, [], None),
    Answer("chats.list", {"chats": [{"id": "7"}], "next_page": NEXT, "count": 1}, [{"id": "7"}],
           {"next_page": NEXT, "count": 1}),
    Answer("routing_settings.get", {"data": {"routing_mode": "assigned"}}, {"routing_mode": "assigned"}, None),
]  # fmt: skip
FAILURES = [
    Failure("agents.get", status, {"error": code, "message": "It failed"}, error, code, "It failed", **more)
    for status, code, error, more in [
        (400, "input_error", UpstreamRejected, {}),
        (401, "unauthorized", ReauthorizationRequired, {}),
        (403, "forbidden", UpstreamRejected, {}),
        (404, "not_found", UpstreamNotFound, {}),
        (429, "rate_limit", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "internal_error", UpstreamError, {}),
    ]
]
PAGES = [
    Pages(
        "agents.list",
        {"limit": 2},
        [[{"id": 2}, {"id": 5}], []],
        [[{"id": 2}, {"id": 5}], []],
        ["/api/v2/chat/agents?limit=2", "/api/v2/chat/agents?limit=2&since_id=5"],
    ),
    Pages(
        "chats.list",
        {"start_time": 1, "limit": 2},
        [
            {"chats": [{"id": "1"}, {"id": "2"}], "next_page": NEXT, "count": 2},
            {"chats": [{"id": "2"}], "next_page": NEXT, "count": 1},
        ],
        [[{"id": "1"}, {"id": "2"}], [{"id": "2"}]],
        [
            "/api/v2/chat/incremental/chats?start_time=1&limit=2&fields=chats%28%2A%29",
            "/api/v2/chat/incremental/chats?start_time=9&limit=2&fields=chats%28%2A%29",
        ],
    ),
]
CASES = Cases(
    "zendesk-chat",
    AT,
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"access_token": "t"}, "Bearer t")],
    check=("/api/v2/chat/agents?limit=1", []),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "access_token")],
    environment={"subdomain": "acme"},
)
