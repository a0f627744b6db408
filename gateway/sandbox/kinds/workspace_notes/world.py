"""The records of workspace notes: titles, texts and parents."""

import hashlib
import uuid
from datetime import UTC, datetime
from typing import ClassVar

from gateway.sandbox import words
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Record
from gateway.sandbox.store import Row

_KINDS = {"pages": "page", "data_sources": "data_source", "blocks": "block", "comments": "comment", "users": "user"}
_BLOCK_TYPES = ("to_do", "heading_2", "paragraph", "bulleted_list_item", "quote")
#: ready-made blocks of a page
_BLOCKS = 6


class NotesWorld(Application):
    """A workspace with pages, of which some are below other pages."""

    counts: ClassVar = {"pages": 240, "data_sources": 12, "users": 60, "blocks": 240 * _BLOCKS, "comments": 240}
    parents: ClassVar = {"blocks": ("parent", "pages"), "comments": ("parent", "pages")}
    changed_member: ClassVar = "last_edited_time"

    def usual_id(self, table: str, number: int) -> str:
        return uuid_of(table, number)

    def time(self, moment: float) -> str:
        """A time in whole minutes, as in the application."""
        return datetime.fromtimestamp(int(moment) // 60 * 60, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def ready_made_row(self, table: str, number: int) -> Row:
        row = super().ready_made_row(table, number)
        row.record.update(self.authored(table, number % 60 + 1))
        self._fill(table, number, row)
        return row

    def authored(self, table: str, author: int) -> Record:
        if table == "users":
            return {"object": "user", "type": "person", "person": {"email": f"person{author}@example.com"}}
        who = {"object": "user", "id": uuid_of("users", author)}
        return {"object": _KINDS[table], "created_by": who, "last_edited_by": who}

    def _fill(self, table: str, number: int, row: Row) -> None:
        """Fill in titles, texts and parents."""
        record = row.record
        match table:
            case "pages":
                title = f"{words.TOPICS[number % len(words.TOPICS)]} {number}"
                record["properties"] = {"title": {"id": "title", "type": "title", "title": rich_text(title)}}
                record["parent"] = {"type": "workspace", "workspace": True}
                if number % 4 == 0:
                    record["parent"] = {"type": "page_id", "page_id": uuid_of("pages", number // 4)}
                record["url"] = f"https://www.notion.so/{row.id.replace('-', '')}"
            case "data_sources":
                record["title"] = rich_text(f"{words.TOPICS[number % len(words.TOPICS)]} list")
                record["properties"] = {"Name": {"id": "title", "name": "Name", "type": "title", "title": {}}}
                record["parent"] = {"type": "database_id", "database_id": uuid_of("databases", number)}
                record["database_parent"] = {"type": "workspace", "workspace": True}
            case "blocks":
                kind = _BLOCK_TYPES[number % len(_BLOCK_TYPES)]
                text = words.SENTENCES[number % len(words.SENTENCES)]
                content: Record = {"rich_text": rich_text(text), "color": "default"}
                extra = {"to_do": {"checked": number % 2 == 0}, "heading_2": {"is_toggleable": False}}
                keep_one_content(record, kind, {**content, **extra.get(kind, {})})
                record["parent"] = {"type": "page_id", "page_id": row.refs["parent"]}
            case "comments":
                record["rich_text"] = rich_text(words.SENTENCES[number % len(words.SENTENCES)])
                record["parent"] = {"type": "page_id", "page_id": row.refs["parent"]}
                record["discussion_id"] = uuid_of("discussions", number)


def keep_one_content(record: Record, kind: str, content: Record) -> None:
    """Set a block's type and the member of that name, and remove its empty members."""
    for name in [name for name, value in record.items() if value is None]:
        del record[name]
    record.update({"type": kind, kind: content, "has_children": False, "archived": False, "in_trash": False})


def uuid_of(table: str, number: int) -> str:
    """The id of the n-th record of a table, always the same."""
    return str(uuid.UUID(hashlib.sha256(f"{table}/{number}".encode()).hexdigest()[:32], version=4))


def rich_text(text: str) -> list[Record]:
    """Plain text in the application's format."""
    looks = dict.fromkeys(("bold", "italic", "strikethrough", "underline", "code"), False)
    item = {"type": "text", "text": {"content": text, "link": None}, "plain_text": text, "href": None}
    return [{**item, "annotations": {**looks, "color": "default"}}]
