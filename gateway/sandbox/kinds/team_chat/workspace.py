"""One workspace of the team chat: its channels by name, and lists as pages."""

from collections.abc import Sequence

from gateway.sandbox import paging
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Call, Record, Refusal, Reply
from gateway.sandbox.kinds.team_chat.arguments import arguments, required
from gateway.sandbox.store import Row

TEAM = "T00000001"
#: the user of the app's token
BOT = "U00000001"


class Workspace(Application):
    """Access to channels, and paging; used for channels and messages."""

    @staticmethod
    def channel_members(name: str, is_private: bool) -> Record:
        """Members that follow from a channel's name and type."""
        kind = {"is_channel": not is_private, "is_group": is_private, "is_private": is_private, "is_member": True}
        return {"name": name, "name_normalized": name, "context_team_id": TEAM, **kind}

    def page(self, name: str, rows: Sequence[Row], call: Call, usual: int, *, with_has_more: bool = False) -> Reply:
        """A page by cursor; the cursor of the last page is empty."""
        asked = arguments(call)
        try:
            size = paging.size_asked(asked, "limit", usual, 1000)
        except paging.BadPage as error:
            raise Refusal(400, "invalid_limit") from error
        try:
            found = paging.portion(rows, paging.after(rows, asked.get("cursor"), call.path), size)
        except paging.BadPage as error:
            raise Refusal(400, "invalid_cursor") from error
        following = paging.cursor_after(found, call.path) if found.has_more else ""
        more = {"has_more": found.has_more} if with_has_more else {}
        shown = [row.record for row in found.items]
        return Reply({"ok": True, name: shown, **more, "response_metadata": {"next_cursor": following}})

    def channel(self, call: Call, member: str = "channel") -> Row:
        """The channel that the call names."""
        row = self.store.table("channels").get(required(call, member))
        if row is None:
            raise Refusal(404, "channel_not_found")
        return row

    def open_channel(self, call: Call, member: str = "channel") -> Row:
        row = self.channel(call, member)
        if row.record["is_archived"]:
            raise Refusal(400, "is_archived")
        return row
