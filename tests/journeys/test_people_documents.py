"""The walks of docs/how-to/agents-in-your-product.md and agents-for-your-employees.md, in shell, Python and TypeScript.

TYPESCRIPT_CLIENT names the folder with the npm packages; `tests/harness/typescript.py` says which.
"""

import json
import re
import shlex
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.harness.caller import CREDENTIALS, Api
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.openid_provider import OpenIdProvider, openid_provider
from tests.harness.typescript import COMPILER, installed, needs_npm, node
from tests.harness.typescript import run as ran
from tests.type_checking import mypy

HOW_TO = Path(__file__).parents[2] / "docs/how-to"
PRODUCT = (HOW_TO / "agents-in-your-product.md").read_text("utf-8")
EMPLOYEES = (HOW_TO / "agents-for-your-employees.md").read_text("utf-8")
#: calls a function of the program and prints what it returns
PYTHON_DRIVER = """
import asyncio, sys, msgspec, program
name, *arguments = sys.argv[1:]
sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(getattr(program, name)(*arguments))))
"""
TYPESCRIPT_DRIVER = """
import * as program from "./program.ts";
const [name, ...words] = process.argv.slice(2);
const called = (program as unknown as Record<string, (...words: string[]) => Promise<unknown>>)[name];
console.log(JSON.stringify((await called(...words)) ?? null));
"""

#: `await call("begin", "user-7", "acme")`: what a function of the walk's program returns
Call = Callable[..., Awaitable[Any]]


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document, flags=re.MULTILINE | re.DOTALL)


def python_program(document: str, place: Path) -> None:
    """The blocks in Python as one module, which is fully typed."""
    program = place / "program.py"
    program.write_text("\n\n".join(blocks(document, "python")))
    said = mypy(program)
    assert said.returncode == 0, said.stdout


async def typescript_program(document: str, place: Path, package: Path, base_url: str) -> Path:
    """The blocks in TypeScript as one module, which fits the types of the API; the folder in which it runs."""
    folder = await installed(package, place)
    await node(folder, "openapi-typescript", f"{base_url}/openapi.json", "--output", "gateway.d.ts")
    (folder / "program.ts").write_text("\n\n".join(blocks(document, "ts")))
    (folder / "drive.ts").write_text(TYPESCRIPT_DRIVER)
    await node(folder, *COMPILER, "program.ts", "drive.ts")
    return folder


async def driven(place: Path, language: str, variables: dict[str, str], name: str, *words: str) -> Any:
    if language == "python":
        return json.loads(await ran(place, sys.executable, "-c", PYTHON_DRIVER, name, *words, **variables))
    camel = re.sub(r"_(\w)", lambda letter: letter[1].upper(), name)
    return json.loads(await node(place, "node", "drive.ts", camel, *words, **variables))


LANGUAGES = ["python", pytest.param("ts", marks=needs_npm)]


@dataclass(frozen=True)
class Product:
    """The client of the document's command, and its program."""

    api: Api
    call: Call


@pytest.fixture(params=LANGUAGES, scope="module")
async def product(
    running, npm_package: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Product]:
    place = tmp_path_factory.mktemp("product")
    [command] = re.findall(r"^\$ gateway admin (.*)$", PRODUCT, flags=re.MULTILINE)
    client = await running.admin(*shlex.split(command.replace(" ID ", f" {running.organization_id} ")))
    if request.param == "python":
        python_program(PRODUCT, place)
    else:
        place = await typescript_program(PRODUCT, place, npm_package, running.base_url)
    variables = {
        "GATEWAY_URL": running.base_url,
        "GATEWAY_CLIENT_ID": client["client_id"],
        "GATEWAY_CLIENT_SECRET": client["client_secret"],
    }

    async def call(name: str, *words: str) -> Any:
        return await driven(place, request.param, variables, name, *words)

    async with Api.of(running.base_url, client["client_id"], client["client_secret"]) as api:
        yield Product(api, call)


async def connect(url: str) -> str:
    """What the page says after the user has chosen Zendesk and entered a key."""
    form = {"kind": "support-desk", "method": "api_token", **CREDENTIALS}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(url) as page:
            assert page.status == 200
        async with browser.post(url, data=form) as page:
            return await page.text()


async def test_a_product_walks_from_a_session_to_the_agents_answer(product: Product):
    customer = f"customer-{uuid4().hex[:8]}"
    session = await product.call("begin", "user-7", customer)
    token, mcp_url = session["token"], session["mcp_url"]

    before = await product.call("is_connected", token)
    said = await connect(session["connect_url"])
    further = await product.call("link", token, customer)
    connected = await product.call("is_connected", token)
    tools = await product.call("tools", mcp_url, token)
    tickets = await product.call("tickets", mcp_url, token)
    other = await product.call("begin", "user-8", customer)
    others = await product.call("is_connected", other["token"])
    await product.call("end", session["id"])

    assert "is connected" in said
    assert "/connect/" in further
    assert (before, connected, others) == (False, True, False)
    assert tools[:4] == ["find_operations", "describe_operation", "read", "write"]
    assert [sorted(ticket) for ticket in tickets["result"]] == [["id", "subject"]] * 2
    ended = Api(product.api.session, {"Authorization": f"Bearer {token}"})
    assert (await ended.get("/api/v1/integrations/connectors")).status == 401


async def test_the_answers_that_the_table_promises_to_an_agent(product: Product, api: Api):
    customer = f"customer-{uuid4().hex[:8]}"
    foreign = await api.connector(workspace_name="another-customer")
    own = await api.connector(workspace_name=customer)
    session = await product.call("begin", "user-9", customer)
    agent = Api(product.api.session, {"Authorization": f"Bearer {session['token']}"})
    execute = "/api/v1/integrations/connectors/{}/execute"
    delete = {"entity": "tickets", "action": "delete_many", "params": {"ids": "1"}}

    hidden = await agent.post(execute.format(foreign.record["id"]), {"entity": "tickets", "action": "list"})
    refused = await agent.post(execute.format(own.record["id"]), delete)

    assert hidden.status == 404
    assert refused.document(403)["code"] == "insufficient_scope"


@dataclass(frozen=True)
class Company:
    """An organization whose administrator has followed the document, and an employee of the provider."""

    admin: Api
    provider: OpenIdProvider
    variables: dict[str, str]

    def id_token(self, **claims: object) -> str:
        now = int(time.time())
        good = {"iss": self.provider.issuer, "sub": "u-1", "aud": "company-app", "iat": now, "exp": now + 300}
        return self.provider.signed({**good, "groups": ["support"], **claims})


@pytest.fixture(scope="module")
async def front(tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    """A front end that accepts the tests' provider, which has no TLS."""
    async with front_end(tmp_path_factory.mktemp("front-end"), database_url, redis_url, oidc_private=True) as opened:
        yield opened


@pytest.fixture(scope="module")
async def company(front: FrontEnd, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Company]:
    place, organization_id = tmp_path_factory.mktemp("shell"), await front.organization()
    client_id, secret = await front.client(organization_id, ["read", "write", "delegate"])
    async with openid_provider() as provider, front.api(organization_id) as admin:
        await admin.connector(workspace_name="acme", name="Help desk")
        variables = {
            "GATEWAY_URL": front.base_url,
            "GATEWAY_CLIENT_ID": client_id,
            "GATEWAY_CLIENT_SECRET": secret,
            "CLIENT": client_id,
            "TOKEN": admin.headers["Authorization"].removeprefix("Bearer "),
        }
        for block in blocks(EMPLOYEES, "sh"):
            if "/issuers" in block:
                block = block.replace("https://login.example.com", provider.issuer)
            output = await ran(place, "sh", "-euc", block, **variables)
            assert "urn:gateway:error" not in output, output
        yield Company(admin, provider, variables)


async def test_the_shell_of_the_document_makes_what_it_says(company: Company):
    documents = {
        path: (await company.admin.get(f"/api/v1/{path}")).document()
        for path in (
            "groups/support",
            "issuers",
            "people?subject=u-4711",
            "policies/support-asks",
            "budgets/acme",
            "clients",
        )
    }

    assert documents["groups/support"]["workspaces"] == ["acme"]
    assert documents["issuers"]["data"][0]["create_people"] is True
    assert [each["groups"] for each in documents["people?subject=u-4711"]["data"]] == [["support"]]
    assert documents["policies/support-asks"]["mode"] == "shadow"
    assert documents["budgets/acme"]["writes"] == 200
    assert ["support"] in [each["delegate_for"] for each in documents["clients"]["data"]]


async def test_an_app_and_a_service_act_for_an_employee(company: Company, tmp_path: Path):
    python_program(EMPLOYEES, tmp_path)

    subjects = await driven(tmp_path, "python", company.variables, "subjects", company.id_token())
    added = (await company.admin.get("/api/v1/people?subject=u-1")).document()["data"]
    report = await driven(tmp_path, "python", company.variables, "report", added[0]["id"])

    assert [sorted(each) for each in subjects] == [["subject"]] * 3
    assert report == subjects
    assert [each["groups"] for each in added] == [["support"]]


async def test_a_token_of_another_provider_is_refused_with_the_reason(company: Company, tmp_path: Path):
    python_program(EMPLOYEES, tmp_path)
    token = company.id_token(iss="https://other.example")

    with pytest.raises(AssertionError, match="PermissionError"):
        await driven(tmp_path, "python", company.variables, "token_for", token)


@needs_npm
async def test_an_app_in_typescript_exchanges_the_token(company: Company, npm_package: Path, tmp_path: Path):
    folder = await typescript_program(EMPLOYEES, tmp_path, npm_package, company.variables["GATEWAY_URL"])

    token = await driven(folder, "ts", company.variables, "token_for", company.id_token())

    employee = Api(company.admin.session, {"Authorization": f"Bearer {token}"})
    [connector] = (await employee.get("/api/v1/integrations/connectors")).document()["data"]
    assert connector["name"] == "Help desk"
