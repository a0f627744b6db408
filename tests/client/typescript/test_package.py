"""The TypeScript package as its users get it: packed by `npm pack` and installed in an empty folder."""

import json
import random
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.client import Gateway
from gateway.foundation.numbered_pages import Numbering, Place, step
from tests.client.typescript.generate_schema import SCHEMA, generated
from tests.foundation.test_numbered_pages import OFFSETS, PAGES, Application
from tests.harness.typescript import AI_SDK_7, COMPILER, NPM, PACKAGE, installed, needs_npm, node, run
from tests.harness.up import Running

pytestmark = [needs_npm, pytest.mark.processes]

HERE = Path(__file__).parent
README = (PACKAGE / "README.md").read_text("utf-8")
PROGRAMS = re.findall(r"^```ts\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
ROOT = PACKAGE.parents[2]
#: a model that calls a tool and says what it got
DRIVER = """
import { MockLanguageModelV3 } from "ai/test";
import { answer } from "./tools.ts";
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt, tools }) => {
    const got = prompt.filter(({ role }) => role === "tool");
    const toolName = tools?.map(({ name }) => name).find((name) => name.endsWith("tickets__get")) ?? "";
    const call = { type: "tool-call" as const, toolCallId: "1", toolName, input: '{"ticket_id": 1}' };
    const text = { type: "text" as const, text: JSON.stringify(got) };
    const reason = got.length ? ("stop" as const) : ("tool-calls" as const);
    return { content: [got.length ? text : call], finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
  },
});
console.log(await answer(model, "What is ticket 1?"));
"""
#: takes the steps of `walks.json` with the package
STEPS = """
import { readFileSync } from "node:fs";
import { beginning, step } from "./node_modules/agent-connector-gateway/dist/numbered_pages.js";
const walks = JSON.parse(readFileSync("walks.json", "utf-8"));
const taken = walks.map(({ numbering: { counts_records: countsRecords, ...others }, params, steps }) => {
  let place = beginning(params);
  return steps.map(([asked, names, following, incomplete]) => {
    const found = step({ ...others, countsRecords }, place, { asked, names, following, incomplete });
    place = found.place;
    return [asked, names, following, incomplete, found.fresh, found.following, found.incomplete];
  });
});
console.log(JSON.stringify(taken));
"""


def test_the_types_are_those_of_the_openapi_document():
    assert generated(Path(NPM or "")) == SCHEMA.read_text("utf-8"), "run `make typescript`"


def test_the_package_has_the_version_of_the_gateway_and_no_dependency(program):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package = json.loads((PACKAGE / "package.json").read_text())

    assert (package["name"], package["version"]) == (project["name"], project["version"])
    assert "dependencies" not in package
    locked = json.loads((PACKAGE / "package-lock.json").read_text())["packages"][""]
    assert all(package[name] == locked[name] for name in ("version", "engines", "peerDependencies", "devDependencies"))
    assert [each.name for each in (program / "node_modules").iterdir() if not each.name.startswith(".")] == [
        package["name"]
    ]


def test_each_file_has_a_source_map_with_its_source(program):
    dist = program / "node_modules" / json.loads((PACKAGE / "package.json").read_text())["name"] / "dist"
    sources = {path.stem: path.read_text("utf-8") for path in (PACKAGE / "src").glob("*.ts")}

    maps = {path.name.split(".")[0]: json.loads(path.read_text("utf-8")) for path in dist.glob("*.js.map")}

    assert {name: found["sourcesContent"] for name, found in maps.items()} == {
        name: [text] for name, text in sources.items()
    }


def variables_of(running: Running) -> dict[str, str]:
    return {
        "GATEWAY_URL": running.base_url,
        "GATEWAY_CLIENT_ID": running.client_id,
        "GATEWAY_CLIENT_SECRET": running.client_secret,
    }


def walk(choice: random.Random, numbering: Numbering) -> dict[str, Any]:
    """The steps of reading a list whose records move at random, as the Python client takes them."""
    ends, largest = choice.choice(["empty", "short", "total"]), choice.choice([7, 100])
    application = Application(
        numbering, list(range(choice.randrange(60))), ends, largest, choice.choice([None, None, 4])
    )
    params = choice.choice([{}, {"size": 10}, {"size": 5}])
    place, following, steps = Place(params=params), params, []
    while following is not None and len(steps) < 60:
        asked = dict(following)
        records, named, reason = application.page(asked)
        names = [str(record) for record in records]
        found = step(numbering, place, asked, names, following=named, incomplete=reason)
        place, following = found.place, found.following
        steps.append([asked, names, named, reason, list(found.new), following, found.incomplete])
        for _ in range(choice.choice([0, 0, 1, 3])):
            application.records.insert(choice.choice([0, 0, 1]), 1000 + len(steps))
            del application.records[choice.randrange(len(application.records))]
    return {"numbering": numbering._asdict(), "params": params, "steps": steps}


async def test_a_list_of_moving_records_is_read_by_the_steps_of_the_python_client(program):
    choice = random.Random(7)
    walks = [walk(choice, numbering) for _ in range(200) for numbering in (PAGES, OFFSETS)]
    (program / "walks.json").write_text(json.dumps(walks))

    said = await node(program, "node", "--input-type=module", "--eval", STEPS)

    assert json.loads(said) == [each["steps"] for each in walks]
    reasons = {taken[-1] for each in walks for taken in each["steps"]}
    assert len(reasons) == 3, reasons


async def test_the_programs_of_the_readme_run(running, program):
    whole, tools = PROGRAMS
    (program / "program.ts").write_text(whole)
    (program / "tools.ts").write_text(tools)
    (program / "drive.ts").write_text(DRIVER)

    await node(program, *COMPILER, "program.ts", "drive.ts")
    said = await node(program, "node", "program.ts", **variables_of(running))
    answered = await node(program, "node", "drive.ts", **variables_of(running))

    for line in (r"created \d+", "invalid_params .*sort_order.*", "done ", "120 of 120.*", "saved attachment.bin"):
        assert re.search(f"^{line}", said, flags=re.MULTILINE), said
    assert re.search(r"^\d+ job\.succeeded$", said, flags=re.MULTILINE), said
    assert "subject: 'The printer is on fire'" in said
    assert '"subject":' in answered


async def compiled(program: Path, *names: str) -> Path:
    """A folder with the programs as JavaScript, below which the packages are found."""
    await node(program, "tsc", *COMPILER[2:-1], "--outDir", "compiled", *names)
    (program / "compiled/package.json").write_text('{"type": "module"}')
    return program / "compiled"


async def test_the_compiled_program_runs_with_the_machines_node_also_by_require(running, program):
    (program / "program.ts").write_text(PROGRAMS[0])
    folder = await compiled(program, "program.ts")
    required = 'console.log(Object.keys(require("agent-connector-gateway")), require("agent-connector-gateway/ai"))'

    version = await run(folder, "node", "--version")
    said = await run(folder, "node", "program.js", **variables_of(running))
    (folder / "required.cjs").write_text(required)
    names = await run(folder, "node", "required.cjs")

    assert int(version[1:].split(".")[0]) >= int(
        json.loads((PACKAGE / "package.json").read_text())["engines"]["node"][2:]
    )
    assert "120 of 120" in said
    assert "'Gateway'" in names
    assert "aiTools" in names


@pytest.mark.skipif(AI_SDK_7 is None, reason="TYPESCRIPT_AI_7 names no folder with ai@7, typescript@5 and zod@4")
async def test_the_tools_are_those_of_version_7_of_the_ai_sdk_too(running, npm_package, tmp_path):
    program = await installed(npm_package, tmp_path, packages=Path(AI_SDK_7 or ""))
    (program / "tools.ts").write_text(PROGRAMS[1])
    (program / "drive.ts").write_text(DRIVER)

    await node(program, *COMPILER, "drive.ts")
    answered = await node(program, "node", "drive.ts", **variables_of(running))

    assert '"subject":' in answered


async def test_the_program_of_the_document_runs(running, program):
    page = (ROOT / "docs/how-to/typescript.md").read_text("utf-8")
    first, _ = re.findall(r"^```ts\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (program / "page.ts").write_text(first)
    async with Gateway(running.base_url, running.client_id, running.client_secret, "readme") as gateway:
        credentials = {"subdomain": "acme", "email": "a@example.com", "api_token": "t"}
        await gateway.connectors.create("support-desk", credentials, name="Help desk", if_exists="update")

    said = await node(program, "node", "page.ts", **variables_of(running))

    assert re.search(r"^succeeded 3 of 3", said, flags=re.MULTILINE), said
    assert (program / "attachment-2.bin").stat().st_size > 0


async def test_the_client_with_a_gateway_that_is_broken_in_many_ways(running, program):
    for name in ("client.test.ts", "relay.ts", "file_names.json"):
        shutil.copy(HERE / name, program)
    options = [f"--scope={scope}" for scope in ("read", "approve")]
    approver = await running.admin("client", "create", "approver", "--organization", running.organization_id, *options)
    variables = {
        **variables_of(running),
        "SANDBOX_URL": running.sandbox_url,
        "APPROVER_ID": approver["client_id"],
        "APPROVER_SECRET": approver["client_secret"],
    }

    await node(program, *COMPILER, "client.test.ts", "relay.ts")
    said = await node(program, "node", "--test", "--test-reporter=tap", "client.test.ts", **variables)

    assert re.search(r"^# fail 0$", said, flags=re.MULTILINE), said
