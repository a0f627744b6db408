"""Workspace notes: pages of blocks with comments, found by search, under a version header."""

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from gateway.connectors.catalog import Operation
from gateway.sandbox import filters, paging, words
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Call, Handler, Record, Refusal, Reply
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.store import Row

_VERSION = "2025-09-03"
_REQUEST_ID = "5a9db0c5-0000-4000-8000-000000000001"
_CODES: Mapping[int, str] = {
    400: "validation_error",
    401: "unauthorized",
    403: "restricted_resource",
    404: "object_not_found",
    409: "conflict_error",
    429: "rate_limited",
    503: "service_unavailable",
    529: "service_overload",
}
_KINDS = {"pages": "page", "data_sources": "data_source", "blocks": "block", "comments": "comment", "users": "user"}
#: the tables that a search filter means
_SEARCHED: Mapping[str | None, Sequence[str]] = {
    "page": ("pages",),
    "data_source": ("data_sources",),
    None: ("pages", "data_sources"),
}
_BLOCK_TYPES = ("to_do", "heading_2", "paragraph", "bulleted_list_item", "quote")
#: ready-made blocks of a page
_BLOCKS = 6


class WorkspaceNotes(Application):
    """Users, pages, data sources, blocks and comments."""

    counts: ClassVar = {"pages": 240, "data_sources": 12, "users": 60, "blocks": 240 * _BLOCKS, "comments": 240}
    parents: ClassVar = {"blocks": ("parent", "pages"), "comments": ("parent", "pages")}
    changed_member: ClassVar = "last_edited_time"
    tokens: ClassVar = TokenStyle(
        rotates=True,
        tells_lifetime=False,
        client_authentication=("basic",),
        encodings=("json",),
        learns=lambda call, pair: {
            "bot_id": _uuid("bot", 1),
            "workspace_id": _uuid("workspace", 1),
            "workspace_name": "Sandbox",
            "workspace_icon": None,
            "owner": {"type": "user", "user": {"object": "user", "id": _uuid("users", 1)}},
            "duplicated_template_id": None,
        },
    )

    def usual_id(self, table: str, number: int) -> str:
        return _uuid(table, number)

    def time(self, moment: float) -> str:
        """Whole minutes, as the application tells them."""
        return datetime.fromtimestamp(int(moment) // 60 * 60, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def made(self, table: str, number: int) -> Row:
        row = super().made(table, number)
        row.record.update(self._common(table, number % 60 + 1))
        self._settle(table, number, row)
        return row

    def _common(self, table: str, author: int) -> Record:
        if table == "users":
            return {"object": "user", "type": "person", "person": {"email": f"person{author}@example.com"}}
        who = {"object": "user", "id": _uuid("users", author)}
        return {"object": _KINDS[table], "created_by": who, "last_edited_by": who}

    def _settle(self, table: str, number: int, row: Row) -> None:
        """Titles, texts and who is whose parent."""
        record = row.record
        match table:
            case "pages":
                title = f"{words.TOPICS[number % len(words.TOPICS)]} {number}"
                record["properties"] = {"title": {"id": "title", "type": "title", "title": rich_text(title)}}
                record["parent"] = {"type": "workspace", "workspace": True}
                if number % 4 == 0:
                    record["parent"] = {"type": "page_id", "page_id": _uuid("pages", number // 4)}
                record["url"] = f"https://www.notion.so/{row.id.replace('-', '')}"
            case "data_sources":
                record["title"] = rich_text(f"{words.TOPICS[number % len(words.TOPICS)]} list")
                record["properties"] = {"Name": {"id": "title", "name": "Name", "type": "title", "title": {}}}
                record["parent"] = {"type": "database_id", "database_id": _uuid("databases", number)}
                record["database_parent"] = {"type": "workspace", "workspace": True}
            case "blocks":
                kind = _BLOCK_TYPES[number % len(_BLOCK_TYPES)]
                text = words.SENTENCES[number % len(words.SENTENCES)]
                content: Record = {"rich_text": rich_text(text), "color": "default"}
                extra = {"to_do": {"checked": number % 2 == 0}, "heading_2": {"is_toggleable": False}}
                self._keep_one_content(record, kind, {**content, **extra.get(kind, {})})
                record["parent"] = {"type": "page_id", "page_id": row.refs["parent"]}
            case "comments":
                record["rich_text"] = rich_text(words.SENTENCES[number % len(words.SENTENCES)])
                record["parent"] = {"type": "page_id", "page_id": row.refs["parent"]}
                record["discussion_id"] = _uuid("discussions", number)

    @staticmethod
    def _keep_one_content(record: Record, kind: str, content: Record) -> None:
        """A block has the one member that its type names."""
        for name in [name for name, value in record.items() if value is None]:
            del record[name]
        record.update({"type": kind, kind: content, "has_children": False, "archived": False, "in_trash": False})

    # How it talks

    def admit(self, call: Call) -> None:
        if "notion-version" not in call.headers:
            raise Refusal(400, "missing_version", "Notion-Version header should be defined")
        if call.headers["notion-version"] != _VERSION:
            raise Refusal(400, "invalid_request", f"the sandbox speaks version {_VERSION} only")

    def refused(self, refusal: Refusal) -> Reply:
        code = refusal.code or _CODES.get(refusal.status, "internal_server_error")
        headers = {"Retry-After": "1"} if refusal.status == 429 else {}
        document: Record = {"object": "error", "status": refusal.status, "code": code}
        message = {"message": refusal.message or code.replace("_", " "), "request_id": _REQUEST_ID}
        return Reply({**document, **message}, refusal.status, {**headers, **refusal.headers})

    def one(self, operation: Operation, row: Row, call: Call) -> Reply:
        return Reply({**row.record, "request_id": _REQUEST_ID})

    def listed(self, operation: Operation, rows: Sequence[Row], call: Call) -> Reply:
        return self._paged(rows, {**call.query, **call.body})

    def _paged(self, rows: Sequence[Row], asked: Mapping[str, Any]) -> Reply:
        """A page that begins at the record whose id is `start_cursor`."""
        size, after = paging.size_asked(asked, "page_size", 100, 100), asked.get("start_cursor")
        start = next((place for place, row in enumerate(rows) if row.id == after), None) if after else 0
        if start is None:
            raise Refusal(400, message=f"The start_cursor provided is invalid: {after}")
        page = paging.portion(rows, start, size)
        following = rows[page.end].id if page.has_more else None
        shown = [row.record for row in page.items]
        meta: Record = {"next_cursor": following, "has_more": page.has_more, "request_id": _REQUEST_ID}
        return Reply({"object": "list", "results": shown, **meta})

    # What it does

    def handlers(self) -> dict[str, Handler]:
        return {
            "POST /v1/search": self.search,
            "POST /v1/pages": self.create_page,
            "GET /v1/blocks/{block_id}/children": self.children,
            "PATCH /v1/blocks/{block_id}/children": self.append,
            "PATCH /v1/blocks/{block_id}": self.update_block,
            "GET /v1/comments": self.comments,
            "POST /v1/comments": self.create_comment,
        }

    def search(self, call: Call) -> Reply:
        """Pages or data sources whose title holds the words of `query`, sorted by their last edit."""
        asked, sort = call.body.get("filter") or {}, call.body.get("sort") or {}
        wanted = asked.get("value")
        if wanted not in _SEARCHED:
            raise Refusal(400, message=f"filter.value should be `page` or `data_source`, instead was `{wanted}`")
        found = [row for table in _SEARCHED[wanted] for row in self.store.table(table)]
        text = str(call.body.get("query") or "").lower()
        kept = [row for row in found if text in str(row.record.get("properties") or "").lower()] if text else found
        is_descending = sort.get("direction", "descending") == "descending"
        return self._paged(filters.ordered(kept, "last_edited_time", descending=is_descending), call.body)

    def create_page(self, call: Call) -> Reply:
        parent = dict(call.body["parent"])
        kind = next((name for name in ("page_id", "database_id", "data_source_id", "workspace") if name in parent), "")
        tables = {"page_id": "pages", "data_source_id": "data_sources"}
        if kind in tables:
            self.found(tables[kind], parent[kind])
        members = {name: value for name, value in call.body.items() if name not in ("children", "parent")}
        stamps = {"created_time": self.time(call.now), "parent": {"type": kind, **parent}, "archived": False}
        row = self.born("pages", {**self._common("pages", 1), **stamps, "in_trash": False, **members}, call.now)
        row.record["url"] = f"https://www.notion.so/{row.id.replace('-', '')}"
        self._append(row.id, call.body.get("children") or (), call.now)
        return Reply({**row.record, "request_id": _REQUEST_ID})

    def children(self, call: Call) -> Reply:
        return self._paged(self._below("blocks", self._container(call.params["block_id"])), call.query)

    def append(self, call: Call) -> Reply:
        """The blocks just added, in their order."""
        owner = self._container(call.params["block_id"])
        added = self._append(owner, call.body["children"], call.now)
        shown = [row.record for row in added]
        meta: Record = {"next_cursor": None, "has_more": False, "request_id": _REQUEST_ID}
        return Reply({"object": "list", "results": shown, **meta})

    def _append(self, owner: str, children: Iterable[Mapping[str, Any]], now: float) -> list[Row]:
        kind = "page_id" if self.store.table("pages").get(owner) else "block_id"
        added = []
        for child in children:
            block_type = str(child.get("type") or next((name for name in child if name != "object"), "paragraph"))
            content = dict(child.get(block_type) or {})
            nested = content.pop("children", ())
            stamps = {"created_time": self.time(now), "parent": {"type": kind, kind: owner}}
            row = self.born("blocks", {**self._common("blocks", 1), **stamps}, now)
            row.refs["parent"] = owner
            self._keep_one_content(row.record, block_type, content)
            row.record["has_children"] = bool(self._append(row.id, nested, now))
            added.append(row)
        if added and kind == "block_id":
            self.found("blocks", owner).record["has_children"] = True
        return added

    def update_block(self, call: Call) -> Reply:
        row = self.found("blocks", call.params["block_id"])
        kind = row.record["type"]
        flags = {name: call.body[name] for name in ("archived", "in_trash") if name in call.body}
        if others := set(call.body) - {kind, "archived", "in_trash", "type", "object"}:
            raise Refusal(400, message=f"a {kind} block has no {', '.join(sorted(others))}; its type cannot change")
        self.change(row, {**flags, kind: {**row.record[kind], **call.body.get(kind, {})}}, call.now)
        return Reply({**row.record, "request_id": _REQUEST_ID})

    def comments(self, call: Call) -> Reply:
        return self._paged(self._below("comments", self._container(call.query.get("block_id", ""))), call.query)

    def create_comment(self, call: Call) -> Reply:
        """A new discussion below a parent, or one more comment in one there is."""
        body, discussion = call.body, call.body.get("discussion_id")
        if discussion:
            first = next(
                (row for row in self.store.table("comments") if row.record["discussion_id"] == discussion), None
            )
            if first is None:
                raise Refusal(404, message=f"Could not find discussion with ID: {discussion}")
            parent, owner = first.record["parent"], first.refs["parent"]
        else:
            given = body.get("parent") or {}
            owner = self._container(str(given.get("page_id") or given.get("block_id") or ""))
            kind = "page_id" if "page_id" in given else "block_id"
            parent, discussion = {"type": kind, kind: owner}, str(uuid.uuid4())
        shape = {"parent": parent, "discussion_id": discussion, "created_time": self.time(call.now)}
        texts = [{**item, "plain_text": item.get("text", {}).get("content", "")} for item in body["rich_text"]]
        row = self.born("comments", {**self._common("comments", 1), **shape, "rich_text": texts}, call.now)
        row.refs["parent"] = owner
        return Reply({**row.record, "request_id": _REQUEST_ID})

    def _container(self, row_id: str) -> str:
        """The id of a page or block that there is."""
        for table in ("pages", "blocks"):
            if self.store.table(table).get(row_id):
                return row_id
        raise Refusal(404, message=f"Could not find block with ID: {row_id}")

    def _below(self, table: str, owner: str) -> list[Row]:
        rows = self.store.table(table)
        return [row for row in rows if row.refs.get("parent") == owner and not row.record.get("archived")]


def _uuid(table: str, number: int) -> str:
    return str(uuid.UUID(hashlib.sha256(f"{table}/{number}".encode()).hexdigest()[:32], version=4))


def rich_text(text: str) -> list[Record]:
    """Plain text as the application writes it."""
    looks = dict.fromkeys(("bold", "italic", "strikethrough", "underline", "code"), False)
    item = {"type": "text", "text": {"content": text, "link": None}, "plain_text": text, "href": None}
    return [{**item, "annotations": {**looks, "color": "default"}}]
