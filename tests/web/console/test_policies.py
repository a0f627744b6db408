"""Policies and budgets in the console: who would be refused, what is spent, and the forms of both."""

import re
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from tests.harness.caller import Api
from tests.harness.console import ConsoleBrowser
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually
from tests.web.console.test_people import sent, shown
from tests.web.test_policies import EVERYTHING, READ, put

POLICIES, BUDGETS = "/console/policies", "/console/budgets"
CREATE = {"ticket": {"subject": "Fire", "comment": {"body": "It burns"}}}
NO_WRITES = f'{EVERYTHING}\nforbid(principal, action in Action::"write", resource);'


@pytest.fixture
async def agent(front: FrontEnd, organization_id: UUID) -> AsyncIterator[Api]:
    """A client that has read twice and written once."""
    async with front.api(organization_id, ["read", "write"]) as opened:
        desk = await opened.connector()
        await desk.execute("tickets", "list")
        await desk.execute("tickets", "list")
        await desk.execute("tickets", "create", CREATE)
        yield opened


def effects(page: str) -> dict[str, str]:
    """What the list says of each policy: the words of its cell."""
    rows = re.findall(r'<a href="/console/policies/([^"]+)">.*?</td>\s*<td>(.*?)</td>', page, re.DOTALL)
    return {name: " ".join(re.sub(r"<[^>]+>", " ", cell).split()) for name, cell in rows}


async def test_a_policy_is_shown_with_who_would_be_refused(browser: ConsoleBrowser, api: Api, agent: Api):
    await put(api, NO_WRITES, "no-writes", "shadow")
    await put(api, EVERYTHING, "everything")
    asks = f'{EVERYTHING}\n@approval("A person must see it.") forbid(principal, action in Action::"write", resource);'
    await put(api, asks, "asks", "shadow")

    async def is_counted() -> bool:
        return effects(await shown(browser, POLICIES)).get("no-writes") == "1 refused"

    await eventually(is_counted)
    listed = effects(await shown(browser, POLICIES))
    page = await shown(browser, f"{POLICIES}/no-writes")

    assert listed == {"no-writes": "1 refused", "everything": "no call would change", "asks": "1 asked about"}
    assert re.search(r'actor=[0-9a-f-]{36}">test</a></th>\s*<td class="number">1</td>', page)
    assert "1 refused" in page


async def test_a_policy_is_stored_changed_and_deleted(browser: ConsoleBrowser, api: Api):
    path = f"{POLICIES}/agents-read"
    stored = await sent(
        browser, POLICIES, name="agents-read", cedar=f"// reads\r\n{READ}", mode="enforce", description="<only> reads"
    )
    first = (await api.get("/api/v1/policies/agents-read")).document()
    changed = await sent(browser, path, version="1", cedar=EVERYTHING, mode="shadow", description="")
    page = await shown(browser, path)
    second = (await api.get("/api/v1/policies/agents-read")).document()
    deleted = await sent(browser, f"{path}/delete")

    assert (stored.headers["Location"], changed.headers["Location"]) == (path, path)
    assert (first["cedar"], first["mode"], first["description"]) == (f"// reads\n{READ}", "enforce", "<only> reads")
    assert (second["version"], second["mode"], second["description"]) == (2, "shadow", None)
    assert "// reads" in page
    assert "Store as version 3" in page
    assert deleted.status == 303
    assert (await browser.get(path)).status == 404
    assert "There are no policies." in await shown(browser, POLICIES)


async def test_a_fault_of_the_text_is_shown_with_its_place_and_keeps_the_form(browser: ConsoleBrowser, api: Api):
    faulty = 'permit(principal, action, resource)\nwhen { context.surfac == "mcp" };'

    answer = await sent(browser, POLICIES, name="a", cedar=faulty, mode="enforce", description="<b>")

    page = answer.body.decode()
    assert answer.status == 422
    assert "line 2, column" in page
    assert "did you mean surface?" in page
    assert "context.surfac == &#34;mcp&#34;" in page
    assert 'value="&lt;b&gt;"' in page
    assert re.search(r'value="enforce" selected', page)
    assert (await api.get("/api/v1/policies")).document()["data"] == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "Not a name"}, "it has 1 to 100 lower-case letters"),
        ({"name": "taken"}, "there is a policy &#39;taken&#39; already"),
        ({"description": "x" * 2001}, "it has more than 2000 characters"),
        ({"cedar": ""}, "line 1"),
    ],
)
async def test_a_policy_that_cannot_be_stored_is_refused(browser: ConsoleBrowser, api: Api, fields, words: str):
    await put(api, READ, "taken")

    answer = await sent(browser, POLICIES, **{"name": "new", "cedar": EVERYTHING, "mode": "shadow", **fields})

    assert answer.status == 422
    assert words in answer.body.decode()
    assert [each["name"] for each in (await api.get("/api/v1/policies")).document()["data"]] == ["taken"]


async def test_a_version_that_somebody_else_stored_meanwhile_is_not_replaced(browser: ConsoleBrowser, api: Api):
    await put(api, READ, "main")
    await put(api, EVERYTHING, "main")

    answer = await sent(browser, f"{POLICIES}/main", version="1", cedar=NO_WRITES, mode="enforce")

    assert answer.status == 422
    assert b"the current version is 2" in answer.body
    assert b"forbid(principal" in answer.body
    assert (await api.get("/api/v1/policies/main")).document()["cedar"] == EVERYTHING


async def test_another_organization_finds_neither_policy_nor_budget(stranger: ConsoleBrowser, api: Api):
    await put(api, READ, "main")
    await api.call("PUT", "/api/v1/budgets/main", json={"per": "day", "calls": 5})

    answers = [
        await stranger.get(f"{POLICIES}/main"),
        await sent(stranger, f"{POLICIES}/main", version="1", cedar=EVERYTHING, mode="enforce"),
        await sent(stranger, f"{POLICIES}/main/delete"),
        await stranger.get(f"{BUDGETS}?change=main"),
        await sent(stranger, f"{BUDGETS}/main/delete"),
    ]

    assert [each.status for each in answers[:1] + answers[2:]] == [404] * 4
    assert answers[1].status in (404, 422)
    assert "There are no policies." in await shown(stranger, POLICIES)
    assert "There are no budgets." in await shown(stranger, BUDGETS)
    assert (await api.get("/api/v1/policies/main")).document()["cedar"] == READ
    assert (await api.get("/api/v1/budgets/main")).status == 200


async def test_policies_and_budgets_have_pages_of_25(browser: ConsoleBrowser, api: Api):
    names = [f"n-{number:02}" for number in range(26)]
    for name in names:
        await put(api, EVERYTHING, name)
        await api.call("PUT", f"/api/v1/budgets/{name}", json={"per": "day", "calls": 5})

    for page in (POLICIES, BUDGETS):
        first, second = await shown(browser, page), await shown(browser, f"{page}?after={names[24]}")
        rows = [re.findall(r'<th scope="row">(?:<a [^>]*>)?(n-\d\d)', each) for each in (first, second)]
        assert rows == [names[:25], names[25:]]
        assert f'href="?after={names[24]}"' in first


async def test_a_budget_is_shown_with_what_is_spent(browser: ConsoleBrowser, api: Api, agent: Api):
    [client_id] = [each["id"] for each in (await api.get("/api/v1/clients")).document()["data"]
                   if sorted(each["scopes"]) == ["read", "write"]]  # fmt: skip
    desk = (await agent.get("/api/v1/integrations/connectors")).document()["data"][0]["id"]
    numbers = {"calls": "12000", "writes": "0", "records": ""}

    stored = await sent(browser, BUDGETS, name="agent", whose="client", owner=client_id, per="month", **numbers)
    call = {"entity": "tickets", "action": "list", "params": {"per_page": 1}}
    await agent.post(f"/api/v1/integrations/connectors/{desk}/execute", call)
    page = await shown(browser, BUDGETS)
    written = {"entity": "tickets", "action": "create", "params": CREATE}
    refused = await agent.post(f"/api/v1/integrations/connectors/{desk}/execute", written)

    assert stored.status == 303
    assert "1 of 12,000 calls" in page
    assert "0 of 0 writes" in page
    assert "client test" in page
    assert '<progress max="12000" value="1" aria-label="calls of agent">' in page
    assert refused.document(429)["budget"] == "agent"


@pytest.mark.parametrize("whose", ["organization", "workspace", "person"])
async def test_a_budget_is_changed_in_the_form_of_what_it_is(browser: ConsoleBrowser, api: Api, whose: str):
    connector = (await api.connector()).record
    person = (await api.post("/api/v1/people", {"name": "Ada"})).document(201)
    owner = {"organization": "", "workspace": connector["workspace_name"], "person": person["id"]}[whose]
    total = {"sum_operation": "stripe.refunds.create", "sum_param": "amount", "sum_at_most": "1250.5"}
    await sent(browser, BUDGETS, name="main", whose=whose, owner=owner, per="hour", records="7", **total)
    before = (await api.get("/api/v1/budgets/main")).document()

    form = await shown(browser, f"{BUDGETS}?change=main")
    values = dict(re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]*)"', form))
    chosen = re.findall(r"<option(?: value=\"(\w+)\")? selected>(\w+)", form)
    sends = {name: value for name, value in values.items() if name not in ("csrf", "name")}
    await sent(browser, BUDGETS, **{**sends, "whose": whose, "per": "day", "calls": "3"})

    after = (await api.get("/api/v1/budgets/main")).document()
    assert {each[0] or each[1] for each in chosen} == {"hour", whose}
    assert before["sum"] == {"operation": "stripe.refunds.create", "param": "amount", "at_most": 1250.5}
    kept = ("client_id", "person_id", "workspace_name", "records", "writes", "sum", "created_at")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert (after["per"], after["calls"]) == ("day", 3)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "Not a name"}, "it has 1 to 100 lower-case letters"),
        ({"name": "taken"}, "there is a budget &#39;taken&#39; already"),
        ({"calls": "", "records": ""}, "a budget has calls, writes, records or sum"),
        ({"calls": "-1"}, "calls: enter a whole number"),
        ({"writes": "9" * 17}, "writes: enter a whole number"),
        ({"per": "week"}, "per: choose hour, day, month"),
        ({"whose": "client", "owner": "agent"}, "owner: enter the id of the client"),
        ({"whose": "client", "owner": "6f1d7b8c-0000-4000-8000-000000000000"}, "the organization has no client"),
        ({"whose": "workspace"}, "owner: enter the name of the workspace"),
        ({"whose": "workspace", "owner": "nowhere"}, "the organization has no workspace"),
        ({"sum_operation": "stripe.refund.create"}, "sum.at_most: enter a number"),
        ({"sum_operation": "stripe.refund.create", "sum_param": "amount", "sum_at_most": "1"}, "sum.operation: "),
        ({"sum_at_most": "nan"}, "sum.at_most: enter a number"),
    ],
)
async def test_a_refused_budget_keeps_the_form(browser: ConsoleBrowser, api: Api, fields, words: str):
    await api.call("PUT", "/api/v1/budgets/taken", json={"per": "day", "calls": 5})

    form = {"name": "new", "whose": "organization", "per": "day", "calls": "1", "records": "77", **fields}
    answer = await sent(browser, BUDGETS, **form)

    page = answer.body.decode()
    assert answer.status == 422
    assert words in page
    assert f'name="records" inputmode="numeric" maxlength="16" value="{form["records"]}"' in page
    assert [each["name"] for each in (await api.get("/api/v1/budgets")).document()["data"]] == ["taken"]


async def test_a_deleted_budget_limits_nothing(browser: ConsoleBrowser, api: Api):
    await api.call("PUT", "/api/v1/budgets/main", json={"per": "day", "calls": 0})

    answer = await sent(browser, f"{BUDGETS}/main/delete")

    assert answer.status == 303
    assert (await api.get("/api/v1/budgets")).document()["data"] == []
    assert (await (await api.connector()).send("tickets", "list")).status == 200
