"""Behaviour that every kind of the sandbox has, called by the gateway's engine."""

import pytest
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import ReauthorizationRequired, UpstreamNotFound, UpstreamRateLimited
from tests.harness.catalog import shipped_catalog
from tests.sandbox.conftest import reset

CATALOG = shipped_catalog()
KINDS = sorted(CATALOG.kinds)
#: operations whose example cannot succeed: it has a time in the past, or needs a second record
LEFT_OUT = {
    ("team-chat", "channel_invites", "create"),
    ("team-chat", "reactions", "delete"),
    ("team-chat", "scheduled_messages", "create"),
}
TWO_PAGES = [
    ("crm-query", "query", "list", {"q": "SELECT Id FROM Account LIMIT 2300"}, 2000),
    ("crm-records", "contacts", "list", {"limit": 3}, 3),
    ("crm-records", "contacts", "api_search", {"limit": 3, "filterGroups": []}, 3),
    ("incident-management", "incidents", "list", {"page_size": 3}, 3),
    ("support-desk", "tickets", "list", {"per_page": 3}, 3),
    ("support-desk", "ticket_audits", "list", {"limit": 3}, 3),
    ("team-chat", "users", "list", {"limit": 3}, 3),
    ("team-chat", "channel_messages", "list", {"channel": "C00000001", "limit": 3}, 3),
    ("work-management", "workspace_users", "list", {"workspace_gid": "1203998745612345", "limit": 3}, 3),
    ("workspace-notes", "pages", "list", {"page_size": 3}, 3),
    ("workspace-notes", "users", "list", {"page_size": 3}, 3),
]
UNKNOWN = [
    ("crm-query", "accounts", "get", {"id": "001000009999999AAA"}, "NOT_FOUND"),
    ("crm-records", "deals", "get", {"dealId": "99"}, "OBJECT_NOT_FOUND"),
    ("incident-management", "incidents", "get", {"id": "nothing"}, "not_found"),
    ("support-desk", "tickets", "get", {"ticket_id": 99_999}, "RecordNotFound"),
    ("team-chat", "channels", "get", {"channel": "C99"}, "channel_not_found"),
    ("work-management", "tasks", "get", {"task_gid": "99"}, None),
    ("workspace-notes", "pages", "get", {"page_id": "99"}, "object_not_found"),
]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_example_of_every_operation_is_answered(subtests, http, connect, kind):
    connector = connect(kind)
    for (entity, action), operation in connector.kind.operations.items():
        if operation.is_download or (kind, entity, action) in LEFT_OUT:
            continue
        with subtests.test(operation.name):
            answer = await connector.execute(entity, action, operation.action.example)

            assert answer.result
        if operation.action.effect is not Effect.READ:
            await reset(http)


@pytest.mark.parametrize(("kind", "entity", "action", "params", "size"), TWO_PAGES)
async def test_a_list_continues_on_its_second_page(connect, kind, entity, action, params, size):
    pages = connect(kind).pages(entity, action, params)

    first = (await anext(pages)).records
    second = (await anext(pages)).records

    assert len(first) == size
    assert second
    assert not set(map(bytes, first)) & set(map(bytes, second))


@pytest.mark.parametrize(("kind", "entity", "action", "params", "size"), TWO_PAGES)
async def test_the_last_page_of_a_list_names_no_next_page(connect, kind, entity, action, params, size):
    name = "records" if kind == "crm-query" else connect(kind).kind.operation(entity, action).paging.size
    larger = {} if name == "records" else {name: 50}

    pages = [page async for page in connect(kind).pages(entity, action, {**params, **larger})]

    seen = [bytes(record) for page in pages for record in page.records]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(("kind", "entity", "action", "params", "code"), UNKNOWN)
async def test_an_unknown_id_is_refused_with_the_kinds_own_code(connect, kind, entity, action, params, code):
    with pytest.raises(UpstreamNotFound) as refused:
        await connect(kind).execute(entity, action, params)

    assert refused.value.upstream.code == code


@pytest.mark.parametrize("kind", KINDS)
async def test_a_token_that_begins_with_bad_is_refused(connect, kind):
    with pytest.raises(ReauthorizationRequired):
        await connect(kind, token="bad-token").check()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_without_credentials_is_refused(connect, http, kind):
    check, params = connect(kind).kind.health_check, connect(kind).kind.spec.health_check_params
    [shown] = connect(kind).dry_run(check.entity_id, check.action_id, params)

    async with http.request(shown["method"], URL(shown["url"]).path, json=shown["body"]) as answer:
        said = await answer.text()

    assert answer.status == (200 if kind == "team-chat" else 401)
    assert 'ok":true' not in said.replace(" ", "")


@pytest.mark.parametrize("kind", KINDS)
async def test_an_injected_rate_limit_has_the_kinds_own_code(connect, fault, kind):
    await fault(kind=kind, status=429, headers={"Retry-After": "60"})

    with pytest.raises(UpstreamRateLimited) as limited:
        await connect(kind).check()

    assert limited.value.retry_after == 60


async def test_an_unknown_kind_is_simulated_from_its_spec_alone(gadgets):
    pages = [page.decoded() async for page in gadgets.pages("gadgets", "list", {"size": 25})]
    made = (await gadgets.execute("gadgets", "create", {"gadget": {"name": "Lamp"}})).decoded()
    known = (await gadgets.execute("gadgets", "get", {"gadget_id": made["id"]})).decoded()

    assert [len(page) for page in pages] == [25, 15]
    assert known["name"] == "Lamp"


async def test_a_list_without_records_is_empty_where_the_application_answers_404(connect):
    page = await connect("gong").execute("calls", "list", {"workspaceId": "nothing"})

    assert page.decoded() == []
