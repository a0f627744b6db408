"""`gateway jobs`: list, watch, cancel and retry jobs, and read their results."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.cli.client_session import connector_option, gateway_options, open_gateway, run
from gateway.cli.failures import EXIT_CODES, Exit, complain, note
from gateway.cli.output import Format, format_of, output_option, write, write_stream
from gateway.cli.progress import follow
from gateway.cli.shell_completion import complete_job
from gateway.cli.words import printable, size_of
from gateway.client import Gateway, Job, JobView

_COLUMNS = ("id", "status", "kind", "entity", "created_at", "message")
#: characters of a job's id that a table shows, and that commands accept in its place
_SHORT_ID = 8
#: number of newest jobs among which a short id is looked up
_LOOKED_UP = 1000


@click.group(epilog=EXIT_CODES)
def jobs() -> None:
    """Jobs: batches, exports, bulk updates, reports, synchronizations, and calls with --async."""


@jobs.command("list")
@click.option(
    "--status", metavar="STATUS", help="Only queued, running, waiting, succeeded, failed, canceled or unknown jobs."
)
@click.option("--entity", metavar="ENTITY", help="Only jobs of this entity.")
@connector_option("Only jobs of this connector.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number of jobs.")
@output_option
@gateway_options
def list_jobs(
    status: str | None, entity: str | None, connector: str | None, limit: int, output_format: str | None, **where: Any
) -> None:
    """List jobs, newest first."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            of = None if connector is None else (await gateway.connectors.resolve(connector)).id
            found = gateway.jobs.list(status=status, connector_id=of, entity=entity, limit=limit)
            if format_of(output_format) is Format.TABLE:
                kinds = {each.id: each.kind for each in await gateway.connectors.list(in_every_workspace=True)}
                write([_row(job.view, kinds) async for job in found], Format.TABLE, _COLUMNS)
            else:
                await write_stream(_views(found), format_of(output_format), _COLUMNS)

    run(work())


async def _views(jobs: AsyncIterator[Job]) -> AsyncIterator[dict[str, Any]]:
    async for job in jobs:
        yield msgspec.to_builtins(job.view)


def _row(view: JobView, kinds: Mapping[str, str]) -> dict[str, Any]:
    """A job as a table row, with its short id and the kind of its connector."""
    return {**msgspec.to_builtins(view), "id": view.id[:_SHORT_ID], "kind": kinds.get(view.connector_id or "")}


async def _job(gateway: Gateway, job_id: str) -> Job:
    """The job with this id, or the one of the newest jobs whose id begins with it; raises NotFound and UsageError."""
    if not _SHORT_ID <= len(job_id) < 36:
        return await gateway.jobs.get(job_id)
    found = [job async for job in gateway.jobs.list(limit=_LOOKED_UP) if job.id.startswith(job_id)]
    if len(found) > 1:
        raise click.UsageError(f"{job_id} begins the ids of {len(found)} jobs: {', '.join(job.id for job in found)}")
    return found[0] if found else await gateway.jobs.get(job_id)


@jobs.command()
@click.argument("job_id", shell_complete=complete_job)
@output_option
@gateway_options
def show(job_id: str, output_format: str | None, **where: Any) -> None:
    """Show the current state of a job."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            write(msgspec.to_builtins((await _job(gateway, job_id)).view), format_of(output_format))

    run(work())


@jobs.command()
@click.argument("job_id", shell_complete=complete_job)
@click.option("--fail-on-partial", is_flag=True, help="Exit code 6 also if some items of the job failed.")
@output_option
@gateway_options
def watch(job_id: str, fail_on_partial: bool, output_format: str | None, **where: Any) -> None:
    """Wait until a job ends. The exit code is 6 unless it succeeds. With -o ndjson, print each event."""

    async def work() -> tuple[Job, int]:
        async with open_gateway(**where) as gateway:
            job = await _job(gateway, job_id)
            if output_format == Format.NDJSON:
                async for event in job.events():
                    write({"event": event.name, "event_id": event.id, **event.data}, Format.NDJSON)
                job = await job.refresh()
            else:
                job = await follow(job)
                write(msgspec.to_builtins(job.view), format_of(output_format))
            return job, await _failed_items(job) if fail_on_partial else 0

    job, failed = run(work())
    require_success(job)
    require_complete(failed)


async def _failed_items(job: Job) -> int:
    """The number of items of a bulk job or a batch that did not succeed, although the job did."""
    if job.status != "succeeded" or job.view.action == "download":
        return 0
    return failed_items((await job.result()).result)


def failed_items(result: Any) -> int:
    """The number of items in the result of a bulk operation or a batch that did not succeed."""
    if not isinstance(result, dict) or not isinstance(result.get("results"), list):
        return 0
    total, succeeded = result.get("total"), result.get("succeeded")
    return (
        total - succeeded if isinstance(total, int) and isinstance(succeeded, int) else int(result.get("failed") or 0)
    )


def require_complete(failed: int) -> None:
    """Exit with the code of a failed job if items of a job that succeeded did not succeed."""
    if failed:
        complain(f"the job succeeded, but {failed} of its items failed")
        raise SystemExit(Exit.JOB)


@jobs.command()
@click.argument("job_id", shell_complete=complete_job)
@click.option("--save", "to", type=click.Path(path_type=Path), metavar="FILE", help="File to write the result to.")
@output_option
@gateway_options
def result(job_id: str, to: Path | None, output_format: str | None, **where: Any) -> None:
    """Wait for a job and print its result. With -o ndjson, stream one record per line."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            job = await follow(await _job(gateway, job_id))
            if to is not None:
                saved = await job.download(to)
                note(f"saved {saved.path} ({size_of(saved.size)}, sha256 {saved.sha256})")
            elif format_of(output_format) is Format.NDJSON:
                await write_stream(job.records(), Format.NDJSON)
            else:
                write((await job.result()).result, format_of(output_format))

    run(work())


@jobs.command()
@click.argument("job_id", shell_complete=complete_job)
@gateway_options
def cancel(job_id: str, **where: Any) -> None:
    """Cancel a job. A request already sent to the application is allowed to finish."""

    async def work() -> Job:
        async with open_gateway(**where) as gateway:
            return await (await _job(gateway, job_id)).cancel()

    note(f"cancellation requested; the job is {run(work()).status}")


@jobs.command()
@click.argument("job_id", shell_complete=complete_job)
@click.option("--confirm", is_flag=True, help="Retry even a write that may have happened already.")
@click.option("--watch", "wants_watch", is_flag=True, help="Wait until the new job ends.")
@gateway_options
def retry(job_id: str, confirm: bool, wants_watch: bool, **where: Any) -> None:
    """Run a job again as a new job, and print the new job's id."""

    async def work() -> Job:
        async with open_gateway(**where) as gateway:
            job = await (await _job(gateway, job_id)).retry(confirm=confirm)
            click.echo(job.id)
            return await follow(job) if wants_watch else job

    again = run(work())
    if wants_watch:
        require_success(again)


def require_success(job: Job) -> None:
    """Unless the job succeeded, print its error and exit with code 6."""
    if job.status != "succeeded":
        message = (job.view.error and job.view.error.detail) or job.view.message or ""
        complain(printable(f"the job is {job.status}{': ' if message else ''}{message}"))
        raise SystemExit(Exit.JOB)
