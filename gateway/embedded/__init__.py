"""Everything the gateway needs, started from wheels in one data directory: Postgres, Redis and our own processes."""


class StartupError(Exception):
    """The set-up cannot start; the text says what is wrong and how to fix it."""
