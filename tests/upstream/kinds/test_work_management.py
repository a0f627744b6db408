"""Work management, beside what is tested of every kind."""

import pytest

from gateway.contract.kinds import Effect
from gateway.errors import InvalidParams, ReauthorizationRequired
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.upstream.auth import checked_credentials, headers_for
from tests.upstream.kinds.tables.work_management import GID, READS

KIND = load_kind(shipped_specs() / "work-management")


def test_a_search_refuses_an_offset_and_says_how_to_continue():
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation("workspace_task_search", "list"), {"workspace_gid": GID, "offset": "eyJ0", "limit": 2})

    [fault] = refused.value.faults
    assert fault.field == "offset"
    assert "send sort_by created_at and created_at.before" in fault.message


@pytest.mark.parametrize(
    ("action", "data"),
    [
        ("tasks.create", {"name": "x", "workspace": GID, "resource_subtype": "section"}),
        ("projects.update", {"color": "pink"}),
    ],
)
def test_what_the_application_refuses_is_refused_before_it_is_sent(action, data):
    ids = {"projects.update": {"project_gid": GID}}.get(action, {})

    with pytest.raises(InvalidParams, match="allowed: "):
        validated(KIND.operation(*action.split(".")), {**ids, "data": data})


def test_null_clears_a_colour():
    operation = KIND.operation("projects", "update")

    assert validated(operation, {"project_gid": GID, "data": {"color": None}})["data"] == {"color": None}


def test_every_read_of_records_can_ask_for_more_fields():
    without = {
        str(operation)
        for operation in KIND.operations.values()
        if operation.action.effect is Effect.READ and "opt_fields" not in operation.action.params
    }

    assert without == {"attachments.download"}


def test_only_what_adds_something_is_a_write():
    effects = {str(operation): operation.action.effect for operation in KIND.operations.values()}

    assert {name for name, effect in effects.items() if effect is Effect.READ} == {case[0] for case in READS}
    assert {name for name, effect in effects.items() if effect is Effect.WRITE} == {
        "tasks.create",
        "tasks.duplicate",
        "projects.create",
        "projects.duplicate",
        "project_sections.create",
        "task_stories.create",
        "workspace_tags.create",
    }


@pytest.mark.parametrize(
    ("credentials", "method"),
    [
        ({"refresh_token": "r"}, "oauth"),
        ({"access_token": "a", "refresh_token": "r", "client_id": "i", "client_secret": "s"}, "oauth"),
        ({"token": "t"}, "token"),
    ],
)
def test_a_refresh_token_or_a_personal_token_is_enough(credentials, method):
    assert checked_credentials(KIND.spec, credentials) == (method, credentials)


def test_a_bare_refresh_token_proves_nothing_until_it_was_exchanged():
    with pytest.raises(ReauthorizationRequired, match="no access_token yet"):
        headers_for(KIND.spec.authentication["oauth"], {"refresh_token": "r"})


@pytest.mark.parametrize(
    ("entity", "action", "params", "fits"),
    [
        ("tags", "update", {"tag_gid": "1", "data": {"color": None}}, True),
        ("tags", "update", {"tag_gid": "1", "data": {"color": "none"}}, False),
        ("projects", "update", {"project_gid": "1", "data": {"color": "none"}}, True),
        ("workspace_task_search", "list", {"workspace_gid": "1", "sort_by": "relevance"}, True),
        ("workspace_task_search", "list", {"workspace_gid": "1", "resource_subtype": "custom"}, True),
        ("workspace_task_search", "list", {"workspace_gid": "1", "resource_subtype": "section"}, False),
    ],
)
def test_values_are_those_that_the_vendor_documents(entity, action, params, fits):
    operation = KIND.operation(entity, action)

    assert operation.validator.is_valid(params) is fits


def test_a_project_can_be_private_to_its_team():
    data = {"name": "x", "workspace": "1", "privacy_setting": "private_to_team"}

    assert KIND.operation("projects", "create").validator.is_valid({"data": data})
