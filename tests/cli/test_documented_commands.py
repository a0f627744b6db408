"""The commands in documents, manifests and pages exist, with each option that they have there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gateway.cli import main
from tests.test_names import DOCUMENTS, ROOT

PLACES = [
    *DOCUMENTS,
    *sorted((ROOT / "deploy").rglob("*.md")),
    ROOT / "Makefile",
    ROOT / "deploy/compose.yaml",
    *sorted((ROOT / "gateway/web/pages/templates").rglob("*.html")),
]
#: a command in code: in backticks, after the prompt of a shell, at the beginning of a line, or in $(…), <(…) and pipes
COMMAND = re.compile(r"(?:`|^\$ |^|\$\(|<\(|[|] |&& |; )gateway (?=[a-z-])([^`\n]*)", re.MULTILINE)
#: what ends a command on its line
END = re.compile(r"(?<!\\)[|;<>&)(#]|\$\(|  ")
FENCES = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELLS = {"", "sh", "bash", "console"}


def code_of(path: Path) -> str:
    """The code of a document: its blocks of shell, with continued lines joined, and its backticks."""
    text = path.read_text("utf-8").replace("\\\n", " ")
    if path.suffix != ".md":
        return re.sub(r"</?code>", "`", text) if path.suffix == ".html" else text
    blocks = [block for language, block in FENCES.findall(text) if language in SHELLS]
    return "\n".join([*blocks, *re.findall(r"`gateway [^`\n]+`", FENCES.sub("", text))])


def commands_in(path: Path) -> Iterator[str]:
    for found in COMMAND.findall(code_of(path)):
        yield END.split(found)[0].strip()


def fault_of(line: str) -> str | None:
    """What the command line does not have; None if it could be called."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    command: click.Command = main
    known: set[str] = {"--help", "--version"}
    for word in words:
        known |= {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
        known |= {name for each in command.params if isinstance(each, click.Option) for name in each.secondary_opts}
        if word.startswith("--") and word != "--":
            if word.partition("=")[0] not in known:
                return f"no option {word}"
        elif isinstance(command, click.Group) and not word.startswith("-") and word[:1].islower():
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"no command {word}"
            command = found
    return None


@pytest.mark.parametrize("path", PLACES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_a_document_exists_with_its_options(path: Path):
    faults = {line: fault for line in commands_in(path) if (fault := fault_of(line)) is not None}

    assert faults == {}


def test_the_commands_are_found():
    lines = {line for path in PLACES for line in commands_in(path)}

    assert len(lines) > 150
    assert fault_of("admin organization make acme") == "no command make"
    assert fault_of("jobs list --stati failed") == "no option --stati"
