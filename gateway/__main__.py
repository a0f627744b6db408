"""`python -m gateway` and the `gateway` command."""

from gateway.cli import main as command
from gateway.foundation.aio.memory import collect_rarely


def main() -> None:
    """Run one command."""
    collect_rarely()
    command(prog_name="gateway")


if __name__ == "__main__":
    main()
