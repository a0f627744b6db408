"""CRM by query: SOQL pages behind locators, SOSL, records by id, files, and errors in an array."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from gateway.sandbox import files, records
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Call, FileReply, Handler, Record, Refusal, Reply
from gateway.sandbox.kinds.crm_query import soql
from gateway.sandbox.kinds.crm_query.reports import Reports
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.store import Row

_VERSION = "/services/data/v59.0"
#: records of one answer, unless the caller asks for fewer; and the fewest that may be asked for
_BATCH, _SMALLEST_BATCH = 2000, 200
#: answers that can still be paged; the oldest are forgotten
_LOCATORS = 200
_PREFIXES: Mapping[str, str] = {
    "Account": "001",
    "Contact": "003",
    "Lead": "00Q",
    "Opportunity": "006",
    "Task": "00T",
    "Event": "00U",
    "Campaign": "701",
    "Case": "500",
    "Note": "002",
    "Attachment": "00P",
    "ContentVersion": "068",
    "User": "005",
    "OpportunityStage": "01J",
}
_STAGES = ("Prospecting", "Qualification", "Proposal", "Negotiation", "Closed Won", "Closed Lost")
#: files are found by number, whatever the table holds: 64 is 64 MiB long
_FILES: Mapping[str, str] = {"Attachment": "BodyLength", "ContentVersion": "ContentSize"}
_CODES: Mapping[int, str] = {
    400: "MALFORMED_QUERY",
    401: "INVALID_SESSION_ID",
    403: "INSUFFICIENT_ACCESS",
    404: "NOT_FOUND",
    414: "URI_TOO_LONG",
    503: "SERVER_UNAVAILABLE",
}


class CrmQuery(Application):
    """Objects by their own names: what the spec calls `accounts` is `Account` here."""

    counts: ClassVar = {
        "Account": 2400,
        "Contact": 2400,
        "Lead": 320,
        "Opportunity": 400,
        "Task": 300,
        "Case": 220,
        "User": 45,
        "OpportunityStage": len(_STAGES),
    }
    references: ClassVar = {
        "AccountId": "Account",
        "ContactId": "Contact",
        "WhoId": "Contact",
        "OwnerId": "User",
        "CreatedById": "User",
        "LastModifiedById": "User",
        "ManagerId": "User",
        "ParentId": "Account",
    }
    id_member: ClassVar = "Id"
    changed_member: ClassVar = "LastModifiedDate"
    tokens: ClassVar = TokenStyle(
        lifetime=7200,
        tells_lifetime=False,
        repeats_refresh=False,
        client_authentication=("body", "basic"),
        learns=lambda call, pair: {
            "instance_url": "https://sandbox.my.salesforce.com",
            "id": "https://login.salesforce.com/id/00D000000000001AAA/005000000000001AAA",
            "issued_at": str(int(call.now * 1000)),
            "signature": "c2FuZGJveA==",
        },
    )

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.reports = Reports(self.job_seconds)
        self._objects = self._entities_by_object()
        self._locators: dict[str, tuple[list[Record], int]] = {}

    def reset(self) -> None:
        super().reset()
        self.reports.reset()
        self._locators.clear()

    def _entities_by_object(self) -> dict[str, str]:
        """The application's name of each object, from the address of one record: `GET /sobjects/Account/{id}`."""
        lines = {
            name: entity.actions["get"].request
            for name, entity in self.kind.spec.entities.items()
            if "get" in entity.actions
        }
        found = {name: re.search(r"/sobjects/(\w+)/", line) for name, line in lines.items()}
        return {match[1]: name for name, match in found.items() if match}

    # Records

    def id_of(self, table: str, number: int) -> str:
        file_number = files.number_for(1500 + number) if table in _FILES else number
        return f"{_PREFIXES.get(table, '0XX')}{file_number:012d}AAA"

    def time(self, moment: float) -> str:
        return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")

    def fields_of(self, table: str) -> Mapping[str, records.FieldType]:
        entity = self.kind.spec.entities[self._objects[table]]
        search: Mapping[str, str] = entity.search.fields if entity.search else {}
        always = {
            "IsDeleted": "boolean",
            "CreatedDate": "string",
            "LastModifiedDate": "string",
            "SystemModstamp": "string",
        }
        return {**entity.fields, **search, **always}

    def made(self, table: str, number: int) -> Row:
        row = super().made(table, number)
        record = row.record
        record["IsDeleted"] = number % 50 == 0 and table not in ("User", "OpportunityStage")
        record["LastModifiedDate"] = record["SystemModstamp"] = self.time(row.changed)
        record["attributes"] = {"type": table, "url": f"{_VERSION}/sobjects/{table}/{row.id}"}
        if table == "OpportunityStage":
            record["MasterLabel"] = record["ApiName"] = _STAGES[number - 1]
        elif table == "Opportunity":
            record["StageName"] = _STAGES[number % len(_STAGES)]
        if table in _FILES:
            record[_FILES[table]] = files.size_of(int(row.id[3:15]))
        return row

    def found(self, table: str, row_id: object) -> Row:
        """By 15 or 18 characters; a file is there under any number."""
        text = str(row_id)
        row = self.store.table(table).get(text if len(text) == 18 else f"{text[:15]}AAA")
        if row is None and table in _FILES and text.startswith(_PREFIXES[table]) and text[3:15].isdigit():
            row = self.made(table, 1)
            size = {_FILES[table]: files.size_of(int(text[3:15])), "Id": text}
            row = Row(text, {**row.record, **size})
        if row is None or row.record.get("IsDeleted"):
            raise Refusal(404, message="The requested resource does not exist")
        return row

    # How it talks

    def refused(self, refusal: Refusal) -> Reply:
        """A list with one error; the daily limit is a 403."""
        status = 403 if refusal.status == 429 else refusal.status
        code = refusal.code or (
            "REQUEST_LIMIT_EXCEEDED" if refusal.status == 429 else _CODES.get(status, "UNKNOWN_EXCEPTION")
        )
        return Reply([{"message": refusal.message or code, "errorCode": code}], status, refusal.headers)

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
        for name in self._objects:
            special[f"GET /sobjects/{name}/{{id}}"] = self._getter(name)
        for name, member in (("Attachment", "Body"), ("ContentVersion", "VersionData")):
            special[f"GET /sobjects/{name}/{{id}}/{member}"] = self._file(name)
        return special

    def _getter(self, name: str) -> Handler:
        def get(call: Call) -> Reply:
            row = self.found(name, call.params["id"])
            asked = [part.strip() for part in call.query.get("fields", "").split(",") if part.strip()]
            return Reply(_shown(row, ["Id", *asked] if asked else list(row.record)))

        return get

    def _file(self, name: str) -> Handler:
        def download(call: Call) -> FileReply:
            row = self.found(name, call.params["id"])
            return FileReply(int(row.id[3:15]), f"{row.record.get('Name') or row.record.get('Title')}.bin")

        return download

    # Queries

    def query(self, call: Call, *, with_deleted: bool) -> Reply:
        """The first page of a query's records, and the address of the next."""
        try:
            query = soql.parse(call.query.get("q", ""))
            rows = soql.run(query, self._rows(query.object, with_deleted))
        except soql.MalformedQuery as error:
            raise Refusal(400, "MALFORMED_QUERY", str(error)) from error
        if query.is_count:
            return Reply({"totalSize": len(rows), "done": True, "records": []})
        names = query.names(self._names(query.object))
        return self._batch_from([_shown(row, names) for row in rows], 0, _batch_of(call))

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
            page["nextRecordsUrl"] = f"{_VERSION}/query/{locator}-{start + batch}"
        return Reply({**page, "records": found[start : start + batch]})

    def _rows(self, name: str, with_deleted: bool) -> Iterable[Row]:
        rows = self.store.table(self._object(name))
        return rows if with_deleted else [row for row in rows if not row.record.get("IsDeleted")]

    def _object(self, name: str) -> str:
        found = next((known for known in self._objects if known.lower() == name.lower()), None)
        if found is None:
            raise Refusal(400, "INVALID_TYPE", f"sObject type '{name}' is not supported.")
        return found

    def _names(self, name: str) -> list[str]:
        return ["attributes", "Id", *(field for field in self.fields_of(self._object(name)) if field != "Id")]

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
            hits += [_shown(row, names) for row in self._rows(name, False) if _holds(row, words)]
        return Reply({"searchRecords": hits[:limit]})

    def describe(self, call: Call) -> Reply:
        return Reply(
            {"encoding": "UTF-8", "maxBatchSize": 200, "sobjects": [_described(name) for name in self._objects]}
        )


def _shown(row: Row, names: Sequence[str]) -> Record:
    """The record with these fields; raises the application's refusal of an unknown one."""
    record: Record = {"attributes": row.record["attributes"]}
    by_lower = {name.lower(): name for name in row.record}
    for name in names:
        known = by_lower.get(name.lower())
        if known is None and "." not in name:
            raise Refusal(400, "INVALID_FIELD", f"No such column '{name}' on entity '{record['attributes']['type']}'")
        record[known or name] = row.record.get(known or name)
    return record


def _batch_of(call: Call) -> int:
    found = re.search(r"batchSize=(\d+)", call.headers.get("sforce-query-options", ""))
    return min(_BATCH, max(_SMALLEST_BATCH, int(found[1]))) if found else _BATCH


def _without_limit(text: str) -> tuple[str, int]:
    found = re.search(r"\)?\s*\bLIMIT\s+(\d+)\s*$", text, flags=re.IGNORECASE)
    return (text[: found.start()] + ")", int(found[1])) if found else (text, 2000)


def _holds(row: Row, words: str) -> bool:
    return any(words in value.lower() for value in row.record.values() if isinstance(value, str))


def _described(name: str) -> Record:
    is_own = name not in ("User", "OpportunityStage")
    known: Record = {"name": name, "label": name, "labelPlural": f"{name}s", "keyPrefix": _PREFIXES.get(name)}
    abilities = {"custom": False, "queryable": True, "searchable": is_own, "createable": is_own}
    more = {"updateable": is_own, "deletable": is_own, "urls": {"sobject": f"{_VERSION}/sobjects/{name}"}}
    return {**known, **abilities, **more}
