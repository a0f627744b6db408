"""The programs of docs/how-to/python.md, run as they stand after the README's first call, and read by mypy."""

import re
from pathlib import Path

import pytest

from gateway.client import Gateway
from tests.journeys.test_readme import run
from tests.type_checking import mypy

DOCUMENT = (Path(__file__).parents[2] / "docs/how-to/python.md").read_text("utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
[COMMAND] = re.findall(r"^\$ (gateway types .*)$", DOCUMENT, flags=re.MULTILINE)


@pytest.fixture(scope="module")
async def place(running, tmp_path_factory):
    """A folder for the programs, with a connector in the workspace that they name."""
    async with Gateway(running.base_url, running.client_id, running.client_secret, "readme") as gateway:
        credentials = {"subdomain": "acme", "email": "a@example.com", "api_token": "t"}
        await gateway.connectors.create("support-desk", credentials, name="Help desk", if_exists="update")
    folder = tmp_path_factory.mktemp("python")
    (folder / "support_desk.py").write_bytes(await run(running, folder, "sh", COMMAND.partition(" > ")[0]))
    return folder


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
async def test_a_program_runs_and_is_typed(running, place, number):
    program = place / f"program_{number}.py"
    program.write_text(PROGRAMS[number])

    await run(running, place, "python", PROGRAMS[number])

    said = mypy(program)
    assert said.returncode == 0, said.stdout
