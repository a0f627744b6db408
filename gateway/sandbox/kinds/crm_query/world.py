"""The records of the CRM by query, by the application's names of objects: `accounts` of the spec is `Account`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import ClassVar

from gateway.sandbox import files, records
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Record, Refusal
from gateway.sandbox.store import Row

VERSION = "/services/data/v59.0"
PREFIXES: Mapping[str, str] = {
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
    "reports": "00O",
}
_STAGES = ("Prospecting", "Qualification", "Proposal", "Negotiation", "Closed Won", "Closed Lost")
#: tables of files → the member with their size; any file number finds a record: 64 is 64 MiB long
_FILES: Mapping[str, str] = {"Attachment": "BodyLength", "ContentVersion": "ContentSize"}
#: fields that examples use and the spec does not list
_MORE_FIELDS: Mapping[str, Mapping[str, str]] = {
    "Account": {"AnnualRevenue": "number"},
    "Campaign": {"Status": "string", "StartDate": "string", "EndDate": "string", "Type": "string"},
    "Case": dict.fromkeys(("CaseNumber", "Status", "Priority", "Origin", "Description", "AccountId"), "string"),
    "Event": dict.fromkeys(("StartDateTime", "EndDateTime", "Location"), "string"),
    "Note": {"Body": "string", "ParentId": "string"},
}


class CrmWorld(Application):
    """Accounts with their contacts, opportunities, cases and files."""

    counts: ClassVar = {
        "Account": 2400,
        "Contact": 2400,
        "Lead": 320,
        "Opportunity": 400,
        "Task": 300,
        "Case": 220,
        "User": 45,
        "OpportunityStage": len(_STAGES),
        "reports": 6,
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

    @cached_property
    def objects(self) -> dict[str, str]:
        """The application's name of each object → the entity, from the path of `get`: `/sobjects/Account/{id}`."""
        lines = {
            name: entity.actions["get"].request
            for name, entity in self.kind.spec.entities.items()
            if "get" in entity.actions
        }
        found = {name: re.search(r"/sobjects/(\w+)/", line) for name, line in lines.items()}
        return {match[1]: name for name, match in found.items() if match}

    def table_for(self, entity_id: str) -> str:
        return next((name for name, entity in self.objects.items() if entity == entity_id), entity_id)

    def usual_id(self, table: str, number: int) -> str:
        return f"{PREFIXES.get(table, '0XX')}{1_000_000 + number:012d}AAA"

    def time(self, moment: float) -> str:
        return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")

    def fields_of(self, table: str) -> Mapping[str, records.FieldType]:
        entity = self.kind.spec.entities[self.objects[table]]
        search: Mapping[str, str] = entity.search.fields if entity.search else {}
        always = {
            "IsDeleted": "boolean",
            "CreatedDate": "string",
            "LastModifiedDate": "string",
            "SystemModstamp": "string",
        }
        return {**entity.fields, **search, **_MORE_FIELDS.get(table, {}), **always}

    def ready_made_row(self, table: str, number: int) -> Row:
        row = super().ready_made_row(table, number)
        record = row.record
        record["IsDeleted"] = number % 50 == 49 and table not in ("User", "OpportunityStage")
        record["LastModifiedDate"] = record["SystemModstamp"] = self.time(row.changed)
        record["attributes"] = {"type": table, "url": f"{VERSION}/sobjects/{table}/{row.id}"}
        if table == "OpportunityStage":
            record["MasterLabel"] = record["ApiName"] = _STAGES[number - 1]
        elif table == "Opportunity":
            record["StageName"] = stage = _STAGES[number % len(_STAGES)]
            record["IsClosed"], record["IsWon"] = stage.startswith("Closed"), stage == "Closed Won"
        if table in _FILES:
            row.refs["file"] = files.number_for(1500 + number)
            record[_FILES[table]] = files.size_of(row.refs["file"])
        return row

    def require_row(self, table: str, row_id: object) -> Row:
        """The row with an id of 15 or 18 characters; any file number finds a file."""
        text = str(row_id)
        row = next((row for row in self.store.table(table) if row.id[:15] == text), None) if len(text) == 15 else None
        row = row or self.store.table(table).get(text)
        if row is None and table in _FILES and text.startswith(PREFIXES[table]) and text[3:15].isdigit():
            row = self.ready_made_row(table, 1)
            size = {_FILES[table]: files.size_of(int(text[3:15])), "Id": text}
            row = Row(text, {**row.record, **size}, {"file": int(text[3:15])})
        if row is None or row.record.get("IsDeleted"):
            raise Refusal(404, message="The requested resource does not exist")
        return row

    def rows_for(self, name: str, with_deleted: bool) -> Iterable[Row]:
        rows = self.store.table(self.object_named(name))
        return rows if with_deleted else [row for row in rows if not row.record.get("IsDeleted")]

    def object_named(self, name: str) -> str:
        """The object with a name, in any case; raises Refusal if there is none."""
        found = next((known for known in self.objects if known.lower() == name.lower()), None)
        if found is None:
            raise Refusal(400, "INVALID_TYPE", f"sObject type '{name}' is not supported.")
        return found

    def names_for(self, name: str) -> list[str]:
        return ["attributes", "Id", *(field for field in self.fields_of(self.object_named(name)) if field != "Id")]

    def shown_fields(self, row: Row, names: Sequence[str]) -> Record:
        """The record with these fields, those of related records nested; raises Refusal for an unknown one."""
        record: Record = {"attributes": row.record["attributes"]}
        by_lower = {name.lower(): name for name in row.record}
        for name in names:
            relation, _, inner = name.partition(".")
            if inner:
                record[relation] = self._related(row, relation, inner)
                continue
            known = by_lower.get(name.lower())
            if known is None:
                kind = record["attributes"]["type"]
                raise Refusal(400, "INVALID_FIELD", f"No such column '{name}' on entity '{kind}'")
            record[known] = row.record[known]
        return record

    def _related(self, row: Row, relation: str, inner: str) -> Record | None:
        """A member of the related record, such as `Owner` or `Account`; None without one."""
        table = self.references.get(f"{relation}Id")
        other = self.store.table(table).get(row.record.get(f"{relation}Id")) if table else None
        return None if other is None else {"attributes": other.record["attributes"], inner: other.record.get(inner)}
