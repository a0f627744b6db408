"""The index over kinds of one word, of thousands of operations, and with markup and very long texts."""

from itertools import islice
from pathlib import Path

import pytest

from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.find.entries import entries_of
from gateway.kinds.find.index import OperationIndex, index_of
from gateway.kinds.importing.importing import kind_of
from gateway.kinds.importing.mapping import Options, import_document
from gateway.kinds.loading import load_catalog, load_kind
from tests.harness.catalog import shipped_catalog
from tests.harness.hostile_kinds import MANY, write_kind, write_large_kind, write_wordy_kind


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> OperationIndex:
    root: Path = tmp_path_factory.mktemp("specs")
    write_kind(root, "fleet")
    write_kind(root, "list", synonyms=[])  # the stems of its words are those of a verb
    write_kind(root, "it", synonyms=[])  # a word without a meaning for the search
    write_large_kind(root)
    write_wordy_kind(root)
    catalog = load_catalog([root])
    assert not catalog.refused
    return OperationIndex(catalog)


def test_every_operation_is_in_the_index(index):
    assert len(index.entries) > MANY
    assert [entry.name for entry in index.entries if entry.kind.name == "it"]


@pytest.mark.parametrize("kind", ["fleet", "list", "it", "wordy"])
def test_a_kind_of_one_word_is_found_by_its_name(index, kind):
    found = index.search(f"list all items of {kind}", kind=kind)

    assert found.data[0].entry.name == f"{kind}.items.list"


@pytest.mark.parametrize("text", ["list Zendesk tickets", "list tickets in the help desk"])
def test_other_kinds_are_found_as_before(index, text):
    assert index.search(text).data[0].entry.name == "support-desk.tickets.list"


@pytest.mark.parametrize("name", ["tickets", "Ticket"])
def test_an_mcp_server_that_calls_itself_like_records_of_others_is_not_meant_by_them(name):
    tool = {"name": "roll_dice", "description": "Rolls some dice.", "inputSchema": {"type": "object"}}
    document = {"mcp": "2026-07-28", "server": "https://mcp.evil.io/mcp", "serverInfo": {"name": name}, "tools": [tool]}
    server = kind_of(import_document(document, Options(kind="evil")))

    found = OperationIndex(Catalog([*shipped_catalog(), server])).search("close the ticket 7")

    assert found.data[0].entry.name == "support-desk.tickets.update"


def test_a_kind_that_cannot_be_read_is_left_out_and_the_others_are_found(tmp_path, caplog):
    class Unreadable(dict):
        def __getitem__(self, entity_id):
            raise OSError("the file is gone")

    [sound, gone] = [load_kind(write_kind(tmp_path, name)) for name in ("fleet", "gone")]
    unreadable = Kind(gone.spec.model_copy(update={"entities": Unreadable(gone.spec.entities)}))

    index = index_of(Catalog([unreadable, sound]))

    assert index.search("list items").data[0].entry.name == "fleet.items.list"
    assert [record.kind for record in caplog.records] == ["gone"]


def test_an_index_keeps_its_kinds_when_its_catalog_gets_others(tmp_path):
    first, second = [load_kind(write_kind(tmp_path, name)) for name in ("fleet", "parcels")]
    catalog = Catalog([first])
    index = index_of(catalog)

    catalog.serve_imported([second])

    assert index_of(catalog).search("list items", kind="parcels").data[0].entry.name == "parcels.items.list"
    assert {match.entry.kind.name for match in index.search("list items").data} == {"fleet"}
    catalog.serve_imported([])
    assert index_of(catalog).search("list items").data[0].entry.name == "fleet.items.list"


def test_a_search_leaves_the_index_as_it_was(index):
    before = {name: len(value) for name, value in vars(index._corpus).items() if isinstance(value, dict)}

    for entry in islice(entries_of(shipped_catalog()), None, None, 10):
        index.search(f"{entry.action_id} {entry.entity_id} of {entry.kind.name}")

    assert {name: len(value) for name, value in vars(index._corpus).items() if isinstance(value, dict)} == before
