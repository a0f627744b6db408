"""CRM by query: SOQL with pages by locator, SOSL, records by id, files, and errors in an array."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from gateway.kinds.catalog import Operation
from gateway.sandbox import paging
from gateway.sandbox.calls import Call, FileReply, Handler, Record, Refusal, Reply
from gateway.sandbox.kinds.crm_query import soql
from gateway.sandbox.kinds.crm_query.grouping import grouped
from gateway.sandbox.kinds.crm_query.reports import Reports
from gateway.sandbox.kinds.crm_query.world import PREFIXES, VERSION, CrmWorld
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.store import Row

#: records of one response by default, and the minimum that a caller may request
_BATCH, _SMALLEST_BATCH = 2000, 200
#: maximum query results with further pages; the oldest are discarded
_LOCATORS = 200


class CrmQuery(CrmWorld):
    """Objects by the application's names: `accounts` of the spec is `Account`."""

    tokens: ClassVar = TokenStyle(
        lifetime=7200,
        sends_expires_in=False,
        repeats_refresh=False,
        client_authentication=("body", "basic"),
        outputs=lambda call, pair: {
            "instance_url": "https://sandbox.my.salesforce.com",
            "id": "https://login.salesforce.com/id/00D000000000001AAA/005000000000001AAA",
            "issued_at": str(int(call.now * 1000)),
            "signature": "c2FuZGJveA==",
        },
    )

    codes: ClassVar = {
        400: "MALFORMED_QUERY",
        401: "INVALID_SESSION_ID",
        403: "INSUFFICIENT_ACCESS",
        404: "NOT_FOUND",
        414: "URI_TOO_LONG",
        429: "REQUEST_LIMIT_EXCEEDED",
        503: "SERVER_UNAVAILABLE",
    }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.reports = Reports([str(self.id_of("reports", number)) for number in range(1, 7)], self.job_seconds)
        self._locators: dict[str, tuple[list[Record], int]] = {}

    def reset(self) -> None:
        super().reset()
        self.reports.reset()
        self._locators.clear()

    def refused(self, refusal: Refusal) -> Reply:
        """A rate-limit error has the status 403."""
        reply = super().refused(refusal)
        return replace(reply, status=403) if reply.status == 429 else reply

    def handlers(self) -> dict[str, Handler]:
        special: dict[str, Handler] = {
            "GET /query": lambda call: self.query(call, with_deleted=False),
            "GET /queryAll": lambda call: self.query(call, with_deleted=True),
            "GET /query/{locator}": self.next_page,
            "GET /queryAll/{locator}": self.next_page,
            "GET /search": self.search,
            "GET /sobjects": self.describe,
            "GET /limits": lambda call: Reply({"DailyApiRequests": {"Max": 100_000, "Remaining": 99_999}}),
            **self.reports.handlers(),
        }
        for name in ("{object}", *self.objects):
            special[f"GET /sobjects/{name}/{{id}}"] = self.read
            special[f"POST /sobjects/{name}"] = self.create
            special[f"PATCH /sobjects/{name}/{{id}}"] = self.update
            special[f"DELETE /sobjects/{name}/{{id}}"] = self.delete
        for name, member in (("Attachment", "Body"), ("ContentVersion", "VersionData")):
            special[f"GET /sobjects/{name}/{{id}}/{member}"] = self._file(name)
        return special

    # Single records

    def read(self, call: Call) -> Reply:
        row = self.require_row(self._table(call), call.params["id"])
        asked = [part.strip() for part in call.query.get("fields", "").split(",") if part.strip()]
        return Reply(self.shown_fields(row, ["Id", *asked] if asked else list(row.record)))

    def create(self, call: Call) -> Reply:
        """201 with the id of the new record."""
        table = self._table(call)
        if "Id" in call.body or "id" in call.body:
            raise Refusal(400, "INVALID_FIELD", "The Id field should not be specified in the sobject data.")
        row = self.add_row(table, dict(call.body), call.now)
        return Reply({"id": row.id, "success": True, "errors": []}, 201)

    def update(self, call: Call) -> Reply:
        """204 without a body."""
        self.change(self.require_row(self._table(call), call.params["id"]), dict(call.body), call.now)
        return Reply(None, 204)

    def delete(self, call: Call) -> Reply:
        """204; a deleted record is found by queryAll alone, and a second deletion does not find it."""
        self.change(self.require_row(self._table(call), call.params["id"]), {"IsDeleted": True}, call.now)
        return Reply(None, 204)

    def _table(self, call: Call) -> str:
        """The object in the path."""
        return self.object_named(call.path.partition("/sobjects/")[2].partition("/")[0])

    def _file(self, name: str) -> Handler:
        def download(call: Call) -> FileReply:
            row = self.require_row(name, call.params["id"])
            return FileReply(row.refs["file"], f"{row.record.get('Name') or row.record.get('Title')}.bin")

        return download

    # Long operations

    def long_records(self, operation: Operation, call: Call) -> Sequence[Any]:
        """The records of a bulk query as rows of CSV."""
        rows = self._selected(call.body["query"], with_deleted=call.body["operation"] == "queryAll")
        return [
            {name: "" if value is None else value for name, value in row.items() if name != "attributes"}
            for row in rows
        ]

    def work_on(self, operation: Operation, call: Call, item: Any, now: float) -> Row:
        """Write one record of a bulk write."""
        table, key = self.object_named(call.body["object"]), call.body.get("externalIdFieldName", "Id")
        members = {name: value for name, value in item.items() if name != "Id"}
        match call.body["operation"]:
            case "insert":
                return self.add_row(table, members, now)
            case "upsert":
                known = next(
                    (row for row in self.store.table(table) if str(row.record.get(key)) == item.get(key)), None
                )
                if known is None:
                    return self.add_row(table, members, now)
                self.change(known, members, now)
                return known
            case "delete":
                members = {"IsDeleted": True}
        row = self.require_row(table, item.get("Id"))
        self.change(row, members, now)
        return row

    # Queries

    def query(self, call: Call, *, with_deleted: bool) -> Reply:
        """The first page of a query's records, with the path of the next page."""
        text = call.query.get("q", "")
        found = self._selected(text, with_deleted=with_deleted)
        if soql.parse(text).is_count:
            return Reply({"totalSize": len(found), "done": True, "records": []})
        return self._batch_from(found, 0, _batch_of(call))

    def _selected(self, text: str, *, with_deleted: bool) -> list[Record]:
        """The records or groups of a query; raises Refusal for a malformed query."""
        try:
            query = soql.parse(text)
            rows = soql.run(query, self.rows_for(query.object, with_deleted))
        except soql.MalformedQuery as error:
            raise Refusal(400, "MALFORMED_QUERY", str(error)) from error
        if query.groups:
            return grouped(query, rows)
        names = ["Id"] if query.is_count else query.names(self.names_for(query.object))
        return [self.shown_fields(row, names) for row in rows]

    def next_page(self, call: Call) -> Reply:
        locator, _, start = call.params["locator"].rpartition("-")
        if locator not in self._locators or not start.isdigit():
            raise Refusal(400, "INVALID_QUERY_LOCATOR", "invalid query locator")
        found, batch = self._locators[locator]
        return self._batch_from(found, int(start), batch, locator)

    def _batch_from(self, found: list[Record], start: int, batch: int, locator: str = "") -> Reply:
        page: dict[str, Any] = {"totalSize": len(found), "done": start + batch >= len(found)}
        if not page["done"]:
            if not locator:
                locator = f"0r8{len(self._locators):012d}AAA"
                if len(self._locators) >= _LOCATORS:
                    self._locators.pop(next(iter(self._locators)))
                self._locators[locator] = (found, batch)
            page["nextRecordsUrl"] = f"{VERSION}/query/{locator}-{start + batch}"
        return Reply({**page, "records": found[start : start + batch]})

    def search(self, call: Call) -> Reply:
        """FIND {words} [IN … FIELDS] RETURNING Object(fields), … [LIMIT n]."""
        text = call.query.get("q", "")
        found = re.match(r"\s*FIND\s*\{(.*?)(?<!\\)\}.*?\bRETURNING\s+(.*)$", text, flags=re.IGNORECASE | re.DOTALL)
        if found is None:
            raise Refusal(400, "MALFORMED_SEARCH", "expected FIND {words} RETURNING objects")
        words = re.sub(r"\\(.)", r"\1", found[1]).strip('"* ').lower()
        objects, limit = _without_limit(found[2])
        hits: list[Record] = []
        for name, fields in re.findall(r"(\w+)\s*(?:\(([^)]*)\))?\s*,?", objects):
            names = [part.strip() for part in re.split(r"\bWHERE\b|\bLIMIT\b", fields or "Id")[0].split(",")]
            hits += [self.shown_fields(row, names) for row in self.rows_for(name, False) if _holds(row, words)]
        return Reply({"searchRecords": hits[:limit]})

    def describe(self, call: Call) -> Reply:
        return Reply(
            {"encoding": "UTF-8", "maxBatchSize": 200, "sobjects": [_described(name) for name in self.objects]}
        )


def _batch_of(call: Call) -> int:
    found = re.search(r"batchSize=(\d+)", call.headers.get("sforce-query-options", ""))
    return paging.smaller(min(_BATCH, max(_SMALLEST_BATCH, int(found[1]))) if found else _BATCH)


def _without_limit(text: str) -> tuple[str, int]:
    found = re.search(r"\)?\s*\bLIMIT\s+(\d+)\s*$", text, flags=re.IGNORECASE)
    return (text[: found.start()] + ")", int(found[1])) if found else (text, 2000)


def _holds(row: Row, words: str) -> bool:
    return any(words in value.lower() for value in row.record.values() if isinstance(value, str))


def _described(name: str) -> Record:
    is_own = name not in ("User", "OpportunityStage")
    known: Record = {"name": name, "label": name, "labelPlural": f"{name}s", "keyPrefix": PREFIXES.get(name)}
    abilities = {"custom": False, "queryable": True, "searchable": is_own, "createable": is_own}
    more = {"updateable": is_own, "deletable": is_own, "urls": {"sobject": f"{VERSION}/sobjects/{name}"}}
    return {**known, **abilities, **more}
