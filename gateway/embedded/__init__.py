"""Everything the gateway needs, in one data directory: PostgreSQL and Redis from wheels, and its own processes."""

#: exit status of a command that cannot use its arguments or settings: with the same ones it would end so again
UNUSABLE_SETTINGS = 2


class StartupError(Exception):
    """The set-up cannot start; the text says what is wrong and how to fix it."""
