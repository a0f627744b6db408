"""Exports: all pages of a list or a search, collected into a stored file by a job."""
