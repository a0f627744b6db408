"""Many connections in a process of their own, whose work delays no caller that another process measures.

    python -m tests.benchmarks.crowd URL

Reads pickled requests from standard input, one for each connection, which sends it as soon as the last one is answered.
When the input ends, it writes the number of answers by status as JSON.
"""

import asyncio
import pickle
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import uvloop

from tests.benchmarks.pressure import Callers


@dataclass
class Crowd:
    """A crowd that is at work, and, when it has ended, its answers."""

    answers: Mapping[str, int] = field(default_factory=dict)


@asynccontextmanager
async def crowd(url: str, requests: Sequence[bytes]) -> AsyncIterator[Crowd]:
    """A crowd at work within the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.benchmarks.crowd",
        url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(pickle.dumps(list(requests)))
    await process.stdin.drain()
    await process.stdout.readline()
    crowd = Crowd()
    try:
        yield crowd
    finally:
        process.stdin.close()  # which Python 3.11 does not do within `communicate`
        output, _ = await process.communicate()
        crowd.answers = msgspec.json.decode(output, type=dict[str, int])


async def _press(url: str) -> None:
    callers = Callers.prepared(url, pickle.load(sys.stdin.buffer))
    await callers.connect(len(callers.requests))
    callers.begin()
    print("begun", flush=True)
    answers = dict[int, int]()
    reading = asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    while not reading.done():
        for status, count in (await callers.counted(0.1)).answers.items():
            answers[status] = answers.get(status, 0) + count
    callers.close()
    print(msgspec.json.encode(answers).decode())


if __name__ == "__main__":
    uvloop.run(_press(sys.argv[1]))
