"""Channels of the team chat: their names, topics and members."""

from gateway.sandbox.calls import Call, Refusal, Reply
from gateway.sandbox.kinds.team_chat.arguments import arguments, required
from gateway.sandbox.kinds.team_chat.workspace import BOT, Workspace
from gateway.sandbox.store import Row


class Channels:
    """The channels of one workspace."""

    def __init__(self, chat: Workspace) -> None:
        self._chat = chat

    def list_some(self, call: Call) -> Reply:
        asked = arguments(call)
        types = {part.strip() for part in str(asked.get("types") or "public_channel").split(",")}
        rows = [row for row in self._chat.store.table("channels") if _type_of(row) in types]
        if asked.get("exclude_archived") == "true":
            rows = [row for row in rows if not row.record["is_archived"]]
        return self._chat.page("channels", rows, call, 100)

    def create(self, call: Call) -> Reply:
        name = self._free_name(call)
        members = self._chat.channel_members(name, bool(call.body.get("is_private")))
        times = {"created": int(call.now), "creator": BOT, "is_archived": False, "num_members": 1}
        row = self._chat.add_row("channels", {**members, **times}, call.now)
        row.refs["members"] = {BOT}
        return Reply({"ok": True, "channel": row.record})

    def rename(self, call: Call) -> Reply:
        row = self._chat.open_channel(call)
        old, name = row.record["name"], self._free_name(call)
        previous = [*(row.record.get("previous_names") or []), old]
        self._chat.change(row, {"name": name, "name_normalized": name, "previous_names": previous}, call.now)
        return Reply({"ok": True, "channel": row.record})

    def _free_name(self, call: Call) -> str:
        name = required(call, "name")
        if name != name.lower() or " " in name:
            raise Refusal(400, "invalid_name_specials")
        if len(name) > 80:
            raise Refusal(400, "invalid_name_maxlength")
        if any(row.record["name"] == name for row in self._chat.store.table("channels")):
            raise Refusal(400, "name_taken")
        return name

    def archive(self, call: Call) -> Reply:
        row = self._chat.channel(call)
        if row.record["is_archived"]:
            raise Refusal(400, "already_archived")
        if row.record.get("is_general"):
            raise Refusal(400, "cant_archive_general")
        self._chat.change(row, {"is_archived": True}, call.now)
        return Reply({"ok": True})

    def describe(self, member: str, call: Call) -> Reply:
        row = self._chat.open_channel(call)
        text = {"value": required(call, member), "creator": BOT, "last_set": int(call.now)}
        self._chat.change(row, {member: text}, call.now)
        return Reply({"ok": True, "channel": row.record})

    def invite(self, call: Call) -> Reply:
        row = self._chat.open_channel(call)
        wanted = [part.strip() for part in required(call, "users").split(",")]
        if any(self._chat.store.table("users").get(user) is None for user in wanted):
            raise Refusal(404, "user_not_found")
        if all(user in row.refs["members"] for user in wanted):
            raise Refusal(400, "already_in_channel")
        row.refs["members"] |= set(wanted)
        self._chat.change(row, {"num_members": len(row.refs["members"])}, call.now)
        return Reply({"ok": True, "channel": row.record})

    def kick(self, call: Call) -> Reply:
        row, user = self._chat.open_channel(call), required(call, "user")
        if user == BOT:
            raise Refusal(400, "cant_kick_self")
        if user not in row.refs["members"]:
            raise Refusal(400, "not_in_channel")
        row.refs["members"].discard(user)
        self._chat.change(row, {"num_members": len(row.refs["members"])}, call.now)
        return Reply({"ok": True, "errors": {}})


def _type_of(row: Row) -> str:
    return "private_channel" if row.record["is_private"] else "public_channel"
