"""Proof that a process has ended, which lets its jobs go on before their leases run out."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from gateway.jobs.processes import has_ended, process_name


@pytest.fixture
async def process() -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
    yield started
    if started.returncode is None:
        started.kill()
        await started.wait()


def test_two_names_of_a_process_differ():
    assert process_name() != process_name()


def test_this_process_has_not_ended():
    assert not has_ended(process_name())


async def test_a_killed_process_has_ended(process):
    name = process_name(process.pid)
    before = has_ended(name)

    process.kill()
    await process.wait()

    assert (before, has_ended(name)) == (False, True)


async def test_a_frozen_process_has_not_ended(process):
    os.kill(process.pid, signal.SIGSTOP)

    assert not has_ended(process_name(process.pid))


@pytest.mark.parametrize(
    "name",
    [
        "worker-1",
        "",
        "host::abc12345:0123abcd",
        "host:4194303:0000beef:0123abcd",  # of another pid namespace
        "host:4194303::0123abcd",  # of a system that does not tell
    ],
)
def test_nothing_is_proven_about_a_process_that_cannot_be_seen_from_here(name):
    assert not has_ended(name)
