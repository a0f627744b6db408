"""`gateway help` and `gateway version`: the same as --help and --version."""

from importlib import metadata

import click


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, or of all commands."""
    assert ctx.parent is not None
    shown, command = ctx.parent, ctx.parent.command
    for word in words:
        if not isinstance(command, click.Group):
            ctx.fail(f"{shown.command_path} has no commands")
        name, found, _ = command.resolve_command(shown, [word])
        assert found is not None
        shown, command = click.Context(found, info_name=name, parent=shown), found
    click.echo(command.get_help(shown))


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"gateway, version {metadata.version('agent-connector-gateway')}")
