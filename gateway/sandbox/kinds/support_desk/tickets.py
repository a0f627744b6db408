"""Writes to tickets: an update creates an audit, and a comment if the write has one."""

from collections.abc import Mapping
from typing import Any

from gateway.sandbox.application import Application
from gateway.sandbox.calls import Call, Refusal, Reply
from gateway.sandbox.store import Row


class Tickets:
    """The tickets of one support desk."""

    def __init__(self, desk: Application) -> None:
        self._desk = desk

    def create(self, call: Call) -> Reply:
        row = self.add_row(call.body["ticket"], call.now)
        return Reply({"ticket": row.record}, 201, {"Location": f"{call.origin}/api/v2/tickets/{row.id}.json"})

    def add_row(self, ticket: Mapping[str, Any], now: float) -> Row:
        """A new ticket with its first comment."""
        members = dict(ticket)
        comment = members.pop("comment", None) or {}
        words = str(comment.get("body") or members.get("description") or members.get("subject", ""))
        requester = members.get("requester_id") or self._desk.id_of("users", 1)
        for name, table in self._desk.references.items():
            if members.get(name) is not None and table in ("users", "groups", "organizations"):
                self._check_reference(name, table, members[name])
        usual = {"status": "new", "requester_id": requester, "submitter_id": requester}
        texts = {"description": words, "raw_subject": members.get("subject")}
        row = self._desk.add_row("tickets", {**usual, **members, **texts}, now)
        self._stamp(row, now)
        self._comment(row, {**comment, "body": words, "author_id": requester}, now)
        return row

    def update(self, call: Call) -> Reply:
        row = self._desk.require_row("tickets", call.params["ticket_id"])
        audit = self.apply(row, call.body["ticket"], call.now)
        return Reply({"ticket": row.record, "audit": audit.record})

    def delete(self, call: Call) -> Reply:
        self.remove(call.params["ticket_id"], call.now)
        return Reply(None, 204)

    def remove(self, ticket_id: object, now: float) -> Row:
        """Mark a ticket as deleted: only exports still have it."""
        row = self._desk.require_row("tickets", ticket_id)
        self._desk.change(row, {"status": "deleted"}, now)
        self._stamp(row, now)
        return row

    def apply(self, row: Row, changes: Mapping[str, Any], now: float) -> Row:
        """Change a ticket, add its comment, and return the new audit."""
        members = dict(changes)
        comment = members.pop("comment", None)
        tags = [tag for tag in (members["tags"] if "tags" in members else row.record.get("tags") or []) if tag]
        added, removed = members.pop("additional_tags", []), members.pop("remove_tags", [])
        if "tags" in members or added or removed:
            members["tags"] = [tag for tag in dict.fromkeys([*tags, *added]) if tag not in removed]
        if row.record.get("status") == "closed":
            raise Refusal(422, message="Status: closed prevents ticket update")
        self._desk.change(row, members, now)
        self._stamp(row, now)
        events = [{"type": "Change", "field_name": name, "value": value} for name, value in members.items()]
        if comment:
            events.append({"type": "Comment", "body": self._comment(row, comment, now).record["body"]})
        audit = {"ticket_id": row.record["id"], "author_id": row.record.get("requester_id"), "events": events}
        return self._linked("ticket_audits", row, audit, now)

    def _stamp(self, row: Row, now: float) -> None:
        row.record["generated_timestamp"] = int(now)
        row.record["url"] = f"https://sandbox.zendesk.com/api/v2/tickets/{row.id}.json"

    def _comment(self, ticket: Row, members: Mapping[str, Any], now: float) -> Row:
        body = str(members.get("body") or members.get("html_body") or "")
        kept = {name: members[name] for name in ("author_id", "public") if name in members}
        shape = {"type": "Comment", "public": True, "body": body, "plain_body": body, "html_body": f"<p>{body}</p>"}
        return self._linked("ticket_comments", ticket, {**shape, **kept}, now)

    def _linked(self, table: str, ticket: Row, members: Mapping[str, Any], now: float) -> Row:
        row = self._desk.add_row(table, members, now)
        row.refs["ticket_id"] = ticket.record["id"]
        return row

    def _check_reference(self, name: str, table: str, row_id: object) -> None:
        if self._desk.store.table(table).get(row_id) is None:
            raise Refusal(422, message=f"{name}: {row_id} is invalid")
