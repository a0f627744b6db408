"""`python -m gateway` and the `gateway` command."""

from gateway.cli import main

if __name__ == "__main__":
    main(prog_name="gateway")
