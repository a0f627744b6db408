"""Team chat: users and channels; every error of a call except the rate limit is a 200 with `ok: false`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from gateway.sandbox import words
from gateway.sandbox.application import Route
from gateway.sandbox.calls import Call, Handler, Refusal, Reply
from gateway.sandbox.kinds.team_chat.arguments import required
from gateway.sandbox.kinds.team_chat.channels import Channels
from gateway.sandbox.kinds.team_chat.messages import Messages
from gateway.sandbox.kinds.team_chat.workspace import BOT, TEAM, Workspace
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.store import Row

_LETTERS: Mapping[str, str] = {"users": "U", "channels": "C", "bookmarks": "Bk", "scheduled_messages": "Q"}


class TeamChat(Workspace):
    """One workspace; the connector's user is a member of every ready-made channel."""

    counts: ClassVar = {"users": 240, "channels": 40}
    references: ClassVar = {"creator": "users"}
    codes: ClassVar = {
        400: "invalid_arguments",
        401: "invalid_auth",
        403: "missing_scope",
        404: "channel_not_found",
        422: "invalid_arguments",
        429: "ratelimited",
        500: "internal_error",
        503: "internal_error",
    }
    tokens: ClassVar = TokenStyle(
        lifetime=43_200,
        rotates=True,
        client_authentication=("basic", "body"),
        fails_softly=True,
        outputs=lambda call, pair: {
            "bot_user_id": BOT,
            "app_id": "A00000001",
            "team": {"id": TEAM, "name": "Sandbox"},
            "enterprise": None,
            "authed_user": {"id": "U00000002"},
        },
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.messages = Messages(self)
        self._channels = Channels(self)

    def usual_id(self, table: str, number: int) -> str:
        return f"{_LETTERS.get(table, 'X')}{number:08d}"

    def rows_of(self, table: str) -> Iterable[Row]:
        return self.messages.ready_made() if table == "messages" else super().rows_of(table)

    def ready_made_row(self, table: str, number: int) -> Row:
        row = super().ready_made_row(table, number)
        record = row.record
        if table == "users":
            record |= {"team_id": TEAM, "is_bot": number == 1, "tz": "Europe/Berlin", "tz_offset": 3600}
            record["name"] = f"{record['real_name']}.{number}".lower().replace(" ", ".")
            record["profile"] = {"real_name": record["real_name"], "email": f"user{number}@example.com"}
        elif table == "channels":
            topic = words.TOPICS[number % len(words.TOPICS)].lower().replace(" ", "-")
            record |= self.channel_members("general" if number == 1 else f"{topic}-{number}", number % 8 == 0)
            record |= {"is_general": number == 1, "is_archived": number % 20 == 19, "num_members": 12}
            members = (*range(2, 14), self.count_of("users"))
            row.refs["members"] = {BOT, *(self.id_of("users", place) for place in members)}
        return row

    # Requests and responses

    def refused(self, refusal: Refusal) -> Reply:
        """An error has the status 200, except 429 and server errors."""
        reply = super().refused(refusal)
        return reply if reply.status == 429 or reply.status >= 500 else replace(reply, status=200)

    def authorize(self, call: Call) -> None:
        if not call.headers.get("authorization"):
            raise Refusal(401, "not_authed")
        try:
            super().authorize(call)
        except Refusal as refusal:
            raise Refusal(401, "invalid_auth") from refusal

    # Methods

    def handlers(self) -> dict[str, Handler]:
        reading: dict[str, Handler] = {
            "users.list": lambda call: self.page("members", list(self.store.table("users")), call, 200),
            "users.info": self.user,
            "conversations.list": self._channels.list_some,
            "conversations.info": lambda call: Reply({"ok": True, "channel": self.channel(call).record}),
            "conversations.history": self.messages.history,
            "conversations.replies": self.messages.replies,
        }
        writing: dict[str, Handler] = {
            "conversations.create": self._channels.create,
            "conversations.rename": self._channels.rename,
            "conversations.archive": self._channels.archive,
            "conversations.setTopic": lambda call: self._channels.describe("topic", call),
            "conversations.setPurpose": lambda call: self._channels.describe("purpose", call),
            "conversations.invite": self._channels.invite,
            "conversations.kick": self._channels.kick,
            "bookmarks.add": self.bookmark,
            **self.messages.writing(),
        }
        return {f"GET /{name}": handler for name, handler in reading.items()} | {
            f"POST /{name}": handler for name, handler in writing.items()
        }

    def routes(self) -> list[Route]:
        """The routes; methods that read also accept a POST with a form, and ignore a JSON body."""
        found = super().routes()
        also = [
            Route("POST", route.path, _ignoring_json(route.handler))
            for route in found
            if route.method == "GET" and route.path.startswith(self.prefix) and not route.is_open
        ]
        return [*found, *also]

    def user(self, call: Call) -> Reply:
        row = self.store.table("users").get(required(call, "user"))
        if row is None:
            raise Refusal(404, "user_not_found")
        return Reply({"ok": True, "user": row.record})

    def bookmark(self, call: Call) -> Reply:
        row = self.open_channel(call, "channel_id")
        kept = {name: call.body.get(name) for name in ("title", "type", "link", "emoji")}
        stamps = {"channel_id": row.id, "date_created": int(call.now), "date_updated": 0, "rank": "i"}
        return Reply({"ok": True, "bookmark": self.add_row("bookmarks", {**stamps, **kept}, call.now).record})


def _ignoring_json(handler: Handler) -> Handler:
    return lambda call: handler(call if call.is_form else replace(call, body={}))
