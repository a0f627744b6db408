"""`gateway completion`: the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

_HINTS = {
    "bash": 'eval "$(gateway completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(gateway completion zsh)"   # in ~/.zshrc',
    "fish": "gateway completion fish | source   # in ~/.config/fish/config.fish",
}


@click.command(epilog="\b\n" + "\n".join(_HINTS.values()))
@click.argument("shell", type=click.Choice(list(_HINTS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, kinds, entities and actions in SHELL."""
    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root()
    click.echo(found(root.command, {}, "gateway", "_GATEWAY_COMPLETE").source())
