"""Converts an application's records to search documents: the declared fields, and those that a parent adds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gateway.foundation import payloads
from gateway.kinds.members import JsonPath, value_at
from gateway.kinds.sync import Search

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Documents:
    """The search documents of a page of records."""

    #: stored id and JSON of existing records
    live: list[tuple[str, bytes]] = field(default_factory=list)
    #: stored ids of deleted records
    gone: list[str] = field(default_factory=list)


def documents(
    search: Search,
    records: Iterable[msgspec.Raw],
    add_fields: Mapping[str, Any] | None = None,
    under: str | None = None,
) -> Documents:
    """The search documents of records.

    `add_fields`: members copied from the parent. `under`: the parent's id, if record ids are unique only below it.
    Records without an id are left out.
    """
    converted = Documents()
    parent_members = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in (add_fields or {}).items()}
    names = dict.fromkeys(name.split(".", 1)[0] for name in search.fields)
    deleted = search.sync.deleted_when if search.sync else {}
    excluded = search.sync.excluded_fields if search.sync else ()
    inner = search.sync.add_fields if search.sync else {}
    for record in records:
        for members in _transformed(search, record):
            members |= _inner_members(members, inner)
            members |= parent_members
            id_ = stored_id(_decoded(members.get(search.primary_key)), under)
            if id_ is None:
                continue
            if any(_decoded(members.get(name)) == value for name, value in deleted.items()):
                converted.gone.append(id_)
            else:
                declared = {name: members[name] for name in names if name in members}
                for path in excluded:
                    _drop(declared, path)
                converted.live.append((id_, msgspec.json.encode(declared)))
    return converted


def stored_id(value: Any, under: str | None = None) -> str | None:
    """The id under which a record is stored; None if it has none."""
    if value is None or value == "" or isinstance(value, bool | list | dict):
        return None
    return payloads.storable(str(value) if under is None else f"{under}/{value}")


def _transformed(search: Search, record: msgspec.Raw) -> Iterable[dict[str, msgspec.Raw]]:
    transform = search.sync.transform if search.sync else None
    if transform is None:
        return [payloads.members(record)]
    return [_raw(document) for document in TRANSFORMS[transform](payloads.record(record))]


def _raw(record: Record) -> dict[str, msgspec.Raw]:
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in record.items()}


def _drop(members: dict[str, msgspec.Raw], path: tuple[str, ...]) -> None:
    """Remove a member at a path, if it exists."""
    if path[0] not in members:
        return
    if len(path) == 1:
        del members[path[0]]
        return
    value = payloads.value(members[path[0]])
    holder = value_at(value, path[1:-1])
    if isinstance(holder, dict) and holder.pop(path[-1], None) is not None:
        members[path[0]] = msgspec.Raw(msgspec.json.encode(value))


def _inner_members(members: Mapping[str, msgspec.Raw], paths: Mapping[str, JsonPath]) -> dict[str, msgspec.Raw]:
    """New name → the value at the path; missing values are left out."""
    found = {name: value_at(_decoded(members.get(path[0])), path[1:]) for name, path in paths.items()}
    return _raw({name: value for name, value in found.items() if value is not None})


def _decoded(value: msgspec.Raw | None) -> Any:
    return None if value is None else payloads.value(value)


def _associated_ids(record: Record) -> list[Record]:
    """Adds `companies` with the ids of `associations.companies.results`."""
    ids = {
        name.replace(" ", "_"): [one.get("id") for one in links.get("results") or () if isinstance(one, dict)]
        for name, links in (record.get("associations") or {}).items()
        if isinstance(links, dict)
    }
    return [{**record, **ids}]


def _changed_threads(record: Record) -> list[Record]:
    """The threads of the messages in an entry of Gmail's history; a thread itself stays."""
    ids = dict.fromkeys(each.get("threadId") for each in record.get("messages") or () if isinstance(each, dict))
    if not ids or record.get("id") in ids:
        return [record]
    return [{"id": id_, "historyId": record.get("id")} for id_ in ids]


def _comment_events(record: Record) -> list[Record]:
    """The comments among the events of a ticket; a record that is a comment itself stays."""
    if "child_events" not in record:
        return [record]
    return [
        {**event, "ticket_id": record.get("ticket_id"), "created_at": event.get("created_at", record.get("created_at"))}
        for event in record["child_events"] or ()
        if isinstance(event, dict) and event.get("event_type") == "Comment"
    ]


def _message_time(record: Record) -> list[Record]:
    """Adds the timestamp as a number, for sorting and ranges; `ts` is text and the message's id."""
    try:
        return [{**record, "float_ts": float(record["ts"])}]
    except (KeyError, TypeError, ValueError):
        return [record]


def _numeric_ids(record: Record) -> list[Record]:
    """The record and its objects with decimal ids as integers, as the REST API of the same application has them."""

    def numeric(value: Any) -> Any:
        return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value

    inner = {
        name: {**value, "id": numeric(value["id"])} if isinstance(value, dict) and "id" in value else value
        for name, value in record.items()
    }
    return [{**inner, "id": numeric(record.get("id"))}]


def _property_list(record: Record) -> list[Record]:
    """Converts the map of properties to an array with their names, as in the documented search fields."""
    properties = record.get("properties")
    if not isinstance(properties, dict):
        return [record]
    named = [
        {"name": name, **value} if isinstance(value, dict) else {"name": name, "value": value}
        for name, value in properties.items()
    ]
    return [{**record, "properties": named}]


def _json_api(record: Record) -> list[Record]:
    """The members of `attributes`, and those of `relationships` with their `data` (JSON:API), beside id and type."""
    links = {name: link for name, link in (record.get("relationships") or {}).items() if isinstance(link, dict)}
    related = {name: link["data"] for name, link in links.items() if link.get("data") is not None}
    return [{**related, **(record.get("attributes") or {}), "id": record.get("id"), "type": record.get("type")}]


TRANSFORMS: Mapping[str, Callable[[Record], list[Record]]] = {
    "associated_ids": _associated_ids,
    "changed_threads": _changed_threads,
    "comment_events": _comment_events,
    "json_api": _json_api,
    "message_time": _message_time,
    "numeric_ids": _numeric_ids,
    "property_list": _property_list,
}
