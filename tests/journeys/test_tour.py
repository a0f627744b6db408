"""`gateway demo --tour`: a stranger sees processes killed and answers cut, and nothing lost or doubled."""

import asyncio
import sys

STEPS = (
    "kill the worker during an update of 250 tickets",
    "kill the front end during an update of 250 tickets",
    "lose the answer to a create: 1 created; the gateway says `outcome: unknown`",
    "send the create again under its key: 1 created still",
    "refuse two reads with 503: the gateway asked three times",
    "cut a download of 8 MiB in the middle: complete",
)


# Its processes are killed by the tour, and have 30 seconds until they are replaced.
async def test_the_tour_breaks_things_and_loses_and_doubles_nothing():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "demo", "--tour"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()

    assert process.returncode == 0, output
    for step in STEPS:
        assert f"✓ {step}" in output, output
    assert output.count("0 doubled") >= 2
    assert output.count("kill -9") == 2
