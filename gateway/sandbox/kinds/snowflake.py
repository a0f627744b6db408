"""Snowflake: statements of SQL, whose results are rows of texts in partitions."""

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.placements import put
from gateway.sandbox.application import Application, Route
from gateway.sandbox.calls import Call, FileReply, Record, Refusal, Reply
from gateway.sandbox.filters import as_text
from gateway.sandbox.records import FieldType
from gateway.sandbox.spec_application import SpecApplication
from gateway.sandbox.store import Row

_RUNNING, _SUCCEEDED, _CANCELED = "333334", "090001", "000604"
_MESSAGES: Mapping[str, str] = {
    _RUNNING: "Asynchronous execution in progress.",
    _SUCCEEDED: "Statement executed successfully.",
    _CANCELED: "SQL execution canceled",
}
#: the table with the rows of all tables, and their columns
_ROWS = "record"
_COLUMNS: Mapping[str, FieldType] = {"ID": "string", "NAME": "string", "EMAIL": "string", "UPDATED_AT": "string"}
#: the entities whose records SHOW lists
_SHOWN = ("databases", "schemas", "tables", "views", "warehouses", "columns")
_SHOW = re.compile(r"\s*SHOW\s+(?:TERSE\s+)?(\w+)", re.IGNORECASE)
#: a value in SQL, the condition of a statement and the assignments of an update
_VALUE = r"(?:'([^']*)'|([^\s,();]+))"
_CONDITION = re.compile(rf"\bWHERE\s+(\w+)\s*=\s*{_VALUE}", re.IGNORECASE)
_ASSIGNMENT = re.compile(rf"(\w+)\s*=\s*{_VALUE}")
_INSERT = re.compile(r"\s*INSERT\s+INTO\s+\S+\s*\(([^)]*)\)\s*VALUES\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_STATISTICS: Mapping[str, str] = {
    "inserted": "numRowsInserted",
    "updated": "numRowsUpdated",
    "deleted": "numRowsDeleted",
}


@dataclass(slots=True, kw_only=True)
class _Statement:
    """A statement that was sent, with its result."""

    handle: str
    text: str
    columns: Sequence[str]
    rows: Sequence[Row]
    #: Unix time at which it ends
    ends: float
    stats: Record | None = None
    is_canceled: bool = False

    def code_at(self, now: float) -> str:
        return _CANCELED if self.is_canceled else _RUNNING if now < self.ends else _SUCCEEDED

    def status(self, now: float) -> Record:
        """The members that every response about it has."""
        code = self.code_at(now)
        path = f"/api/v2/statements/{self.handle}"
        return {"code": code, "message": _MESSAGES[code], "statementHandle": self.handle, "statementStatusUrl": path}


class Snowflake(SpecApplication):
    """All statements have one address; their text says what they do. The rows of all tables are the same."""

    counts: ClassVar = {"databases": 3, "schemas": 6, "warehouses": 3, _ROWS: 60}
    parents: ClassVar = {
        "schemas": ("database_name", "databases"),
        "tables": ("schema_name", "schemas"),
        "views": ("schema_name", "schemas"),
        "columns": ("schema_name", "schemas"),
    }

    def __init__(self, kind: Kind, *, seed: int = 0, scale: float = 1, job_seconds: float = 1.0) -> None:
        super().__init__(kind, seed=seed, scale=scale, job_seconds=job_seconds)
        self._statements: dict[str, _Statement] = {}

    def reset(self) -> None:
        super().reset()
        self._statements.clear()

    # Records

    @cached_property
    def _example_ids(self) -> dict[str, int | str]:
        """None: the examples have statements."""
        return {}

    def fields_of(self, table: str) -> Mapping[str, FieldType]:
        return _COLUMNS if table == _ROWS else super().fields_of(table)

    def id_member_of(self, table: str) -> str:
        return "ID" if table == _ROWS else "column_name" if table == "columns" else "name"

    def usual_id(self, table: str, number: int) -> str:
        return str(number) if table == _ROWS else f"{table.removesuffix('s').upper()}_{number}"

    def ready_made_row(self, table: str, number: int) -> Row:
        """A record whose every value is text; what is in a schema is in its database."""
        row = super().ready_made_row(table, number)
        if "schema_name" in row.refs:
            schema = self.require_row("schemas", row.refs["schema_name"])
            row.record["database_name"] = schema.record["database_name"]
        row.record = {name: None if value is None else as_text(value) for name, value in row.record.items()}
        return row

    # Calls

    def answer(self, route: Route, call: Call) -> Reply | FileReply:
        """As in the base class; the method and the path choose what is done."""
        handler = self._state if call.method == "GET" else self._cancel if call.params else self._execute
        return Application.answer(self, replace(route, handler=handler, operations=(), is_cacheable=False), call)

    def list_of(self, lists: Sequence[Operation], call: Call) -> Operation | None:
        """The list of what a statement shows; that of rows for any other statement."""
        known = self._statements.get(next(iter(call.params.values()), ""))
        shown = _SHOW.match(known.text if known is not None else str(call.body.get("statement", "")))
        table = shown[1].lower() if shown is not None else _ROWS
        return next((each for each in lists if each.entity_id == table), None)

    def _execute(self, call: Call) -> Reply:
        text = str(call.body.get("statement", ""))
        columns, rows, stats = self._run(text, call)
        ends = call.now + (self.job_seconds if call.query.get("async") == "true" else 0)
        handle = str(uuid.uuid4())
        self._statements[handle] = _Statement(
            handle=handle, text=text, columns=columns, rows=rows, ends=ends, stats=stats
        )
        if call.query.get("async") == "true":
            return Reply({**self._statements[handle].status(call.now), "code": _RUNNING}, 202)
        return self._result(self._statements[handle], call)

    def _state(self, call: Call) -> Reply:
        """A partition of the result; the state of a statement that has none."""
        statement = self._named(call)
        code = statement.code_at(call.now)
        if code == _CANCELED:
            raise Refusal(422, code, _MESSAGES[code])
        return Reply(statement.status(call.now), 202) if code == _RUNNING else self._result(statement, call)

    def _cancel(self, call: Call) -> Reply:
        statement = self._named(call)
        statement.is_canceled = True
        return Reply(statement.status(call.now))

    def _named(self, call: Call) -> _Statement:
        handle = next(iter(call.params.values()))
        if handle not in self._statements and handle == self.kind.operation("statements", "get").action.example.get(
            "statementHandle"
        ):
            rows = list(self.store.table(_ROWS))
            self._statements[handle] = _Statement(
                handle=handle, text="SELECT 1", columns=list(_COLUMNS), rows=rows, ends=0
            )
        if handle not in self._statements:
            raise Refusal(422, "000709", f"Statement {handle} not found")
        return self._statements[handle]

    def _result(self, statement: _Statement, call: Call) -> Reply:
        """A partition; only the first one has the columns and the number of partitions."""
        listing = self.kind.operation(_ROWS, "list")
        reply = self.listed(listing, statement.rows, call)
        body = reply.body
        if call.query.get("partition", "0") != "0":
            return replace(reply, body={"data": body["data"]})
        put(body, ("resultSetMetaData", "numRows"), len(statement.rows))
        put(body, ("resultSetMetaData", "format"), "jsonv2")
        columns = [{"name": name, "type": "text", "nullable": True} for name in statement.columns]
        put(body, ("resultSetMetaData", "rowType"), columns)
        stats = {} if statement.stats is None else {"stats": statement.stats}
        return replace(reply, body={**body, **statement.status(call.now), **stats})

    # Statements

    def _run(self, text: str, call: Call) -> tuple[Sequence[str], Sequence[Row], Record | None]:
        """The columns and rows of a statement's result, and the numbers of rows that it changed."""
        shown = _SHOW.match(text)
        if shown is not None and shown[1].lower() in _SHOWN:
            rows = _limited(self._within(shown[1].lower(), text, call), text)
            return list(self.fields_of(shown[1].lower())), rows, None
        verb = text.strip().partition(" ")[0].upper()
        match verb:
            case "SELECT" | "WITH":
                return list(_COLUMNS), _limited(self._matching(text), text), None
            case "INSERT":
                return self._counted("inserted", self._inserted(text, call))
            case "UPDATE":
                return self._counted("updated", self._updated(text, call))
            case "DELETE":
                found = self._matching(text)
                for row in found:
                    self.store.table(_ROWS).remove(row.id)
                return self._counted("deleted", len(found))
            case "CREATE" | "DROP" | "ALTER" | "GRANT" | "CALL":
                return ["status"], [Row("1", {"status": _MESSAGES[_SUCCEEDED]})], None
            case _:
                raise Refusal(
                    422, "001003", f"SQL compilation error:\nsyntax error line 1 at position 0 unexpected '{verb}'."
                )

    def _within(self, table: str, text: str, call: Call) -> list[Row]:
        """The records of SHOW in the database or the schema of the call, if the statement asks for these."""
        found = re.search(r"\bIN\s+(DATABASE|SCHEMA)\b", text, re.IGNORECASE)
        names = ("database", "schema")[: 1 + (found[1].upper() == "SCHEMA")] if found else ()
        wanted = {f"{name}_name": call.body[name] for name in names if name in call.body}
        rows = self.store.table(table)
        return [row for row in rows if all(row.record.get(name) == value for name, value in wanted.items())]

    def _matching(self, text: str) -> list[Row]:
        """The rows that meet the condition of a statement; all without one that the sandbox understands."""
        found = _CONDITION.search(text)
        rows = list(self.store.table(_ROWS))
        if found is None or found[1].upper() not in _COLUMNS:
            return rows
        return [row for row in rows if row.record[found[1].upper()] == (found[2] if found[3] is None else found[3])]

    def _inserted(self, text: str, call: Call) -> int:
        found = _INSERT.match(text)
        if found is None:
            raise Refusal(
                422, "001003", "SQL compilation error:\nsyntax error: the sandbox reads INSERT INTO t (…) VALUES (…)"
            )
        values = [quoted or bare for quoted, bare in re.findall(_VALUE, found[2])]
        members = dict(zip((name.strip().upper() for name in found[1].split(",")), values, strict=False))
        self.add_row(_ROWS, {name: value for name, value in members.items() if name in _COLUMNS}, call.now)
        return 1

    def _updated(self, text: str, call: Call) -> int:
        found = self._matching(text)
        assigned = re.split(r"\bWHERE\b", text, maxsplit=1, flags=re.IGNORECASE)[0]
        members = {name.upper(): quoted or bare for name, quoted, bare in _ASSIGNMENT.findall(assigned)}
        for row in found:
            self.change(row, {name: value for name, value in members.items() if name in _COLUMNS}, call.now)
        return len(found)

    @staticmethod
    def _counted(what: str, number: int) -> tuple[Sequence[str], Sequence[Row], Record]:
        column = f"number of rows {what}"
        stats: Record = {**dict.fromkeys(_STATISTICS.values(), 0), _STATISTICS[what]: number}
        return [column], [Row("1", {column: str(number)})], stats


def _limited(rows: Iterable[Row], text: str) -> list[Row]:
    found = re.search(r"\bLIMIT\s+(\d+)", text, re.IGNORECASE)
    return list(rows)[: int(found[1]) if found else None]
