"""The catalog of kinds: found by name, loaded from folders; errors name file and line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
import yaml

from gateway.errors import UnknownAction, UnknownConnectorType, UnknownEntity
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.loading import kind_folders, load_catalog, load_kind
from gateway.kinds.sources import SpecError
from gateway.kinds.spec import ConnectorSpec
from tests.harness.catalog import shipped_catalog
from tests.kinds.small_kind import SMALL_SPEC, small_operation

CATALOG = shipped_catalog()
DESK = CATALOG.kind("support-desk")
THINGS = """\
description: Things.
actions:
  act:
    request: GET /things/{id}
    effect: read
    description: Acts.
    record: $
    params:
      id: {type: integer}
"""


def test_every_download_takes_a_range():
    downloads = [
        operation for kind in CATALOG.kinds.values() for operation in kind.operations.values() if operation.is_download
    ]
    without = [str(each) for each in downloads if "range_header" not in each.action.params]

    assert len(downloads) > 10
    assert without == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The small kind as a folder of files."""
    (tmp_path / "connector.yaml").write_text(yaml.safe_dump(SMALL_SPEC, sort_keys=False))
    (tmp_path / "things.yaml").write_text(THINGS)
    return tmp_path


@pytest.mark.parametrize("name", ["support-desk", "Support-Desk", "SUPPORT_DESK", " support desk ", "Support - Desk"])
def test_a_kind_is_found_in_any_spelling(name):
    assert CATALOG.kind(name) is DESK


@pytest.mark.parametrize("name", ["Zendesk", "zendesk", " ZENDESK "])
def test_a_kind_is_found_by_its_applications_name(name):
    assert CATALOG.kind(name) is DESK


@pytest.mark.parametrize("name", ["incident.io", "Incident IO", "incident-management"])
def test_separators_in_names_do_not_matter(name):
    assert CATALOG.kind(name).name == "incident-management"


@pytest.mark.parametrize(("kind", "title"), [("zendesk", "Other"), ("other", "Zendesk"), ("other", "ZENDESK")])
def test_an_imported_kind_does_not_get_what_is_meant_for_the_application_of_a_folder(kind, title):
    catalog = Catalog([*shipped_catalog()])
    spec = small_operation().spec.model_copy(update={"kind": kind, "title": title, "application": title})

    catalog.serve_imported([Kind(spec)])

    assert catalog.kind("zendesk").name == "support-desk"
    assert catalog.served(kind).spec is spec
    assert catalog.is_application("zendesk")


def test_an_imported_kind_does_not_get_what_means_two_kinds_of_folders():
    kind = CATALOG.kind("crm-query")
    catalog = Catalog([kind, Kind(kind.spec.model_copy(update={"kind": "crm-query-archive"}))])
    catalog.serve_imported([Kind(small_operation().spec.model_copy(update={"application": "Salesforce"}))])

    with pytest.raises(UnknownConnectorType):
        catalog.kind("Salesforce")


def test_an_application_with_two_kinds_is_not_guessed():
    kind = CATALOG.kind("crm-query")
    other = Kind(kind.spec.model_copy(update={"kind": "crm-query-archive"}))
    catalog = Catalog([kind, other])

    with pytest.raises(UnknownConnectorType):
        catalog.kind("Salesforce")

    assert catalog.kind("crm-query-archive") is other


def test_members_that_a_spec_leaves_out_have_defaults():
    document = {name: value for name, value in SMALL_SPEC.items() if name not in ("definition_id", "rate_limit")}
    spec = ConnectorSpec.model_validate(document)
    again = ConnectorSpec.model_validate(document)

    assert spec.application == spec.title
    assert UUID(spec.definition_id).version == 5
    assert spec.definition_id == again.definition_id
    assert (spec.rate_limit.requests, spec.rate_limit.seconds) == (120, 60)


def test_an_unknown_kind_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownConnectorType, match=r"did you mean Support-Desk\?"):
        CATALOG.kind("support-disk")


def test_an_unknown_entity_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownEntity, match=r"support-desk has no entity 'tickts'; did you mean tickets\?"):
        DESK.operation("tickts", "list")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("lst", "did you mean list? known: context_store_search, create"),
        ("delete", "; known: context_store_search, create"),
        ("search", "'search'; did you mean context_store_search? known: "),
        ("zzz", "known: context_store_search, create, create_many, delete_many, get, list, list_changes, update, "),
    ],
)
def test_an_unknown_action_is_refused_with_the_nearest_names(action, said):
    with pytest.raises(UnknownAction) as refused:
        DESK.operation("tickets", action)

    assert said in refused.value.detail


def test_only_entities_with_search_fields_offer_the_context_store():
    assert "context_store_search" in DESK.actions_of("tickets")
    assert "context_store_search" not in DESK.actions_of("views")


def test_the_health_check_is_an_operation():
    assert str(DESK.health_check) == "tickets.list"


def test_a_kind_is_loaded_from_its_folder(folder):
    kind = load_kind(folder)

    assert list(kind.operations) == [("things", "act")]
    assert [(placement.name, placement.where) for placement in kind.operation("things", "act").placements] == [
        ("id", "path")
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "said"),
    [
        ("things.yaml", "request: GET /things/{id}", "request: FETCH /things/{id}", 4, "a method and a path"),
        ("things.yaml", "{id}", "{key}", 3, "the request needs {key}"),
        ("things.yaml", "effect: read", "effect: reads", 5, "read"),
        ("things.yaml", "record: $", "records: $\n    record: $", 3, "exactly one of records, record and download"),
        (
            "things.yaml",
            "type: integer",
            "type: integer, in: cookie",
            3,
            "`in` must be one of path, query, body, header",
        ),
        ("things.yaml", "    record: $", "    record: $\n    pageing: page", 8, "did you mean paging?"),
        ("things.yaml", "actions:", "actions: [", 4, "YAML"),
        ("things.yaml", THINGS, "just text\n", 1, "a mapping"),
        ("connector.yaml", "scheme: bearer", "scheme: digest", 11, "bearer"),
        ("connector.yaml", "server: https://api.example.com/v1\n", "", 1, "server"),
    ],
)
def test_an_error_of_a_spec_names_file_and_line(folder, file, old, new, line, said):
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace(old, new, 1))

    with pytest.raises(SpecError) as refused:
        load_kind(folder)

    [lint_error] = refused.value.errors
    assert old in text
    assert (lint_error.path, lint_error.line) == (folder / file, line)
    assert said in lint_error.message


def test_an_entity_of_a_shipped_kind_is_read_once_and_unknown_ones_are_refused_with_a_hint():
    kind = load_catalog().kind("support-desk")

    assert kind.entity("tickets") is kind.entity("tickets")
    assert kind.operation("tickets", "list") is kind.operations["tickets", "list"]
    with pytest.raises(UnknownEntity, match="did you mean tickets"):
        kind.operation("tickts", "list")


def test_a_folder_that_does_not_exist_is_an_error():
    with pytest.raises(SpecError, match="/nowhere/specs"):
        load_catalog(["/nowhere/specs"])


@contextmanager
def without_privileges() -> Iterator[None]:
    """Permissions of files apply to root, too, within the block."""
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path):
    tmp_path.chmod(0o000)

    with without_privileges(), pytest.raises(SpecError, match=r"cannot be read: Permission denied; correct"):
        kind_folders(tmp_path)
