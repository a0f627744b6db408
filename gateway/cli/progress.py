"""Progress of long work: a bar on a terminal, nothing elsewhere, and a hint after Ctrl-C."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from gateway.cli.failures import note
from gateway.cli.words import printable
from gateway.client import Job, JobView


def bars_on(console: Console, *columns: ProgressColumn) -> Progress:
    """Progress bars; if the console is not a terminal, nothing is printed."""
    return Progress(*columns, console=console, transient=True, disable=not console.file.isatty())


def _bars(*columns: ProgressColumn) -> Progress:
    return bars_on(Console(stderr=True), *columns)


async def follow(job: Job) -> Job:
    """Show a job's progress until it ends. After Ctrl-C the job continues, and a note says how to watch it again."""
    with _bars(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[of]}"), TimeElapsedColumn()
    ) as bars:
        shown = bars.add_task("…", total=None, of="")
        try:
            return await job.wait(on_change=lambda view: _show(bars, shown, view))
        except asyncio.CancelledError:
            bars.stop()
            note(f"the job continues; see it with: gateway jobs watch {job.id}")
            raise


def _show(bars: Progress, task: TaskID, view: JobView) -> None:
    what = view.message or f"{view.entity or ''} {view.status}".strip()
    of = "" if view.total is None else f"{view.progress}/{view.total}"
    bars.update(task, description=printable(what), completed=view.progress, total=view.total, of=of)


@contextmanager
def download_bar(name: str) -> Iterator["DownloadBar"]:
    """A bar for the bytes of a file."""
    with _bars(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()) as bars:
        yield DownloadBar(bars, bars.add_task(printable(name), total=None))


class DownloadBar:
    """The progress callback of a download: called with the bytes received and, if known, the size of the file."""

    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars = bars
        self._task = task
        self.at = 0

    def __call__(self, at: int, of: int | None) -> None:
        self.at = at
        self._bars.update(self._task, completed=at, total=of)
