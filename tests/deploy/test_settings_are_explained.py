"""The settings class, gateway.env.example and deploy/README.md say the same of every setting."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.run.monitoring.health_checks import OTHER_VARIABLES
from gateway.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
#: for `gateway up` to set, not for operators
INNER = {"embedded"}
SETTINGS = {f"GATEWAY_{name.upper()}": field for name, field in Settings.model_fields.items() if name not in INNER}
ENTRY = re.compile(r"((?:# .*\n)+)#(GATEWAY_[A-Z_]+)=(.*)\n")
ROW = re.compile(r"\| `(GATEWAY_[A-Z_]+)` \| (?:`(.*?)`)? *\| (.*) \|\n")


NAME = re.compile(r"GATEWAY_[A-Z0-9_]*[A-Z0-9]")
#: members of families, whose names hold that of a kind
OF_A_KIND = re.compile(r"GATEWAY_(UPSTREAM|OAUTH)(_.*)?")
NAMING = [
    *(path for path in DEPLOY.rglob("*") if path.is_file() and path.parent.name != "requirements"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "specs/README.md")),
]


def shown(value: Any) -> str:
    """A default as an environment writes it."""
    match value:
        case None | ():
            return ""
        case dict():
            return json.dumps(value)
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def explained() -> dict[str, tuple[str, str]]:
    """Default and meaning of each setting, as the program has them."""
    return {
        name: (shown(field.get_default(call_default_factory=True)), field.description or "")
        for name, field in SETTINGS.items()
    }


@pytest.fixture(scope="module")
def example() -> dict[str, tuple[str, str]]:
    entries = ENTRY.findall((DEPLOY / "gateway.env.example").read_text("utf-8"))
    return {name: (default, " ".join(comment.replace("\n# ", " ")[2:].split())) for comment, name, default in entries}


@pytest.fixture(scope="module")
def table() -> dict[str, tuple[str, str]]:
    rows = ROW.findall((DEPLOY / "README.md").read_text("utf-8"))
    return {name: (default, meaning) for name, default, meaning in rows}


def test_the_example_explains_every_setting_and_no_other(example: dict[str, tuple[str, str]]):
    assert {name: each for name, each in example.items() if name in SETTINGS} == explained()
    assert all(name.startswith(("GATEWAY_OAUTH_", "GATEWAY_UPSTREAM_")) for name in example.keys() - SETTINGS.keys())


def test_the_readme_explains_every_setting_and_no_other(table: dict[str, tuple[str, str]]):
    assert table == explained()


def test_every_variable_that_a_document_or_a_manifest_names_is_one():
    compose = set(re.findall(r"\$\{(GATEWAY_\w+)", (DEPLOY / "compose.yaml").read_text("utf-8")))
    known = {*SETTINGS, *compose, *(f"GATEWAY_{name}" for name in OTHER_VARIABLES)}

    unknown = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in NAMING
        for name in NAME.findall(path.read_text("utf-8"))
        if name not in known and not OF_A_KIND.fullmatch(name)
    }

    assert unknown == set()


def test_the_example_can_be_read_as_it_is(monkeypatch: pytest.MonkeyPatch):
    untold = Settings().model_dump(exclude=INNER)
    for line in (DEPLOY / "gateway.env.example").read_text("utf-8").splitlines():
        if line.startswith("#GATEWAY_") and not line.endswith("="):
            name, _, value = line[1:].partition("=")
            monkeypatch.setenv(name, value)

    told = Settings().model_dump(exclude=INNER)

    assert told == untold
