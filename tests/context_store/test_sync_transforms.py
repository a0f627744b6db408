"""Records into search documents."""

import msgspec
import pytest

from gateway.context_store.sync.transforms import Documents, documents, stored_id
from gateway.kinds.sync import Search


def search(fields, key="id", **sync):
    read = {"request": "GET /things", "records": "$"}
    return Search.model_validate({"fields": dict.fromkeys(fields, "any"), "primary_key": key, "sync": {**read, **sync}})


def transformed(search_, *records, **options):
    raw = [msgspec.Raw(msgspec.json.encode(record)) for record in records]
    found = documents(search_, raw, **options)
    return Documents([(id_, msgspec.json.decode(document)) for id_, document in found.live], found.gone)


def test_only_declared_fields_are_kept():
    found = transformed(
        search(["id", "name", "via.channel"]), {"id": 7, "name": "n", "via": {"channel": "web"}, "x": 1}
    )

    assert found.live == [("7", {"id": 7, "name": "n", "via": {"channel": "web"}})]


def test_what_the_parent_gives_is_part_of_the_record_and_its_id_of_theirs():
    found = transformed(search(["ts", "channel_id"], "ts"), {"ts": "1.2"}, add_fields={"channel_id": "C1"}, under="C1")

    assert found.live == [("C1/1.2", {"ts": "1.2", "channel_id": "C1"})]


def test_an_entry_of_a_mailbox_history_is_about_the_threads_of_its_messages():
    threads = search(["id", "historyId"], transform="changed_threads")
    messages = [{"id": "m1", "threadId": "t1"}, {"id": "m2", "threadId": "t2"}, {"id": "m3", "threadId": "t1"}]

    found = transformed(threads, {"id": "7", "messages": messages}, {"id": "t3", "messages": [{"threadId": "t3"}]})

    assert found.live == [
        ("t1", {"id": "t1", "historyId": "7"}),
        ("t2", {"id": "t2", "historyId": "7"}),
        ("t3", {"id": "t3"}),
    ]


def test_decimal_ids_become_integers():
    shop = search(["id", "product", "product_id"], transform="numeric_ids", add_fields={"product_id": "product.id"})

    found = transformed(shop, {"id": "7", "product": {"id": "4", "title": "Shirt"}}, {"id": "x-7", "product": None})

    assert found.live == [
        ("7", {"id": 7, "product": {"id": 4, "title": "Shirt"}, "product_id": 4}),
        ("x-7", {"id": "x-7", "product": None}),
    ]


def test_a_record_that_says_it_is_deleted_is_gone():
    found = transformed(search(["id"], deleted_when={"status": "deleted"}), {"id": 1, "status": "deleted"}, {"id": 2})

    assert (found.gone, [id_ for id_, _ in found.live]) == (["1"], ["2"])


@pytest.mark.parametrize("record", [{}, {"id": None}, {"id": ""}, {"id": []}, {"id": True}])
def test_a_record_without_an_id_is_left_out(record):
    assert transformed(search(["id"]), record) == Documents()


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        (["url"], {"id": 1, "file": {"name": "n", "at": {"url": "u"}}}),
        (["file.at.url"], {"id": 1, "url": "u", "file": {"name": "n", "at": {}}}),
        (["file.at"], {"id": 1, "url": "u", "file": {"name": "n"}}),
        (["none.at"], {"id": 1, "url": "u", "file": {"name": "n", "at": {"url": "u"}}}),
        (["url.at.all"], {"id": 1, "url": "u", "file": {"name": "n", "at": {"url": "u"}}}),
    ],
)
def test_what_changes_with_every_answer_is_not_kept(path, kept):
    record = {"id": 1, "url": "u", "file": {"name": "n", "at": {"url": "u"}}}

    assert transformed(search(["id", "url", "file"], excluded_fields=path), record).live == [("1", kept)]


def test_values_within_a_record_become_members_of_it():
    spec = search(["id", "changed", "lost"], add_fields={"changed": "fields.updated", "lost": "fields.none.here"})

    found = transformed(spec, {"id": 1, "fields": {"updated": "then"}}, {"id": 2})

    assert found.live == [("1", {"id": 1, "changed": "then"}), ("2", {"id": 2})]


def test_comments_are_found_among_what_happened_to_a_ticket():
    event = {
        "id": 9,
        "ticket_id": 4,
        "created_at": "then",
        "child_events": [{"id": 1, "event_type": "Comment", "body": "b"}, {"id": 2, "event_type": "Change"}],
    }
    spec = search(["id", "body", "ticket_id", "created_at"], transform="comment_events")

    assert transformed(spec, event, {"id": 9, "child_events": None}).live == [
        ("1", {"id": 1, "body": "b", "ticket_id": 4, "created_at": "then"})
    ]
    assert transformed(spec, {"id": 3, "body": "alone"}).live == [("3", {"id": 3, "body": "alone"})]


def test_a_map_of_properties_becomes_an_array():
    record = {"id": "p", "properties": {"Name": {"type": "title"}, "Rank": 3}}

    [(_, found)] = transformed(search(["id", "properties"], transform="property_list"), record).live

    assert found["properties"] == [{"name": "Name", "type": "title"}, {"name": "Rank", "value": 3}]


def test_associations_become_ids():
    record = {"id": "1", "associations": {"companies": {"results": [{"id": "7"}, {"id": "8"}]}, "line items": {}}}
    spec = search(["id", "companies", "line_items"], transform="associated_ids")

    assert transformed(spec, record).live == [("1", {"id": "1", "companies": ["7", "8"], "line_items": []})]


@pytest.mark.parametrize(("ts", "expected"), [("17.25", {"float_ts": 17.25}), ("now", {}), (None, {})])
def test_a_message_is_sorted_by_its_time_as_a_number(ts, expected):
    spec = search(["id", "float_ts"], transform="message_time")

    assert transformed(spec, {"id": 1, "ts": ts}).live == [("1", {"id": 1, **expected})]


@pytest.mark.parametrize(("value", "under", "id_"), [(7, None, "7"), ("a", "C1", "C1/a"), (None, "C1", None)])
def test_ids_are_text(value, under, id_):
    assert stored_id(value, under) == id_
