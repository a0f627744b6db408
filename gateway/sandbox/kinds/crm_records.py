"""CRM records: property maps, search by filter groups, cursors that are offsets."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from gateway.kinds.catalog import Operation
from gateway.sandbox import files, filters, paging, records
from gateway.sandbox.application import Application, Route
from gateway.sandbox.calls import Call, FileReply, Handler, Record, Refusal, Reply
from gateway.sandbox.kinds.crm_search import is_found
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.store import Row

#: the path of the files of exports
_EXPORTED = "/_sandbox/exported/crm-records.csv"
#: object type → its properties; those before the bar are returned by default
_PROPERTIES: Mapping[str, str] = {
    "contacts": "createdate email firstname hs_object_id lastmodifieddate lastname"
    " | phone company jobtitle city country hubspot_owner_id associatedcompanyid lifecyclestage",
    "companies": "createdate domain hs_lastmodifieddate hs_object_id name"
    " | industry city country phone website hubspot_owner_id description",
    "deals": "amount closedate createdate dealname dealstage hs_lastmodifieddate hs_object_id pipeline"
    " | hubspot_owner_id dealtype description",
    "tickets": "content createdate hs_lastmodifieddate hs_object_id hs_pipeline hs_pipeline_stage hs_ticket_category"
    " hs_ticket_priority subject | hubspot_owner_id",
    "cars": "createdate hs_lastmodifieddate hs_object_id name | color description",
}
#: types that records can be associated with and that have no records in the sandbox
_WITHOUT_RECORDS = ("line_items",)
#: the account's own object type, and its other names
_OWN_TYPE, _OWN_TYPE_NAMES = "cars", ("2-3444025", "p_cars", "p1234567_cars")
_CHOICES: Mapping[str, Sequence[str]] = {
    "dealstage": ("appointmentscheduled", "qualifiedtobuy", "contractsent", "closedwon", "closedlost"),
    "pipeline": ("default",),
    "hs_pipeline": ("0",),
    "hs_pipeline_stage": ("1", "2", "3", "4"),
    "hs_ticket_category": ("PRODUCT_ISSUE", "BILLING_ISSUE", "FEATURE_REQUEST", "GENERAL_INQUIRY"),
    "hs_ticket_priority": ("LOW", "MEDIUM", "HIGH"),
    "lifecyclestage": ("lead", "customer", "subscriber"),
    "dealtype": ("newbusiness", "existingbusiness"),
}
_MAX_LISTED, _MOST_WITH_HISTORY, _MAX_SEARCHED, _DEEPEST = 100, 50, 200, 10_000


class CrmRecords(Application):
    """Contacts, companies, deals, tickets and one own object type of the account."""

    counts: ClassVar = {"contacts": 420, "companies": 180, "deals": 260, "tickets": 240, "cars": 35, "schemas": 1}
    shared_tables: ClassVar = {"objects": _OWN_TYPE}
    references: ClassVar = {"associatedcompanyid": "companies", "hubspot_owner_id": "owners"}
    codes: ClassVar = {
        400: "VALIDATION_ERROR",
        401: "INVALID_AUTHENTICATION",
        403: "MISSING_SCOPES",
        404: "OBJECT_NOT_FOUND",
        409: "CONFLICT",
        429: "RATE_LIMITS",
    }
    tokens: ClassVar = TokenStyle(lifetime=1800)
    standing_headers: ClassVar = {"X-HubSpot-RateLimit-Max": "100000", "X-HubSpot-RateLimit-Remaining": "99999"}

    def usual_id(self, table: str, number: int) -> str:
        return str(super().usual_id(table, number))

    def time(self, moment: float) -> str:
        return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def ready_made_row(self, table: str, number: int) -> Row:
        if table == "schemas":
            return self._schema(str(self.id_of(table, number)))
        maker = self.maker_of(table, number)
        names = [name for name in _PROPERTIES[table].split() if name != "|"]
        properties = records.filled(maker, dict.fromkeys(names, "string"))
        properties |= {name: maker.pick(choices) for name, choices in _CHOICES.items() if name in properties}
        properties |= {"hs_object_id": maker.id}
        if "amount" in properties:
            properties["amount"] = str(maker.chance.randrange(1, 900) * 100)
        record = {
            "id": maker.id,
            "properties": properties,
            "createdAt": self.time(maker.created),
            "updatedAt": self.time(maker.updated),
            "archived": number % 40 == 39,
        }
        return Row(str(maker.id), record, {}, maker.updated)

    def _schema(self, type_id: str) -> Row:
        names = [name for name in _PROPERTIES[_OWN_TYPE].split() if name != "|"]
        record = records.blank(self.fields_of("schemas")) | {
            "id": "3444025",
            "name": _OWN_TYPE,
            "objectTypeId": type_id,
            "fullyQualifiedName": _OWN_TYPE_NAMES[2],
            "labels": {"singular": "Car", "plural": "Cars"},
            "primaryDisplayProperty": "name",
            "properties": [{"name": name, "label": name, "type": "string", "fieldType": "text"} for name in names],
            "associations": [],
            "archived": False,
        }
        return Row("3444025", record)

    def refused(self, refusal: Refusal) -> Reply:
        """An error of the ten-second limit has the name of the limit instead of a category."""
        reply = super().refused(refusal)
        if refusal.status == 429:
            limit = {"errorType": "RATE_LIMIT", "policyName": "TEN_SECONDLY_ROLLING"}
            reply = replace(reply, body={**reply.body, "category": None, **limit})
        return reply

    def handlers(self) -> dict[str, Handler]:
        special: dict[str, Handler] = {
            "GET /crm-object-schemas/v3/schemas/{objectType}": self.schema,
            "GET /crm/v3/objects/{objectType}/{objectId}": self.read,
            "GET /crm/v3/objects/{objectType}": self.browse,
            "POST /crm/v3/objects/{objectType}/search": self.search,
        }
        own = {
            "list": self.browse,
            "get": self.read,
            "api_search": self.search,
            "create": self.create,
            "update": self.update,
            "delete": self.archive,
        }
        for entity in ("contacts", "companies", "deals", "tickets"):
            for action, handler in own.items():
                operation = self.kind.operations.get((entity, action))
                if operation is not None:
                    special[operation.action.request] = handler
        special["GET /crm/exports/2026-03/export/async/tasks/{export_id}/status"] = self.export
        return special

    def files(self) -> list[Route]:
        """The files of exports; their URLs need no credentials."""
        return [Route("GET", _EXPORTED, lambda call: FileReply(files.number_for(5000), "export.csv"), is_open=True)]

    # Long operations

    def export(self, call: Call) -> Reply:
        """The state of an export; an unknown one counts as complete."""
        job = self.long_jobs.find(call.params["export_id"])
        return Reply({"status": "COMPLETE", **self._exported(call)} if job is None else self.long_jobs.document(job))

    @staticmethod
    def _exported(call: Call) -> Record:
        return {"result": f"{call.origin}{_EXPORTED}", "completedAt": records.iso_time(call.now)}

    def long_outcome(self, operation: Operation, call: Call, now: float) -> Record:
        return self._exported(call)

    def long_records(self, operation: Operation, call: Call) -> Sequence[Any]:
        """The existing records of a batch with the requested properties; archived ones only on request."""
        table, wants_archived = self._table(call), call.query.get("archived") == "true"
        asked = {"properties": ",".join(call.body.get("properties", ()))}
        found = (self._row_of(table, {**call.body, **item}) for item in call.body["inputs"])
        return [self._view(table, row, asked) for row in found if row and row.record["archived"] == wants_archived]

    def work_on(self, operation: Operation, call: Call, item: Any, now: float) -> Row:
        """One record of a batch."""
        table = self._table(call)
        properties = item.get("properties", {})
        if "id" not in item:
            return self._added(table, properties, now)
        row = self._row_of(table, {**call.body, **item})
        if row is None:
            raise Refusal(404, message=f"there is no {item['id']}")
        self._set(row, properties, now)
        return row

    def _added(self, table: str, properties: Mapping[str, Any], now: float) -> Row:
        moment = self.time(now)
        row = self.add_row(
            table, {"properties": dict(properties), "createdAt": moment, "updatedAt": moment, "archived": False}, now
        )
        row.record["properties"] |= {"hs_object_id": row.id, "createdate": moment, _changed_member(table): moment}
        return row

    def _set(self, row: Row, properties: Mapping[str, Any], now: float) -> None:
        self.change(row, {"properties": {**row.record["properties"], **properties}}, now)

    # Writes of one record

    def create(self, call: Call) -> Reply:
        """A new record; a contact's email address must be new."""
        table, properties = self._table(call), call.body["properties"]
        email = properties.get("email") if table == "contacts" else None
        if email and (known := self._row_of(table, {"idProperty": "email", "id": email})):
            raise Refusal(409, message=f"Contact already exists. Existing ID: {known.id}")
        row = self._added(table, properties, call.now)
        return Reply(self._view(table, row, {"properties": ",".join(properties)}), 201)

    def update(self, call: Call) -> Reply:
        """The record with the properties that the call sets."""
        table, row = self._existing(call)
        properties = call.body["properties"]
        self._set(row, {**properties, _changed_member(table): self.time(call.now)}, call.now)
        return Reply(self._view(table, row, {"properties": ",".join(properties)}))

    def archive(self, call: Call) -> Reply:
        """204, also for a record that is archived already."""
        row = self._row_of(self._table(call), {"id": _last(call)})
        if row is not None:
            self.change(row, {"archived": True}, call.now)
        return Reply(None, 204)

    def _existing(self, call: Call) -> tuple[str, Row]:
        table, wanted = self._table(call), _last(call)
        row = self._row_of(table, {**call.query, "id": wanted})
        if row is None or row.record["archived"] != (call.query.get("archived") == "true"):
            raise Refusal(404, message=f"Object not found. objectId are usually numeric: {wanted}")
        return table, row

    def _row_of(self, table: str, named: Mapping[str, Any]) -> Row | None:
        """The row with an id, or with a value of the property `idProperty`."""
        member, wanted = named.get("idProperty"), named["id"]
        if not member:
            return self.store.table(table).get(wanted)
        return next((row for row in self.store.table(table) if row.record["properties"].get(member) == wanted), None)

    def schema(self, call: Call) -> Reply:
        if self._type(call.params["objectType"]) != _OWN_TYPE:
            raise Refusal(404, message="there is no schema of this type")
        return Reply(next(iter(self.store.table("schemas"))).record)

    def browse(self, call: Call) -> Reply:
        """A page of records in the order of their creation; archived ones only on request."""
        table = self._table(call)
        wants_archived = call.query.get("archived") == "true"
        rows = [row for row in self.store.table(table) if row.record["archived"] == wants_archived]
        most = _MOST_WITH_HISTORY if call.query.get("propertiesWithHistory") else _MAX_LISTED
        if paging.size_asked(call.query, "limit", 10, _DEEPEST) > most:
            raise Refusal(400, message=f"limit is at most {most}")
        # `after` is the id of the last record, so that none is skipped if others are archived meanwhile.
        after = _offset(call.query.get("after"))
        start = next((index for index, row in enumerate(rows, 1) if row.id == str(after)), after and len(rows))
        page = paging.portion(rows, start, paging.size_asked(call.query, "limit", 10, most))
        further = _further(page, call, page.items[-1].id if page.items else "")
        return Reply({"results": [self._view(table, row, call.query) for row in page.items], **further})

    def read(self, call: Call) -> Reply:
        table, row = self._existing(call)
        return Reply(self._view(table, row, call.query))

    def search(self, call: Call) -> Reply:
        """A page of the records that match one of the filter groups and contain the text of `query`."""
        body, table = call.body, self._table(call)
        rows = [
            row
            for row in self.store.table(table)
            if not row.record["archived"] and is_found(row.record["properties"], body)
        ]
        sort = next(iter(body.get("sorts") or ()), None)
        if sort is not None:
            name, direction = (sort, "") if isinstance(sort, str) else (sort["propertyName"], sort.get("direction", ""))
            flat = {row.id: Row(row.id, row.record["properties"]) for row in rows}
            by_id = {row.id: row for row in rows}
            ordered = filters.ordered(flat.values(), name, descending=direction == "DESCENDING")
            rows = [by_id[row.id] for row in ordered]
        size = paging.size_asked(body, "limit", 10, _MAX_SEARCHED)
        start = _offset(body.get("after"))
        if start + size > _DEEPEST:
            raise Refusal(400, message="a search returns only the first 10000 results")
        page = paging.portion(rows, start, size)
        asked = {"properties": ",".join(body.get("properties") or ())}
        found = [self._view(table, row, asked) for row in page.items]
        return Reply({"total": len(rows), "results": found, **_further(page, call, str(page.end))})

    def _view(self, table: str, row: Row, asked: Mapping[str, str]) -> Record:
        """The record with the requested properties and associations."""
        known = row.record["properties"]
        always = {"hs_object_id", "createdate", _changed_member(table)}
        names = [name.strip() for name in asked.get("properties", "").split(",") if name.strip()]
        shown = {*names, *always} if names else set(_PROPERTIES[table].partition("|")[0].split())
        record: Record = {**row.record, "properties": {name: known.get(name) for name in sorted(shown)}}
        history = [name for name in asked.get("propertiesWithHistory", "").split(",") if name]
        if history:
            past = {name: [{"value": known.get(name), "timestamp": row.record["updatedAt"]}] for name in history}
            record["propertiesWithHistory"] = past
        others = [name for name in asked.get("associations", "").split(",") if name]
        if others:
            record["associations"] = {other: {"results": list(self._associated(table, row, other))} for other in others}
        return record

    def _associated(self, table: str, row: Row, other: str) -> Iterable[Record]:
        """One record of the other type, always the same; none for types without records."""
        if other in _WITHOUT_RECORDS:
            return
        target = self._type(other)
        place = int(row.id) % self.count_of(target) + 1
        yield {"id": self.id_of(target, place), "type": f"{table[:-1]}_to_{target[:-1]}"}

    def _table(self, call: Call) -> str:
        """The table of the object type in the path."""
        return self._type(call.path.split("/")[4])

    def _type(self, name: str) -> str:
        if name in _OWN_TYPE_NAMES:
            return _OWN_TYPE
        if name not in _PROPERTIES:
            raise Refusal(400, message=f"Unable to infer object type from: {name}")
        return name


def _changed_member(table: str) -> str:
    """The property with the time of the last change."""
    return "lastmodifieddate" if table == "contacts" else "hs_lastmodifieddate"


def _last(call: Call) -> str:
    """The last param of the path: the record's id."""
    return next(reversed(list(call.params.values())))


def _offset(after: object) -> int:
    text = str(after or 0)
    if not re.fullmatch(r"\d{1,9}", text):
        raise Refusal(400, message="after is not from an earlier page")
    return int(text)


def _further(page: paging.Page[Row], call: Call, after: str) -> dict[str, Any]:
    if not page.has_more:
        return {}
    return {"paging": {"next": {"after": after, "link": paging.address(call, after=after)}}}
