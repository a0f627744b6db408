"""Messages of the team chat: history, threads, posts, reactions and pins."""

from collections.abc import Iterable
from typing import Any

from gateway.sandbox import words
from gateway.sandbox.calls import Call, Handler, Record, Refusal, Reply
from gateway.sandbox.kinds.team_chat.arguments import arguments, required
from gateway.sandbox.kinds.team_chat.workspace import BOT, TEAM, Workspace
from gateway.sandbox.store import Row

#: ready-made messages of a channel, and replies in the thread of every tenth message
_MESSAGES, _REPLIES = 60, 3
_FIRST = 1_736_150_400
#: seconds between ready-made messages; maximum seconds that a message may be scheduled ahead
_PACE, _HORIZON = 7200, 120 * 86_400


class Messages:
    """All messages of one workspace, by channel and timestamp."""

    def __init__(self, chat: Workspace) -> None:
        self._chat = chat
        self._posted = 0

    def ready_made(self) -> Iterable[Row]:
        for place in range(1, self._chat.count_of("channels") + 1):
            channel = str(self._chat.id_of("channels", place))
            for number in range(max(1, round(_MESSAGES * self._chat.scale))):
                ts = f"{_FIRST + number * _PACE + place}.000100"
                replies = [f"{_FIRST + number * _PACE + place + 60 * reply}.000200" for reply in range(1, _REPLIES + 1)]
                has_thread = number % 10 == 0
                yield self._made(channel, ts, number + place, replies if has_thread else ())
                for reply in replies if has_thread else ():
                    yield self._made(channel, reply, number + place + 1, (), ts)
        yield from self._of_examples()

    def _of_examples(self) -> Iterable[Row]:
        """The message of the spec's examples; its author is the connector's user, so that it can be changed."""
        asked = self._chat.kind.operation("threads", "list").action.example
        if "channel" in asked and "ts" in asked:
            record = {"type": "message", "user": BOT, "text": words.SENTENCES[0], "ts": asked["ts"], "team": TEAM}
            yield Row(f"{asked['channel']}:{asked['ts']}", record, {"channel": asked["channel"], "thread": ""})

    def _made(self, channel: str, ts: str, number: int, replies: Iterable[str], thread: str = "") -> Row:
        author = self._chat.id_of("users", number % 200 + 2)
        text = words.SENTENCES[number % len(words.SENTENCES)]
        record: Record = {"type": "message", "user": author, "text": text, "ts": ts, "team": TEAM}
        if replies := list(replies):
            counts = {"reply_count": len(replies), "reply_users_count": 1, "reply_users": [author]}
            record |= {"thread_ts": ts, **counts, "latest_reply": replies[-1], "is_locked": False, "subscribed": False}
        if thread:
            record |= {"thread_ts": thread, "parent_user_id": author}
        return Row(f"{channel}:{ts}", record, {"channel": channel, "thread": thread})

    def writing(self) -> dict[str, Handler]:
        return {
            "chat.postMessage": self.post,
            "chat.update": self.update,
            "chat.delete": self.delete,
            "chat.postEphemeral": self.post_ephemeral,
            "chat.scheduleMessage": self.schedule,
            "reactions.add": self.react,
            "reactions.remove": self.remove_reaction,
            "pins.add": self.pin,
        }

    # Reading

    def history(self, call: Call) -> Reply:
        """The channel's messages, newest first, without the replies in threads."""
        channel = self._chat.channel(call)
        rows = [row for row in self._of(channel) if not row.refs["thread"] or row.refs.get("is_broadcast")]
        return self._page(_between(rows, call)[::-1], call)

    def replies(self, call: Call) -> Reply:
        """The thread, its parent first."""
        channel, ts = self._chat.channel(call), required(call, "ts")
        parent = self._found(channel, ts, "thread_not_found")
        rows = [row for row in self._of(channel) if row.refs["thread"] == parent.record["ts"]]
        return self._page([parent, *_between(rows, call)], call)

    def _page(self, rows: list[Row], call: Call) -> Reply:
        return self._chat.page("messages", rows, call, 100, with_has_more=True)

    def _of(self, channel: Row) -> list[Row]:
        rows = [row for row in self._chat.store.table("messages") if row.refs["channel"] == channel.id]
        return sorted(rows, key=lambda row: _moment(row.record["ts"]))

    def _found(self, channel: Row, ts: str, otherwise: str = "message_not_found") -> Row:
        row = self._chat.store.table("messages").get(f"{channel.id}:{ts}")
        if row is None:
            raise Refusal(404, otherwise)
        return row

    # Writing

    def post(self, call: Call) -> Reply:
        channel = self._chat.open_channel(call)
        thread = str(call.body.get("thread_ts") or "")
        parent = self._found(channel, thread, "thread_not_found") if thread else None
        ts = self._new_ts(call.now)
        record = self._message(call, ts)
        refs: dict[str, Any] = {"channel": channel.id, "thread": thread}
        if parent is not None:
            record |= {"thread_ts": thread, "parent_user_id": parent.record.get("user")}
            refs["is_broadcast"] = bool(call.body.get("reply_broadcast"))
            count = parent.record.get("reply_count") or 0
            parent.record |= {"thread_ts": thread, "reply_count": count + 1, "latest_reply": ts}
        self._chat.store.table("messages").put(Row(f"{channel.id}:{ts}", record, refs, call.now))
        return Reply({"ok": True, "channel": channel.id, "ts": ts, "message": record})

    def _message(self, call: Call, ts: str) -> Record:
        if not call.body.get("text") and not call.body.get("blocks"):
            raise Refusal(400, "no_text")
        bot = {"bot_id": "B00000001", "app_id": "A00000001", "bot_profile": {"id": "B00000001", "name": "sandbox"}}
        content = {name: call.body[name] for name in ("text", "blocks") if name in call.body}
        return {"type": "message", "user": BOT, "ts": ts, "team": TEAM, **bot, **content}

    def _new_ts(self, now: float) -> str:
        """A new timestamp, different from those of other messages."""
        self._posted += 1
        return f"{int(now)}.{self._posted % 1_000_000:06d}"

    def update(self, call: Call) -> Reply:
        channel = self._chat.open_channel(call)
        row = self._found(channel, str(call.body["ts"]))
        if row.record.get("user") != BOT:
            raise Refusal(403, "cant_update_message")
        content = {name: call.body[name] for name in ("text", "blocks") if name in call.body}
        row.record |= {**content, "edited": {"user": BOT, "ts": self._new_ts(call.now)}}
        row.changed = call.now
        self._chat.store.changed(row)
        answer = {"channel": channel.id, "ts": row.record["ts"], "text": row.record.get("text")}
        return Reply({"ok": True, **answer, "message": row.record})

    def delete(self, call: Call) -> Reply:
        channel = self._chat.channel(call)
        row = self._found(channel, str(call.body["ts"]))
        if row.record.get("user") != BOT:
            raise Refusal(403, "cant_delete_message")
        self._chat.store.table("messages").remove(row.id)
        return Reply({"ok": True, "channel": channel.id, "ts": row.record["ts"]})

    def post_ephemeral(self, call: Call) -> Reply:
        channel, user = self._chat.open_channel(call), str(call.body["user"])
        if user not in channel.refs["members"]:
            raise Refusal(404, "user_not_in_channel")
        return Reply({"ok": True, "message_ts": self._new_ts(call.now)})

    def schedule(self, call: Call) -> Reply:
        channel, post_at = self._chat.open_channel(call), int(call.body["post_at"])
        if post_at <= call.now:
            raise Refusal(400, "time_in_past")
        if post_at > call.now + _HORIZON:
            raise Refusal(400, "time_too_far")
        row = self._chat.add_row("scheduled_messages", {"channel": channel.id, "post_at": post_at}, call.now)
        members = {"channel": channel.id, "scheduled_message_id": row.id, "post_at": post_at}
        return Reply({"ok": True, **members, "message": self._message(call, "")})

    def react(self, call: Call) -> Reply:
        row = self._found(self._chat.open_channel(call), str(call.body["timestamp"]))
        name, reactions = str(call.body["name"]), row.record.setdefault("reactions", [])
        mine = next((one for one in reactions if one["name"] == name), None)
        if mine is not None and BOT in mine["users"]:
            raise Refusal(400, "already_reacted")
        if mine is None:
            reactions.append({"name": name, "users": [BOT], "count": 1})
        else:
            mine |= {"users": [*mine["users"], BOT], "count": mine["count"] + 1}
        return Reply({"ok": True})

    def remove_reaction(self, call: Call) -> Reply:
        row = self._found(self._chat.open_channel(call), str(call.body["timestamp"]))
        left = [one for one in row.record.get("reactions", []) if one["name"] != call.body["name"]]
        if len(left) == len(row.record.get("reactions", [])):
            raise Refusal(400, "no_reaction")
        row.record["reactions"] = left
        return Reply({"ok": True})

    def pin(self, call: Call) -> Reply:
        channel = self._chat.open_channel(call)
        row = self._found(channel, str(call.body["timestamp"]))
        if row.refs.get("is_pinned"):
            raise Refusal(400, "already_pinned")
        row.refs["is_pinned"] = True
        return Reply({"ok": True})


def _between(rows: list[Row], call: Call) -> list[Row]:
    """The messages after `oldest` and before `latest`; with `inclusive`, also those at the bounds."""
    asked = arguments(call)
    includes = asked.get("inclusive") == "true"
    if oldest := asked.get("oldest"):
        bound = _moment(oldest, "invalid_ts_oldest")
        rows = [row for row in rows if _moment(row.record["ts"]) > bound or _is_at(row, bound, includes)]
    if latest := asked.get("latest"):
        bound = _moment(latest, "invalid_ts_latest")
        rows = [row for row in rows if _moment(row.record["ts"]) < bound or _is_at(row, bound, includes)]
    return rows


def _is_at(row: Row, bound: tuple[int, int], includes: bool) -> bool:
    return includes and _moment(row.record["ts"]) == bound


def _moment(ts: str, otherwise: str = "invalid_arguments") -> tuple[int, int]:
    """A timestamp as seconds and microseconds, because a float is not precise enough."""
    seconds, _, rest = ts.partition(".")
    if not seconds.isdigit() or (rest and not rest.isdigit()):
        raise Refusal(400, otherwise)
    return int(seconds), int(rest.ljust(6, "0")[:6] or 0)
