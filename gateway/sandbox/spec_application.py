"""An application that follows only from its spec: records, writes, paging, rate limits and errors."""

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal

from multidict import MultiDict

from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.members import JsonPath, value_at
from gateway.kinds.paging import TimeOrder
from gateway.kinds.placements import FIRST_ITEM, put
from gateway.sandbox import files, filters, records
from gateway.sandbox.application import Application, Route
from gateway.sandbox.calls import Call, FileReply, Handler, Record, Refusal, Reply, innermost, nested
from gateway.sandbox.choice import chosen, opens_upload_session
from gateway.sandbox.grants import Pair
from gateway.sandbox.oauth import TokenStyle
from gateway.sandbox.operations import last_param, synchronized_lists, wire_name
from gateway.sandbox.rate_limit import RateLimitWindow
from gateway.sandbox.store import Row

#: the fields of a record, if the spec names none
_USUAL_FIELDS: Mapping[str, records.FieldType] = {
    "id": "string",
    "name": "string",
    "created_at": "string",
    "updated_at": "string",
}
#: values of query members that select all records, such as `state=all`
_UNFILTERING = ("all", "any", "*", "")
#: the synchronizer's list of deleted records; the sandbox stores none
_DELETIONS = "deletions"
#: minimum bytes of a downloaded file
_FILE_BYTES = 100_000


class SpecApplication(Application):
    """The stand-in for a kind without own behaviour, or the base of one with little own behaviour."""

    def __init__(self, kind: Kind, *, seed: int = 0, scale: float = 1, job_seconds: float = 1.0) -> None:
        super().__init__(kind, seed=seed, scale=scale, job_seconds=job_seconds)
        self._window = RateLimitWindow(kind.spec.rate_limit)

    def reset(self) -> None:
        super().reset()
        self._window = RateLimitWindow(self.kind.spec.rate_limit)

    # Records

    @cached_property
    def _example_ids(self) -> dict[str, int | str]:
        """As in the base class, and the ids in the variables of GraphQL examples."""
        found = super()._example_ids
        for operation in self.kind.operations.values():
            table = self.table_of(operation)
            if operation.action.graphql and operation.action_id != "create" and (ids := _ids(operation.action.example)):
                found.setdefault(table, ids[0])
        return found

    def fields_of(self, table: str) -> Mapping[str, records.FieldType]:
        """The fields of an entity, else those of its actions, else its search fields."""
        entity = self.kind.spec.entities.get(table)
        if entity is None:
            return _USUAL_FIELDS
        of_actions = next((action.fields for action in entity.actions.values() if action.fields), None)
        searched = (
            {name: type_ for name, type_ in entity.search.fields.items() if "." not in name} if entity.search else {}
        )
        return entity.fields or of_actions or searched or _USUAL_FIELDS

    @cached_property
    def _id_members(self) -> dict[str, str]:
        return {entity_id: self._found_id_member(entity_id) for entity_id in self.kind.spec.entities}

    def id_member_of(self, table: str) -> str:
        return self._id_members.get(table, self.id_member)

    def _found_id_member(self, entity_id: str) -> str:
        """The member by which `get` finds a record: the name of its last param, the name's last word, or `primary_key`.

        In GraphQL the param is the last required one.
        """
        entity, fields = self.kind.spec.entities[entity_id], self.fields_of(entity_id)
        get = entity.actions.get("get")
        named = (re.findall(r"{(\w+)}", get.request) or (get.required if get.graphql else ())) if get else ()
        names = named[-1:]
        words = [word for name in names for word in (name, name.rpartition("_")[2])]
        candidates = [*words, *([entity.search.primary_key] if entity.search else []), self.id_member]
        return next((name for name in candidates if name in fields), self.id_member)

    def usual_id(self, table: str, number: int) -> int | str:
        found = super().usual_id(table, number)
        declared = self.fields_of(table).get(self.id_member_of(table), "string")
        return found if declared in ("integer", "integer?", "number") else str(found)

    # Operations

    def list_records(self, operation: Operation, call: Call) -> Reply:
        """The rows below the path whose members match the query."""
        if operation.action_id == _DELETIONS:
            return self.listed(operation, [], call)
        paging_params = operation.paging.request_params if operation.paging else ()
        ignored = {wire_name(operation, name) for name in paging_params}
        query = MultiDict((name, value) for name, value in call.query.items() if value.lower() not in _UNFILTERING)
        rows = filters.matching(self.related(operation, call), query, ignored)
        if not rows and (words := self.kind.spec.failure.no_records):
            raise Refusal(404, message=words[0].rstrip("*"))
        order = operation.order
        return self.listed(operation, _by_time(rows, order, call) if isinstance(order, TimeOrder) else rows, call)

    def related(self, operation: Operation, call: Call) -> Iterable[Row]:
        return [row for row in self.store.table(self.table_of(operation)) if _lies_below(row, call)]

    def get_record(self, operation: Operation, call: Call) -> Reply:
        """The record that the path names; a path without a param has one record, such as the caller's user.

        If the synchronizer reads a list in this response, such as the messages of a thread, the response has it.
        """
        table = self.table_of(operation)
        if ids := _ids_in_query(operation, call):
            rows = [row for each in ids if (row := self.store.table(table).get(each)) is not None]
            shown = [self.shown(operation, row, call) for row in rows]
            return Reply(nested((operation.action.record or ())[:-1], shown))
        if not call.params:
            return self.one(operation, next(iter(self.store.table(table))), call)
        row = self._row_named(operation, call) or self.require_row(table, last_param(operation, call))
        reply = self.one(operation, row, call)
        for each in self._lists_within.get(self.shape_of(operation.action.request), ()):
            reply = replace(reply, body={**reply.body, **self.list_records(each, replace(call, query={})).body})
        return reply

    @cached_property
    def _lists_within(self) -> dict[str, list[Operation]]:
        """The lists that the synchronizer reads in the response to a `get`, by the key of its request line."""
        gets = {self.shape_of(each.action.request) for each in self.kind.operations.values() if each.action_id == "get"}
        found: dict[str, list[Operation]] = {}
        for operation in self.operations():
            shape = self.shape_of(operation.action.request)
            if operation.action_id == "synchronize" and shape in gets:
                found.setdefault(shape, []).append(operation)
        return found

    def create_record(self, operation: Operation, call: Call) -> Reply:
        """The response to a POST: a list, a new record, or the existing record that is read or changed."""
        if operation.is_list:
            return self.list_records(operation, call)
        row = self._row_named(operation, call)
        if operation.action_id != "create" and row is not None:
            return self._changed(operation, row, call)
        if operation.action_id != "create" and operation.action.graphql and (named := _ids(call.body)):
            raise Refusal(404, message=f"there is no {named[0]}")
        if operation.action_id == "get" and (name := _id_in_body(operation, call)):
            raise Refusal(404, message=f"there is no {name}")
        if operation.action.effect == "read":
            return self.one(operation, self._row_with(call.body, self.table_of(operation)), call)
        row = self.add_row(self.table_of(operation), self.body_of(operation, call), call.now)
        row.refs |= call.params
        if operation.action.id_header:
            return Reply(None, 201, {operation.action.id_header: row.id})
        return replace(self.one(operation, row, call), status=200 if operation.action.graphql else 201)

    def _changed(self, operation: Operation, row: Row, call: Call) -> Reply:
        """The response to a POST that names an existing record, which is read, changed or removed."""
        if operation.action_id == "delete":
            self.store.table(self.table_of(operation)).remove(row.id)
        elif operation.action.effect != "read":
            self.change(row, self.body_of(operation, call), call.now)
        return self.one(operation, row, call)

    def update_record(self, operation: Operation, call: Call) -> Reply:
        row = self._row_named(operation, call)
        # A path that names no record: the application makes the record if there is none.
        if row is None and (operation.action_id == "create" or "{" not in operation.action.request):
            return self.create_record(operation, call)
        if row is None:
            raise Refusal(404, message=f"there is no {self._named_id(operation, call)}")
        self.change(row, self.body_of(operation, call), call.now)
        return self.one(operation, row, call)

    def delete_record(self, operation: Operation, call: Call) -> Reply:
        """Remove the record that the path, the body or a variable names."""
        row = self._row_named(operation, call)
        if row is not None:
            self.store.table(self.table_of(operation)).remove(row.id)
        elif last_param(operation, call):
            super().delete_record(operation, call)
        return Reply(None, 204)

    def _row_named(self, operation: Operation, call: Call) -> Row | None:
        """The record that the path, the body or a GraphQL variable names, by its id or the number beside a global id.

        An id in the action's example finds a record even if the entity's ids have another form.
        """
        name, last = self.table_of(operation), self._named_id(operation, call)
        table = self.store.table(name)
        named = [last, *(_ids(call.body) if operation.action.graphql else [call.body.get("id")])]
        row = next((row for name in named if name and (row := table.get(name)) is not None), None)
        if row is None and last and operation.action_id != "create":
            row = next((row for row in table if last in _numbers(row.record)), None)
            is_example = last in map(str, operation.action.example.values())
            if row is None and is_example and last != str(self._example_ids.get(name)):
                return next(iter(table), None)
        return row

    def _named_id(self, operation: Operation, call: Call) -> str:
        """The id that a call names: in the one item of a list in the body, at the end of the path, or in the body."""
        paths = (tuple(wire_name(operation, name).split(".")) for name in operation.action.required)
        path = next((each for each in paths if FIRST_ITEM in each), ())
        is_id = any(_is_id(name) or name == self.id_member_of(self.table_of(operation)) for name in path)
        in_item = value_at(call.body, path) if is_id else None
        return str(in_item or "") or last_param(operation, call) or _id_in_body(operation, call)

    def _row_with(self, members: Mapping[str, Any], table: str) -> Row:
        """The first record with one of these members, else the first of all."""
        rows = list(self.store.table(table))
        return next((row for row in rows if any(row.record.get(name) == members[name] for name in members)), rows[0])

    def body_of(self, operation: Operation, call: Call) -> Record:
        members = super().body_of(operation, call)
        if operation.action.graphql:
            # The members of a mutation's inputs are those of the record.
            inputs = _inputs(members)
            members = {name: value for name, value in members.items() if not isinstance(value, dict)}
            members = {name: value for each in (members, *inputs) for name, value in each.items() if name != "id"}
        constant = operation.action.constant_body
        return {name: value for name, value in members.items() if name not in constant}

    def one(self, operation: Operation, row: Row, call: Call) -> Reply:
        """The response with one record; a mutation with its own `fields` returns these."""
        if operation.action.graphql is None or not operation.action.fields:
            return super().one(operation, row, call)
        record = self.shown(operation, row, call)
        payload = {name: _of_payload(declared, record, row) for name, declared in operation.action.fields.items()}
        return Reply(nested(operation.action.record or (), payload))

    def items_of(self, operation: Operation, rows: Sequence[Row], call: Call) -> Any:
        """The records of a page in the form of the response: wrapped as `unwrap` describes, a map, or only one."""
        action = operation.action
        shown = [self.shown(operation, row, call) for row in rows]
        if action.map_key is not None:
            key = action.map_key
            return {
                str(record.get(key, row.id)): {name: value for name, value in record.items() if name != key}
                for row, record in zip(rows, shown, strict=True)
            }
        if action.single:
            return shown[0]
        return [nested(action.unwrap, record) for record in shown]

    # Calls

    def operations(self) -> Iterable[Operation]:
        """The operations of the spec, and the lists that the synchronizer reads."""
        yield from super().operations()
        yield from synchronized_lists(self.kind)

    def handlers(self) -> dict[str, Handler]:
        """As in the base class, and lists that callers may request by POST because their URL would be too long."""
        listed = {
            f"POST {operation.action.request.partition(' ')[2]}/listRecords": partial(self._listed_by_body, operation)
            for operation in self.kind.operations.values()
            if operation.action.rule == "list_records"
        }
        return {**super().handlers(), **listed}

    def _listed_by_body(self, operation: Operation, call: Call) -> Reply:
        query = MultiDict(call.query)
        query.update({name: filters.as_text(value) for name, value in call.body.items()})
        return self.list_records(operation, replace(call, query=query, body={}))

    def shape_of(self, line: str) -> str:
        """Lines that differ only in the names of their params are one route."""
        return re.sub(r"{\w+}", "{}", line)

    def admit(self, call: Call) -> None:
        """Refuse calls beyond the rate limit of the spec."""
        wait = self._window.taken(call.now)
        if wait is not None:
            raise Refusal(429, message="too many requests", headers={"Retry-After": str(wait)})

    def answer(self, route: Route, call: Call) -> Reply | FileReply:
        """As in the base class; if operations share a route, the call's record, document or constants choose one."""
        taking = [each for each in route.operations if self._takes(each, call)] or route.operations
        operation = chosen([each for each in taking if self._has_named(each, call)], call) or chosen(taking, call)
        if operation is None or route.is_open:
            reply = super().answer(route, call)
        else:
            names = re.findall(r"{(\w+)}", operation.action.request)
            if len(names) == len(call.params):
                call = replace(call, params=dict(zip(names, call.params.values(), strict=True)))
            if operation.action.graphql is not None:
                call = replace(call, body=dict(call.body.get("variables") or {}))
            handler = self._usual(operation.method, operation)
            if opens_upload_session(operation, call):
                handler, operation = partial(self.upload_sessions.start, operation), operation.upload_start
            reply = super().answer(replace(route, handler=handler, operations=(operation,), is_cacheable=False), call)
        if isinstance(reply, FileReply):
            return reply
        body, ok = reply.body, self.kind.spec.failure.ok
        if ok is not None and isinstance(body, dict):
            body = {ok: True, **body}
        return replace(reply, body=body, headers={**self._window.headers(call.now), **reply.headers})

    def _has_named(self, operation: Operation, call: Call) -> bool:
        """Whether the path of an operation ends with an id, and its entity has the record of the call's path."""
        is_named = operation.action.request.endswith("}") and bool(call.params)
        return is_named and self.store.table(self.table_of(operation)).get([*call.params.values()][-1]) is not None

    def _takes(self, operation: Operation, call: Call) -> bool:
        """Whether the body of a call is valid for an operation."""
        is_checked = call.is_json and operation.has_body and operation.action.graphql is None
        if opens_upload_session(operation, call):
            operation = operation.upload_start  # its body has no file
        return not is_checked or not self._faults(operation, call.body)

    def check(self, route: Route, call: Call) -> None:
        """Refuse an invalid body, and a query that lacks required members or has values outside `enum`."""
        super().check(route, call)
        for operation in route.operations:
            if _is_lenient(operation, call) or (operation.entity_id, operation.action_id) not in self.kind.operations:
                continue  # values that the synchronizer sends are no limits of the application
            for placement in operation.placements:
                schema = operation.action.params[placement.name]
                value = call.query.get(placement.wire)
                is_required = placement.name in operation.action.required
                if placement.where != "query":
                    continue
                if value is None and is_required and placement.style is None:
                    raise Refusal(400, message=f"{placement.wire} is missing", field=placement.wire)
                if (
                    value is not None
                    and "enum" in schema
                    and value not in [filters.as_text(one) for one in schema["enum"]]
                ):
                    raise Refusal(400, message=f"{placement.wire}: {value} is not allowed", field=placement.wire)

    def _usual(self, method: str, operation: Operation) -> Any:
        if operation.is_download:
            return lambda call: self._downloaded(operation, call)
        return super()._usual(method, operation)

    def _downloaded(self, operation: Operation, call: Call) -> Reply | FileReply:
        """The file, or the record with the URLs of all files that are read with this request."""
        how = operation.action.download
        assert how is not None
        name = last_param(operation, call) or "file"
        if how.url is None:
            return _file(name)
        record: dict[str, Any] = {}
        for place in self._file_places[operation.action.request]:
            put(record, place, f"{call.origin}/_sandbox/of/{self.kind.name}/{name}")
        return Reply(record)

    @cached_property
    def _file_places(self) -> dict[str, list[JsonPath]]:
        """The places of the URLs of files, by request line."""
        found: dict[str, list[JsonPath]] = {}
        for operation in self.kind.operations.values():
            if (how := operation.action.download) is not None and how.url is not None:
                found.setdefault(operation.action.request, []).append(how.url)
        return found

    def token_style(self) -> TokenStyle:
        """How the kind's authorization server expects token requests, and the `outputs` of its responses."""
        oauth = self.kind.spec.oauth
        if oauth is None:
            return TokenStyle()
        names = ("access_token", "refresh_token", "expires_in")
        places = {name: place for name, place in oauth.outputs.items() if name not in names}

        def outputs(call: Call, pair: Pair) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name, place in places.items():
                is_origin = name in self.kind.spec.environment and self.kind.spec.environment[name].type == "origin"
                put(found, place, call.origin if is_origin else "sandbox")
            return found

        where: Literal["basic", "body"] = "basic" if oauth.client_authentication == "basic" else "body"
        return TokenStyle(client_authentication=(where,), encodings=(oauth.encoding,), outputs=outputs)

    def files(self) -> list[Route]:
        path = f"/_sandbox/of/{self.kind.name}/{{name}}"
        return [Route("GET", path, lambda call: _file(call.params["name"]), is_open=True)]


def _file(name: str) -> FileReply:
    """The file for a name, which determines its size and bytes."""
    return FileReply(files.number_for(_FILE_BYTES + zlib.crc32(name.encode()) % 1000), f"{name}.bin")


def _is_lenient(operation: Operation, call: Call) -> bool:
    """Whether a call continues a list by a cursor that has the other params."""
    style = operation.paging
    continues = style is not None and wire_name(operation, style.param) in call.query
    return continues and style is not None and style.repeat_params is not None


def _id_in_body(operation: Operation, call: Call) -> str:
    """The id that the first required member of a body names, if the path has no param; empty without one.

    A filter names it in a list with one item.
    """
    names = operation.action.required if "{" not in operation.action.request and operation.method == "POST" else ()
    name = wire_name(operation, names[0]) if names and not operation.action.graphql else ""
    return str(innermost(call.body.get(name, ""))) if _is_id(name) else ""


def _is_id(name: str) -> bool:
    """Whether a member of a body is an id, or a filter by ids."""
    return name.lower().endswith(("id", "idfilter"))


def _ids_in_query(operation: Operation, call: Call) -> list[str]:
    """The ids by which a query selects the records of a list whose first one is the record; none for other reads."""
    is_first = (operation.action.record or ())[-1:] == ("0",)
    names = operation.action.required if is_first and "{" not in operation.action.request else ()
    return call.query.get(wire_name(operation, names[0]), "").split(",") if names else []


def _by_time(rows: Sequence[Row], order: TimeOrder, call: Call) -> Sequence[Row]:
    """The rows in the order that the spec declares, from the time on that the query asks for."""
    name, since = order.by_time[-1], call.query.get(order.since or "", "")
    return [
        row for row in filters.ordered(rows, name, descending=order.newest_first) if str(row.value(name) or "") >= since
    ]


def _inputs(variables: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The objects among the variables of a GraphQL document, including those in lists."""
    items = [item for value in variables.values() for item in (value if isinstance(value, list) else [value])]
    return [item for item in items if isinstance(item, Mapping)]


def _ids(variables: Mapping[str, Any]) -> list[str]:
    """The ids of records in the variables of a GraphQL document, `id` first; only the last part of a global id."""
    ids = [each["id"] for each in (variables, *_inputs(variables)) if each.get("id") is not None]
    for name, value in variables.items():
        if name == "ids" or name.endswith(("Id", "Ids", "_id", "_ids")):
            ids += value if isinstance(value, list) else [value]
    return [str(each).rpartition("/")[2] for each in ids]


def _of_payload(declared: records.FieldType, record: Record, row: Row) -> Any:
    """A member of a mutation's response, by its type: the record, a list of it, its id, or true."""
    values: Mapping[str, Any] = {
        "object": record,
        "array<object>": [record],
        "array": [],
        "string": row.id,
        "boolean": True,
    }
    return values.get(declared.rstrip("?")) if isinstance(declared, str) else None


def _lies_below(row: Row, call: Call) -> bool:
    """Whether a record belongs to the parents that a path names; ready-made records belong to any."""
    return all(str(row.refs.get(name, value)) == value for name, value in call.params.items())


def _numbers(record: Record) -> list[str]:
    """The numeric ids that a record has beside its global id."""
    return [str(record[name]) for name in ("databaseId", "legacyResourceId") if name in record]
