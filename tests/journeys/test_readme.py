"""Every example of the README, run as it stands."""

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?^```(sh|python)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL
)


def test_the_examples_are_found():
    assert [title for title, _, _ in EXAMPLES] == [
        "First call",
        "An agent's tool",
        "A bulk update",
        "A download that survives a lost connection",
        "Without a server",
        "On the command line",
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


async def run(running, place, language: str, code: str) -> bytes:
    """What an example prints in a shell that has sourced the environment of `make run`."""
    if "| jq" in code and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    command = ["bash", "-euo", "pipefail", "-c"] if language == "sh" else [sys.executable, "-c"]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GATEWAY_URL": running.base_url,
        "GATEWAY_CLIENT_ID": running.client_id,
        "GATEWAY_CLIENT_SECRET": running.client_secret,
        "SANDBOX_URL": running.sandbox_url,
    }
    process = await asyncio.create_subprocess_exec(
        *command, code, cwd=place, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, output.decode()
    return output


@pytest.mark.parametrize(("title", "language", "code"), EXAMPLES, ids=[title for title, _, _ in EXAMPLES])
async def test_an_example_runs_as_it_stands(running, place, title, language, code):
    output = await run(running, place, language, code)

    assert b'"error"' not in output
    assert b"'error'" not in output
    assert b"None" not in output.split()
    assert output.strip()


async def test_the_first_call_made_again_finds_the_connector_that_is_there(running, place, api):
    [(_, language, code)] = [example for example in EXAMPLES if example[0] == "First call"]

    await run(running, place, language, code)
    await run(running, place, language, code)

    connectors = await api.get("/api/v1/integrations/connectors?workspace_name=readme")
    assert len(connectors.json()["data"]) == 1
