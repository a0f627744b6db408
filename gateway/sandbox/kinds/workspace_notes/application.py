"""Workspace notes: pages of blocks with comments, lists by search, and a required version header."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from gateway.sandbox import filters
from gateway.sandbox.calls import Call, Handler, Refusal, Reply
from gateway.sandbox.kinds.workspace_notes.world import NotesWorld, keep_one_content, uuid_of
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.store import Row

_VERSION = "2025-09-03"
#: maximum results of a search
_DEEPEST = 10_000
#: value of the search filter → the tables that are searched
_SEARCHED: Mapping[str | None, Sequence[str]] = {
    "page": ("pages",),
    "data_source": ("data_sources",),
    None: ("pages", "data_sources"),
}


class WorkspaceNotes(NotesWorld):
    """Users, pages, data sources, blocks and comments."""

    tokens: ClassVar = TokenStyle(
        rotates=True,
        sends_expires_in=False,
        client_authentication=("basic",),
        encodings=("json",),
        outputs=lambda call, pair: {
            "bot_id": uuid_of("bot", 1),
            "workspace_id": uuid_of("workspace", 1),
            "workspace_name": "Sandbox",
            "workspace_icon": None,
            "owner": {"type": "user", "user": {"object": "user", "id": uuid_of("users", 1)}},
            "duplicated_template_id": None,
        },
    )

    codes: ClassVar = {
        400: "validation_error",
        401: "unauthorized",
        403: "restricted_resource",
        404: "object_not_found",
        409: "conflict_error",
        429: "rate_limited",
        503: "service_unavailable",
        529: "service_overload",
    }

    def admit(self, call: Call) -> None:
        if "notion-version" not in call.headers:
            raise Refusal(400, "missing_version", "Notion-Version header should be defined")
        if call.headers["notion-version"] != _VERSION:
            raise Refusal(400, "invalid_request", f"the sandbox supports only version {_VERSION}")

    def handlers(self) -> dict[str, Handler]:
        return {
            "POST /v1/search": self.search,
            "POST /v1/pages": self.create_page,
            "PATCH /v1/data_sources/{data_source_id}": self.update_data_source,
            "GET /v1/blocks/{block_id}/children": self.children,
            "PATCH /v1/blocks/{block_id}/children": self.append,
            "PATCH /v1/blocks/{block_id}": self.update_block,
            "GET /v1/comments": self.comments,
            "POST /v1/comments": self.create_comment,
        }

    def search(self, call: Call) -> Reply:
        """The pages and data sources whose properties contain the text of `query`, sorted by their last edit."""
        asked, sort = call.body.get("filter") or {}, call.body.get("sort") or {}
        wanted = asked.get("value")
        if wanted not in _SEARCHED:
            raise Refusal(400, message=f"filter.value should be `page` or `data_source`, instead was `{wanted}`")
        found = [row for table in _SEARCHED[wanted] for row in self.store.table(table)]
        text = str(call.body.get("query") or "").lower()
        kept = [row for row in found if text in str(row.record.get("properties") or "").lower()] if text else found
        is_descending = sort.get("direction", "descending") == "descending"
        rows = filters.ordered(kept, "last_edited_time", descending=is_descending)
        operation = self.kind.operation(_SEARCHED[wanted][0], "list")
        if len(rows) <= _DEEPEST:
            return self.listed(operation, rows, call)
        capped = self.listed(operation, rows[:_DEEPEST], call)
        status = {"type": "incomplete", "incomplete_reason": "query_result_limit_reached"}
        return Reply({**capped.body, "request_status": status})

    def create_page(self, call: Call) -> Reply:
        parent = dict(call.body["parent"])
        kind = next((name for name in ("page_id", "database_id", "data_source_id", "workspace") if name in parent), "")
        tables = {"page_id": "pages", "data_source_id": "data_sources"}
        if kind in tables:
            self.require_row(tables[kind], parent[kind])
        members = {name: value for name, value in call.body.items() if name not in ("children", "parent")}
        stamps = {"created_time": self.time(call.now), "parent": {"type": kind, **parent}, "archived": False}
        row = self.add_row("pages", {**self.authored("pages", 1), **stamps, "in_trash": False, **members}, call.now)
        row.record["url"] = f"https://www.notion.so/{row.id.replace('-', '')}"
        self._append(row.id, call.body.get("children") or (), call.now)
        return Reply(row.record)

    def update_data_source(self, call: Call) -> Reply:
        """Change a data source; members of its database are refused."""
        for name in ("cover", "description"):
            if name in call.body:
                raise Refusal(400, message=f"body failed validation: body.{name} should be not present.")
        return self.update_record(self.kind.operation("data_sources", "update"), call)

    def children(self, call: Call) -> Reply:
        rows = self._below("blocks", self._container(call.params["block_id"]))
        return self.listed(self.kind.operation("blocks", "list"), rows, call)

    def append(self, call: Call) -> Reply:
        """Append blocks, and return them in their order."""
        owner = self._container(call.params["block_id"])
        added = self._append(owner, call.body["children"], call.now)
        return Reply({"results": [row.record for row in added], "next_cursor": None, "has_more": False})

    def _append(self, owner: str, children: Iterable[Mapping[str, Any]], now: float) -> list[Row]:
        kind = "page_id" if self.store.table("pages").get(owner) else "block_id"
        added = []
        for child in children:
            block_type = str(child.get("type") or next((name for name in child if name != "object"), "paragraph"))
            content = dict(child.get(block_type) or {})
            nested = content.pop("children", ())
            stamps = {"created_time": self.time(now), "parent": {"type": kind, kind: owner}}
            row = self.add_row("blocks", {**self.authored("blocks", 1), **stamps}, now)
            row.refs["parent"] = owner
            keep_one_content(row.record, block_type, content)
            row.record["has_children"] = bool(self._append(row.id, nested, now))
            added.append(row)
        if added and kind == "block_id":
            self.require_row("blocks", owner).record["has_children"] = True
        return added

    def update_block(self, call: Call) -> Reply:
        row = self.require_row("blocks", call.params["block_id"])
        kind = row.record["type"]
        flags = {name: call.body[name] for name in ("archived", "in_trash") if name in call.body}
        if others := set(call.body) - {kind, "archived", "in_trash", "type", "object"}:
            raise Refusal(400, message=f"a {kind} block has no {', '.join(sorted(others))}; its type cannot change")
        self.change(row, {**flags, kind: {**row.record[kind], **call.body.get(kind, {})}}, call.now)
        return Reply(row.record)

    def comments(self, call: Call) -> Reply:
        rows = self._below("comments", self._container(call.query.get("block_id", "")))
        return self.listed(self.kind.operation("comments", "list"), rows, call)

    def create_comment(self, call: Call) -> Reply:
        """Create a comment in an existing discussion, or in a new one below a parent."""
        body, discussion = call.body, call.body.get("discussion_id")
        if discussion:
            first = next(
                (row for row in self.store.table("comments") if row.record["discussion_id"] == discussion), None
            )
            if first is None:
                raise Refusal(404, message=f"Could not find discussion with ID: {discussion}")
            parent, owner = first.record["parent"], first.refs["parent"]
        else:
            parent = body.get("parent") or {}
            owner = self._container(str(parent.get("page_id") or parent.get("block_id") or ""))
            kind = "page_id" if "page_id" in parent else "block_id"
            parent, discussion = {"type": kind, kind: owner}, str(uuid.uuid4())
        shape = {"parent": parent, "discussion_id": discussion, "created_time": self.time(call.now)}
        texts = [{**item, "plain_text": item.get("text", {}).get("content", "")} for item in body["rich_text"]]
        row = self.add_row("comments", {**self.authored("comments", 1), **shape, "rich_text": texts}, call.now)
        row.refs["parent"] = owner
        return Reply(row.record)

    def _container(self, row_id: str) -> str:
        """The id, if a page or block has it; raises Refusal with 404."""
        for table in ("pages", "blocks"):
            if self.store.table(table).get(row_id):
                return row_id
        raise Refusal(404, message=f"Could not find block with ID: {row_id}")

    def _below(self, table: str, owner: str) -> list[Row]:
        rows = self.store.table(table)
        return [row for row in rows if row.refs.get("parent") == owner and not row.record.get("archived")]
