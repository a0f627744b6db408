"""A group whose commands are imported when they are called; help and completion import none."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from gateway.cli.failures import errors_as_exit_codes
from gateway.kinds.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class Lazy:
    """A command that is not imported yet; `target` is `package.module:attribute`."""

    name: str
    target: str
    summary: str

    def load(self) -> click.Command:
        module, _, attribute = self.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


class LazyGroup(click.Group):
    """Commands in sections. An error of a command is printed as one line and sets the exit code."""

    def __init__(self, *args: Any, sections: dict[str, Sequence[Lazy]], **options: Any) -> None:
        super().__init__(*args, **options)
        self._sections = sections
        self._lazy = {command.name: command for commands in sections.values() for command in commands}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self._lazy.get(cmd_name)
        return None if found is None else found.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._lazy and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}; {did_you_mean(args[0], self._lazy)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(command.name, command.summary) for command in commands])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        known = [command for command in self._lazy.values() if command.name.startswith(incomplete)]
        return [
            *(CompletionItem(command.name, help=command.summary) for command in known),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def invoke(self, ctx: click.Context) -> Any:
        with errors_as_exit_codes():
            return super().invoke(ctx)
