"""Runs commands in this process or in another one; returns their output and exit code."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from gateway.cli import main
from tests.harness.processes import GATEWAY


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


async def invoked(*words: str, environment: Mapping[str, str], directory: Path, stdin: bytes = b"") -> Ended:
    """Run a command in this process, in a thread; an uncaught exception fails the test."""
    others = {name: None for name in os.environ if name.startswith("GATEWAY_") and name not in environment}

    def invoke() -> Ended:
        with chdir(directory):
            result = CliRunner().invoke(
                main, words, input=stdin, env={**others, **environment}, prog_name="gateway", catch_exceptions=False
            )
        return Ended(result.exit_code, result.stdout, result.stderr)

    return await asyncio.to_thread(invoke)


async def started(*words: str, environment: Mapping[str, str], directory: Path) -> Process:
    """Start a command as a process."""
    streams = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
    return await asyncio.create_subprocess_exec(*GATEWAY, *words, env=environment, cwd=directory, **streams)


async def ran(*words: str, environment: Mapping[str, str], directory: Path, stdin: bytes = b"") -> Ended:
    """Run a command as a process to its end."""
    process = await started(*words, environment=environment, directory=directory)
    out, err = await process.communicate(stdin)
    return Ended(process.returncode or 0, out.decode(), err.decode())
