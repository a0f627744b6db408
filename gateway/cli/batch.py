"""`gateway batch`: many operations of one connector as one job."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.cli.client_session import calls_gateway, connector_option
from gateway.cli.failures import EXIT_CODES, Exit, complain, note
from gateway.cli.output import format_option, is_table, write, write_stream
from gateway.cli.progress import follow
from gateway.cli.words import printable
from gateway.client import Connector, Gateway, Job
from gateway.foundation import payloads

_COLUMNS = ("index", "id", "status", "error")
_FILE_HELP = """\b
FILE has one operation per line (NDJSON), or is a JSON array of operations;
- reads stdin:
  {"entity": "tickets", "action": "update", "params": {"ticket_id": 1, "ticket": {"status": "solved"}}}
An operation may have an id, which is repeated in its result.
"""


@click.command(epilog=f"{_FILE_HELP}\n{EXIT_CODES}")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@connector_option("Connector, or its kind; not needed if the workspace has one connector.")
@click.option(
    "--concurrency", type=click.IntRange(1, 100), metavar="N", help="Maximum number of concurrent operations."
)
@click.option("--stop-on-error", is_flag=True, help="Send no more operations after the first that does not succeed.")
@click.option("--steps", is_flag=True, help='Run up to 20 operations in order; params may be {"$from": "<id>.<path>"}.')
@click.option("--fail-on-partial", is_flag=True, help="Exit code 6 unless every operation succeeds.")
@click.option("--async", "is_async", is_flag=True, help="Print the job without waiting for it.")
@click.option("--idempotency-key", metavar="KEY", help="A repeated batch with the same key is not run again.")
@format_option
@calls_gateway
async def batch(
    gateway: Gateway,
    file: Path,
    connector: str | None,
    concurrency: int | None,
    stop_on_error: bool,
    steps: bool,
    fail_on_partial: bool,
    is_async: bool,
    idempotency_key: str | None,
) -> None:
    """Run the operations of FILE as one job and print a result for each.

    \b
    gateway batch close.ndjson -c support-desk
    gateway batch close.ndjson -c support-desk -o ndjson > results.ndjson
    """
    operations = _operations(file)
    found = await _connector(gateway, connector)
    options: dict[str, Any] = {"concurrency": concurrency, "stop_on_error": stop_on_error, "steps": steps}
    job = await gateway.batch(found, operations, idempotency_key=idempotency_key, **options)
    if is_async:
        write({"id": job.id, "status": job.status})
        note(f"follow it with: gateway jobs watch {job.id}")
        return
    job = await follow(job)
    counts: Counter[str] = Counter()
    if job.status == "succeeded":
        await write_stream(_rows(job, counts), _COLUMNS)
        partial = None if counts["succeeded"] == len(operations) else job.view.message
    else:
        partial = f"the job is {job.status}: {job.view.message or ''}"
    if partial is not None:
        complain(printable(partial))
    if job.status != "succeeded" or (fail_on_partial and partial is not None):
        raise SystemExit(Exit.JOB)


async def _connector(gateway: Gateway, name: str | None) -> Connector:
    if name is not None:
        return await gateway.connectors.resolve(name)
    found = await gateway.connectors.list()
    if len(found) != 1:
        raise click.UsageError(f"the workspace has {len(found)} connectors; name one with --connector")
    return found[0]


async def _rows(job: Job, counts: Counter[str]) -> AsyncIterator[dict[str, Any]]:
    """A result for each operation, counted by its status; for a table, an error is only its `detail`."""
    async for line in job.records():
        counts[line["status"]] += 1
        if is_table() and "error" in line:
            line = {**line, "error": line["error"]["detail"]}
        yield line


def _operations(file: Path) -> list[dict[str, Any]]:
    """The operations of a file; raises BadParameter."""
    try:
        with click.open_file(str(file), "rb") as opened:
            text = opened.read().removeprefix(payloads.BYTE_ORDER_MARK)
        if text.lstrip()[:1] == b"[":
            found = msgspec.json.decode(text, type=list[dict[str, Any]])
        else:
            found = msgspec.json.Decoder(dict[str, Any]).decode_lines(text)
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="FILE") from error
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"{file} is neither NDJSON nor a JSON array: {error}", param_hint="FILE") from error
    if not found:
        raise click.BadParameter(f"{file} has no operations", param_hint="FILE")
    return found
