"""Handlers: each translates a request into one call of a use case, and the result into a response."""
