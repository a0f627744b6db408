"""Compares the product documents beside this file with the catalog: nothing in them is missing, and nothing is offered
under another name. Kinds that the documents do not name are left out."""

import re
from itertools import product
from pathlib import Path

import pytest

from gateway.kinds.actions import SEARCH_ACTION
from tests.harness.catalog import shipped_catalog

FOLDER = Path(__file__).parent
CATALOG = shipped_catalog()
DOCUMENTS = {path.name[0]: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
#: kinds whose entities the product documents leave open
OPEN_KINDS = {"work-management", "incident-management"}
#: the record entities and queried entities that rows with `<entity>` stand for
STAND_FOR = {
    ("crm-records", "<entity>.list (contacts, companies, deals, tickets)"): "contacts companies deals tickets",
    ("crm-records", "<entity>.api_search"): "contacts companies deals tickets",
    ("crm-records", "<entity>.context_store_search"): "contacts companies deals tickets",
    ("crm-query", "<entity>.get (those entities)"): (
        "accounts contacts leads opportunities users opportunity_stages attachments"
    ),
}  # fmt: skip
#: words that rows use instead of repeating the params of another
SAME_AS = {
    "same optional params": "properties, propertiesWithHistory, associations, idProperty, archived",
    "same params as pages.list": "filter {property, value}, sort {direction, timestamp}, start_cursor, page_size",
}
#: words at the start of a part that names no param: remarks, and members of params named before
NO_PARAMS = ("none", "common", "all", "deletes", "see", "propertyName", "value", "values")
#: operations beside those of the documents
ADDED_OPERATIONS = {
    "support-desk": {
        ("tickets", "create_many"),
        ("tickets", "update_many"),
        ("tickets", "delete_many"),
        ("tickets", "list_changes"),
    },
    "crm-query": {
        ("bulk_queries", "run"),
        ("bulk_writes", "run"),
        *product(
            ("accounts", "contacts", "leads", "opportunities", "cases", "tasks", "events", "campaigns", "notes"),
            ("create", "update", "delete"),
        ),
        *product(("sobjects",), ("get", "create", "update", "delete")),
    },
    "crm-records": {
        *product(("contacts", "companies", "deals", "tickets"), ("create", "update", "delete")),
        ("objects", "batch_read"),
        ("objects", "batch_create"),
        ("objects", "batch_update"),
        ("exports", "create"),
        ("exports", "download"),
    },
}
#: params that the documents do not have, each with its reason
ADDED = {
    # the next page of a query needs a param of its own
    ("crm-query", "nextRecordsUrl"),
    # the account-wide list of audits has cursor paging
    ("support-desk", "cursor"),
    ("support-desk", "limit"),
    # the operators BETWEEN needs it
    ("crm-records", "highValue"),
}


def tables(text):
    """Every table: the heading above it, and its rows as lists of cells."""
    heading, rows = "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            yield heading, rows
            rows = []


def kinds_of_document_1():
    return {
        row[0]: row[2] for _, rows in tables(DOCUMENTS["1"]) if rows[0][:2] == ["Kind", "Document"] for row in rows[2:]
    }


def entity_tables():
    """(kind, entity, actions) of every row of the entity tables."""
    for number in "23":
        for heading, rows in tables(DOCUMENTS[number]):
            if rows[0] == ["Entity", "Actions"]:
                for entities, actions in rows[2:]:
                    for entity in entities.split(", "):
                        yield heading.split(" ")[0], entity, re.sub(r"\(.*?\)", "", actions).strip().split(", ")


def operation_rows():
    """(kind, entity, action, params) of every row of the operation tables."""
    for number in "23":
        for heading, rows in tables(DOCUMENTS[number]):
            if rows[0][:2] == ["Operation", "Params"]:
                for operation, params, *_ in rows[2:]:
                    for entity, action in operations(heading, operation):
                        yield heading, entity, action, params


def operations(kind, text):
    if (kind, text) in STAND_FOR:
        action = re.match(r"<entity>\.(\w+)", text)[1]
        return [(entity, action) for entity in STAND_FOR[(kind, text)].split()]
    listed = re.fullmatch(r"<entity>\.(\w+) \((.*)\)", text)
    if listed:
        return [(entity, listed[1]) for entity in listed[2].split(", ")]
    return [tuple(name.split(".")) for name in text.split(", ")]


def split_outside(text, separator=","):
    """The parts between separators that are outside all brackets."""
    depth, parts = 0, [""]
    for character in text:
        depth += (character in "({[") - (character in ")}]")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def named_params(params):
    """name → the document's text about it, for the top-level params of a row."""
    for words, meaning in SAME_AS.items():
        params = params.replace(words, meaning)
    found = {}
    for part in split_outside(params.replace(";", ",")):
        match = re.match(r"([A-Za-z_]+)(\*?)(?:\s|$|\()", part + " ")
        if match and part.split(" ")[0] not in NO_PARAMS:
            found[match[1]] = part[len(match[1]) :]
    return found


def declared_of(operation, name):
    """The schema of a param, with the definition that it refers to."""
    schema = operation.action.params[name]
    return {**operation.spec.definitions.get(schema.get("$ref", "").rpartition("/")[2], {}), **schema}


ROWS = [row for row in operation_rows() if row[2] not in (SEARCH_ACTION,) and not row[3].startswith("deletes")]


def test_every_kind_of_the_documents_exists():
    assert set(kinds_of_document_1()) <= set(CATALOG.kinds)


@pytest.mark.parametrize("kind", sorted(set(kinds_of_document_1()) - OPEN_KINDS))
def test_entities_and_actions_are_those_of_the_documents(kind):
    promised = {(entity, action) for of, entity, actions in entity_tables() if of == kind for action in actions}
    offered = {
        (entity, action)
        for entity in CATALOG.kind(kind).spec.entities
        for action in CATALOG.kind(kind).actions_of(entity)
    }

    assert offered - ADDED_OPERATIONS.get(kind, set()) == promised
    assert ADDED_OPERATIONS.get(kind, set()) <= offered - promised
    assert {entity for entity, _ in promised} == set(kinds_of_document_1()[kind].split(", "))


def test_params_are_those_of_the_documents(subtests):
    for kind, entity, action, params in ROWS:
        with subtests.test(f"{kind} {entity}.{action}"):
            operation = CATALOG.kind(kind).operation(entity, action)
            promised = named_params(params)

            offered = {name for name in operation.action.params if (kind, name) not in ADDED}
            assert offered == {name for name in promised if (kind, name) not in ADDED}


def test_starred_params_are_required(subtests):
    for kind, entity, action, params in ROWS:
        with subtests.test(f"{kind} {entity}.{action}"):
            operation = CATALOG.kind(kind).operation(entity, action)
            starred = {name for name, text in named_params(params).items() if text.startswith("*")}

            missing = {
                name: operation.validator.is_valid(
                    {other: value for other, value in operation.action.example.items() if other != name}
                )
                for name in starred
            }
            assert missing == dict.fromkeys(starred, False)
            assert operation.validator.is_valid(operation.action.example)


def test_types_and_limits_are_those_of_the_documents(subtests):
    for kind, entity, action, params in ROWS:
        operation = CATALOG.kind(kind).operation(entity, action)
        for name, text in named_params(params).items():
            with subtests.test(f"{kind} {entity}.{action} {name}"):
                schema = declared_of(operation, name)
                types = schema.get("type", [])
                declared = re.match(r"\*? ?\((integer|string|boolean|object|array)", text)
                limit = re.search(r"max (\d+)", text)
                assert declared is None or declared[1] in ([types] if isinstance(types, str) else types)
                assert limit is None or int(limit[1]) in [
                    schema.get(keyword) for keyword in ("maximum", "maxItems", "maxLength")
                ]


def test_search_fields_of_chat_messages_are_those_of_the_documents():
    fields = re.search(r"^- channel_messages: (.*)\.$", DOCUMENTS["3"], flags=re.MULTILINE)[1]
    promised = {re.match(r"\w+", part)[0] for part in split_outside(fields)}

    offered = set(CATALOG.kind("team-chat").entity("channel_messages").search.fields)
    assert promised <= offered


def test_the_tables_of_the_documents_are_found():
    """The number of rows that the documents have: a parser that finds nothing must not pass the tests."""
    assert len(list(entity_tables())) >= 60
    assert len(ROWS) >= 65
    assert sum(len(named_params(row[3])) for row in ROWS) >= 250


#: where the documents list a kind's records, and the entities whose records each of their items describes
RECORDS = {
    "workspace-notes": ("Records (every field", ["users", "pages", "data_sources", "blocks", "comments"]),
    "team-chat": ("Records (all nullable", ["users", "channels", "channel_messages", "messages"]),
}


def documented_types(text):
    """name → type of the members of a record; a type stands behind the last of the members that have it."""
    types = {}
    for group in split_outside(re.sub(r"\. .*", "", text).rstrip("."), ";"):
        waiting = []
        for part in split_outside(group):
            match = re.match(r"(\w+) ?\(?(string|integer|boolean|object|array)?\b", part)
            waiting.append(match[1])
            if match[2]:
                types.update(dict.fromkeys(waiting, match[2]))
                waiting = []
    return types


def record_items():
    """(kind, entity, the document's text about its record) of the records whose members have types."""
    for kind, (beginning, entities) in RECORDS.items():
        text = DOCUMENTS["3"].partition(beginning)[2].partition("\n\n")[0]
        items = [line.partition(": ")[2] for line in text.splitlines() if line.startswith("- ")]
        yield from ((kind, entity, item) for entity, item in zip(entities, items, strict=True))


def test_members_of_records_have_the_types_of_the_documents(subtests):
    compared = 0
    for kind, entity, text in record_items():
        declared = CATALOG.kind(kind).entity(entity).fields
        for name, promised in documented_types(text).items():
            with subtests.test(f"{kind} {entity} {name}"):
                assert re.split(r"[<?]", str(declared[name]))[0] == promised
                compared += 1

    assert compared >= 100
