"""Exports: a job collects all pages of a list or a search into a stored file."""
