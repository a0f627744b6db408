"""Handlers: each translates a request into one call of the domain, and its result into an answer."""
