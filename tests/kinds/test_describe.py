import msgspec
import pytest

from gateway.client.paging import Listing
from gateway.client.paging import next_params as by_discovery
from gateway.connectors.pagination import next_params as by_spec
from gateway.kinds.catalog import load_catalog
from gateway.kinds.describe import kind_summary, kind_view

CATALOG = load_catalog()
PAGED = [
    (kind.name, *place, operation)
    for kind in CATALOG
    for place, operation in kind.operations.items()
    if operation.paging or operation.action.alternatives
]


@pytest.mark.parametrize(("kind", "entity", "action", "operation"), PAGED, ids=lambda value: str(value))
def test_what_is_told_of_paging_is_enough_to_turn_every_page(kind, entity, action, operation):
    told = kind_view(CATALOG.kind(kind))["entities"][entity]["actions"][action]
    listing = msgspec.convert(told, Listing)
    meta = {
        **dict.fromkeys(told["meta"], "https://app.example/?page=2"),
        "has_more": True,
        "next_page": "2",
        "done": False,
    }

    assert by_discovery(listing, {}, meta) == by_spec(operation, {}, meta)
    assert by_discovery(listing, {}, {}) is None


@pytest.mark.parametrize("kind", list(CATALOG), ids=lambda kind: kind.name)
def test_the_discovery_of_a_kind_is_plain_json(kind):
    encoded = msgspec.json.encode([kind_summary(kind), kind_view(kind)])

    assert msgspec.json.decode(encoded)[1]["kind"] == kind.name
