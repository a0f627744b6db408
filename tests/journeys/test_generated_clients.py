"""Clients that others generate of the OpenAPI document, and the program of docs/how-to/typescript.md.

Where the generators are installed is told by two variables, both set by `.ci/run`: TYPESCRIPT_CLIENT
(`tests/harness/typescript.py`), and OPENAPI_PYTHON_CLIENT, a virtual environment with openapi-python-client, whose
dependencies are not ours.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway.client import Gateway
from gateway.web.docs_site.kind_reference import entity_reference, kind_reference
from tests.harness.catalog import shipped_catalog
from tests.harness.typescript import COMPILER, needs_npm, node, run, with_packages

PYTHON = os.environ.get("OPENAPI_PYTHON_CLIENT")
HOW_TO = Path(__file__).parents[2] / "docs/how-to"
DOCUMENT = (HOW_TO / "typescript.md").read_text("utf-8")
#: what the program of the document has at hand where other documents show a call
PRELUDE = """import createClient from "openapi-fetch";
import type { paths } from "./gateway.d.ts";

const gateway = createClient<paths>({ baseUrl: process.env.GATEWAY_URL });
const path = { connector_id: process.env.CONNECTOR! };
const ids = [1, 2, 3];
"""
#: pages whose blocks are one program; `test_people_documents` runs those of two
WHOLE = {"typescript", "agents-in-your-product", "agents-for-your-employees"}
_, PROGRAM = re.findall(r"^```ts\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)

needs_python = pytest.mark.skipif(PYTHON is None, reason="OPENAPI_PYTHON_CLIENT names no virtual environment with it")

#: what a generated client for Python makes of a call: the parsed 200, the job of a 202, and an error
CALLS = """
import json, os, sys
from generated import AuthenticatedClient
from generated.api.execute import execute
from generated.models import ExecuteBody

client = AuthenticatedClient(base_url=os.environ["GATEWAY_URL"], token=os.environ["TOKEN"])
bodies = [
    {"entity": "tickets", "action": "list", "params": {"per_page": 2}},
    {"entity": "ticket_bulk_updates", "action": "create", "params": {"ids": "1,2", "ticket": {"status": "open"}}},
    {"entity": "tickets", "action": "lst"},
]
connector = os.environ["CONNECTOR"]
answers = [execute.sync_detailed(connector, client=client, body=ExecuteBody.from_dict(body)) for body in bodies]
json.dump([[each.status_code, type(each.parsed).__name__, each.parsed.to_dict()] for each in answers], sys.stdout)
"""


@pytest.fixture(scope="module")
async def typescript(running, tmp_path_factory) -> Path:
    """A folder with the packages and the types of the gateway."""
    place: Path = tmp_path_factory.mktemp("typescript")
    with_packages(place)
    (place / "package.json").write_text('{"type": "module"}')
    await node(place, "openapi-typescript", f"{running.base_url}/openapi.json", "--output", "gateway.d.ts")
    return place


@needs_npm
async def test_the_program_of_the_document_follows_a_job_and_downloads_a_file(running, typescript):
    async with Gateway(running.base_url, running.client_id, running.client_secret, "readme") as gateway:
        credentials = {"subdomain": "acme", "email": "a@example.com", "api_token": "t"}
        await gateway.connectors.create("support-desk", credentials, name="Help desk", if_exists="update")
        whole = await gateway.download("support-desk", "attachments", {"attachment_id": 2}, to=typescript / "whole.bin")
    (typescript / "program.ts").write_text(PROGRAM)

    output = await node(
        typescript,
        "node",
        "program.ts",
        GATEWAY_URL=running.base_url,
        GATEWAY_CLIENT_ID=running.client_id,
        GATEWAY_CLIENT_SECRET=running.client_secret,
    )

    assert output.strip().splitlines()[-1].startswith("succeeded 120 of 120")
    assert (typescript / "attachment.bin").read_bytes() == (typescript / "whole.bin").read_bytes()
    assert whole.size > 0
    assert len(PROGRAM.strip().splitlines()) <= 45


@needs_npm
async def test_every_example_in_typescript_fits_the_types_of_the_document(api, typescript):
    samples, examples = samples_of((await api.get("/openapi.json")).json()), examples_of_documents()
    programs = {"typescript.ts": PROGRAM, **samples, **examples}
    for file, source in programs.items():
        (typescript / file).write_text(source)

    # One run of the compiler: it takes longer to read the types than to check a program.
    await node(typescript, *COMPILER, *programs)

    with_examples = ("call", "connect-links", "events", "files", "find-operations", "jobs", "schedules", "search")
    assert {f"{page}-0.ts" for page in with_examples} <= examples.keys()
    assert len(samples) > 100


def samples_of(document: Any) -> dict[str, str]:
    """The samples in TypeScript of the API's operations and of every kind's actions, by the names of their files."""
    samples = {
        operation["operationId"]: each["source"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for each in operation.get("x-codeSamples", ())
        if each["label"] == "TypeScript"
    }
    for kind in shipped_catalog():
        described = kind_reference(kind)
        samples[f"{kind.name}.connect"] = dict(described["connect_samples"])["TypeScript"]
        samples |= {
            f"{kind.name}.{action['anchor']}": dict(action["samples"])["TypeScript"]
            for entity in described["entities"]
            for action in entity_reference(kind, entity["name"])["actions"]
        }
    return {f"sample-{name}.ts": source for name, source in samples.items()}


def examples_of_documents() -> dict[str, str]:
    """The blocks of TypeScript in the how-to pages but those of whole programs, by the names of their files."""
    return {
        f"{page.stem}-{number}.ts": PRELUDE + source
        for page in sorted(HOW_TO.glob("*.md"))
        if page.stem not in WHOLE
        for number, source in enumerate(
            re.findall(r"^```ts\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        )
    }


@needs_python
async def test_a_generated_client_for_python_knows_every_schema_and_reads_what_execute_answers(running, api, tmp_path):
    desk = await api.connector()
    tools = Path(PYTHON or "") / "bin"
    if shutil.which("ruff", path=str(tools)) is None:
        pytest.skip("the generator formats by ruff, which is missing beside it")
    url = f"{running.base_url}/openapi.json"
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"

    said = await run(
        tmp_path,
        *(
            str(tools / "openapi-python-client"),
            "generate",
            "--url",
            url,
            "--meta",
            "none",
            "--output-path",
            "generated",
        ),
        PATH=path,
    )
    output = await run(
        tmp_path,
        *(str(tools / "python"), "-c", CALLS),
        PYTHONPATH=str(tmp_path),
        GATEWAY_URL=running.base_url,
        TOKEN=api.headers["Authorization"].removeprefix("Bearer "),
        CONNECTOR=desk.record["id"],
    )

    listed, accepted, refused = json.loads(output)
    schemas = (await api.get("/openapi.json")).json()["components"]["schemas"]
    models = (tmp_path / "generated" / "models" / "__init__.py").read_text()
    assert "unable to parse" not in said.lower()
    assert [name for name, schema in schemas.items() if "properties" in schema and f'"{name}"' not in models] == []
    assert (listed[0], len(listed[2]["result"])) == (200, 2)
    assert (accepted[0], accepted[2]["job"]["entity"]) == (202, "ticket_bulk_updates")
    assert (refused[0], refused[2]["code"]) == (422, "unknown_action")
