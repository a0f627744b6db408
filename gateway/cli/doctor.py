"""`gateway doctor` finds problems; `gateway status` shows queue, workers, connectors and copies."""

import sys
from importlib.metadata import version
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from gateway.cli.local_settings import local_settings
from gateway.cli.operator import run
from gateway.cli.output import Format, format_of, output_option, write
from gateway.foundation.db.pool import Database
from gateway.run.monitoring.health_checks import CheckResult, CheckStatus, check_results
from gateway.run.monitoring.statistics import Statistics, read_statistics
from gateway.settings import Settings

_MARKS = {CheckStatus.PASSED: ("✓", "green"), CheckStatus.WARNING: ("!", "yellow"), CheckStatus.FAILED: ("✗", "red")}


@click.command()
@output_option
def doctor(output_format: str | None) -> None:
    """Find configuration and runtime problems and say how to fix them; exit code 1 if there are any."""
    settings = local_settings()
    results = run(lambda: _examined(settings, is_shown=format_of(output_format) is Format.TABLE))
    if format_of(output_format) is not Format.TABLE:
        write(
            [{"status": each.status, "what": each.what, "message": each.message} for each in results],
            format_of(output_format),
        )
    sys.exit(1 if any(each.status is CheckStatus.FAILED for each in results) else 0)


async def _examined(settings: Settings, *, is_shown: bool) -> list[CheckResult]:
    console, results = Console(soft_wrap=True), []
    async for result in check_results(settings):
        results.append(result)
        if is_shown:
            mark, color = _MARKS[result.status]
            console.print(Text.assemble((mark, color), " ", (result.what, "bold"), ": ", result.message))
    return results


@click.command()
@output_option
def status(output_format: str | None) -> None:
    """Show queue, workers, connectors by status, and the age of the synchronized copies."""
    settings = local_settings()
    statistics = run(lambda: _statistics(settings))
    if format_of(output_format) is not Format.TABLE:
        write(_document(statistics), format_of(output_format))
        return
    for title, rows in _document(statistics).items():
        if isinstance(rows, list):
            Console().print(Text(f"\n{title}", style="bold"))
            write(rows, Format.TABLE)


async def _statistics(settings: Settings) -> Statistics:
    async with Database.open(
        settings.database_url, size=1, command_timeout=10, has_pooler=settings.has_pooler
    ) as database:
        return await read_statistics(database)


def _document(statistics: Statistics) -> dict[str, Any]:
    return {
        "version": version("agent-connector-gateway"),
        "jobs": [
            {"status": name, "jobs": each.jobs, "oldest_seconds": round(each.oldest, 1)}
            for name, each in statistics.jobs.items()
        ],
        "workers": [
            {
                "id": each.id,
                "is_alive": each.is_alive,
                "seen_seconds_ago": round(each.since_heartbeat, 1),
                "age_seconds": round(each.age),
            }
            for each in statistics.workers
        ],
        "connectors": [
            {"kind": kind, "status": status, "connectors": count}
            for (kind, status), count in statistics.connectors.items()
        ],
        "context_store": [
            {
                "kind": each.kind,
                "entity": each.entity,
                "copies": each.copies,
                "records": each.records,
                "failed": each.failed,
                "incomplete": each.incomplete,
                "held_deletions": each.held_deletions,
                "lag_seconds": round(each.lag),
            }
            for each in statistics.synchronization
        ],
    }
