"""`python -m gateway` and the `gateway` command."""

import click

from gateway.cli import operator


@click.group()
def main() -> None:
    """One gateway between software agents and business applications."""


for command in (
    operator.up,
    operator.serve,
    operator.worker,
    operator.sandbox,
    operator.migrate,
    operator.admin,
    operator.keys,
):
    main.add_command(command)

if __name__ == "__main__":
    main()
