"""Use cases that run an operation: execute, search the copy, delete; with a cache of responses."""
