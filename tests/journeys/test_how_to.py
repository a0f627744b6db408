"""The examples of docs/how-to in shell and Python, run as they stand after the README's first call."""

import re
from pathlib import Path

import pytest

from gateway.client import Gateway
from tests.journeys.test_readme import run

HOW_TO = Path(__file__).parents[2] / "docs/how-to"
PAGES = ("batches", "call", "connect-links", "exports", "find-operations", "jobs", "schedules", "search")
BLOCK = re.compile(r"^```(sh|console|python)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
#: a word that stands for an id of the reader's own
PLACEHOLDER = re.compile(r"\b(JOB|LINK|SCHEDULE)\b")
#: what calls a model
AGENT = re.compile(r"create_agent|Agent\(|call\.name")


def commands(console: str) -> list[str]:
    """The lines of a block that are typed, those that go on below joined."""
    typed = re.findall(r"^\$ (.*)$", console.replace("\\\n", ""), flags=re.MULTILINE)
    return [line for line in typed if not PLACEHOLDER.search(line)]


def program(fragment: str) -> str:
    """A whole program of a fragment, which has a gateway at hand unless it opens one."""
    within = "" if "async with Gateway" in fragment else "async with Gateway() as gateway:\n"
    body = within + "".join(f"{'    ' if within else ''}{line}\n" for line in fragment.splitlines())
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return f"import asyncio\nfrom gateway.client import Gateway\n\nasync def main():\n{indented}\nasyncio.run(main())\n"


@pytest.fixture(scope="module")
async def before(running) -> str:
    """What the shell has at hand after the README's first call and what the page on calls begins with."""
    async with Gateway(running.base_url, running.client_id, running.client_secret, "readme") as gateway:
        credentials = {"subdomain": "acme", "email": "a@example.com", "api_token": "t"}
        desk = await gateway.connectors.create("support-desk", credentials, name="Help desk", if_exists="update")
    first = BLOCK.search((HOW_TO / "call.md").read_text("utf-8"))
    return f"CONNECTOR={desk.id}\n{first[2]}"


@pytest.mark.parametrize("page", PAGES)
async def test_the_examples_of_a_page_run_as_they_stand(running, before, tmp_path, page):
    blocks = BLOCK.findall((HOW_TO / f"{page}.md").read_text("utf-8"))
    shell = [text for language, text in blocks if language == "sh"]
    typed = [line for language, text in blocks if language == "console" for line in commands(text)]
    programs = [program(text) for language, text in blocks if language == "python" and not AGENT.search(text)]

    output = await run(running, tmp_path, "sh", "\n".join([before, *shell, *typed]))
    for number, text in enumerate(programs):
        (tmp_path / f"program_{number}.py").write_text(text)
        output += await run(running, tmp_path, "sh", f"{before}\npython program_{number}.py")

    assert min(len(shell), len(typed), len(programs)) > 0
    assert b"urn:gateway:error" not in output
