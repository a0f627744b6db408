"""Runs the gateway in one data directory: PostgreSQL and Redis from wheels, front ends and workers."""

#: exit status of a command whose arguments or settings are invalid, so that a restart without a correction is useless
UNUSABLE_SETTINGS = 2


class StartupError(Exception):
    """A program cannot start; the message says what is wrong and how to fix it."""
