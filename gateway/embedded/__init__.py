"""Everything the gateway needs, in one data directory: PostgreSQL and Redis from wheels, and its own processes."""


class StartupError(Exception):
    """The set-up cannot start; the text says what is wrong and how to fix it."""
