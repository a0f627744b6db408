"""The steps of `gateway demo`: each is timed, printed and required to have the right outcome."""

import time
from collections.abc import Awaitable, Callable

from rich.console import Console
from rich.table import Table


class DemoFailed(Exception):
    """A step of the demo had a wrong outcome."""


def require(holds: bool, otherwise: str) -> None:
    """Raise DemoFailed with the text unless the condition holds."""
    if not holds:
        raise DemoFailed(otherwise)


class Steps:
    """The steps of a demo, each timed and printed."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._done: list[tuple[str, str, float]] = []

    async def step(self, title: str, work: Callable[[], Awaitable[str]]) -> None:
        """Run a step and print its title and result."""
        started = time.monotonic()
        outcome = await work()
        self._done.append((title, outcome, time.monotonic() - started))
        self.console.print(f"[green]✓[/] {title}: {outcome}", soft_wrap=True)

    def print_summary(self) -> None:
        table = Table(title="Steps", title_justify="left")
        table.add_column("step")
        table.add_column("outcome")
        table.add_column("seconds", justify="right")
        for title, outcome, seconds in self._done:
            table.add_row(title, outcome, f"{seconds:.2f}")
        self.console.print(table)
