"""How one record is read: by `get`, with the fields that the list of its entity has."""

import pytest

from gateway.context_store.sync.record_read import record_read
from tests.harness.catalog import shipped_catalog


@pytest.mark.parametrize(
    ("kind", "entity", "id_", "params"),
    [
        ("support-desk", "tickets", "7", {"ticket_id": 7}),
        ("support-desk", "tickets", "x", {"ticket_id": "x"}),
        ("workspace-notes", "pages", "a-b", {"page_id": "a-b"}),
        ("team-chat", "users", "U1", {"user": "U1"}),
    ],
)
def test_a_record_is_read_by_its_id(kind, entity, id_, params):
    assert record_read(shipped_catalog().kind(kind), entity).params(id_) == params


def test_the_fields_are_those_of_the_list():
    catalog = shipped_catalog()
    task = record_read(catalog.kind("work-management"), "tasks").params("1")
    contact = record_read(catalog.kind("crm-records"), "contacts").params("1")

    assert "name" in task["opt_fields"].split(",")
    assert set(task) == {"task_gid", "opt_fields"}
    assert "lastmodifieddate" in contact["properties"].split(",")
    assert set(contact) == {"contactId", "properties", "associations"}


@pytest.mark.parametrize(
    ("kind", "entity"), [("team-chat", "channel_messages"), ("team-chat", "threads"), ("support-desk", "no_entity")]
)
def test_other_records_only_a_list_brings(kind, entity):
    assert record_read(shipped_catalog().kind(kind), entity) is None
