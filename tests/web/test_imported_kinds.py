"""An administrator imports an OpenAPI document in the console, and every process serves the kind without a restart."""

import io
import json
import re
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from gateway.settings import Settings
from tests.harness.clients import EVERY_SCOPE
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.waiting import eventually
from tests.kinds.importing.documents import RECORD, answer, document, listed, query

SCHEMES = {
    "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    "security": [{"token": []}],
}
PATHS = {
    "/shipments": {
        "get": {"operationId": "listShipments", "parameters": [query("state")], "responses": listed()},
        "put": {"operationId": "replaceShipments", "responses": answer(RECORD)},
    },
}
MORE = {**PATHS, "/labels": {"get": {"operationId": "listLabels", "responses": listed()}}}
KIND = "parcels"


@dataclass
class Setting:
    """Two front ends of one gateway, and an administrator who may import."""

    front: FrontEnd
    other: FrontEnd
    organization_id: UUID
    browser: ConsoleBrowser

    async def sent(self, path: str, **fields: str):
        return await self.browser.send(path, csrf=await self.browser.csrf(), **fields)

    async def imported(self, paths: dict) -> str:
        """The path of the draft's page."""
        sent = await self.sent("/console/kinds", text=json.dumps(document(paths, **SCHEMES)), kind=KIND)
        assert sent.status == 303, sent.body.decode()[:2000]
        return sent.headers["Location"]


@pytest.fixture
async def setting(front: FrontEnd, tmp_path: Path, database_url: str, redis_url: str) -> AsyncIterator[Setting]:
    organization_id = await front.organization()
    settings = {"import_organizations": (organization_id,)}
    async with (
        front_end(tmp_path / "a", database_url, redis_url, **settings) as one,
        front_end(tmp_path / "b", database_url, redis_url, **settings) as other,
        signed_in(one, *await one.client(organization_id)) as browser,
    ):
        yield Setting(one, other, organization_id, browser)
        await browser.send(f"/console/kinds/{KIND}/delete", csrf=await browser.csrf())


async def test_a_confirmed_import_is_served_by_every_process(setting: Setting):
    page = await setting.imported(PATHS)
    review = (await setting.browser.get(page)).body.decode()

    before = KIND in setting.front.services.catalog.kinds
    served = await setting.sent(page, server="https://api.parcels.example.com")

    assert before is False
    assert "shipments.list" in review
    assert served.status == 303
    for front in (setting.front, setting.other):
        await eventually(lambda front=front: KIND in front.services.catalog.kinds, within=30)
    async with setting.other.api(setting.organization_id) as api:
        kinds = (await api.get("/api/v1/integrations/connector-types")).json()["data"]
        found = (await api.get("/api/v1/operations?query=list+shipments")).json()
        openapi = (await api.get("/openapi.json")).json()
    assert KIND in {each["kind"] for each in kinds}
    assert f"{KIND}.shipments.list" in {each["operation"] for each in found["data"] + found["closest"]}
    assert KIND in openapi["x-connector-types"]


async def test_an_administrator_corrects_effects_and_the_host(setting: Setting):
    page = await setting.imported(PATHS)
    _, replaced = sorted(re.findall(r'name="effect:(shipments\.\w+)"', (await setting.browser.get(page)).body.decode()))

    fields = {"server": "https://eu.parcels.example.com", f"effect:{replaced}": "write"}
    await setting.sent(page, **fields)

    await eventually(lambda: KIND in setting.front.services.catalog.kinds)
    kind = setting.front.services.catalog.kinds[KIND]
    assert kind.spec.server == "https://eu.parcels.example.com"
    assert kind.operation(*replaced.split(".")).action.effect == "write"


async def test_a_newer_document_shows_its_differences_and_is_served_after_a_confirmation(setting: Setting):
    await setting.sent(await setting.imported(PATHS), server="https://api.parcels.example.com")
    await eventually(lambda: KIND in setting.front.services.catalog.kinds)

    page = await setting.imported(MORE)
    review = (await setting.browser.get(page)).body.decode()
    before = set(setting.front.services.catalog.kinds[KIND].spec.entities)
    await setting.sent(page, server="https://api.parcels.example.com")
    await eventually(lambda: set(setting.front.services.catalog.kinds[KIND].spec.entities) != before)

    assert "labels.list" in review
    assert "added" in review
    assert "labels" not in before


async def test_a_version_is_exported_as_the_folder_of_the_import(setting: Setting):
    page = await setting.imported(PATHS)

    answered = await setting.browser.get(f"{page}/folder.zip")

    names = zipfile.ZipFile(io.BytesIO(answered.body)).namelist()
    assert f"{KIND}/connector.yaml" in names
    assert f"{KIND}/shipments.yaml" in names


async def test_connectors_of_a_deleted_kind_are_unserved(setting: Setting):
    await setting.sent(await setting.imported(PATHS), server="https://api.parcels.example.com")
    await eventually(lambda: KIND in setting.front.services.catalog.kinds, within=30)
    async with setting.front.api(setting.organization_id) as api:
        body = {
            "workspace_name": "acme",
            "connector_type": KIND,
            "name": "Parcels",
            "credentials": {"access_token": "t"},
            "validate": False,
        }
        created = await api.call("POST", "/api/v1/integrations/connectors", json=body)
        assert created.status == 201, created.body
        await setting.sent(f"/console/kinds/{KIND}/delete")
        await eventually(lambda: KIND not in setting.front.services.catalog.kinds, within=30)
        shown = (await api.get(f"/api/v1/integrations/connectors/{created.json()['id']}")).json()

    assert shown["status"] == "unserved"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": "{"}, "is not JSON"),
        ({"text": "openapi: 3.0.0"}, ""),
        ({"source": "https://127.0.0.1/openapi.json"}, "address refused"),
        ({"source": "file:///etc/passwd"}, "write the https address"),
        ({"text": json.dumps(document(PATHS, **SCHEMES)), "kind": "github"}, "is a kind of this gateway already"),
        ({"text": "{}", "variables": "region"}, "write each variable as name=value"),
    ],
)
async def test_a_document_that_cannot_be_imported_is_refused_with_the_reason(
    setting: Setting, fields: dict[str, str], said: str
):
    answered = await setting.sent("/console/kinds", **fields)

    assert answered.status == 422
    assert said in answered.body.decode()


async def test_administrators_of_other_organizations_cannot_import(setting: Setting):
    stranger = await setting.front.client(await setting.front.organization(), EVERY_SCOPE)
    async with signed_in(setting.front, *stranger) as browser:
        pages = [await browser.get("/console/kinds"), await browser.get("/console/connectors")]
        sent = await browser.send("/console/kinds", csrf=await browser.csrf(), text=json.dumps(document(PATHS)))

    assert [each.status for each in pages] == [200, 200]
    assert "cannot be imported here" in pages[0].body.decode()
    assert "/console/kinds" not in pages[1].body.decode()
    assert sent.status == 404


def test_ids_of_organizations_are_read_from_the_setting(monkeypatch: pytest.MonkeyPatch):
    text = "5f0c1d7e-5a3c-4a8a-9a52-0d8a5a0c2f11, 0b0cf9c6-3f6f-4a57-8d0e-9a0d2f1f7c42"
    monkeypatch.setenv("GATEWAY_IMPORT_ORGANIZATIONS", text)

    assert Settings(encryption_keys="k:x").import_organizations == tuple(map(UUID, text.split(", ")))
