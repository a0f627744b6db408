"""`gateway doctor` and `gateway status`: what is wrong, and how things stand."""

import sys
from importlib.metadata import version
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from gateway.cli.checks import Finding, Verdict, findings
from gateway.cli.local_settings import local_settings
from gateway.cli.operator import run
from gateway.cli.output import Format, format_of, output_option, write
from gateway.db.pool import Database
from gateway.settings import Settings
from gateway.telemetry.statistics import Figures, read_figures

_MARKS = {Verdict.WELL: ("✓", "green"), Verdict.ODD: ("!", "yellow"), Verdict.WRONG: ("✗", "red")}


@click.command()
@output_option
def doctor(wanted: str | None) -> None:
    """Look for what keeps the gateway from working, and say how to mend it; exit 1 when something does."""
    settings = local_settings()
    found = run(lambda: _examined(settings, is_shown=format_of(wanted) is Format.TABLE))
    if format_of(wanted) is not Format.TABLE:
        write([{"verdict": each.verdict, "what": each.what, "said": each.said} for each in found], format_of(wanted))
    sys.exit(1 if any(each.verdict is Verdict.WRONG for each in found) else 0)


async def _examined(settings: Settings, *, is_shown: bool) -> list[Finding]:
    console, found = Console(soft_wrap=True), []
    async for finding in findings(settings):
        found.append(finding)
        if is_shown:
            mark, color = _MARKS[finding.verdict]
            console.print(Text.assemble((mark, color), " ", (finding.what, "bold"), ": ", finding.said))
    return found


@click.command()
@output_option
def status(wanted: str | None) -> None:
    """Show queue, workers, connectors by status and how stale the copies of records are."""
    settings = local_settings()
    figures = run(lambda: _figures(settings))
    if format_of(wanted) is not Format.TABLE:
        write(_document(figures), format_of(wanted))
        return
    for title, rows in _document(figures).items():
        if isinstance(rows, list):
            Console().print(Text(f"\n{title}", style="bold"))
            write(rows, Format.TABLE)


async def _figures(settings: Settings) -> Figures:
    async with Database.open(settings.database_url, size=1, command_timeout=10) as database:
        return await read_figures(database)


def _document(figures: Figures) -> dict[str, Any]:
    return {
        "version": version("agent-connector-gateway"),
        "jobs": [
            {"status": name, "jobs": each.jobs, "oldest_seconds": round(each.oldest, 1)}
            for name, each in figures.jobs.items()
        ],
        "workers": [
            {
                "id": each.id,
                "is_there": each.is_there,
                "seen_seconds_ago": round(each.silent, 1),
                "age": round(each.age),
            }
            for each in figures.workers
        ],
        "connectors": [
            {"kind": kind, "status": status, "connectors": count}
            for (kind, status), count in figures.connectors.items()
        ],
        "context_store": [
            {
                "kind": each.kind,
                "entity": each.entity,
                "copies": each.copies,
                "records": each.records,
                "failed": each.failed,
                "lag_seconds": round(each.lag),
            }
            for each in figures.synchronization
        ],
    }
