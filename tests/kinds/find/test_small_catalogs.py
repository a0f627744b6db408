"""The index of a catalog that is smaller than the shipped one."""

from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.find.index import OperationIndex
from tests.kinds.small_kind import small_operation


def test_a_kind_without_a_phrase_beside_its_name_is_indexed():
    """Its title is its name, which only selects the kind."""
    kind = Kind(small_operation(title="Small").spec)

    index = OperationIndex(Catalog([kind]))

    assert [entry.name for entry in index.entries] == ["small.things.act"]
